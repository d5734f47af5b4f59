package executor

import (
	"fmt"

	"assent.home.arpa/capabilities"
)

// explain says in a sentence what a code means for the person who reads it.
func explain(status capabilities.Status, code capabilities.Code) string {
	switch code {
	case capabilities.CodeUnknownCapability:
		return "there is no capability of exactly that name"
	case capabilities.CodeNotConfigured:
		return "this is not set up on the box"
	case capabilities.CodeUndisplayable:
		return "the box cannot show this text faithfully, so nobody can agree to it"
	case capabilities.CodeNoAsk:
		return "no question of a paired phone is open; ask again"
	case capabilities.CodeNotAllowed:
		return "this phone may not do that"
	case capabilities.CodeBudget:
		return "too many proposals in this turn"
	case capabilities.CodeFrozen:
		return "the box is frozen; it can only be released with its buttons"
	case capabilities.CodeCoolDown:
		return "too many requests came to nothing at the box; wait before you ask for something that needs a press again"
	case capabilities.CodeDeniedInTurn:
		return "it was denied in this turn; rewording it changes nothing"
	case capabilities.CodeClockUnset:
		return "the box does not know the date, so it cannot check whom it talks to"
	case capabilities.CodeBusy:
		return "this phone already has a request at the box"
	case capabilities.CodeDisplayUnavailable:
		return "the box cannot rely on its display or its buttons, so nothing was approved"
	case capabilities.CodeReceiptStale:
		return "something changed after the press, so nothing was done"
	case capabilities.CodeAuditUnavailable:
		if status == capabilities.Unknown {
			return "it was sent, but its outcome could not be recorded"
		}
		return "the audit cannot be written, so nothing was done"
	case capabilities.CodeCourierUnavailable:
		return "the part of the box that makes connections is not running"
	case capabilities.CodeGrantRefused:
		return "the permission was refused; nothing was sent"
	case capabilities.CodeUnreachable:
		return "the destination does not answer; nothing was sent"
	case capabilities.CodeRemoteError:
		return "the destination answered that it failed"
	case capabilities.CodeRedirect:
		return "the destination pointed elsewhere; the box follows nothing by itself"
	case capabilities.CodeBadResponse:
		return "the answer broke its rules and was dropped"
	case capabilities.CodeTimeout:
		return "no answer in time"
	case capabilities.CodeInterrupted:
		return "it was interrupted"
	case capabilities.CodeInternal:
		return "an error of the box; nothing more is known"
	}
	switch status {
	case capabilities.Denied:
		return "denied; do not ask for it again in this turn"
	case capabilities.Expired:
		return "nobody decided in time"
	case capabilities.ExpiredUnseen:
		return "nobody came to the box to read it"
	case capabilities.Withdrawn:
		return "taken back before it was decided"
	}
	return fmt.Sprintf("%s: %s", status, code)
}
