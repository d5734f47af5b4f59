package guard

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"assent.home.arpa/appliance/audit"
	"assent.home.arpa/appliance/audit/export"
	"assent.home.arpa/appliance/ipc"
	"assent.home.arpa/confirm"
)

// What a copy onto a stick and one for the cable have in common.

// askCopy offers, while asking is not done, to copy the record to where text says, for the phone in slot if one asked for it, and
// records what somebody at the box decided. It returns the record of a yes, or 0 where nothing can be recorded.
func (g *guard) askCopy(ctx, asking context.Context, text string, slot uint32) (approved audit.Seq, outcome confirm.AdminOutcome) {
	const title = stickTitle
	d, err := g.desk.AskAdmin(asking, confirm.AdminRequest{Kind: confirm.AdminExport, Title: title, Text: text, Offer: true, Afresh: slot != 0})
	if err != nil {
		g.log.Error("the copy could not be offered", "err", err)
		return 0, 0
	}
	blob, digest := audit.BlobOf(audit.BlobAdmin, [16]byte{}, []byte(title+"\n"+text))
	act := audit.Admin{Action: audit.AdminExport, By: audit.ByBox, Slot: slot, Text: digest}
	entries := append(asked(&act, d), blob)
	if g.journal.crowded() { // a full record has no room for pictures; the text tells as much
		act.Pages, entries = nil, []audit.Entry{blob}
	}
	switch d.Outcome {
	case confirm.AdminConfirmed:
	case confirm.AdminDenied, confirm.AdminExpired, confirm.AdminPanicked: // decided at the box, so recorded where somebody saw it
		if d.Pages != nil {
			g.record(ctx, act, entries...)
		}
		return 0, d.Outcome
	default:
		return 0, d.Outcome
	}
	// A log that cannot be written is what a copy is wanted of most; then there is nothing to record it in.
	seqs, err := g.journal.barrier(context.WithoutCancel(ctx), append(entries, audit.Entry{Payload: act})...)
	if err != nil {
		g.log.Error("the copy is made without a record of it", "err", err)
		return 0, d.Outcome
	}
	return seqs[len(seqs)-1], d.Outcome
}

// call has an exporter perform one operation.
func (k *stick) call(ctx context.Context, op *ipc.StickOp) (*ipc.StickReply, error) {
	m, err := k.client.Call(ctx, op, nil)
	if err != nil {
		return nil, err
	}
	r, ok := m.(*ipc.StickReply)
	if !ok {
		return nil, fmt.Errorf("%w: an exporter answered with kind %d", ipc.ErrProtocol, m.Kind())
	}
	return r, nil
}

// writeTo writes a copy of the record onto a volume, and has the exporter let go of it.
func (g *guard) writeTo(ctx context.Context, k *stick, v *stickVolume) (export.Report, error) {
	report, err := export.Write(ctx, os.DirFS(g.auditDir()), v, export.Options{
		Name: g.opts.Config.Box.Name, Clock: g.opts.Clock, ByBox: true, Progress: g.progress(k),
	})
	if err == nil {
		err = v.end()
	}
	return report, err
}

func (g *guard) auditDir() string { return filepath.Join(g.opts.StateDir, "audit") }

// describe says in the record what was copied.
func describe(e *audit.Export, r export.Report) {
	e.FirstSegment, e.LastSegment, e.Last, e.LastLink = r.FirstSegment, r.LastSegment, r.Log.Head.Seq, r.Log.Head.Link
	e.Sums, e.Redacted = r.Sums, r.Redacted
	if e.OK = r.Log.Status == audit.Intact; !e.OK {
		e.Code = "log_" + r.Log.Status.String()
	}
}
