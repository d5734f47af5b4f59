package audit

import (
	"encoding/hex"
	"errors"
	"fmt"
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
	MaxSteps     = 48       // steps of the panel; of more the first StepsFirst and the newest are kept
	StepsFirst   = 12
	MaxPageBlobs = 8
	// MaxWall is the last time that programs agree on what day it is: ECMAScript ends there (ECMA-262, time values).
	MaxWall = 8_640_000_000_000_000 // Unix milliseconds
	maxList = 256                   // elements of any list
	maxRole = 3                     // owner
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
	case PanelState:
		return uint64(PanelBulletin)
	case PanelCause:
		return uint64(len(panelCauses))
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
		if barred(r) {
			return fmt.Errorf("text holds the control or formatting character %U", r)
		}
	}
	return nil
}

// barred reports whether a character has one of the general categories Cc, Cf, Zl, Zp and Co in Unicode 15. It is a list of
// its own, since tables in libraries grow: a log is to be judged alike by old programs and by new ones.
func barred(r rune) bool {
	in := func(first, last rune) bool { return first <= r && r <= last }
	switch {
	case in(0, 0x1f), in(0x7f, 0x9f): // Cc
	case r == 0xad, in(0x600, 0x605), r == 0x61c, r == 0x6dd, r == 0x70f, in(0x890, 0x891), r == 0x8e2, r == 0x180e: // Cf
	case in(0x200b, 0x200f), in(0x2028, 0x202e), in(0x2060, 0x2064), in(0x2066, 0x206f): // Cf, Zl and Zp
	case r == 0xfeff, in(0xfff9, 0xfffb), r == 0x110bd, r == 0x110cd, in(0x13430, 0x1343f), in(0x1bca0, 0x1bca3): // Cf
	case in(0x1d173, 0x1d17a), r == 0xe0001, in(0xe0020, 0xe007f): // Cf
	case in(0xe000, 0xf8ff), in(0xf0000, 0xffffd), in(0x100000, 0x10fffd): // Co
	default:
		return false
	}
	return true
}
