package audit

import (
	"errors"
	"fmt"
	"time"

	"assent.home.arpa/capabilities"
	"assent.home.arpa/device"
)

// The records of one call, in the order in which they are written. All carry the invocation in key 7 of the record.
//
// A field that is empty does not apply or is not known; it is left out of the encoding. Keys are never renumbered or used
// again, there are no floats, and bytes that a model or a peer sent are byte strings, never text.

// Verdict is what a stage said. The zero value is invalid.
type Verdict uint8

// The verdicts. Do not renumber.
const (
	Allow   Verdict = 1 // goes on without a press
	Confirm Verdict = 2 // goes on only with a press
	Refuse  Verdict = 3 // ended here; Status and Code say how
)

func (v Verdict) String() string { return name(uint8(v), "invalid", "allow", "confirm", "refuse") }

// ApprovalOutcome is how a pending decision ended. The zero value is invalid.
type ApprovalOutcome uint8

// The outcomes. Do not renumber.
const (
	Approved      ApprovalOutcome = 1
	Denied        ApprovalOutcome = 2
	Expired       ApprovalOutcome = 3
	ExpiredUnseen ApprovalOutcome = 4
	Withdrawn     ApprovalOutcome = 5
	Panicked      ApprovalOutcome = 6
	DisplayLost   ApprovalOutcome = 7
	Busy          ApprovalOutcome = 8
)

func (o ApprovalOutcome) String() string {
	return name(uint8(o), "invalid", "approved", "denied", "expired", "expired unseen", "withdrawn", "panic", "display lost", "busy")
}

// Mode is how the press was given. The zero value is none.
type Mode uint8

// The modes. Do not renumber.
const (
	ModeHold      Mode = 1
	ModeDwell     Mode = 2 // tap, countdown, tap
	ModeChallenge Mode = 3 // a shown number of taps before the hold, for displays that cannot be read back
)

func (m Mode) String() string { return name(uint8(m), "none", "hold", "dwell", "challenge") }

// Proposal is a call that a model asked for: an untrusted candidate, and what the registry made of it.
type Proposal struct {
	Capability   capabilities.Name       `cbor:"1,keyasint,omitzero"` // empty where resolve failed
	Version      capabilities.Version    `cbor:"2,keyasint,omitzero"`
	Revision     string                  `cbor:"3,keyasint,omitzero"`  // adapter revision
	SchemaDigest Digest                  `cbor:"4,keyasint,omitzero"`  // of the argument schema
	ArgsDigest   capabilities.ArgsDigest `cbor:"5,keyasint,omitzero"`  // of the normalised arguments (blob BlobArguments); zero before validate
	Name         Bytes                   `cbor:"6,keyasint,omitempty"` // as the model wrote it, at most MaxName bytes; longer names are in the raw blob alone
	RawDigest    Digest                  `cbor:"7,keyasint,omitzero"`  // of the argument bytes as the model wrote them (blob BlobRaw)
	Slot         uint32                  `cbor:"8,keyasint,omitzero"`  // the phone that asked
	Person       string                  `cbor:"9,keyasint,omitzero"`  // an opaque id, never a name
	Ask          ID                      `cbor:"10,keyasint,omitzero"`
	AskDigest    Digest                  `cbor:"11,keyasint,omitzero"` // of the ask's text, as the phone signed it
	AskCounter   uint64                  `cbor:"12,keyasint,omitzero"`
	Conversation ID                      `cbor:"13,keyasint,omitzero"`
	RunDigest    Digest                  `cbor:"14,keyasint,omitzero"`  // of the RunInvocation that holds the call
	Step         uint16                  `cbor:"15,keyasint,omitzero"`  // model step in the turn, from 1
	Index        uint16                  `cbor:"16,keyasint,omitzero"`  // proposal in the turn, from 1
	CallID       Bytes                   `cbor:"17,keyasint,omitempty"` // the model's own id for the call
	Taint        []Bytes                 `cbor:"18,keyasint,omitempty"` // sources that the conversation had read, as the banner names them
	ArgsView     Digest                  `cbor:"19,keyasint,omitzero"`  // of the readable arguments (blob BlobView); zero unless the log policy is view
	Log          capabilities.LogPolicy  `cbor:"20,keyasint,omitzero"`
	Registry     Digest                  `cbor:"21,keyasint,omitzero"` // of the registry that resolved it
	Catalog      Digest                  `cbor:"22,keyasint,omitzero"` // of the catalog that was offered
	Tool         Digest                  `cbor:"23,keyasint,omitzero"` // identity of a foreign tool: connection, server, schema, mapping, version
	Parent       ID                      `cbor:"24,keyasint,omitzero"` // the invocation that this one looks up or repeats
	SignedAsk    Digest                  `cbor:"25,keyasint,omitzero"` // of the ask with its signature (blob BlobAsk)
}

// Decision is what one stage said about a proposal. Policy's comes before any press; a Refuse ends the invocation.
type Decision struct {
	Stage        capabilities.Stage   `cbor:"1,keyasint"`
	Verdict      Verdict              `cbor:"2,keyasint"`
	Status       capabilities.Status  `cbor:"3,keyasint,omitzero"` // with Refuse
	Code         capabilities.Code    `cbor:"4,keyasint,omitzero"` // with Refuse
	Rule         string               `cbor:"5,keyasint,omitzero"` // the policy rule that decided, by name
	PolicyDigest Digest               `cbor:"6,keyasint,omitzero"`
	Reason       string               `cbor:"7,keyasint,omitzero"` // our words, never a model's or a peer's
	Effect       capabilities.Effect  `cbor:"8,keyasint,omitzero"` // what policy judged
	Network      capabilities.Network `cbor:"9,keyasint,omitzero"`
	Privacy      capabilities.Privacy `cbor:"10,keyasint,omitzero"`
	Role         uint8                `cbor:"11,keyasint,omitzero"`  // of the person: 1 guest, 2 adult, 3 owner
	Field        Bytes                `cbor:"12,keyasint,omitempty"` // the argument that validate refused
	Next         time.Duration        `cbor:"13,keyasint,omitzero"`  // boot time at which it may be asked again
	Resource     Digest               `cbor:"14,keyasint,omitzero"`  // of the resource revision that preconditions were checked against
	By           Actor                `cbor:"15,keyasint,omitzero"`  // who ended it, where somebody did
}

// Approval is what happened at the panel.
type Approval struct {
	Outcome       ApprovalOutcome         `cbor:"1,keyasint"`
	Receipt       Bytes                   `cbor:"2,keyasint,omitempty"` // COSE_Sign1, package confirm/receipt; with Approved and only then
	ScreenDigest  Digest                  `cbor:"3,keyasint,omitzero"`  // as confirm/screen computes it
	ArgsDigest    capabilities.ArgsDigest `cbor:"4,keyasint,omitzero"`
	RequestDigest Digest                  `cbor:"5,keyasint,omitzero"`  // of the request that the pages showed; zero where nothing leaves the box
	Pages         []Digest                `cbor:"6,keyasint,omitempty"` // of blobs BlobPages, in order
	PageCount     uint16                  `cbor:"7,keyasint,omitzero"`
	Queued        time.Duration           `cbor:"8,keyasint,omitzero"` // boot time: entered the queue
	Fronted       time.Duration           `cbor:"9,keyasint,omitzero"` // boot time: reached the front
	Shown         time.Duration           `cbor:"10,keyasint,omitzero"`
	Pressed       time.Duration           `cbor:"11,keyasint,omitzero"`
	Completed     time.Duration           `cbor:"12,keyasint,omitzero"`
	Expires       time.Duration           `cbor:"13,keyasint,omitzero"`  // boot time; Shown, Pressed and Completed are monotonic
	Presses       []device.Event          `cbor:"14,keyasint,omitempty"` // the edges that counted, in order, at most MaxPresses
	Mode          Mode                    `cbor:"15,keyasint,omitzero"`
	By            Actor                   `cbor:"16,keyasint,omitzero"`  // who decided or took it back: ByBox with Approved, always
	Slot          uint32                  `cbor:"17,keyasint,omitzero"`  // the phone that did, if a phone
	Steps         []PanelStep             `cbor:"18,keyasint,omitempty"` // what happened at the panel meanwhile, in order, at most MaxSteps
	LeftOut       uint16                  `cbor:"19,keyasint,omitzero"`  // steps that are missing after the first StepsFirst, as far as it counts
}

// IntentRecord promises one execution. It is sealed before the effect can begin.
type IntentRecord struct {
	Proposal      Seq                     `cbor:"1,keyasint"`          // Intend fills in the three sequence numbers
	Decision      Seq                     `cbor:"2,keyasint"`          // policy's
	Approval      Seq                     `cbor:"3,keyasint,omitzero"` // where policy said Confirm
	ArgsDigest    capabilities.ArgsDigest `cbor:"4,keyasint"`
	EffectID      ID                      `cbor:"5,keyasint,omitzero"` // idempotency key
	RequestDigest Digest                  `cbor:"6,keyasint,omitzero"` // of the exact request (blob BlobRequest); zero where nothing leaves the box
	Destination   Digest                  `cbor:"7,keyasint,omitzero"` // of the destination's name (blob BlobDestination)
	Deadline      time.Duration           `cbor:"8,keyasint,omitzero"` // boot time
	Class         capabilities.Class      `cbor:"9,keyasint,omitzero"` // the worker's sandbox
	Credential    string                  `cbor:"10,keyasint,omitzero"`
	Expects       Digest                  `cbor:"11,keyasint,omitzero"` // what an observation should find (blob BlobExpects)
	Idempotent    bool                    `cbor:"12,keyasint,omitzero"`
	ReceiptDigest Digest                  `cbor:"13,keyasint,omitzero"` // SHA-256 of Approval.Receipt, where there is one
}

// EffectRecord says what became of an intent.
type EffectRecord struct {
	Intent        Seq                 `cbor:"1,keyasint"` // Effect fills it in
	Status        capabilities.Status `cbor:"2,keyasint"` // Done, Failed or Unknown
	Code          capabilities.Code   `cbor:"3,keyasint,omitzero"`
	Duration      time.Duration       `cbor:"4,keyasint,omitzero"` // from grant to result
	ResultDigest  Digest              `cbor:"5,keyasint,omitzero"` // of the result body, as it was passed on
	ResultBytes   uint64              `cbor:"6,keyasint,omitzero"`
	RequestDigest Digest              `cbor:"7,keyasint,omitzero"` // of the bytes that were sent, as the worker says
	GrantDigest   Digest              `cbor:"8,keyasint,omitzero"` // SHA-256 of the signed grant
	Attempts      uint16              `cbor:"9,keyasint,omitzero"` // connections that were opened
	Sent          bool                `cbor:"10,keyasint,omitzero"`
	AnswerDigest  Digest              `cbor:"11,keyasint,omitzero"` // of the answer as it arrived
	AnswerBytes   uint64              `cbor:"12,keyasint,omitzero"`
	HTTPStatus    uint16              `cbor:"13,keyasint,omitzero"`
	Items         uint16              `cbor:"14,keyasint,omitzero"` // records in the result
	Truncated     bool                `cbor:"15,keyasint,omitzero"`
	Peer          Digest              `cbor:"16,keyasint,omitzero"` // of the certificate of the server that answered
	Cause         Cause               `cbor:"17,keyasint,omitzero"`
	Accepted      Tristate            `cbor:"18,keyasint,omitzero"` // whether the other side said that it took the call
	Retrieved     int64               `cbor:"19,keyasint,omitzero"` // Unix milliseconds
	Address       Digest              `cbor:"20,keyasint,omitzero"` // of the address that was connected to (blob BlobAddress)
}

// Cause says who wrote an effect. The zero value is the execution itself.
type Cause uint8

// The causes. Do not renumber.
const (
	CauseExecution Cause = 0
	CauseRecovery  Cause = 1 // written at a start, for an intent that had no effect record
	CausePanic     Cause = 2 // the worker was killed at the box
)

func (c Cause) String() string { return name(uint8(c), "execution", "recovery", "panic") }

// Tristate is an answer that may be missing. The zero value is not known.
type Tristate uint8

// The answers. Do not renumber.
const (
	NotKnown Tristate = 0
	Yes      Tristate = 1
	No       Tristate = 2
)

func (t Tristate) String() string { return name(uint8(t), "not known", "yes", "no") }

// Observe is what a later look found about an effect.
type Observe struct {
	Intent  Seq                 `cbor:"1,keyasint"`          // 0 where it was promised in a log that was set aside
	Matches Tristate            `cbor:"2,keyasint,omitzero"` // whether the world is as IntentRecord.Expects
	Source  string              `cbor:"3,keyasint,omitzero"` // the capability or the person that looked
	View    Digest              `cbor:"4,keyasint,omitzero"` // of what was seen (blob BlobView)
	Status  capabilities.Status `cbor:"5,keyasint,omitzero"` // what the effect is now held to be
	Code    capabilities.Code   `cbor:"6,keyasint,omitzero"`
	Final   bool                `cbor:"7,keyasint,omitzero"` // leaves the inbox
	By      Actor               `cbor:"8,keyasint,omitzero"`
	Slot    uint32              `cbor:"9,keyasint,omitzero"`
	Lookup  ID                  `cbor:"10,keyasint,omitzero"` // the invocation that looked, if it was one
}

// Withdraw takes a proposal back.
type Withdraw struct {
	By   Actor             `cbor:"1,keyasint"`
	Slot uint32            `cbor:"2,keyasint,omitzero"`
	Code capabilities.Code `cbor:"3,keyasint,omitzero"`
	Deny bool              `cbor:"4,keyasint,omitzero"` // the person said no, rather than that the turn ended
}

// ClaimClass says what a claim is about. Numbers 1 to 5 are those of package ipc. The zero value is invalid.
type ClaimClass uint8

// The classes. Do not renumber.
const (
	ClaimParseFailure ClaimClass = 1
	ClaimBudget       ClaimClass = 2
	ClaimProvider     ClaimClass = 3
	ClaimProtocol     ClaimClass = 4
	ClaimResult       ClaimClass = 5
	ClaimTurn         ClaimClass = 6 // a turn ended, with Count proposals
)

func (c ClaimClass) String() string {
	return name(uint8(c), "invalid", "parse failure", "budget", "provider", "protocol", "result", "turn")
}

// Claim is what another process says and the guard cannot know. Readers mark it "claimed by gateway".
type Claim struct {
	From         Actor             `cbor:"1,keyasint"`
	Class        ClaimClass        `cbor:"2,keyasint"`
	Code         capabilities.Code `cbor:"3,keyasint,omitzero"`
	Text         Bytes             `cbor:"4,keyasint,omitempty"` // at most MaxClaimText bytes, a diagnosis and never the literal text
	RawDigest    Digest            `cbor:"5,keyasint,omitzero"`  // of the bytes that it is about (blob BlobRaw, if kept)
	Ask          ID                `cbor:"6,keyasint,omitzero"`
	AskDigest    Digest            `cbor:"7,keyasint,omitzero"`
	Slot         uint32            `cbor:"8,keyasint,omitzero"`
	Conversation ID                `cbor:"9,keyasint,omitzero"`
	RunDigest    Digest            `cbor:"10,keyasint,omitzero"`
	Step         uint16            `cbor:"11,keyasint,omitzero"`
	Index        uint16            `cbor:"12,keyasint,omitzero"`
	Count        uint16            `cbor:"13,keyasint,omitzero"`
	Name         Bytes             `cbor:"14,keyasint,omitempty"` // of the capability, as the model wrote it
	Catalog      Digest            `cbor:"15,keyasint,omitzero"`  // of the catalog that was offered
	Model        Digest            `cbor:"16,keyasint,omitzero"`
	Offered      []string          `cbor:"17,keyasint,omitempty"` // of a turn: wire names of Catalog, in their order, at most MaxOffered
}

func (p Proposal) check() error {
	switch {
	case p.Capability != "" && !p.Capability.Valid():
		return errors.New("no such capability name")
	case len(p.Name) > MaxName, len(p.CallID) > MaxName, len(p.Taint) > MaxTaint:
		return errors.New("name, call id or taint is too long")
	}
	return nil
}

func (d Decision) check() error {
	switch {
	case d.Stage == 0, d.Verdict == 0:
		return errors.New("no stage or no verdict")
	case d.Role > maxRole:
		return errors.New("no such role")
	case d.Verdict == Refuse && d.Status != capabilities.Failed && d.Status < capabilities.Rejected:
		return errors.New("a refusal says how it ended: failed, rejected, denied, expired, expired_unseen or withdrawn")
	case d.Verdict != Refuse && (d.Status != 0 || d.Code != ""):
		return errors.New("only a refusal has a status or a code")
	}
	return nil
}

func (a Approval) check() error {
	switch {
	case a.Outcome == 0:
		return errors.New("no outcome")
	case (a.Outcome == Approved) != (len(a.Receipt) > 0):
		return errors.New("a receipt belongs to approved, and to nothing else")
	case len(a.Presses) > MaxPresses, len(a.Pages) > MaxPageBlobs:
		return errors.New("too many presses or pages")
	}
	return errors.Join(checkPresses(a.Presses), checkSteps(a.Steps))
}

func checkPresses(presses []device.Event) error {
	for _, p := range presses {
		if p.Mono < 0 || (p.Edge != device.Press && p.Edge != device.Release) || (p.Button != device.Approve && p.Button != device.Deny) {
			return errors.New("not an edge of a button")
		}
	}
	return nil
}

func (i IntentRecord) check() error { return nil }

func (e EffectRecord) check() error {
	if e.Status == 0 || e.Status > capabilities.Unknown {
		return errors.New("an effect is done, failed or unknown")
	}
	return nil
}

func (o Observe) check() error {
	if o.Status > capabilities.Unknown {
		return errors.New("an effect is done, failed or unknown")
	}
	return nil
}

func (w Withdraw) check() error { return w.By.check() }

func (c Claim) check() error {
	switch {
	case c.Class == 0:
		return errors.New("no class")
	case len(c.Text) > MaxClaimText, len(c.Name) > MaxName:
		return errors.New("text or name is too long")
	case len(c.Offered) > MaxOffered:
		return fmt.Errorf("more than %d capabilities are named", MaxOffered)
	}
	return c.From.check()
}
