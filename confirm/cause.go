package confirm

import "fmt"

// Cause says why the panel went from a state to another. The zero value is invalid.
type Cause uint8

// The causes. Do not renumber: the numbers are in the audit.
const (
	CauseRequest       Cause = 1 // a request found nothing else on the panel
	CauseAnnounced     Cause = 2 // NEXT REQUEST had its time
	CauseOpened        Cause = 3 // a tap
	CauseDrawn         Cause = 4 // no transition: the picture, and of a request the page, came on the glass
	CauseRead          Cause = 5
	CauseDisarmed      Cause = 6 // what it takes to begin a hold is gone
	CauseChallenge     Cause = 7
	CausePassed        Cause = 8 // the number that was shown
	CausePressed       Cause = 9
	CauseTapped        Cause = 10 // of a dwell
	CauseReleased      Cause = 11
	CauseEdgesLost     Cause = 12
	CauseSlept         Cause = 13
	CauseLevel         Cause = 14 // with the edges, as the hold completed
	CauseSecondTap     Cause = 15
	CauseBrokenOff     Cause = 16
	CauseStuck         Cause = 17 // before the glass could follow
	CauseApproved      Cause = 18 // from here on the outcomes, in words of Outcome
	CauseDenied        Cause = 19
	CauseExpired       Cause = 20
	CauseUnseen        Cause = 21
	CauseWithdrawn     Cause = 22
	CausePanicked      Cause = 23 // or frozen already
	CauseDisplayLost   Cause = 24
	CauseShown         Cause = 25 // an outcome had its time on the glass
	CauseGesture       Cause = 26
	CausePrompt        Cause = 27 // an administrative prompt
	CauseConfirmed     Cause = 28
	CauseFailed        Cause = 29
	CausePaired        Cause = 30
	CauseTimeUp        Cause = 31 // for pairing
	CauseWrongCodes    Cause = 32
	CauseClosed        Cause = 33
	CauseDenyHeld      Cause = 34 // panic
	CauseNoAnswer      Cause = 35
	CauseNotTaken      Cause = 36
	CauseNotDrawn      Cause = 37
	CauseBack          Cause = 38
	CauseLinesClosed   Cause = 39
	CauseHeldOn        Cause = 40 // a hold that was complete
	CauseHoldBroken    Cause = 41 // as turned out when it was complete
	CauseNotice        Cause = 42 // the box has something to say
	CauseNoticeRead    Cause = 43
	CauseNoticeChanged Cause = 44
	CauseReread        Cause = 45 // a tap on the last page turned back to the first
)

var causeNames = [...]string{
	"invalid", "a request", "announced", "opened", "drawn", "read to the end", "disarmed", "taps asked for", "taps given", "hold begun", "countdown begun", "released early", "edges were lost", "the box slept", "the level disagrees", "the second tap did not end", "countdown broken off", "held for too long", "approved", "denied", "expired", "expired_unseen", "withdrawn", "panicked", "display_lost", "shown", "gesture", "prompt", "confirmed", "wrong number of taps", "paired", "time is up", "too many wrong codes", "closed at the box", "deny held", "the display did not answer", "the bus did not acknowledge", "the screen could not be drawn", "the display is back", "the button lines closed", "held on", "the hold was broken", "notice", "notice read", "notice changed", "read again",
}

func (c Cause) String() string {
	if int(c) < len(causeNames) {
		return causeNames[c]
	}
	return fmt.Sprintf("cause(%d)", uint8(c))
}

// cause is the outcome as what ended a card: the causes from CauseApproved on have its order.
func (o Outcome) cause() Cause { return CauseApproved + Cause(o-Approved) }
