package audit

import (
	"encoding/hex"
	"errors"
	"fmt"
	"unicode"
	"unicode/utf8"

	"assent.home.arpa/appliance/clock"
	"assent.home.arpa/capabilities"
)

// Version of the format.
const Version = 1

// The limits of the format. A record that breaks one is neither written nor accepted.
const (
	SegmentSize  = 1 << 20  // bytes of a segment file
	Block        = 4 << 10  // bytes that a batch is padded to: what flash programs anyway
	MaxBody      = 4 << 10  // bytes of a record, blobs apart
	MaxBlob      = 64 << 10 // bytes of a blob's content
	MaxText      = 1024     // bytes of a text
	MaxBytes     = 1024     // bytes of a byte string that has no limit of its own
	MaxName      = 256      // bytes of a name or call id as a model wrote it
	MaxClaimText = 512      // bytes of a claim's diagnosis
	MaxTaint     = 8        // sources
	MaxOffered   = 48       // capabilities that a claim names
	MaxPresses   = 32       // edges
	MaxPageBlobs = 8
	maxList      = 256 // elements of any list
	maxRole      = 3   // owner
)

// Digest is a SHA-256, or an Ed25519 public key. The zero value is none.
type Digest [32]byte

func (d Digest) String() string { return hex.EncodeToString(d[:]) }

// ID names an invocation, an ask, a conversation, a boot or an effect: 16 random bytes. The zero value is none.
type ID [16]byte

func (i ID) String() string { return hex.EncodeToString(i[:]) }

// Bytes is a byte string: what a model or a peer sent, or a signed object. Nothing may print it unescaped.
type Bytes []byte

func (b Bytes) String() string { return hex.EncodeToString(b) }

// name picks an enum's name, or says its number.
func name(n uint8, names ...string) string {
	if int(n) < len(names) {
		return names[n]
	}
	return fmt.Sprintf("number %d", n)
}

// lastOf is the highest number of an enumeration, 0 where x is none. Where 0 is no member, check says so.
func lastOf(x any) uint64 {
	switch x.(type) {
	case capabilities.Stage:
		return uint64(capabilities.StageRecord)
	case capabilities.Status:
		return uint64(capabilities.Withdrawn)
	case capabilities.Effect:
		return uint64(capabilities.Write)
	case capabilities.Network:
		return uint64(capabilities.NetworkInternet)
	case capabilities.Privacy:
		return uint64(capabilities.PrivacyHousehold)
	case capabilities.LogPolicy:
		return uint64(capabilities.LogView)
	case capabilities.Class:
		return uint64(capabilities.ClassNet)
	case clock.State:
		return uint64(clock.Synced)
	case Verdict:
		return uint64(Refuse)
	case ApprovalOutcome:
		return uint64(Busy)
	case Mode:
		return uint64(ModeChallenge)
	case Cause:
		return uint64(CausePanic)
	case Tristate:
		return uint64(No)
	case ClaimClass:
		return uint64(ClaimTurn)
	case EpochReason:
		return uint64(EpochSegment)
	case FaultClass:
		return uint64(FaultFull)
	case Purpose:
		return uint64(BlobAdmin)
	case Actor:
		return uint64(ByConsole)
	case AdminAction:
		return uint64(AdminQuiet)
	case ToolState:
		return uint64(ToolRemoved)
	}
	return 0
}

// checkText refuses what a screen or a terminal might act on, or show as something else.
func checkText(s string) error {
	if len(s) > MaxText {
		return fmt.Errorf("%d bytes of text, at most %d are allowed", len(s), MaxText)
	}
	if !utf8.ValidString(s) {
		return errors.New("text is not valid utf-8")
	}
	for _, r := range s {
		if ' ' <= r && r <= '~' {
			continue // nearly every character there is
		}
		if unicode.In(r, unicode.Cc, unicode.Cf, unicode.Zl, unicode.Zp, unicode.Co, unicode.Bidi_Control) {
			return fmt.Errorf("text holds the control or formatting character %U", r)
		}
	}
	return nil
}
