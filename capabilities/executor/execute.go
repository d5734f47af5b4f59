package executor

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"crypto/sha256"
	"errors"
	"reflect"
	"time"

	"assent.home.arpa/appliance/audit"
	"assent.home.arpa/appliance/clock"
	"assent.home.arpa/appliance/deadline"
	"assent.home.arpa/appliance/grant"
	"assent.home.arpa/appliance/ipc"
	"assent.home.arpa/capabilities"
	"assent.home.arpa/confirm"
)

// grace is how long after a grant's deadline its answer is waited for: the courier ends the worker at the deadline itself.
const grace = 5 * time.Second

// Grant is the permission to make one call, ready to leave for the courier. The zero value permits nothing, and only
// newGrant makes another.
type Grant struct {
	inv     capabilities.InvocationID
	signed  []byte
	pressed bool
}

// Inv names the call.
func (g Grant) Inv() capabilities.InvocationID { return g.inv }

// Pressed reports whether the call needed a press, so that a freeze stops it.
func (g Grant) Pressed() bool { return g.pressed }

// Message returns what is sent to the courier. It fails for the zero value.
func (g Grant) Message() (*ipc.Execute, error) {
	if len(g.signed) == 0 {
		return nil, errors.New("executor: the zero grant permits nothing")
	}
	return &ipc.Execute{Grant: g.signed}, nil
}

// permission is why a call may be made: policy lets it run by itself, or somebody pressed. The zero value is no reason.
type permission struct {
	automatic bool
	evidence  confirm.Evidence
}

func (p permission) valid() bool { return p.automatic != (p.evidence.Digest != [32]byte{}) }

// newGrant signs the exact call that was recorded. It demands a reason and a durable intent for this very invocation.
func newGrant(key ed25519.PrivateKey, c *call, p permission, intent audit.Intent, challenge [32]byte, boot [16]byte, until time.Duration) (Grant, error) {
	switch {
	case !p.valid() || p.automatic == c.verdict.NeedsPress:
		return Grant{}, errors.New("executor: no permission for this call")
	case !intent.Valid() || intent.Inv() != c.inv:
		return Grant{}, errors.New("executor: no durable intent for this call")
	}
	signed, err := grant.Sign(key, grant.Claims{
		Inv: c.inv, Capability: c.spec.Name, Version: c.spec.Version, Revision: c.spec.Revision, Class: c.spec.Class,
		Args: c.plan.Args, ArgsDigest: c.args, Request: c.plan.Request, Receipt: p.evidence.Digest,
		Intent: uint64(intent.Seq()), Challenge: challenge, BootID: boot, Deadline: until, Body: c.spec.Bounds.Body,
	})
	if err != nil {
		return Grant{}, err
	}
	return Grant{inv: c.inv, signed: signed, pressed: !p.automatic}, nil
}

// execute spends the permission: receipt, barrier 1, grant, answer, barrier 2.
func (e *Executor) execute(ctx context.Context, c *call) ipc.Outcome {
	p, end := e.permit(ctx, c)
	if end != nil {
		return e.end(ctx, c, end)
	}
	challenge, connected := e.cfg.Courier.Challenge()
	if !connected {
		return e.end(ctx, c, &ending{stage: capabilities.StageExecute, status: capabilities.Failed, code: capabilities.CodeCourierUnavailable})
	}
	// Nobody who goes away from here on can keep the outcome from being recorded.
	asker := ctx
	ctx = context.WithoutCancel(ctx)
	start := e.cfg.Clock.Boot()
	until := start + c.spec.Bounds.Timeout
	intent, err := e.intend(ctx, c, p, until)
	if err != nil {
		return e.end(ctx, c, &ending{stage: capabilities.StageExecute, status: capabilities.Failed, code: capabilities.CodeAuditUnavailable})
	}
	g, r := e.attempt(ctx, asker, c, p, intent, challenge, until)
	r.duration = e.cfg.Clock.Boot() - start
	return e.settle(ctx, c, intent, g, r)
}

// attempt turns the promise into a grant and spends it, unless the flash took so long to take the promise that it may no
// longer be kept: a panic, or the end of the ask, in that time leaves nothing to be sent.
func (e *Executor) attempt(ctx, asker context.Context, c *call, p permission, intent audit.Intent, challenge [32]byte, until time.Duration) (Grant, result) {
	switch {
	case !p.automatic && e.cfg.Frozen():
		return Grant{}, result{status: capabilities.Failed, code: capabilities.CodeFrozen}
	case asker.Err() != nil || !c.Turn.Live(e.cfg.Clock.Boot()):
		return Grant{}, result{status: capabilities.Failed, code: capabilities.CodeNoAsk}
	}
	g, err := newGrant(e.cfg.GrantKey, c, p, intent, challenge, e.cfg.BootID, until)
	if err != nil {
		return Grant{}, result{status: capabilities.Failed, code: capabilities.CodeInternal}
	}
	return g, e.spend(ctx, c, g, until)
}

// permit checks, as the last thing before the promise is recorded, that the world is still the one that was approved, and
// consumes the receipt whatever it finds.
func (e *Executor) permit(ctx context.Context, c *call) (permission, *ending) {
	stale := e.changed(c)
	if !c.verdict.NeedsPress {
		if stale {
			return permission{}, rejected(capabilities.StageExecute, capabilities.CodeReceiptStale)
		}
		return permission{automatic: true}, nil
	}
	evidence, err := e.cfg.Desk.Redeem(c.decision.Receipt, confirm.Binding{
		Inv: c.inv, ArgsDigest: c.args, RequestDigest: c.request,
		Capability: c.spec.Name, Version: c.spec.Version, Revision: c.spec.Revision,
		SchemaDigest: c.capability.SchemaDigest, Registry: e.cfg.Registry.Revision(), Slot: c.Turn.person.Slot,
	})
	if err == nil {
		c.evidence = evidence
	}
	switch {
	case e.cfg.Frozen():
		return permission{}, rejected(capabilities.StageExecute, capabilities.CodeFrozen)
	case ctx.Err() != nil || !c.Turn.Live(e.cfg.Clock.Boot()):
		return permission{}, &ending{stage: capabilities.StageExecute, status: capabilities.Withdrawn}
	case err != nil, stale, c.decision.ScreenDigest != c.drawn.digest, evidence.Digest != sha256.Sum256(evidence.COSE):
		return permission{}, rejected(capabilities.StageExecute, capabilities.CodeReceiptStale)
	}
	return permission{evidence: evidence}, nil
}

// changed plans the call anew and reports whether anything differs from what was shown.
func (e *Executor) changed(c *call) bool {
	found, err := e.cfg.Registry.Lookup(string(c.Name))
	if err != nil || found.Digest != c.capability.Digest {
		return true
	}
	plan, err := found.Plan(c.Arguments)
	if err != nil || !reflect.DeepEqual(plan, c.plan) {
		return true
	}
	_, wall := e.cfg.Clock.Wall()
	return usesTLS(plan.Request) && wall == clock.Unset
}

// result is what is believed of an execution.
type result struct {
	status   capabilities.Status
	code     capabilities.Code
	sent     bool
	duration time.Duration
	answered bool // the courier returned a result
	envelope ipc.Envelope
	body     []byte
}

// spend sends the grant and judges what comes back.
func (e *Executor) spend(ctx context.Context, c *call, g Grant, until time.Duration) result {
	ctx, cancel := deadline.With(ctx, e.cfg.Clock, until+grace)
	defer cancel(nil)
	answer, err := e.cfg.Courier.Execute(ctx, g)
	var refusal *ipc.Error
	switch {
	case err == nil && answer != nil:
		return judge(c, answer)
	case errors.As(err, &refusal):
		return result{status: capabilities.Failed, code: refusalCode(refusal.Code)}
	case errors.Is(err, ErrFrozen):
		return result{status: capabilities.Failed, code: capabilities.CodeFrozen}
	case errors.Is(err, ErrNotSent):
		return result{status: capabilities.Failed, code: capabilities.CodeCourierUnavailable}
	case ctx.Err() != nil:
		return result{status: capabilities.Unknown, code: capabilities.CodeTimeout, sent: true}
	}
	return result{status: capabilities.Unknown, code: capabilities.CodeInterrupted, sent: true}
}

// judge decodes nothing that came from outside. It holds the worker's claims, numbers and digests, against the grant.
func judge(c *call, a *ipc.Result) result {
	r := result{status: a.Status, code: answerCode(a.Code), sent: a.Sent, answered: true}
	if a.Envelope != nil {
		r.envelope = *a.Envelope
	}
	bad := a.Inv != c.inv || a.Status < capabilities.Done || a.Status > capabilities.Unknown || r.code != a.Code
	switch a.Status {
	case capabilities.Done:
		bad = bad || a.Envelope == nil || a.Code != "" || len(a.Body) == 0 || len(a.Body) > c.spec.Bounds.Body ||
			r.envelope.RequestDigest != c.request || r.envelope.BodyDigest != sha256.Sum256(a.Body)
	default:
		// A body that explains a failure would be an answer that nobody checked.
		bad = bad || a.Code == "" || len(a.Body) != 0
	}
	if bad {
		r.code = capabilities.CodeBadResponse
		r.status = capabilities.Failed
	}
	// Where an effect may have begun, a failure that does not come from the other side is not known to be one.
	if r.status == capabilities.Failed && r.sent && c.spec.Effect != capabilities.Read && r.code != capabilities.CodeRemoteError {
		r.status = capabilities.Unknown
	}
	if r.status == capabilities.Done {
		r.body = bytes.Clone(a.Body)
	}
	return r
}

// refusalCode admits the codes with which a courier may refuse a grant.
func refusalCode(code capabilities.Code) capabilities.Code {
	switch code {
	case capabilities.CodeUnreachable, capabilities.CodeCourierUnavailable, capabilities.CodeTimeout, capabilities.CodeInterrupted, capabilities.CodeInternal:
		return code
	}
	return capabilities.CodeGrantRefused
}

// answerCode admits the codes that a worker's result may carry.
func answerCode(code capabilities.Code) capabilities.Code {
	switch code {
	case "", capabilities.CodeUnreachable, capabilities.CodeRemoteError, capabilities.CodeRedirect, capabilities.CodeBadResponse,
		capabilities.CodeTimeout, capabilities.CodeInterrupted, capabilities.CodeInternal, capabilities.CodeGrantRefused,
		capabilities.CodeNotConfigured:
		return code
	}
	return capabilities.CodeBadResponse
}
