package confirm

import (
	"fmt"
	"time"

	"assent.home.arpa/capabilities"
)

// State is what the panel is doing. The zero value is invalid.
type State uint8

// The states. Do not renumber: the numbers are in the audit.
const (
	StateIdle      State = 1
	StateNext      State = 2  // NEXT REQUEST: edges are thrown away
	StateWaiting   State = 3  // the front card is announced; nothing can arm
	StateReading   State = 4  // opened; pages turn
	StateChallenge State = 5  // taps asked for, where an acknowledgement or a second button is lacking
	StateArmed     State = 6  // read to the end, line seen up: a hold may begin
	StateHolding   State = 7  // a hold, or the countdown of a dwell, is under way
	StateResult    State = 8  // the outcome is on the glass
	StatePairing   State = 9  // pairing mode
	StateAdmin     State = 10 // an administrative prompt
	StatePanic     State = 11
	StateLost      State = 12 // display or buttons cannot be relied on
	StateBulletin  State = 13 // the box has something to say
)

var stateNames = [...]string{
	"invalid", "idle", "next", "waiting", "reading", "challenge", "armed", "holding", "result", "pairing", "admin", "panic", "lost", "bulletin",
}

func (s State) String() string {
	if int(s) < len(stateNames) {
		return stateNames[s]
	}
	return fmt.Sprintf("state(%d)", uint8(s))
}

// Transition is one step of the panel from a state to another, for the audit.
type Transition struct {
	Boot, Mono time.Duration
	From, To   State
	Inv        capabilities.InvocationID // of the card in front, or zero
	Cause      Cause
}
