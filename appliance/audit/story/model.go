package story

import "assent.home.arpa/appliance/audit"

// Kind says what a story is about.
type Kind string

// The kinds.
const (
	KindCall       Kind = "call"           // something that the model asked for, to its end
	KindAdmin      Kind = "administration" // pairing, export, pruning, removing texts, reset and the like
	KindStart      Kind = "start"          // the box started, and what it found
	KindFreeze     Kind = "freeze"         // panic at the box, or its release
	KindFault      Kind = "fault"
	KindClock      Kind = "clock" // the wall clock was set
	KindSuppressed Kind = "suppressed"
	KindClaim      Kind = "claim" // what another process says and the guard cannot know
	KindFeed       Kind = "feed"
	KindTool       Kind = "tool"
	KindTurn       Kind = "turn" // a question ended, with as many proposals
)

// Kinds lists all kinds.
func Kinds() []Kind {
	return []Kind{
		KindCall, KindAdmin, KindStart, KindFreeze, KindFault, KindClock, KindSuppressed, KindClaim, KindFeed, KindTool, KindTurn,
	}
}

// Outcome is how a story ended, in a word to filter by. Story.Said says it in a sentence.
type Outcome string

// The outcomes. The first eight are those of capabilities.Status.
const (
	Done          Outcome = "done"
	Failed        Outcome = "failed"
	Unknown       Outcome = "unknown" // begun, and nobody can say whether it took effect; never repeated by itself
	Rejected      Outcome = "rejected"
	Denied        Outcome = "denied"
	Expired       Outcome = "expired"
	ExpiredUnseen Outcome = "expired_unseen"
	Withdrawn     Outcome = "withdrawn"
	Open          Outcome = "open"  // the log ends before it does
	Noted         Outcome = "noted" // it happened, and there is no more to it
)

// Outcomes lists all outcomes.
func Outcomes() []Outcome {
	return []Outcome{Done, Failed, Unknown, Rejected, Denied, Expired, ExpiredUnseen, Withdrawn, Open, Noted}
}

// Story is one event.
type Story struct {
	ID    string    `json:"id"` // 32 hex digits of a call's invocation, else "#" and the first record's number
	Kind  Kind      `json:"kind"`
	First audit.Seq `json:"first"` // first and last record
	Last  audit.Seq `json:"last"`
	// Seal is the record whose signature vouches for all of it; 0 where the log ends before it was sealed, so that nobody
	// ever relied on it and it proves nothing.
	Seal     audit.Seq `json:"seal"`
	When     When      `json:"when"` // it began
	Headline string    `json:"headline"`
	Outcome  Outcome   `json:"outcome"`
	Said     string    `json:"said"` // the outcome in plain words
	Code     string    `json:"code,omitempty"`

	// What to filter by; empty where it does not apply.
	Capability  string `json:"capability,omitempty"`  // dotted name of ours; empty where the model named none that exists
	Phone       uint32 `json:"phone,omitempty"`       // pairing slot of the phone that asked
	Destination string `json:"destination,omitempty"` // where it went, printable
	Ask         string `json:"ask,omitempty"`         // id of the question, which several calls may share

	// Partial says that the story began in a part of the log that was pruned, or that it was told before as unknown and
	// goes on here.
	Partial bool   `json:"partial,omitempty"`
	Steps   []Step `json:"steps"`

	when *When // becomes When; dated later, perhaps
}

// When is a time in a run of the box.
type When struct {
	Text  string `json:"text"`              // "2026-11-30 12:00:03 UTC", "about 2026-…", or "start+1h2m3s"
	Unix  int64  `json:"unix_ms,omitempty"` // 0 where Clock is unset
	Clock Clock  `json:"clock"`
	Since int64  `json:"since_start_ns"` // CLOCK_BOOTTIME
	Boot  string `json:"boot,omitempty"` // id of the run
}

// Clock says what a time is worth.
type Clock string

// The clock states, best first.
const (
	ClockSynced    Clock = "synced"
	ClockKept      Clock = "kept"      // by the hardware, or carried over a restart
	ClockEstimated Clock = "estimated" // counted back from when the clock was set later in the same run
	ClockUnset     Clock = "unset"     // only the time since the start is known
)

// Step is one link of the chain from the question to the outcome.
type Step struct {
	Name     StepName    `json:"name"`
	Text     string      `json:"text"` // plain words
	When     *When       `json:"when,omitempty"`
	Records  []audit.Seq `json:"records"` // where the proof is
	Facts    []Fact      `json:"facts,omitempty"`
	Literals []Literal   `json:"literals,omitempty"`
	Pages    *Pages      `json:"pages,omitempty"` // in a step "shown"
	Press    *Press      `json:"press,omitempty"` // in a step "decided"
}

// StepName says which link a step is.
type StepName string

// The steps of a call, in the order in which they can come. Every other story has steps "noted".
const (
	StepAsked      StepName = "asked"      // a phone asked a question
	StepProposed   StepName = "proposed"   // what the model wrote
	StepUnderstood StepName = "understood" // what the box made of it
	StepJudged     StepName = "judged"     // what policy said, and why
	StepShown      StepName = "shown"      // what the panel showed
	StepDecided    StepName = "decided"    // what somebody at the box did
	StepWithdrawn  StepName = "withdrawn"
	StepRefused    StepName = "refused"  // the stage that ended it
	StepPromised   StepName = "promised" // the execution was recorded before it began
	StepSent       StepName = "sent"     // what left, and where to
	StepAnswered   StepName = "answered" // what came of it
	StepObserved   StepName = "observed" // a later look
	StepNoted      StepName = "noted"
)

// Fact is a detail that proves or measures: a digest, a size, a duration.
type Fact struct {
	Name  string `json:"name"` // "digest of destination and request"
	Value string `json:"value"`
}

// Kept says what became of literal bytes.
type Kept string

// The states of literal bytes.
const (
	KeptYes      Kept = "kept"
	KeptRedacted Kept = "redacted" // they were in the log, and their removal left the chain whole
	KeptWithheld Kept = "withheld" // the capability's log policy is to keep digests only
	KeptNo       Kept = "not kept"
)

// Literal is bytes that somebody else chose, or that were sent.
type Literal struct {
	Name   string    `json:"name"` // "what the model wrote"
	State  Kept      `json:"state"`
	Digest string    `json:"digest"`           // SHA-256 of the bytes; of a request, with where it goes
	Record audit.Seq `json:"record,omitempty"` // the blob
	Text   string    `json:"text,omitempty"`   // printable
	Bytes  []byte    `json:"bytes,omitempty"`  // base64 of the exact bytes, where Text is not exactly they
}

// Pages is what the panel showed.
type Pages struct {
	State  Kept     `json:"state"`
	Count  int      `json:"count"`            // pages drawn
	Frames [][]byte `json:"frames,omitempty"` // base64 of device.Frame, 1,024 bytes each
}

// Press is what the fingers did, and the panel. Times are nanoseconds on CLOCK_MONOTONIC, counted from what Since says.
type Press struct {
	Since     string `json:"since"`          // "the last page was drawn", or "it came to the front" where nobody read so far
	Mode      string `json:"mode,omitempty"` // hold, dwell or challenge
	Pressed   int64  `json:"pressed_ns,omitempty"`
	Completed int64  `json:"completed_ns,omitempty"`
	Edges     []Edge `json:"edges,omitempty"`
	Moves     []Move `json:"moves,omitempty"`    // what happened at the panel, in order
	LeftOut   int    `json:"left_out,omitempty"` // moves that the log left out after the first 12
}

// Move is one thing that happened at the panel: what it went on to, or a picture that came on the glass.
type Move struct {
	Text string `json:"text"` // plain words
	At   int64  `json:"at_ns"`
}

// Edge is one press or release of a button.
type Edge struct {
	Button string `json:"button"` // approve or deny
	Edge   string `json:"edge"`   // press or release
	At     int64  `json:"at_ns"`  // negative before the last page was drawn
}
