package gateway

import (
	"context"
	"errors"

	"assent.home.arpa/appliance/conversation"
	"assent.home.arpa/appliance/ipc"
	"assent.home.arpa/appliance/wire"
	"assent.home.arpa/capabilities"
	"assent.home.arpa/inference"
)

// Codes of the errors that a phone hears from the gateway itself.
const (
	codeUnknownType     capabilities.Code = "unknown_type"
	codeBadFrame        capabilities.Code = "bad_frame"
	codeHelloFirst      capabilities.Code = "hello_first"
	codeNotPaired       capabilities.Code = "not_paired"
	codeTooFast         capabilities.Code = "too_fast"
	codeBadQuestion     capabilities.Code = "bad_question"
	codeTurnRunning     capabilities.Code = "turn_running"
	codeNotFound        capabilities.Code = "not_found"
	codeNoTurn          capabilities.Code = "no_turn"
	codeNotPending      capabilities.Code = "not_pending"
	codePairingBusy     capabilities.Code = "pairing_busy"
	codePairingRefused  capabilities.Code = "pairing_refused"
	codeGuardGone       capabilities.Code = "guard_unavailable"
	codeModelGone       capabilities.Code = "model_unavailable"
	codeNoModel         capabilities.Code = "no_model"
	codeTooManySessions capabilities.Code = "too_many_connections"
)

func badFrame(err error) wire.Error {
	return wire.Error{Code: codeBadFrame, Message: "the box did not understand this: " + err.Error() + "; reload the page"}
}

func problem(code capabilities.Code, message string) wire.Error {
	return wire.Error{Code: code, Message: message}
}

func retry(code capabilities.Code, message string) wire.Error {
	return wire.Error{Code: code, Message: message, Retry: true}
}

// explain says to a person what became of a question that could not be dealt with. What it does not know it does not
// repeat: an error's text may hold what a person or a peer wrote.
func explain(err error) wire.Error {
	var said *ipc.Error
	switch {
	case errors.As(err, &said):
		return wire.Error{Code: said.Code, Message: said.Message}
	case errors.Is(err, errGuardGone), errors.Is(err, ipc.ErrClosed):
		return retry(codeGuardGone, "the part of the box that guards requests is not answering; wait a moment and ask again, and restart the box if this stays")
	case errors.Is(err, inference.ErrAbsent):
		return retry(codeNoModel, "there is no model on this box yet; write one to its card with assent flash --model FILE. If one is there it is just starting: ask again in a minute")
	case errors.Is(err, inference.ErrUnavailable):
		return retry(codeModelGone, "the model is not ready; it may still be loading, so wait a minute and ask again")
	case errors.Is(err, conversation.ErrTurnRunning):
		return retry(codeTurnRunning, "the box still works on a question in this conversation; wait for it or stop it")
	case errors.Is(err, conversation.ErrNotFound):
		return problem(codeNotFound, "this phone has no such conversation; begin a new one")
	case errors.Is(err, inference.ErrInterrupted):
		return retry(codeModelGone, "the model stopped in the middle of its answer; ask again")
	case errors.Is(err, context.Canceled):
		return retry(capabilities.CodeInterrupted, "the turn was stopped")
	case errors.Is(err, context.DeadlineExceeded):
		return retry(capabilities.CodeTimeout, "the box took too long; ask again, perhaps with a shorter question")
	}
	return retry(capabilities.CodeInternal, "something went wrong in the box; ask again, and look at the box's log if this stays")
}

// auditLost is the notice of a trouble that goes on.
func auditLost(t ipc.AuditTrouble) ipc.NoticeClass {
	switch t {
	case ipc.AuditFull:
		return ipc.NoticeAuditFull
	case ipc.AuditDamaged:
		return ipc.NoticeAuditDamaged
	}
	return ipc.NoticeAuditLost
}

// notices are the words for what the guard says has changed.
func notice(c ipc.NoticeClass) (wire.Notice, bool) {
	switch c {
	case ipc.NoticeFrozen:
		return wire.Notice{Class: "frozen", Message: "The box is frozen: nothing that needs a press happens until somebody holds both of its buttons for 3 seconds and does what its screen says."}, true
	case ipc.NoticeUnfrozen:
		return wire.Notice{Class: "unfrozen", Message: "The box was released: requests that need a press work again."}, true
	case ipc.NoticePairingOpen:
		return wire.Notice{Class: "pairing_open", Message: "The box is ready to pair a phone."}, true
	case ipc.NoticePairingClosed:
		return wire.Notice{Class: "pairing_closed", Message: "Pairing is closed. Hold both buttons on the box to open it."}, true
	case ipc.NoticeDisplayLost:
		return wire.Notice{Class: "display_lost", Message: "The box's screen does not answer, so nothing can be approved. Check its cable."}, true
	case ipc.NoticeDisplayBack:
		return wire.Notice{Class: "display_back", Message: "The box's screen works again."}, true
	case ipc.NoticeAuditLost:
		return wire.Notice{Class: "audit_lost", Message: "The box cannot write its record, so it does nothing but talk. Check its card and restart it."}, true
	case ipc.NoticeAuditFull:
		return wire.Notice{Class: "audit_full", Message: "The box's record is full, so it does nothing but talk. Copy it to a USB stick, check the copy on a computer, and then make room: hold both buttons at the box for 3 seconds."}, true
	case ipc.NoticeAuditDamaged:
		return wire.Notice{Class: "audit_damaged", Message: "The box's record is damaged, so it does nothing but talk. Somebody at the box can keep it aside and begin a new one: hold both buttons there for three seconds."}, true
	case ipc.NoticeAuditBack:
		return wire.Notice{Class: "audit_back", Message: "The box writes its record again."}, true
	case ipc.NoticeCourierLost:
		return wire.Notice{Class: "courier_lost", Message: "The box cannot reach other machines at the moment."}, true
	case ipc.NoticeCourierBack:
		return wire.Notice{Class: "courier_back", Message: "The box can reach other machines again."}, true
	case ipc.NoticeCatalogChanged:
		return wire.Notice{Class: "catalog_changed", Message: "What the box can do has changed."}, true
	}
	return wire.Notice{}, false
}
