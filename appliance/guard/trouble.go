package guard

import (
	"fmt"

	"assent.home.arpa/appliance/ipc"
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
		return "the record is full:", "export it"
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
