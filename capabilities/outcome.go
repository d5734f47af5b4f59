package capabilities

import "fmt"

// Stage names where a proposal ended. The zero value is no stage.
type Stage uint8

// The stages, in order. Do not renumber: the numbers are in the audit.
const (
	StageParse    Stage = 1 // the gateway's parser; the executor never saw it
	StageBudget   Stage = 2 // the gateway's turn budget; the executor never saw it
	StageResolve  Stage = 3
	StageValidate Stage = 4
	StagePolicy   Stage = 5
	StageConfirm  Stage = 6
	StageExecute  Stage = 7
	StageRecord   Stage = 8
)

var stageNames = [...]string{"none", "parse", "budget", "resolve", "validate", "policy", "confirm", "execute", "record"}

func (s Stage) String() string {
	if int(s) < len(stageNames) {
		return stageNames[s]
	}
	return fmt.Sprintf("stage(%d)", uint8(s))
}

// Status is how a proposal ended. The zero value is invalid and means nothing happened that anybody may rely on.
type Status uint8

// The statuses. Do not renumber: the numbers are in the audit.
const (
	Done          Status = 1 // executed, and the result was verified
	Failed        Status = 2 // executed, and it is certain that it did not work
	Unknown       Status = 3 // sent, and nobody can say whether it took effect; never retried by itself
	Rejected      Status = 4 // refused before the panel
	Denied        Status = 5 // somebody at the box said no
	Expired       Status = 6 // read, and not decided in time
	ExpiredUnseen Status = 7 // nobody began to read
	Withdrawn     Status = 8 // taken back before it was decided
)

var statusNames = [...]string{"invalid", "done", "failed", "unknown", "rejected", "denied", "expired", "expired_unseen", "withdrawn"}

func (s Status) String() string {
	if int(s) < len(statusNames) {
		return statusNames[s]
	}
	return fmt.Sprintf("status(%d)", uint8(s))
}

// Code says why, in words that model, phone and audit share. Codes are stable; new ones may be added.
type Code string

// The codes, by the stage that uses them.
const (
	// parse and budget
	CodeMalformed Code = "malformed_call"   // the call was not well-formed
	CodeAmbiguous Code = "ambiguous_call"   // it could be read in two ways
	CodeTruncated Code = "truncated_call"   // the model stopped in the middle of it
	CodeBudget    Code = "budget_exhausted" // the turn's or the capability's cap is reached
	// resolve
	CodeUnknownCapability Code = "unknown_capability"
	// validate
	CodeInvalidArguments Code = "invalid_arguments"
	CodeUnknownArgument  Code = "unknown_argument"
	CodeMissingArgument  Code = "missing_argument"
	CodeArgumentTooLong  Code = "argument_too_long"
	CodeUndisplayable    Code = "undisplayable_text"
	// policy
	CodeNoAsk         Code = "no_live_ask" // no signed ask of this person is live
	CodeNotAllowed    Code = "not_allowed" // this person's role may not
	CodeFrozen        Code = "frozen"      // panic at the box; released only there
	CodeCoolDown      Code = "cool_down"   // after a denial, an unseen request, or too many that came to nothing
	CodeDeniedInTurn  Code = "denied_in_turn"
	CodeClockUnset    Code = "clock_unset" // TLS needs the date
	CodeNotConfigured Code = "not_configured"
	// confirm
	CodeBusy               Code = "decision_pending" // this phone already has one
	CodeDisplayUnavailable Code = "display_unavailable"
	CodeReceiptStale       Code = "receipt_stale"
	// execute and record
	CodeAuditUnavailable   Code = "audit_unavailable"
	CodeCourierUnavailable Code = "courier_unavailable"
	CodeGrantRefused       Code = "grant_refused"
	CodeUnreachable        Code = "unreachable"  // the destination did not answer, before anything was sent
	CodeRemoteError        Code = "remote_error" // it answered that it failed
	CodeRedirect           Code = "redirect"     // a result: nothing is followed
	CodeBadResponse        Code = "bad_response" // the answer broke its bounds or its grammar
	CodeTimeout            Code = "timeout"
	CodeInterrupted        Code = "interrupted" // a process died in the middle
	CodeInternal           Code = "internal_error"
)
