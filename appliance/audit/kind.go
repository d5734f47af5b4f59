package audit

import "fmt"

// Seq is the position of a record in the log, from 0. There are no gaps.
type Seq uint64

// Kind says what a record is about. The zero value is no kind.
type Kind uint8

// The kinds. Do not renumber: the numbers are on flash, signed.
const (
	KindGenesis    Kind = 1
	KindSegment    Kind = 2
	KindBoot       Kind = 3
	KindProposal   Kind = 4
	KindDecision   Kind = 5
	KindApproval   Kind = 6
	KindIntent     Kind = 7
	KindEffect     Kind = 8
	KindObserve    Kind = 9
	KindSeal       Kind = 10
	KindEpoch      Kind = 11
	KindClock      Kind = 12
	KindPrune      Kind = 13
	KindExport     Kind = 14
	KindAdmin      Kind = 15
	KindFault      Kind = 16
	KindSuppressed Kind = 17
	KindBlob       Kind = 18
	KindRedact     Kind = 19
	KindClaim      Kind = 20
	KindFreeze     Kind = 21
	KindFeed       Kind = 22
	KindTool       Kind = 23
	KindWithdraw   Kind = 24
)

// Kinds is the number of kinds; they are numbered 1 to Kinds.
const Kinds = 24

var kindNames = [...]string{
	"none", "genesis", "segment", "boot", "proposal", "decision", "approval", "intent", "effect", "observe", "seal", "epoch",
	"clock", "prune", "export", "admin", "fault", "suppressed", "blob", "redact", "claim", "freeze", "feed", "tool", "withdraw",
}

func (k Kind) String() string {
	if int(k) < len(kindNames) {
		return kindNames[k]
	}
	return fmt.Sprintf("kind(%d)", uint8(k))
}

// Payload is what a record says. The set is closed: the 24 structs of this package, by value or by pointer.
type Payload interface {
	Kind() Kind
	// check reports what the payload must not say, such as a text with control characters.
	check() error
}

// blank returns an empty payload of the kind to decode into, or nil for a kind that does not exist.
func blank(k Kind) Payload {
	switch k {
	case KindGenesis:
		return new(Genesis)
	case KindSegment:
		return new(Segment)
	case KindBoot:
		return new(Boot)
	case KindProposal:
		return new(Proposal)
	case KindDecision:
		return new(Decision)
	case KindApproval:
		return new(Approval)
	case KindIntent:
		return new(IntentRecord)
	case KindEffect:
		return new(EffectRecord)
	case KindObserve:
		return new(Observe)
	case KindSeal:
		return new(Seal)
	case KindEpoch:
		return new(Epoch)
	case KindClock:
		return new(ClockStep)
	case KindPrune:
		return new(Prune)
	case KindExport:
		return new(Export)
	case KindAdmin:
		return new(Admin)
	case KindFault:
		return new(Fault)
	case KindSuppressed:
		return new(Suppressed)
	case KindBlob:
		return new(Blob)
	case KindRedact:
		return new(Redact)
	case KindClaim:
		return new(Claim)
	case KindFreeze:
		return new(Freeze)
	case KindFeed:
		return new(Feed)
	case KindTool:
		return new(Tool)
	case KindWithdraw:
		return new(Withdraw)
	}
	return nil
}

// Kind implements Payload.
func (Genesis) Kind() Kind { return KindGenesis }

// Kind implements Payload.
func (Segment) Kind() Kind { return KindSegment }

// Kind implements Payload.
func (Boot) Kind() Kind { return KindBoot }

// Kind implements Payload.
func (Proposal) Kind() Kind { return KindProposal }

// Kind implements Payload.
func (Decision) Kind() Kind { return KindDecision }

// Kind implements Payload.
func (Approval) Kind() Kind { return KindApproval }

// Kind implements Payload.
func (IntentRecord) Kind() Kind { return KindIntent }

// Kind implements Payload.
func (EffectRecord) Kind() Kind { return KindEffect }

// Kind implements Payload.
func (Observe) Kind() Kind { return KindObserve }

// Kind implements Payload.
func (Seal) Kind() Kind { return KindSeal }

// Kind implements Payload.
func (Epoch) Kind() Kind { return KindEpoch }

// Kind implements Payload.
func (ClockStep) Kind() Kind { return KindClock }

// Kind implements Payload.
func (Prune) Kind() Kind { return KindPrune }

// Kind implements Payload.
func (Export) Kind() Kind { return KindExport }

// Kind implements Payload.
func (Admin) Kind() Kind { return KindAdmin }

// Kind implements Payload.
func (Fault) Kind() Kind { return KindFault }

// Kind implements Payload.
func (Suppressed) Kind() Kind { return KindSuppressed }

// Kind implements Payload.
func (Blob) Kind() Kind { return KindBlob }

// Kind implements Payload.
func (Redact) Kind() Kind { return KindRedact }

// Kind implements Payload.
func (Claim) Kind() Kind { return KindClaim }

// Kind implements Payload.
func (Freeze) Kind() Kind { return KindFreeze }

// Kind implements Payload.
func (Feed) Kind() Kind { return KindFeed }

// Kind implements Payload.
func (Tool) Kind() Kind { return KindTool }

// Kind implements Payload.
func (Withdraw) Kind() Kind { return KindWithdraw }
