package audit

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"time"

	"assent.home.arpa/appliance/clock"
)

// The records that the log writes about itself, and those about its keeping.

// Genesis is record 0. Statement is signed by the device root key, which was made for it and erased after it.
type Genesis struct {
	Version   uint8  `cbor:"1,keyasint"` // of the format: 1
	Root      Digest `cbor:"2,keyasint"` // the device root's Ed25519 public key
	Statement Bytes  `cbor:"3,keyasint"` // COSE_Sign1 over GenesisClaims
}

// GenesisClaims is what the device root signed.
type GenesisClaims struct {
	Version uint8  `cbor:"1,keyasint"`
	Root    Digest `cbor:"2,keyasint"`
	SealKey Digest `cbor:"3,keyasint"` // Ed25519 public key of epoch 0
	Image   Digest `cbor:"4,keyasint"`
	PrevLog Digest `cbor:"5,keyasint,omitzero"` // last link of the log that this one continues
}

// Segment opens every segment but the first. It repeats what a reader must know to begin here.
type Segment struct {
	Index      uint32       `cbor:"1,keyasint"`
	First      Seq          `cbor:"2,keyasint"` // its own sequence number
	PrevLink   Digest       `cbor:"3,keyasint"`
	Epoch      uint32       `cbor:"4,keyasint"`
	SealKey    Digest       `cbor:"5,keyasint"` // of Epoch
	ReceiptKey Digest       `cbor:"6,keyasint"`
	GrantKey   Digest       `cbor:"7,keyasint"`
	Open       []OpenIntent `cbor:"8,keyasint,omitempty"` // intents without an effect, in order
	// Other counts the bytes, padding included, of the log's batches so far that belong to no call that was approved at the
	// box, as the writer counted them: they share half the quota.
	Other    uint64 `cbor:"9,keyasint,omitzero"`
	Exported Seq    `cbor:"10,keyasint,omitzero"` // last record that a complete and good export holds
	Pruned   uint32 `cbor:"11,keyasint,omitzero"` // segments before this one were pruned, as sealed prune records say
	Export   Seq    `cbor:"12,keyasint,omitzero"` // the record of that export
}

// OpenIntent is an intent whose effect is not recorded yet.
type OpenIntent struct {
	_      struct{} `cbor:",toarray"`
	Intent Seq
	Inv    ID
}

// Mode of a start; see Boot.Program.
const (
	ProgramBox       uint8 = 1 // assentd on a box
	ProgramSimulator uint8 = 2 // assentsim: a drawn panel and simulated buttons
)

// Boot says what started, and what the start found. The log fills in TailBytes, TailDigest and Unresolved.
type Boot struct {
	Image      Digest   `cbor:"1,keyasint,omitzero"`
	Config     Digest   `cbor:"2,keyasint,omitzero"`
	Policy     Digest   `cbor:"3,keyasint,omitzero"`
	Models     []Digest `cbor:"4,keyasint,omitempty"`
	Reset      string   `cbor:"5,keyasint,omitzero"`  // why the box started, where it knows
	TailBytes  uint64   `cbor:"6,keyasint,omitzero"`  // unsealed bytes that were set aside and zeroed
	TailDigest Digest   `cbor:"7,keyasint,omitzero"`  // SHA-256 of them
	Unresolved []ID     `cbor:"8,keyasint,omitempty"` // invocations whose effect was unknown at this start
	Registry   Digest   `cbor:"9,keyasint,omitzero"`
	Build      string   `cbor:"10,keyasint,omitzero"`
	Binary     Digest   `cbor:"11,keyasint,omitzero"`
	Engine     Digest   `cbor:"12,keyasint,omitzero"`
	Program    uint8    `cbor:"13,keyasint,omitzero"`
	Panel      string   `cbor:"14,keyasint,omitzero"` // the kit: display and buttons
}

// Seal ends every batch that was acknowledged.
type Seal struct {
	Sign1 Bytes `cbor:"1,keyasint"` // COSE_Sign1 over SealClaims
}

// SealClaims is what a seal signs: everything before it, through the link, and its own record but for the signature.
type SealClaims struct {
	Size   Seq    `cbor:"1,keyasint"` // records before this one, which is its own sequence number
	Link   Digest `cbor:"2,keyasint"` // of the record before
	Epoch  uint32 `cbor:"3,keyasint"` // whose key signs
	First  Seq    `cbor:"4,keyasint"` // first record of the batch
	Header Digest `cbor:"5,keyasint"` // SHA-256 of this record encoded with an empty Sign1
	Tree   Digest `cbor:"6,keyasint,omitzero"`
}

// Epoch announces the next seal key. It is the last record before a seal, and that seal is the last that the old key
// signs, so the two alone prove the new key to whoever believes the old one. Receipts and grants from here on are checked
// against the keys that it names.
type Epoch struct {
	N          uint32      `cbor:"1,keyasint"`
	SealKey    Digest      `cbor:"2,keyasint"`
	ReceiptKey Digest      `cbor:"3,keyasint"`
	GrantKey   Digest      `cbor:"4,keyasint"`
	Reason     EpochReason `cbor:"5,keyasint"`
}

// EpochReason says why a key was replaced. The zero value is invalid.
type EpochReason uint8

// The reasons. Do not renumber.
const (
	EpochStart   EpochReason = 1
	EpochDay     EpochReason = 2
	EpochSegment EpochReason = 3
)

func (r EpochReason) String() string { return name(uint8(r), "invalid", "start", "day", "segment") }

// ClockStep says that the wall clock was set, so that earlier times of this boot can be read anew.
type ClockStep struct {
	From      int64       `cbor:"1,keyasint"` // Unix milliseconds, as it would have been
	To        int64       `cbor:"2,keyasint"` // Unix milliseconds, as it is
	FromState clock.State `cbor:"3,keyasint"`
	ToState   clock.State `cbor:"4,keyasint"`
	Source    string      `cbor:"5,keyasint,omitzero"`
}

// Prune says that whole segments were removed. It is sealed before they are.
type Prune struct {
	FirstSegment uint32 `cbor:"1,keyasint"`
	LastSegment  uint32 `cbor:"2,keyasint"`
	First        Seq    `cbor:"3,keyasint"`
	Last         Seq    `cbor:"4,keyasint"`
	LastLink     Digest `cbor:"5,keyasint"`
	Export       Seq    `cbor:"6,keyasint,omitzero"` // of the export that holds them
	By           Actor  `cbor:"7,keyasint,omitzero"`
	Admin        Seq    `cbor:"8,keyasint,omitzero"` // of the admin record that confirmed it
}

// Export says that a copy was handed over.
type Export struct {
	FirstSegment uint32 `cbor:"1,keyasint"`
	LastSegment  uint32 `cbor:"2,keyasint"`
	Last         Seq    `cbor:"3,keyasint"`
	LastLink     Digest `cbor:"4,keyasint"`
	OK           bool   `cbor:"5,keyasint,omitzero"`
	Sums         Digest `cbor:"6,keyasint,omitzero"`  // SHA-256 of the copy's SHA256SUMS
	Volume       Bytes  `cbor:"7,keyasint,omitempty"` // the medium's own name, untrusted
	Redacted     bool   `cbor:"8,keyasint,omitzero"`
	Code         string `cbor:"9,keyasint,omitzero"`
	By           Actor  `cbor:"10,keyasint,omitzero"`
	Admin        Seq    `cbor:"11,keyasint,omitzero"`
	// Cable says that the copy could be read over a cable for a while. Whether anybody kept it nobody knows, so nothing is ever
	// removed because of it.
	Cable bool `cbor:"12,keyasint,omitzero"`
}

// Fault says that something broke.
type Fault struct {
	Class   FaultClass `cbor:"1,keyasint"`
	Where   string     `cbor:"2,keyasint,omitzero"` // a part of ours, never a path
	Code    string     `cbor:"3,keyasint,omitzero"`
	Errno   uint32     `cbor:"4,keyasint,omitzero"`
	Count   uint32     `cbor:"5,keyasint,omitzero"`
	Segment uint32     `cbor:"6,keyasint,omitzero"`
	Offset  uint64     `cbor:"7,keyasint,omitzero"`
	At      Seq        `cbor:"8,keyasint,omitzero"`
}

// FaultClass says what broke. The zero value is invalid.
type FaultClass uint8

// The classes. Do not renumber.
const (
	FaultStorage  FaultClass = 1
	FaultCorrupt  FaultClass = 2 // bytes of the log that were acknowledged cannot be read
	FaultDisplay  FaultClass = 3
	FaultButton   FaultClass = 4
	FaultCourier  FaultClass = 5
	FaultWorker   FaultClass = 6
	FaultGateway  FaultClass = 7
	FaultProtocol FaultClass = 8 // a peer process sent what it must not
	FaultMismatch FaultClass = 9 // what was sent or received is not what was promised
	FaultFull     FaultClass = 10
)

func (c FaultClass) String() string {
	return name(uint8(c), "invalid", "storage", "corrupt", "display", "button", "courier", "worker", "gateway", "protocol", "mismatch", "full")
}

// Suppressed stands for records that a rate limit kept out.
type Suppressed struct {
	Of    Kind          `cbor:"1,keyasint"`
	Count uint64        `cbor:"2,keyasint"`
	From  Actor         `cbor:"3,keyasint,omitzero"`
	Class uint8         `cbor:"4,keyasint,omitzero"` // of the claims or faults
	Slot  uint32        `cbor:"5,keyasint,omitzero"`
	Since time.Duration `cbor:"6,keyasint,omitzero"` // boot time
}

// Purpose says what a blob's bytes are. The zero value is invalid.
type Purpose uint8

// The purposes. Do not renumber.
const (
	BlobRaw         Purpose = 1  // what the model wrote: arguments, or a call that could not be parsed
	BlobArguments   Purpose = 2  // normalised arguments
	BlobRequest     Purpose = 3  // where the exact request goes, and its bytes: capabilities.Request.Preimage
	BlobPages       Purpose = 4  // panel pages, 1,024 bytes each (device.Frame), at most 64 in a blob
	BlobView        Purpose = 5  // a readable rendering
	BlobDestination Purpose = 6  // the destination's name
	BlobAddress     Purpose = 7  // the address that was connected to
	BlobExpects     Purpose = 8  // what an observation should find
	BlobAsk         Purpose = 9  // an ask as it was signed, with its signature
	BlobTool        Purpose = 10 // a foreign tool's description and schema
	BlobAdmin       Purpose = 11 // the text of an administrative prompt
)

func (p Purpose) String() string {
	return name(uint8(p), "invalid", "raw", "arguments", "request", "pages", "view", "destination", "address", "expects", "ask", "tool", "admin")
}

// Blob holds literal bytes. Its frame can be redacted to a hash without breaking the chain, so it is the only place for
// what a household may want to forget.
type Blob struct {
	Purpose Purpose `cbor:"1,keyasint"`
	Digest  Digest  `cbor:"2,keyasint"` // SHA-256 of Bytes, by which other records name them
	Bytes   Bytes   `cbor:"3,keyasint"` // at most MaxBlob
}

// BlobOf returns an entry that keeps b, and the digest by which other records name it.
func BlobOf(purpose Purpose, inv [16]byte, b []byte) (Entry, Digest) {
	d := Digest(sha256.Sum256(b))
	return Entry{Inv: inv, Payload: Blob{Purpose: purpose, Digest: d, Bytes: b}}, d
}

// Redact says that the body of a blob was removed.
type Redact struct {
	Seq     Seq     `cbor:"1,keyasint"` // of the blob's record
	Body    Digest  `cbor:"2,keyasint"` // SHA-256 of the removed body
	By      Actor   `cbor:"3,keyasint"`
	Purpose Purpose `cbor:"4,keyasint,omitzero"`
	Reason  string  `cbor:"5,keyasint,omitzero"`
	Admin   Seq     `cbor:"6,keyasint,omitzero"`
}

func (g Genesis) check() error {
	if g.Version != Version {
		return errors.New("the format version is not 1")
	}
	return nil
}

func (s Segment) check() error {
	if len(s.Open) > maxOpen {
		return fmt.Errorf("%d effects are under way, at most %d can be", len(s.Open), maxOpen)
	}
	return nil
}

func (b Boot) check() error {
	if b.Program > ProgramSimulator {
		return errors.New("no such program")
	}
	return nil
}

func (s Seal) check() error { return nil }

func (e Epoch) check() error {
	if e.N == 0 || e.Reason == 0 {
		return errors.New("no number or no reason")
	}
	return nil
}

func (c ClockStep) check() error { return nil }

func (p Prune) check() error {
	if p.LastSegment < p.FirstSegment || p.Last < p.First {
		return errors.New("the range runs backwards")
	}
	return nil
}

func (e Export) check() error {
	if e.LastSegment < e.FirstSegment {
		return errors.New("the range runs backwards")
	}
	return nil
}

func (f Fault) check() error {
	if f.Class == 0 {
		return errors.New("no class")
	}
	return nil
}

func (s Suppressed) check() error {
	if s.Of < 1 || s.Of > Kinds || s.Count == 0 {
		return errors.New("kind or count is out of range")
	}
	return nil
}

func (b Blob) check() error {
	switch {
	case b.Purpose == 0:
		return errors.New("no purpose")
	case len(b.Bytes) > MaxBlob:
		return errors.New("more than 64 KiB")
	case sha256.Sum256(b.Bytes) != b.Digest:
		return errors.New("digest and bytes differ")
	}
	return nil
}

func (r Redact) check() error { return r.By.check() }
