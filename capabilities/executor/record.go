package executor

import (
	"context"
	"crypto/sha256"
	"math"
	"time"

	"assent.home.arpa/appliance/audit"
	"assent.home.arpa/appliance/clock"
	"assent.home.arpa/appliance/ipc"
	"assent.home.arpa/capabilities"
	"assent.home.arpa/capabilities/policy"
	"assent.home.arpa/confirm"
	"assent.home.arpa/confirm/screen"
	"assent.home.arpa/device"
)

// Limits of what is kept of a proposal besides its digest.
const (
	maxRaw       = 16 << 10 // bytes of a name or of arguments as the model wrote them
	pagesPerBlob = 64
)

// end records that a stage ended the call and returns the outcome. Nothing was executed, so an audit that cannot take the
// record changes no effect; but it is said.
func (e *Executor) end(ctx context.Context, c *call, end *ending) ipc.Outcome {
	entries := c.beginning(e)
	entries = append(entries, c.approvalEntries()...)
	if c.withdrawn.by == audit.ByPhone {
		entries = append(entries, c.entry(audit.Withdraw{By: audit.ByPhone, Slot: c.withdrawn.slot, Deny: c.withdrawn.denied}))
	}
	entries = append(entries, c.entry(c.refusal(end, e.cfg.Clock.Boot())))
	if err := e.cfg.Journal.Append(context.WithoutCancel(ctx), entries...); err != nil && end.code != capabilities.CodeAuditUnavailable {
		end = &ending{stage: capabilities.StageRecord, status: end.status, code: capabilities.CodeAuditUnavailable, retryIn: end.retryIn}
	}
	o := c.outcome()
	o.Stage, o.Status, o.Code, o.Message = end.stage, end.status, end.code, end.message
	if o.Message == "" {
		o.Message = explain(end.status, end.code)
	}
	o.RetryIn = uint32((end.retryIn + time.Second - 1) / time.Second)
	return o
}

// intend is barrier 1: it returns once the promise is on flash.
func (e *Executor) intend(ctx context.Context, c *call, p permission, until time.Duration) (audit.Intent, error) {
	entries := append(c.beginning(e), c.approvalEntries()...)
	intent := audit.IntentRecord{
		ArgsDigest: c.args, EffectID: audit.ID(c.inv), RequestDigest: c.request, Deadline: until,
		Class: c.spec.Class, Idempotent: c.spec.Idempotent, ReceiptDigest: p.evidence.Digest,
	}
	if c.plan.Destination != "" {
		where := []byte(c.plan.Destination)
		intent.Destination = sha256.Sum256(where)
		entries = c.keep(entries, audit.BlobDestination, where)
	}
	return e.cfg.Journal.Intend(ctx, entries, intent, c.inv)
}

// settle is barrier 2: what became of the promise is on flash before anybody hears of it.
func (e *Executor) settle(ctx context.Context, c *call, intent audit.Intent, g Grant, r result) ipc.Outcome {
	if r.answered && c.spec.Network != capabilities.NetworkNone {
		c.Turn.conversation.Read(source(c))
	}
	effect := audit.EffectRecord{
		Status: r.status, Code: r.code, Duration: max(0, r.duration), Sent: r.sent,
		RequestDigest: r.envelope.RequestDigest, AnswerDigest: r.envelope.AnswerDigest,
		HTTPStatus: r.envelope.HTTPStatus, Items: r.envelope.Items, Truncated: r.envelope.Truncated,
	}
	if len(g.signed) > 0 {
		effect.GrantDigest = sha256.Sum256(g.signed)
	}
	if r.sent && c.spec.Class == capabilities.ClassNet {
		effect.Attempts = 1
	}
	if r.status == capabilities.Done {
		effect.ResultDigest, effect.ResultBytes = sha256.Sum256(r.body), uint64(len(r.body))
	}
	if wall, state := e.cfg.Clock.Wall(); state != clock.Unset && r.answered {
		effect.Retrieved = wall.UnixMilli()
	}
	observe := audit.Observe{
		Intent: intent.Seq(), Source: string(c.spec.Name), Status: r.status, Code: r.code,
		Final: r.status != capabilities.Unknown, By: audit.ByGuard,
	}
	if r.status == capabilities.Unknown && e.cfg.Frozen() {
		effect.Cause = audit.CausePanic
	}
	if r.status == capabilities.Done {
		observe.Matches = audit.Yes // digests of request and body are those of the grant and of the envelope
	}
	o := c.outcome()
	seq, err := e.cfg.Journal.Effect(ctx, intent, effect, c.entry(observe))
	if err != nil {
		o.Stage, o.Status, o.Code = capabilities.StageRecord, capabilities.Unknown, capabilities.CodeAuditUnavailable
		o.Message = explain(o.Status, o.Code)
		return o
	}
	o.Stage, o.Status, o.Code, o.Seq = capabilities.StageExecute, r.status, r.code, uint64(seq)
	o.Body, o.Retrieved = r.body, effect.Retrieved
	if r.status != capabilities.Done {
		o.Message = explain(r.status, r.code)
	}
	return o
}

// source names what was read, as the banner will.
func source(c *call) string {
	if c.plan.Destination != "" {
		return c.plan.Destination
	}
	return string(c.spec.Name)
}

func (c *call) outcome() ipc.Outcome {
	return ipc.Outcome{Inv: c.inv, Name: c.spec.Name, Version: c.spec.Version, Revision: c.spec.Revision}
}

func (c *call) entry(p audit.Payload) audit.Entry { return audit.Entry{Inv: c.inv, Payload: p} }

// keep adds a blob, unless the capability's log policy withholds literal payloads or it is too large for one.
func (c *call) keep(entries []audit.Entry, purpose audit.Purpose, b []byte) []audit.Entry {
	resolved := c.spec.Name != ""
	if len(b) == 0 || len(b) > audit.MaxBlob || (resolved && c.spec.Log <= capabilities.LogOmit) {
		return entries
	}
	blob, _ := audit.BlobOf(purpose, c.inv, b)
	return append(entries, blob)
}

// beginning is the proposal and, where policy passed it, that verdict, unless both were recorded before the card was shown.
func (c *call) beginning(e *Executor) []audit.Entry {
	if c.noted {
		return nil
	}
	entries := c.proposalEntries(e)
	if c.verdict.Allow {
		entries = append(entries, c.entry(c.allowed()))
	}
	return entries
}

// proposalEntries is the candidate as it came, and as far as it was understood. Of what nobody asked for only digests
// are kept.
func (c *call) proposalEntries(e *Executor) []audit.Entry {
	p := audit.Proposal{
		Capability: c.spec.Name, Version: c.spec.Version, Revision: c.spec.Revision, SchemaDigest: c.capability.SchemaDigest,
		ArgsDigest: c.args, RawDigest: sha256.Sum256(c.Arguments), RunDigest: c.RunDigest, Step: c.Step, Index: c.Index,
		Log: c.spec.Log, Registry: e.cfg.Registry.Digest(),
	}
	var entries []audit.Entry
	if len(c.Name) <= audit.MaxName {
		p.Name = c.Name
	}
	if t := c.Turn; t != nil {
		p.Slot, p.Person = t.person.Slot, t.person.ID
		p.Ask, p.AskDigest, p.AskCounter = audit.ID(t.ask.ID), t.ask.TextDigest, t.ask.Counter
		p.Conversation = audit.ID(t.ask.Conversation)
		for _, s := range c.taint {
			p.Taint = append(p.Taint, audit.Bytes(s))
		}
		if len(c.Arguments) <= maxRaw {
			entries = c.keep(entries, audit.BlobRaw, c.Arguments)
		}
		if len(c.Name) > audit.MaxName && len(c.Name) <= maxRaw {
			entries = c.keep(entries, audit.BlobRaw, c.Name)
		}
		if len(t.ask.Signed) > 0 {
			p.SignedAsk = sha256.Sum256(t.ask.Signed)
			entries = c.keep(entries, audit.BlobAsk, t.ask.Signed)
		}
	}
	if len(c.plan.Args) > 0 {
		entries = c.keep(entries, audit.BlobArguments, c.plan.Args)
		if c.plan.Request != nil {
			entries = c.keep(entries, audit.BlobRequest, c.plan.Request.Preimage())
		}
		if c.spec.Log == capabilities.LogView {
			view := []byte(c.plan.Title + "\n" + c.plan.Text + "\n" + c.plan.Destination)
			p.ArgsView = sha256.Sum256(view)
			entries = c.keep(entries, audit.BlobView, view)
		}
	}
	return append(entries, c.entry(p))
}

// allowed is policy's verdict on a call that may go on.
func (c *call) allowed() audit.Decision {
	d := c.judged(audit.Decision{Stage: capabilities.StagePolicy, Verdict: audit.Allow, Rule: string(c.verdict.Rule)})
	if c.verdict.NeedsPress {
		d.Verdict = audit.Confirm
	}
	return d
}

func (c *call) refusal(end *ending, now time.Duration) audit.Decision {
	d := c.judged(audit.Decision{
		Stage: end.stage, Verdict: audit.Refuse, Status: end.status, Code: end.code, Rule: string(end.rule),
		Field: audit.Bytes(end.field), Reason: end.message,
	})
	if d.Reason == "" {
		d.Reason = explain(end.status, end.code)
	}
	if end.retryIn > 0 {
		d.Next = now + end.retryIn
	}
	switch {
	case c.withdrawn.by != 0 && end.stage == capabilities.StageConfirm:
		d.By = c.withdrawn.by
	case end.status == capabilities.Denied:
		d.By = audit.ByBox
	}
	return d
}

func (c *call) judged(d audit.Decision) audit.Decision {
	d.PolicyDigest = policy.Digest()
	d.Effect, d.Network, d.Privacy = c.spec.Effect, c.spec.Network, c.spec.Privacy
	if c.Turn != nil {
		d.Role = uint8(c.Turn.person.Role)
	}
	return d
}

// approvalEntries is what happened at the panel, with its picture. An approval is recorded as one only with its receipt.
func (c *call) approvalEntries() []audit.Entry {
	if !c.asked {
		return nil
	}
	d, ev := c.decision, c.evidence
	if d.Outcome == confirm.Approved && len(ev.COSE) == 0 {
		return nil // the receipt was not accepted: the refusal that follows says so
	}
	a := audit.Approval{
		Outcome: audit.ApprovalOutcome(d.Outcome), Receipt: ev.COSE, ScreenDigest: d.ScreenDigest,
		ArgsDigest: c.args, RequestDigest: c.request, PageCount: uint16(len(d.Pages)), Queued: c.queued, Fronted: d.Fronted, Mode: audit.Mode(d.Mode),
		Shown: max(0, d.Shown), Pressed: max(0, d.Pressed), Completed: max(0, d.Completed), Expires: max(0, d.Expires),
		By: c.withdrawn.by, Presses: d.Course.Presses,
	}
	a.Steps, a.LeftOut = Steps(d.Course)
	switch d.Outcome {
	case confirm.Approved, confirm.Denied, confirm.Expired, confirm.ExpiredUnseen, confirm.Panicked:
		a.By = audit.ByBox
	}
	if a.By == audit.ByPhone {
		a.Slot = c.withdrawn.slot
	}
	var entries []audit.Entry
	if c.spec.Log > capabilities.LogOmit {
		entries, a.Pages = Pictures(c.inv, d.Pages)
	}
	return append(entries, c.entry(a))
}

// Pictures packs the drawn pages, frame after frame, in as few blobs as they fit.
func Pictures(inv [16]byte, pages []screen.Page) (entries []audit.Entry, digests []audit.Digest) {
	for len(pages) > 0 && len(digests) < audit.MaxPageBlobs {
		n := min(len(pages), pagesPerBlob)
		b := make([]byte, 0, n*len(device.Frame{}))
		for i := range pages[:n] {
			b = append(b, pages[i].Frame[:]...)
		}
		blob, digest := audit.BlobOf(audit.BlobPages, inv, b)
		entries, digests, pages = append(entries, blob), append(digests, digest), pages[n:]
	}
	return entries, digests
}

// Steps is what happened at the panel as the audit holds it.
func Steps(c confirm.Course) (steps []audit.PanelStep, leftOut uint16) {
	for _, s := range c.Steps {
		steps = append(steps, audit.PanelStep{
			At: max(0, s.Mono), State: audit.PanelState(s.State), Cause: audit.PanelCause(s.Cause), Page: uint16(s.Page),
		})
	}
	return steps, uint16(min(c.LeftOut, math.MaxUint16))
}
