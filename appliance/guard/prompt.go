package guard

import (
	"assent.home.arpa/appliance/audit"
	"assent.home.arpa/capabilities/executor"
	"assent.home.arpa/confirm"
)

// asked writes what became of a prompt at the panel into the record of its act, and returns the pictures that were drawn.
func asked(a *audit.Admin, d confirm.AdminDecision) []audit.Entry {
	a.Outcome, a.ScreenDigest = adminOutcome(d.Outcome), d.ScreenDigest
	a.Shown, a.Pressed, a.Completed, a.Presses = max(0, d.Shown), max(0, d.Pressed), max(0, d.Completed), d.Course.Presses
	a.Steps, a.LeftOut = executor.Steps(d.Course)
	blobs, digests := executor.Pictures([16]byte{}, d.Pages)
	a.Pages = digests
	return blobs
}

func adminOutcome(o confirm.AdminOutcome) audit.ApprovalOutcome {
	switch o {
	case confirm.AdminConfirmed:
		return audit.Approved
	case confirm.AdminDenied:
		return audit.Denied
	case confirm.AdminExpired:
		return audit.Expired
	case confirm.AdminPanicked:
		return audit.Panicked
	case confirm.AdminDisplayLost:
		return audit.DisplayLost
	case confirm.AdminBusy, confirm.AdminNoGesture:
		return audit.Busy
	}
	return audit.Withdrawn
}
