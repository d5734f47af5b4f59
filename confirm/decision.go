package confirm

import (
	"errors"
	"fmt"
	"time"

	"assent.home.arpa/capabilities"
	"assent.home.arpa/confirm/screen"
)

// Limits of a Request. They bound the memory of a pending decision, not what the policy allows.
const (
	maxPages    = 512
	maxPerson   = 128 // bytes
	maxRevision = 64  // bytes; what receipt.Claims holds
	maxQueued   = 64  // decisions pending at once, over all phones
)

// Errors of Ask and AskAdmin. An undisplayable text is returned as the *screen.UndisplayableError that screen.Pages made.
var (
	// ErrClosed says that Run has ended: nobody watches the panel.
	ErrClosed = errors.New("confirm: the panel is not running")
	// ErrRequest says that a request lacks a field or breaks a bound.
	ErrRequest = errors.New("confirm: invalid request")
)

// Request is one call, fully resolved, validated and allowed by policy, that still needs a press.
type Request struct {
	Inv           capabilities.InvocationID
	Slot          uint32 // pairing slot of the phone that asked; one pending decision each
	Person        string // whose turn it is in the fair queue
	Phone         string // the phone's name as the panel shows it
	Capability    capabilities.Name
	Version       capabilities.Version
	Revision      string   // adapter revision
	SchemaDigest  [32]byte // of the argument schema
	Registry      string   // registry revision
	ArgsDigest    capabilities.ArgsDigest
	RequestDigest [32]byte    // of the bytes that would be sent
	Card          screen.Card // what the person reads
	Still         bool        // nobody is to be called by a sound
}

func (r *Request) validate() error {
	switch {
	case r.Inv == capabilities.InvocationID{}:
		return fmt.Errorf("%w: no invocation id", ErrRequest)
	case !r.Capability.Valid():
		return fmt.Errorf("%w: capability name", ErrRequest)
	case r.Version == 0:
		return fmt.Errorf("%w: capability version", ErrRequest)
	case r.Person == "" || len(r.Person) > maxPerson:
		return fmt.Errorf("%w: person must be 1 to %d bytes", ErrRequest, maxPerson)
	case len(r.Revision) > maxRevision || len(r.Registry) > maxRevision:
		return fmt.Errorf("%w: revision longer than %d bytes", ErrRequest, maxRevision)
	case r.Card.Title == "":
		return fmt.Errorf("%w: card without a title", ErrRequest)
	}
	return screen.Check(r.Phone)
}

// Outcome is how a pending decision ended. The zero value is invalid.
type Outcome uint8

// The outcomes. Do not renumber: the numbers are in the audit.
const (
	Approved      Outcome = 1 // held at the box, and let go; the decision has a receipt
	Denied        Outcome = 2 // somebody at the box said no
	Expired       Outcome = 3 // opened, and not decided in time
	ExpiredUnseen Outcome = 4 // nobody opened it
	Withdrawn     Outcome = 5 // taken back by whoever asked
	Panicked      Outcome = 6 // panic at the box, or the box is still frozen by one
	DisplayLost   Outcome = 7 // nobody can say what the glass shows or what the buttons do
	Busy          Outcome = 8 // this phone has a pending decision already, or too many are queued
)

var outcomeNames = [...]string{
	"invalid", "approved", "denied", "expired", "expired_unseen", "withdrawn", "panicked", "display_lost", "busy",
}

func (o Outcome) String() string {
	if int(o) < len(outcomeNames) {
		return outcomeNames[o]
	}
	return fmt.Sprintf("outcome(%d)", uint8(o))
}

// Decision is what became of a Request, with what the audit needs to show why.
type Decision struct {
	Outcome      Outcome
	Receipt      Receipt       // valid only when Outcome is Approved
	ScreenDigest [32]byte      // screen.Digest of Pages
	Pages        []screen.Page // what was, or would have been, drawn
	Shown        time.Duration // mono: the last page was acknowledged; zero if it never was
	Pressed      time.Duration // mono: the press that began the completing hold, or the denying press
	Completed    time.Duration // mono: the hold completed
	Expires      time.Duration // boot: the receipt's expiry if approved, else the deadline that was running
	Fronted      time.Duration // boot: it reached the front of the queue; zero if it never did
	Mode         Mode          // how it was approved
	Course       Course        // how it went; without steps if it never reached the front
}

// Mode is how a press was given. The zero value is none.
type Mode uint8

// The modes. Do not renumber: the numbers are in the audit.
const (
	ModeHold      Mode = 1
	ModeDwell     Mode = 2 // tap, countdown, tap
	ModeChallenge Mode = 3 // a shown number of taps before the hold
)

// AdminKind names an administrative prompt. The zero value is invalid.
type AdminKind uint8

// The kinds. Do not renumber: the numbers are in the audit.
const (
	AdminPair     AdminKind = 1
	AdminRole     AdminKind = 2
	AdminFeed     AdminKind = 3
	AdminTool     AdminKind = 4
	AdminUpdate   AdminKind = 5
	AdminExport   AdminKind = 6
	AdminReset    AdminKind = 7
	AdminPrune    AdminKind = 9
	AdminUnfreeze AdminKind = 8 // shown by the panel itself when the gesture is made on a frozen box
)

// AdminRequest is an administrative prompt: its consequence as a title and the literal detail.
type AdminRequest struct {
	Kind  AdminKind
	Title string
	Text  string
	Name  string // one that somebody else chose, drawn below the text and set apart from it, or empty
	// Offer has it wait, without a deadline, for the next gesture at the box, which then opens it and nothing else.
	Offer bool
	// Afresh has what is offered wait for a gesture that was begun after it was: somebody who need not be at the box has caused it.
	// Without it, one of a moment ago that nothing has used yet opens it, too.
	Afresh bool
}

// AdminOutcome is how an administrative prompt ended. The zero value is invalid.
type AdminOutcome uint8

// The outcomes. Do not renumber: the numbers are in the audit.
const (
	AdminConfirmed   AdminOutcome = 1
	AdminDenied      AdminOutcome = 2
	AdminExpired     AdminOutcome = 3
	AdminWithdrawn   AdminOutcome = 4
	AdminNoGesture   AdminOutcome = 5 // nobody at the box opened the window for it; never shown
	AdminBusy        AdminOutcome = 6 // a card or another prompt has the panel; never shown
	AdminPanicked    AdminOutcome = 7
	AdminDisplayLost AdminOutcome = 8
)

var adminNames = [...]string{
	"invalid", "confirmed", "denied", "expired", "withdrawn", "no_gesture", "busy", "panicked", "display_lost",
}

func (o AdminOutcome) String() string {
	if int(o) < len(adminNames) {
		return adminNames[o]
	}
	return fmt.Sprintf("admin(%d)", uint8(o))
}

// AdminDecision is what became of an AdminRequest, with what the audit needs to show why.
type AdminDecision struct {
	Outcome      AdminOutcome
	ScreenDigest [32]byte      // screen.Digest of Pages
	Pages        []screen.Page // what was drawn; none where it never reached the panel
	Shown        time.Duration // mono: the last page was acknowledged; zero if it never was
	Pressed      time.Duration // mono: the press that began the completing hold
	Completed    time.Duration // mono: the hold completed
	Course       Course        // how it went; without steps where it never reached the panel
}

// NoticeKind says what a Notice reports. The zero value is invalid.
type NoticeKind uint8

// The notices.
const (
	PairingOpened NoticeKind = 1 // Code holds the code that the panel shows
	PairingClosed NoticeKind = 2
	Panic         NoticeKind = 3 // pending decisions were dropped; kill the workers, persist the freeze
	Unfrozen      NoticeKind = 4 // both buttons were held at the box; persist that
	PanelLost     NoticeKind = 5 // the display stopped acknowledging
	PanelBack     NoticeKind = 6
	ButtonsLost   NoticeKind = 7  // their lines closed; nothing can be approved until a restart
	HoldRevoked   NoticeKind = 8  // the hold on Inv was complete and never let go: it was given no receipt
	BulletinRead  NoticeKind = 9  // somebody at the box has closed Bulletin
	ButtonDoubted NoticeKind = 10 // approve does what no finger does; for a while cards ask for taps
)

var noticeNames = [...]string{
	"invalid", "pairing_opened", "pairing_closed", "panic", "unfrozen", "panel_lost", "panel_back", "buttons_lost", "hold_revoked", "bulletin_read", "button_doubted",
}

func (k NoticeKind) String() string {
	if int(k) < len(noticeNames) {
		return noticeNames[k]
	}
	return fmt.Sprintf("notice(%d)", uint8(k))
}

// Notice tells the guard of something that happened at the panel outside any Ask.
type Notice struct {
	Kind     NoticeKind
	Code     string                    // PairingOpened
	Inv      capabilities.InvocationID // HoldRevoked
	Bulletin [32]byte                  // BulletinRead: its ID
}
