// Package wire is the contract between a phone and the gateway, over one websocket.
//
// Every frame is a text frame with one JSON object (RFC 8259). From the phone:
//
//	{"v":1, "id":"c7", "type":"ask", "data":{…}}
//
// and from the gateway:
//
//	{"v":1, "seq":42, "re":"c7", "type":"text", "data":{…}}
//
// id is the phone's, at most 64 bytes, and comes back as re in whatever answers it. seq counts what this phone was sent,
// from 1, without gaps, over reconnects: after a dropped connection the phone says the last seq it saw and is sent what it
// missed, or, where that is no longer kept, the state as it is (type "snapshot"). What concerns one connection alone has no
// seq: challenge, welcome and what comes with it, and answers such as error and pong.
//
// While a phone is being paired it shows the KeyCode of its key, for people to compare with the panel's.
//
// A phone first proves that it holds its key: the gateway's challenge carries a nonce, and hello a signature over
// AuthBytes. Each question is signed as well, over AskBytes. There is no message that approves anything, and none may be
// added: an unknown type is answered with the error unknown_type, and one that looks like an attempt to approve is in the
// audit besides.
//
// # Compatibility
//
// Types and fields may be added within version 1; a phone ignores what it does not know. The gateway ignores nothing:
// unknown fields are an error.
package wire

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"

	"assent.home.arpa/capabilities"
)

// Version of the envelope.
const Version = 1

// Bounds of what a phone may send.
const (
	MaxFrame     = 32 << 10 // bytes of one frame
	MaxQuestion  = 8 << 10  // bytes of one question's text
	MaxID        = 64       // bytes of a frame's id
	MaxPhoneName = 24       // code points of a phone's name
)

// Type names what a frame holds.
type Type string

// From the phone.
const (
	TypeHello  Type = "hello"
	TypePair   Type = "pair"
	TypeAsk    Type = "ask"
	TypeCancel Type = "cancel"
	TypeDeny   Type = "deny"
	TypeSeen   Type = "seen"
	TypeRecord Type = "record" // asks for the box's record as it is; without data. A frame of the same type answers
	TypeCable  Type = "cable"  // the owner asks that the record be offered over the USB cable. A frame of the same type answers
	TypePing   Type = "ping"
)

// From the gateway.
const (
	TypeChallenge Type = "challenge" // connection; first frame
	TypeWelcome   Type = "welcome"   // connection; answers hello
	TypePaired    Type = "paired"    // connection; answers pair
	TypeError     Type = "error"     // answers anything, or concerns the connection
	TypePong      Type = "pong"
	TypeSnapshot  Type = "snapshot" // the conversation as it is
	TypeTurn      Type = "turn"     // a turn began
	TypeText      Type = "text"     // more prose
	TypePending   Type = "pending"  // look at the box
	TypeResult    Type = "result"   // one proposal ended, however it ended
	TypeTurnEnd   Type = "turn_end"
	TypeNotice    Type = "notice" // something changed at the box
	TypeInbox     Type = "inbox"  // unknown outcomes that nobody has seen yet; follows welcome where there are any, and each change
)

// Upstream is a frame from a phone.
type Upstream struct {
	V    int             `json:"v"`
	ID   string          `json:"id"`
	Type Type            `json:"type"`
	Data json.RawMessage `json:"data,omitempty"`
}

// Downstream is a frame to a phone.
type Downstream struct {
	V    int    `json:"v"`
	Seq  uint64 `json:"seq,omitempty"`
	Re   string `json:"re,omitempty"`
	Type Type   `json:"type"`
	Data any    `json:"data"`
}

// Hello proves who is there. Binary values are base64url without padding (RFC 4648 section 5).
type Hello struct {
	Slot uint32 `json:"slot"`
	Sig  string `json:"sig"`  // over AuthBytes(slot, nonce)
	Last uint64 `json:"last"` // highest seq seen, 0 for none
	// Session is the welcome's session that Last counts in; empty for none.
	Session string `json:"session,omitempty"`
	// Conversation is the one that the phone has open, of which it is sent a snapshot where it cannot be sent what it missed.
	Conversation string `json:"conversation,omitempty"`
}

// Pair asks for a slot while pairing mode is open at the box.
type Pair struct {
	Code string `json:"code"`
	Name string `json:"name"`
	Key  string `json:"key"` // uncompressed P-256 point
}

// Ask is one question.
type Ask struct {
	Conversation string `json:"conversation"` // 32 hex digits, chosen by the phone
	Counter      uint64 `json:"counter"`      // greater than any before from this phone
	Text         string `json:"text"`
	Sig          string `json:"sig"` // over AskBytes
}

// Cancel ends the turn of a conversation.
type Cancel struct {
	Conversation string `json:"conversation"`
}

// Deny takes one's own pending request back.
type Deny struct {
	Invocation string `json:"invocation"`
}

// Seen says that the person has read of an unknown outcome, which then leaves the inbox.
type Seen struct {
	Invocation string `json:"invocation"`
	Sig        string `json:"sig"` // over SeenBytes
}

// Cable asks that whoever is at the box be offered to have the record read over the box's USB cable. Nothing is on the cable
// before somebody there has held both buttons, twice.
type Cable struct {
	Counter uint64 `json:"counter"` // greater than that of any ask before from this phone
	Sig     string `json:"sig"`     // over CableBytes
}

// CableOffer answers Cable.
type CableOffer struct {
	Seconds uint32 `json:"seconds"` // for how long the box offers it
}

// Challenge is the first frame on every connection.
type Challenge struct {
	Nonce string `json:"nonce"`
	Box   string `json:"box"` // the box's name
}

// Welcome answers Hello.
type Welcome struct {
	Session  string `json:"session"`
	Name     string `json:"name"`
	Role     string `json:"role"`
	Model    string `json:"model"`
	Scripted bool   `json:"scripted"` // the model is a test script, not a language model
	Counter  uint64 `json:"counter"`  // the next ask's must be greater
	Frozen   bool   `json:"frozen"`
	Resumed  bool   `json:"resumed"`        // the missed frames follow; otherwise a snapshot does
	HeadCode string `json:"head_code"`      // compare with the panel
	Seal     string `json:"seal,omitempty"` // the latest audit seal, to be kept as an anchor
	HeadSeq  uint64 `json:"head_seq"`       // of the record that holds the seal; 0 where there is none
	Root     string `json:"root,omitempty"` // of the record, as in Record
}

// Record is the box's record as it is now: what a welcome says of it, at any later time.
type Record struct {
	HeadCode string `json:"head_code"`
	Seal     string `json:"seal,omitempty"`
	HeadSeq  uint64 `json:"head_seq"`
	Root     string `json:"root,omitempty"` // SHA-256 of the record's root key in hex: what it is known by for good
}

// Paired answers Pair.
type Paired struct {
	Slot uint32 `json:"slot"`
	Name string `json:"name"`
	Role string `json:"role"`
}

// Error says what went wrong and what to do about it.
type Error struct {
	Code    capabilities.Code `json:"code"`
	Message string            `json:"message"`
	Retry   bool              `json:"retry"` // the same again may work later
}

// Turn says that the model has begun to answer.
type Turn struct {
	Conversation string `json:"conversation"`
	Turn         string `json:"turn"`
	Text         string `json:"text"` // the question
}

// Text is more of the model's prose. It is plain text: never markup, never a link.
type Text struct {
	Conversation string `json:"conversation"`
	Turn         string `json:"turn"`
	Text         string `json:"text"`
}

// Pending is the "look at the box" card. It comes once more, with Decided, when somebody there has let it go ahead.
type Pending struct {
	Conversation string               `json:"conversation"`
	Turn         string               `json:"turn"`
	Invocation   string               `json:"invocation"`
	Capability   capabilities.Name    `json:"capability"`
	Version      capabilities.Version `json:"version"`
	Revision     string               `json:"revision"`
	Title        string               `json:"title"`
	Text         string               `json:"text"`
	Destination  string               `json:"destination"`
	Pages        int                  `json:"pages"`
	Request      string               `json:"request,omitempty"` // the exact bytes, for "details"
	ArgsDigest   string               `json:"args_digest"`
	Decided      bool                 `json:"decided"` // it is under way, and can no longer be taken back
}

// Result is how one proposal ended: the same object that the model is given.
type Result struct {
	Conversation string  `json:"conversation"`
	Turn         string  `json:"turn"`
	Outcome      Outcome `json:"outcome"`
}

// Outcome is the one structured object that model and phone both receive.
type Outcome struct {
	Invocation  string               `json:"invocation,omitempty"`
	Capability  capabilities.Name    `json:"capability,omitempty"`
	Version     capabilities.Version `json:"version,omitempty"`
	Status      string               `json:"status"` // capabilities.Status
	Stage       string               `json:"stage,omitempty"`
	Code        capabilities.Code    `json:"code,omitempty"`
	Message     string               `json:"message,omitempty"`
	RetryIn     uint32               `json:"retry_in,omitempty"` // seconds
	RetrievedAt string               `json:"retrieved_at,omitempty"`
	// Data is the capability's own result, checked against its schema: for a search {"citations":[…]}.
	Data json.RawMessage `json:"data,omitempty"`
}

// TurnEnd closes a turn.
type TurnEnd struct {
	Conversation string            `json:"conversation"`
	Turn         string            `json:"turn"`
	Reason       string            `json:"reason"` // complete, cancelled, length, failed
	Code         capabilities.Code `json:"code,omitempty"`
	Message      string            `json:"message,omitempty"`
	Tokens       int               `json:"tokens"`
	DecodeMillis float64           `json:"decode_ms"`
	PromptMillis float64           `json:"prompt_ms"`
	Prompt       int               `json:"prompt_tokens"`
	Cached       int               `json:"cached_tokens"`
}

// Snapshot is a conversation as it is, for a phone that missed too much.
type Snapshot struct {
	Conversation string  `json:"conversation"`
	Items        []Item  `json:"items"`
	Pending      []any   `json:"pending"` // of type Pending
	Open         *string `json:"open"`    // the turn that is running, or null
}

// Item is one thing said in a conversation.
type Item struct {
	Kind    string   `json:"kind"` // question, prose, outcome
	Turn    string   `json:"turn"`
	Text    string   `json:"text,omitempty"`
	Outcome *Outcome `json:"outcome,omitempty"`
}

// Inbox lists calls with an unknown outcome that the person has not seen, the latest first.
type Inbox struct {
	Items []Unknown `json:"items"`
	Older uint32    `json:"older"` // more, which are in the audit alone
}

// Unknown is a call of which nobody can say whether it took effect. Title, text and destination are there as far as this
// phone may see them.
type Unknown struct {
	Invocation  string               `json:"invocation"`
	Slot        uint32               `json:"slot"`
	Phone       string               `json:"phone,omitempty"` // the phone that asked
	Capability  capabilities.Name    `json:"capability,omitempty"`
	Version     capabilities.Version `json:"version,omitempty"`
	Title       string               `json:"title,omitempty"`
	Text        string               `json:"text,omitempty"`
	Destination string               `json:"destination,omitempty"`
	At          string               `json:"at,omitempty"` // RFC 3339
	Record      uint64               `json:"record"`       // audit record that promised the call
	Code        capabilities.Code    `json:"code,omitempty"`
	Cut         bool                 `json:"cut"`  // the box itself stopped in the middle
	Sent        bool                 `json:"sent"` // it left the box, and only its answer is not known; false where that is not known either
}

// Notice tells phones what changed at the box: frozen, unfrozen, pairing_open, display_lost, audit_lost, audit_full,
// audit_damaged, audit_back, guard_lost, …
type Notice struct {
	Class   string `json:"class"`
	Message string `json:"message"`
}

// AuthBytes are what a phone signs to prove that it holds its key (ECDSA P-256, SHA-256, r‖s):
//
//	"assent/auth/v1" 00 || slot uint32 big-endian || nonce [32]
func AuthBytes(slot uint32, nonce [32]byte) []byte {
	b := append([]byte("assent/auth/v1"), 0)
	b = binary.BigEndian.AppendUint32(b, slot)
	return append(b, nonce[:]...)
}

// AskBytes are what a phone signs to open a turn:
//
//	"assent/ask/v1" 00 || slot uint32 || conversation [16] || counter uint64 || SHA-256(text) [32]      big-endian
func AskBytes(slot uint32, conversation [16]byte, counter uint64, text [32]byte) []byte {
	b := append([]byte("assent/ask/v1"), 0)
	b = binary.BigEndian.AppendUint32(b, slot)
	b = append(b, conversation[:]...)
	b = binary.BigEndian.AppendUint64(b, counter)
	return append(b, text[:]...)
}

// SeenBytes are what a phone signs to say that its person has read of an unknown outcome:
//
//	"assent/seen/v1" 00 || slot uint32 || invocation [16]      big-endian
//
// They hold no counter: to be shown the same thing twice changes nothing.
func SeenBytes(slot uint32, invocation [16]byte) []byte {
	b := append([]byte("assent/seen/v1"), 0)
	b = binary.BigEndian.AppendUint32(b, slot)
	return append(b, invocation[:]...)
}

// CableBytes are what a phone signs to have the record offered over the cable:
//
//	"assent/cable/v1" 00 || slot uint32 || counter uint64      big-endian
//
// The counter is of the same row as an ask's, so that nobody can ask the same again.
func CableBytes(slot uint32, counter uint64) []byte {
	b := append([]byte("assent/cable/v1"), 0)
	b = binary.BigEndian.AppendUint32(b, slot)
	return binary.BigEndian.AppendUint64(b, counter)
}

// TextDigest is SHA-256 over the UTF-8 bytes of a question.
func TextDigest(text string) [32]byte { return sha256.Sum256([]byte(text)) }
