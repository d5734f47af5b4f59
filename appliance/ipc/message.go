package ipc

import (
	"fmt"

	"assent.home.arpa/capabilities"
)

// Version of the framing and of every message.
const Version = 1

// MaxMessage bounds one message: a result body of 64 KiB, a request, and room to spare.
const MaxMessage = 256 << 10

// Kind numbers a message. Do not renumber.
type Kind uint16

// The kinds.
const (
	KindHello          Kind = 1
	KindWelcome        Kind = 2
	KindAuth           Kind = 3
	KindAuthReply      Kind = 4
	KindCatalogRequest Kind = 5
	KindCatalog        Kind = 6
	KindAsk            Kind = 7
	KindAskReply       Kind = 8
	KindEndAsk         Kind = 9
	KindPropose        Kind = 10
	KindPending        Kind = 11
	KindOutcome        Kind = 12
	KindWithdraw       Kind = 13
	KindClaim          Kind = 14
	KindPair           Kind = 15
	KindPairReply      Kind = 16
	KindNotice         Kind = 17
	KindStatusRequest  Kind = 18
	KindStatus         Kind = 19
	KindError          Kind = 20
	KindInboxRequest   Kind = 21
	KindInbox          Kind = 22
	KindSeen           Kind = 23
	KindCable          Kind = 24
	KindCableReply     Kind = 25
	KindChallenge      Kind = 32
	KindExecute        Kind = 33
	KindResult         Kind = 34
	KindAbort          Kind = 35
	KindJob            Kind = 48
	KindJobResult      Kind = 49
	KindStickHello     Kind = 64
	KindStickOp        Kind = 65
	KindStickReply     Kind = 66
)

// Message is anything that may cross a socket.
type Message interface{ Kind() Kind }

// ID names an ask, a conversation or a boot: 16 random bytes.
type ID [16]byte

func (i ID) String() string { return fmt.Sprintf("%x", i[:]) }

// Role is a phone's role. The zero value may do nothing.
type Role uint8

// The roles. Do not renumber.
const (
	RoleGuest Role = 1 // chat only
	RoleAdult Role = 2
	RoleOwner Role = 3
)

func (r Role) String() string {
	switch r {
	case RoleGuest:
		return "guest"
	case RoleAdult:
		return "adult"
	case RoleOwner:
		return "owner"
	}
	return "none"
}

// Hello opens a connection to the guard.
type Hello struct {
	Build string `cbor:"1,keyasint"`
}

// Welcome answers Hello.
type Welcome struct {
	BootID   ID       `cbor:"1,keyasint"`
	Registry [32]byte `cbor:"2,keyasint"` // digest of the capability registry
}

// Auth asks whether a phone that claims a slot holds its key: Sig is over wire.AuthBytes(slot, nonce).
type Auth struct {
	Slot  uint32   `cbor:"1,keyasint"`
	Nonce [32]byte `cbor:"2,keyasint"`
	Sig   []byte   `cbor:"3,keyasint"` // 64 bytes, r‖s (IEEE P1363), ECDSA P-256 with SHA-256
}

// AuthReply answers Auth.
type AuthReply struct {
	OK      bool   `cbor:"1,keyasint"`
	Name    string `cbor:"2,keyasint,omitempty"` // the phone's name as accepted at the panel
	Role    Role   `cbor:"3,keyasint,omitempty"`
	Counter uint64 `cbor:"4,keyasint,omitempty"` // the highest ask counter seen from this phone
}

// CatalogRequest asks what this person may propose in this conversation.
type CatalogRequest struct {
	Slot         uint32 `cbor:"1,keyasint"`
	Conversation ID     `cbor:"2,keyasint"`
}

// Catalog answers CatalogRequest.
type Catalog struct {
	Registry [32]byte                  `cbor:"1,keyasint"`
	Entries  []CatalogEntry            `cbor:"2,keyasint"`
	PerTurn  map[string]int            `cbor:"3,keyasint"` // wire name → calls in one turn
	Results  map[string]CatalogResults `cbor:"4,keyasint"` // wire name → what a result must look like
}

// CatalogResults says what the gateway checks a result body against before anyone sees it.
type CatalogResults struct {
	Shape []byte `cbor:"1,keyasint"` // JSON Schema
	Bytes int    `cbor:"2,keyasint"` // bound of the body
}

// CatalogEntry is one capability as the model sees it.
type CatalogEntry struct {
	Name        string               `cbor:"1,keyasint"`
	Version     capabilities.Version `cbor:"2,keyasint"`
	Description string               `cbor:"3,keyasint"`
	Parameters  []byte               `cbor:"4,keyasint"` // JSON Schema
}

// Ask opens a turn. Sig is the phone's, over wire.AskBytes; without a valid one nothing can be proposed.
type Ask struct {
	Slot         uint32   `cbor:"1,keyasint"`
	Conversation ID       `cbor:"2,keyasint"`
	Counter      uint64   `cbor:"3,keyasint"`
	TextDigest   [32]byte `cbor:"4,keyasint"`
	Sig          []byte   `cbor:"5,keyasint"`
}

// AskReply answers Ask. Ask is zero where Code says why there is none.
type AskReply struct {
	Ask     ID                `cbor:"1,keyasint"`
	Code    capabilities.Code `cbor:"2,keyasint,omitempty"`
	Message string            `cbor:"3,keyasint,omitempty"`
}

// EndAsk closes a turn: nothing more may be proposed under it, and what is pending is withdrawn. It has no answer.
type EndAsk struct {
	Ask ID `cbor:"1,keyasint"`
}

// Propose submits one candidate, byte for byte as the model wrote it. The guard answers with any number of Pending and
// then one Outcome.
type Propose struct {
	Ask       ID       `cbor:"1,keyasint"`
	Name      []byte   `cbor:"2,keyasint"` // the name that the model used, uncorrected
	Arguments []byte   `cbor:"3,keyasint"` // the exact bytes of the arguments
	Step      uint16   `cbor:"4,keyasint"` // model step within the turn, from 1
	Index     uint16   `cbor:"5,keyasint"` // proposal within the turn, from 1
	RunDigest [32]byte `cbor:"6,keyasint"` // invocationDigest of the model call that asked for it
}

// Pending says that a proposal waits at the box, and once more, with Decided, that somebody there has approved it, so that
// it is under way. It holds what the requesting phone may be told.
type Pending struct {
	Inv         capabilities.InvocationID `cbor:"1,keyasint"`
	Name        capabilities.Name         `cbor:"2,keyasint"`
	Version     capabilities.Version      `cbor:"3,keyasint"`
	Revision    string                    `cbor:"4,keyasint"`
	Title       string                    `cbor:"5,keyasint"`
	Text        string                    `cbor:"6,keyasint"`
	Destination string                    `cbor:"7,keyasint"`
	Pages       int                       `cbor:"8,keyasint"`
	Request     []byte                    `cbor:"9,keyasint,omitempty"` // the exact bytes that would be sent
	ArgsDigest  [32]byte                  `cbor:"10,keyasint"`
	Decided     bool                      `cbor:"11,keyasint,omitempty"`
}

// Outcome is how one proposal ended.
type Outcome struct {
	Inv       capabilities.InvocationID `cbor:"1,keyasint"`
	Stage     capabilities.Stage        `cbor:"2,keyasint"`
	Status    capabilities.Status       `cbor:"3,keyasint"`
	Code      capabilities.Code         `cbor:"4,keyasint,omitempty"`
	Message   string                    `cbor:"5,keyasint,omitempty"` // ours, never a peer's
	Name      capabilities.Name         `cbor:"6,keyasint,omitempty"` // empty where resolve failed
	Version   capabilities.Version      `cbor:"7,keyasint,omitempty"`
	Revision  string                    `cbor:"8,keyasint,omitempty"`
	Body      []byte                    `cbor:"9,keyasint,omitempty"`  // the worker's, opaque to the guard
	Retrieved int64                     `cbor:"10,keyasint,omitempty"` // Unix milliseconds, 0 where the clock is unset
	Seq       uint64                    `cbor:"11,keyasint,omitempty"` // audit record that holds this outcome
	RetryIn   uint32                    `cbor:"12,keyasint,omitempty"` // seconds, for cool_down
}

// Withdraw takes a pending proposal back, for the phone that owns it. It can only end a decision. It has no answer of its
// own: the proposal's Outcome follows.
type Withdraw struct {
	Inv  capabilities.InvocationID `cbor:"1,keyasint"`
	Slot uint32                    `cbor:"2,keyasint"`
	// Deny says that the person said no, rather than that the turn ended.
	Deny bool `cbor:"3,keyasint,omitempty"`
}

// ClaimClass says what a gateway reports. Do not renumber.
type ClaimClass uint8

// The classes.
const (
	ClaimParseFailure ClaimClass = 1
	ClaimBudget       ClaimClass = 2
	ClaimProvider     ClaimClass = 3 // the model's process failed or timed out
	ClaimProtocol     ClaimClass = 4 // a phone sent what it must not, such as "approve"
	ClaimResult       ClaimClass = 5 // a result body broke its schema
)

// MaxClaimDetail bounds Claim.Detail in bytes.
const MaxClaimDetail = 512

// Claim reports what only the gateway can know. The audit records it as claimed by the gateway. It has no answer.
type Claim struct {
	Class  ClaimClass        `cbor:"1,keyasint"`
	Ask    ID                `cbor:"2,keyasint"` // zero where no turn is open
	Slot   uint32            `cbor:"3,keyasint"`
	Code   capabilities.Code `cbor:"4,keyasint"`
	Detail []byte            `cbor:"5,keyasint,omitempty"` // a diagnosis, never the literal text
	Digest [32]byte          `cbor:"6,keyasint"`           // of the whole offending bytes
	Step   uint16            `cbor:"7,keyasint"`
}

// Pair asks to pair a phone while pairing mode is open at the box.
type Pair struct {
	Code string `cbor:"1,keyasint"` // the code on the panel
	Name string `cbor:"2,keyasint"` // what the phone wants to be called
	Key  []byte `cbor:"3,keyasint"` // 65 bytes, uncompressed P-256 point (SEC 1 section 2.3.3)
}

// PairReply answers Pair, after somebody at the box accepted or refused.
type PairReply struct {
	OK      bool              `cbor:"1,keyasint"`
	Slot    uint32            `cbor:"2,keyasint,omitempty"`
	Name    string            `cbor:"3,keyasint,omitempty"`
	Role    Role              `cbor:"4,keyasint,omitempty"`
	Code    capabilities.Code `cbor:"5,keyasint,omitempty"`
	Message string            `cbor:"6,keyasint,omitempty"`
}

// NoticeClass says what a notice is about. Do not renumber.
type NoticeClass uint8

// The classes.
const (
	NoticeFrozen         NoticeClass = 1 // panic at the box
	NoticeUnfrozen       NoticeClass = 2
	NoticePairingOpen    NoticeClass = 3
	NoticePairingClosed  NoticeClass = 4
	NoticeDisplayLost    NoticeClass = 5
	NoticeDisplayBack    NoticeClass = 6
	NoticeAuditLost      NoticeClass = 7 // nothing that needs the audit can run
	NoticePhoneRemoved   NoticeClass = 8
	NoticeCourierLost    NoticeClass = 9
	NoticeCourierBack    NoticeClass = 10
	NoticeCatalogChanged NoticeClass = 11
	NoticeAuditFull      NoticeClass = 12 // as NoticeAuditLost, until room is made
	NoticeAuditDamaged   NoticeClass = 13 // as NoticeAuditLost, until somebody at the box begins a new log
	NoticeAuditBack      NoticeClass = 14
	NoticeInbox          NoticeClass = 15 // what Inbox answers has changed
)

// AuditTrouble says why nothing can be recorded. The zero value is none. Do not renumber.
type AuditTrouble uint8

// The troubles.
const (
	AuditLost    AuditTrouble = 1 // it cannot be written, and a restart may help
	AuditFull    AuditTrouble = 2 // there is no room; it passes by itself when room is made
	AuditDamaged AuditTrouble = 3 // what was recorded cannot be read; somebody at the box may begin a new log
)

// Notice tells the gateway what changed at the box. Its id is 0.
type Notice struct {
	Class NoticeClass `cbor:"1,keyasint"`
	Slot  uint32      `cbor:"2,keyasint,omitempty"` // 0: everybody
}

// StatusRequest asks for Status.
type StatusRequest struct{}

// Status is what everybody may know about the box.
type Status struct {
	Frozen   bool   `cbor:"1,keyasint"`
	Pairing  bool   `cbor:"2,keyasint"`
	Phones   int    `cbor:"3,keyasint"`
	HeadCode string `cbor:"4,keyasint"`
	Seal     []byte `cbor:"5,keyasint,omitempty"` // the latest seal, for phones to keep as an anchor
	Display  bool   `cbor:"6,keyasint"`
	Audit    bool   `cbor:"7,keyasint"`
	Courier  bool   `cbor:"8,keyasint"`
	// Head is the sequence number of the record that holds Seal: the log has that many records before it.
	Head    uint64       `cbor:"9,keyasint,omitempty"`
	Trouble AuditTrouble `cbor:"10,keyasint,omitempty"` // where Audit is false
	Root    []byte       `cbor:"11,keyasint,omitempty"` // SHA-256 of the log's root key, by which the log is known for good
	Unknown int          `cbor:"12,keyasint,omitempty"` // outcomes that nobody has seen, of all phones
}

// InboxRequest asks what a phone may know of calls with an unknown outcome that nobody has seen yet. Inbox answers it.
type InboxRequest struct {
	Slot uint32 `cbor:"1,keyasint"`
}

// MaxUnknowns bounds Inbox.Items. MaxUnknownText bounds, in bytes, each of an item's texts.
const (
	MaxUnknowns    = 64
	MaxUnknownText = 1024
)

// Inbox lists calls with an unknown outcome, the latest first.
type Inbox struct {
	Items []Unknown `cbor:"1,keyasint"`
	Older uint32    `cbor:"2,keyasint,omitempty"` // more than the list holds; only the audit has them
}

// Unknown is a call of which nobody can say whether it took effect. It was not made again. Title and what follows is there
// as far as the capability's log policy shows it to whoever asks.
type Unknown struct {
	Inv         capabilities.InvocationID `cbor:"1,keyasint"`
	Slot        uint32                    `cbor:"2,keyasint"` // the phone that asked for it
	Phone       string                    `cbor:"3,keyasint,omitempty"`
	Name        capabilities.Name         `cbor:"4,keyasint,omitempty"`
	Version     capabilities.Version      `cbor:"5,keyasint,omitempty"`
	Title       string                    `cbor:"6,keyasint,omitempty"`
	Text        string                    `cbor:"7,keyasint,omitempty"`
	Destination string                    `cbor:"8,keyasint,omitempty"`
	When        int64                     `cbor:"9,keyasint,omitempty"`  // of the promise to make it: Unix milliseconds, 0 where the clock was unset
	Seq         uint64                    `cbor:"10,keyasint,omitempty"` // audit record that holds the promise
	Why         capabilities.Code         `cbor:"11,keyasint,omitempty"`
	// Cut says that the box itself stopped in the middle: found at a start, in place of an outcome.
	Cut bool `cbor:"12,keyasint,omitempty"`
	// Sent says that the audit holds that the request left the box, so that only the answer is not known.
	Sent bool `cbor:"13,keyasint,omitempty"`
}

// Seen says that a person has read of one unknown outcome, which then leaves the inbox; what it was stays unknown. Sig is
// the phone's, over wire.SeenBytes. The Inbox as it is then answers, or an Error.
type Seen struct {
	Slot uint32                    `cbor:"1,keyasint"`
	Inv  capabilities.InvocationID `cbor:"2,keyasint"`
	Sig  []byte                    `cbor:"3,keyasint"`
}

// Cable asks, for the owner, that whoever is at the box be offered to have the record read over the USB cable. Nothing happens
// before a press there. Sig is the phone's, over wire.CableBytes; the counter is of the same row as an ask's. CableReply
// answers, or an Error.
type Cable struct {
	Slot    uint32 `cbor:"1,keyasint"`
	Counter uint64 `cbor:"2,keyasint"`
	Sig     []byte `cbor:"3,keyasint"`
}

// CableReply answers Cable: the next gesture at the box shows the prompt.
type CableReply struct {
	Seconds uint32 `cbor:"1,keyasint"` // for how long it is offered
}

// Error answers a question that could not be dealt with.
type Error struct {
	Code    capabilities.Code `cbor:"1,keyasint"`
	Message string            `cbor:"2,keyasint"`
}

func (e *Error) Error() string { return fmt.Sprintf("%s (%s)", e.Message, e.Code) }

// Challenge is what a courier says first: a grant must name it, so no grant outlives the connection that it was made for.
type Challenge struct {
	Nonce [32]byte `cbor:"1,keyasint"`
	Start ID       `cbor:"2,keyasint"` // of this courier process
}

// Execute spends a grant. Exactly one Result or Error answers it.
type Execute struct {
	Grant  []byte `cbor:"1,keyasint"`           // COSE_Sign1, package grant
	Secret []byte `cbor:"2,keyasint,omitempty"` // fills the credential slot that the grant names
}

// Abort kills the worker of a grant that is being executed: the person withdrew, or there was a panic.
type Abort struct {
	Inv capabilities.InvocationID `cbor:"1,keyasint"`
}

// Result is a worker's result as the courier passes it on, unread.
type Result struct {
	Inv      capabilities.InvocationID `cbor:"1,keyasint"`
	Status   capabilities.Status       `cbor:"2,keyasint"` // Done, Failed or Unknown
	Code     capabilities.Code         `cbor:"3,keyasint,omitempty"`
	Sent     bool                      `cbor:"4,keyasint"` // at least one byte may have left the box
	Duration int64                     `cbor:"5,keyasint"` // nanoseconds, from grant to result
	Envelope *Envelope                 `cbor:"6,keyasint,omitempty"`
	Body     []byte                    `cbor:"7,keyasint,omitempty"`
}

// Envelope is what a worker claims about its call, in numbers and digests alone, so that the guard can decode it without
// touching anything that came from outside.
type Envelope struct {
	HTTPStatus    uint16   `cbor:"1,keyasint"` // 0 where the call was not HTTP
	Items         uint16   `cbor:"2,keyasint"` // records in the body
	Truncated     bool     `cbor:"3,keyasint"` // the answer held more than the bounds allow
	Retrieved     int64    `cbor:"4,keyasint"` // Unix milliseconds
	RequestDigest [32]byte `cbor:"5,keyasint"` // of the bytes that were sent
	AnswerDigest  [32]byte `cbor:"6,keyasint"` // of the answer as it arrived
	BodyDigest    [32]byte `cbor:"7,keyasint"` // of Result.Body
}

// Job is one call, for one worker. A connected descriptor comes with it where the grant names a destination.
type Job struct {
	Claims []byte `cbor:"1,keyasint"` // the grant's payload, already verified by the courier
	Secret []byte `cbor:"2,keyasint,omitempty"`
}

// JobResult is what a worker returns before it exits.
type JobResult struct {
	Status   capabilities.Status `cbor:"1,keyasint"`
	Code     capabilities.Code   `cbor:"2,keyasint,omitempty"`
	Sent     bool                `cbor:"3,keyasint"`
	Envelope *Envelope           `cbor:"4,keyasint,omitempty"`
	Body     []byte              `cbor:"5,keyasint,omitempty"`
}
