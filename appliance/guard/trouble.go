package guard

import (
	"context"
	"fmt"

	"assent.home.arpa/appliance/audit"
	"assent.home.arpa/appliance/ipc"
	"assent.home.arpa/confirm"
)

// auditState is told when the audit gets lost, why, and when it comes back.
func (g *guard) auditState(err error) {
	if err == nil {
		g.log.Info("audit works again")
	} else {
		g.log.Error("audit unavailable: nothing can be executed", "err", err)
	}
	switch trouble(err) {
	case 0:
		g.tell(ipc.Notice{Class: ipc.NoticeAuditBack})
	case ipc.AuditFull:
		g.tell(ipc.Notice{Class: ipc.NoticeAuditFull})
	case ipc.AuditDamaged:
		g.tell(ipc.Notice{Class: ipc.NoticeAuditDamaged})
	default:
		g.tell(ipc.Notice{Class: ipc.NoticeAuditLost})
	}
	if g.desk != nil { // it may be lost from the start
		g.showIdle()
	}
}

// idleNote is what the idle screen says of the audit or, where that works, of what nobody has seen yet.
func idleNote(t ipc.AuditTrouble, unknown int) (note, hint string) {
	switch {
	case t == ipc.AuditFull:
		return "the record is full:", "hold both buttons 3s"
	case t == ipc.AuditDamaged:
		return "record is damaged:", "hold both buttons 3s"
	case t != 0:
		return "record not written:", "restart the box"
	case unknown == 1:
		return "1 unknown outcome", "see it on a phone"
	case unknown > 1:
		return fmt.Sprintf("%d unknown outcomes", unknown), "see them on a phone"
	}
	return "", ""
}

// offerNewLog asks whoever made the gesture at the box whether the damaged log is to be kept aside and a new one begun.
// Until somebody there says so nothing is executed, and nothing of the damaged log is touched.
func (g *guard) offerNewLog(ctx context.Context) {
	const title, text = "Begin a new log?", "The damaged one is kept aside"
	d, err := g.desk.AskAdmin(ctx, confirm.AdminRequest{Kind: confirm.AdminReset, Title: title, Text: text})
	if err != nil || d.Outcome != confirm.AdminConfirmed {
		g.log.Warn("no new log was begun", "outcome", d.Outcome.String(), "err", err) // there is no audit to hold a no
		return
	}
	ctx = context.WithoutCancel(ctx)
	kept, err := g.journal.renew(ctx)
	if err != nil {
		g.log.Error("a new log could not be begun", "err", err)
		return
	}
	g.log.Warn("a new log was begun", "damaged", kept.Dir)
	if err := g.inbox.orphan(); err != nil {
		g.log.Error("inbox not stored", "err", err)
	}
	blob, digest := audit.BlobOf(audit.BlobAdmin, [16]byte{}, []byte(title+"\n"+text))
	act := audit.Admin{Action: audit.AdminReset, By: audit.ByBox, Subject: "log, kept in " + kept.Dir, Before: kept.Link, Text: digest}
	blobs := append(asked(&act, d), blob)
	g.record(ctx, act, blobs...)
	g.showIdle()
}

const roomTitle, roomText = "Make room?", "Delete its oldest 1/4. Is a copy checked on a PC?"

// offerRoom asks whoever made the gesture at the box whether the oldest quarter of a full record is to be given up. Nothing is
// given up without that, and what is asked does not say whether there is a copy: that one is good is only the word of what wrote it.
func (g *guard) offerRoom(ctx context.Context, last uint32) {
	const title, text = roomTitle, roomText
	d, err := g.desk.AskAdmin(ctx, confirm.AdminRequest{Kind: confirm.AdminPrune, Title: title, Text: text})
	if err != nil {
		g.log.Warn("nothing was removed from the record", "err", err)
		return
	}
	blob, digest := audit.BlobOf(audit.BlobAdmin, [16]byte{}, []byte(title+"\n"+text))
	act := audit.Admin{Action: audit.AdminPrune, By: audit.ByBox, Text: digest}
	ctx = context.WithoutCancel(ctx)
	asked(&act, d)
	act.Pages = nil // a full record has no room for pictures; the text tells as much
	if d.Outcome != confirm.AdminConfirmed {
		g.record(ctx, act, blob)
		return
	}
	if err := g.journal.prune(ctx, last, act, blob); err != nil {
		g.log.Error("the record could not be pruned", "err", err)
	}
	g.showIdle()
}
