package audit

import (
	"errors"
	"fmt"
	"time"
)

// PanelState is what the panel was doing. The numbers are confirm.State's. The zero value is invalid.
type PanelState uint8

// The states that readers look for, and the last; all of them are in panelStates. Do not renumber.
const (
	PanelNext      PanelState = 2
	PanelWaiting   PanelState = 3
	PanelReading   PanelState = 4
	PanelChallenge PanelState = 5
	PanelBulletin  PanelState = 13
)

// panelStates are the names of the states from 1 on.
var panelStates = [...]string{
	"idle", "next", "waiting", "reading", "challenge", "armed", "holding", "result", "pairing", "admin", "panic", "lost", "bulletin",
}

func (s PanelState) String() string {
	if s > 0 && int(s) <= len(panelStates) {
		return panelStates[s-1]
	}
	return fmt.Sprintf("number %d", uint8(s))
}

// PanelCause is why the panel went from a state to another. The numbers are confirm.Cause's. The zero value is invalid.
type PanelCause uint8

// PanelDrawn is no transition: a picture came on the glass. All causes are in panelCauses. Do not renumber.
const PanelDrawn PanelCause = 4

// panelCauses are the names of the causes from 1 on.
var panelCauses = [...]string{
	"a request", "announced", "opened", "drawn", "read to the end", "disarmed", "taps asked for", "taps given",
	"hold begun", "countdown begun", "released early", "edges were lost", "the box slept", "the level disagrees",
	"the second tap did not end", "countdown broken off", "held for too long", "approved", "denied", "expired",
	"expired_unseen", "withdrawn", "panicked", "display_lost", "shown", "gesture", "prompt", "confirmed",
	"wrong number of taps", "paired", "time is up", "too many wrong codes", "closed at the box", "deny held",
	"the display did not answer", "the bus did not acknowledge", "the screen could not be drawn", "the display is back",
	"the button lines closed", "held on", "the hold was broken", "notice", "notice read", "notice changed", "read again",
}

func (c PanelCause) String() string {
	if c > 0 && int(c) <= len(panelCauses) {
		return panelCauses[c-1]
	}
	return fmt.Sprintf("number %d", uint8(c))
}

// PanelStep is one thing that happened at the panel while a request or a prompt was in front: a transition, or a picture that
// came on the glass.
type PanelStep struct {
	At    time.Duration `cbor:"1,keyasint"` // monotonic, as the panel knew of it: an edge of a button may be older
	State PanelState    `cbor:"2,keyasint"` // from then on
	Cause PanelCause    `cbor:"3,keyasint"`
	Page  uint16        `cbor:"4,keyasint,omitzero"` // with PanelDrawn: the page, from 1
}

func checkSteps(steps []PanelStep) error {
	if len(steps) > MaxSteps {
		return errors.New("too many steps")
	}
	for _, s := range steps {
		if s.At < 0 || s.State == 0 || s.State > PanelBulletin || s.Cause == 0 || int(s.Cause) > len(panelCauses) {
			return errors.New("not a step of the panel")
		}
	}
	return nil
}
