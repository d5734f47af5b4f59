package confirm

import (
	"errors"
	"time"

	"assent.home.arpa/confirm/screen"
)

// Timings are the panel's rules in numbers. Deadlines count on the boot-time clock, holds and page times on the monotonic
// one. DefaultTimings is what ships; the zero value is replaced by it.
type Timings struct {
	Waiting time.Duration // a front card that nobody opens ends as expired_unseen; counts from NEXT REQUEST on

	Reading      time.Duration // from the tap that opens a card, for up to two pages
	PerPage      time.Duration // more reading time for each page beyond two
	MaxReading   time.Duration // of that
	Pace         int           // the window is never shorter than so many times what the pages must stay …
	Longest      time.Duration // … and a card that would take longer than this is refused before it is shown
	PageMin      time.Duration // a page stays at least this long …
	PerCodePoint time.Duration // … and this much longer for each of its code points

	Linger time.Duration // a press before the last page that lasts so long is no tap: the card has to be opened and read anew
	Tap    time.Duration // a press on the armed last page that ends sooner turns back to the first page
	Hold   time.Duration // unbroken press that approves
	Revoke time.Duration // a press still down this long after it began approves nothing, although it was long enough
	Dwell  time.Duration // if not zero, the alternative to the hold: tap, this countdown, tap
	Spend  time.Duration // life of a receipt

	Next   time.Duration // NEXT REQUEST
	Result time.Duration // how long an outcome stays on the glass
	Reason time.Duration // likewise, one with a reason that has to be read
	Panic  time.Duration // deny alone

	AdminHold   time.Duration // both buttons: the gesture on the idle screen, and every administrative prompt
	AdminPrompt time.Duration // an administrative prompt nobody answers
	Gesture     time.Duration // how long a gesture allows administrative prompts
	Pairing     time.Duration // how long pairing mode stays open

	Doubt time.Duration // within this, three presses that no finger has a reason for …
	Trust time.Duration // … have taps asked for, until so long after the last one of them

	Quiet       time.Duration // ends a series of taps: a challenge's, or the one-button gesture's
	DrawTimeout time.Duration // a draw that takes longer is a lost display
	Retry       time.Duration // between attempts to get a lost display back
}

// DefaultTimings returns the numbers that the package documentation states.
func DefaultTimings() Timings {
	return Timings{
		Waiting: 180 * time.Second,

		Reading:      60 * time.Second,
		PerPage:      6 * time.Second,
		MaxReading:   300 * time.Second,
		Pace:         2,
		Longest:      15 * time.Minute,
		PageMin:      700 * time.Millisecond,
		PerCodePoint: 15 * time.Millisecond,

		Linger: time.Second,
		Tap:    400 * time.Millisecond,
		Hold:   1500 * time.Millisecond,
		Revoke: 6 * time.Second,
		Spend:  60 * time.Second,

		Next:   time.Second,
		Result: 2 * time.Second,
		Reason: 6 * time.Second,
		Panic:  5 * time.Second,

		AdminHold:   3 * time.Second,
		AdminPrompt: 60 * time.Second,
		Gesture:     60 * time.Second,
		Pairing:     120 * time.Second,

		Doubt: time.Minute,
		Trust: 10 * time.Minute,

		Quiet:       time.Second,
		DrawTimeout: 2 * time.Second,
		Retry:       2 * time.Second,
	}
}

// DwellCountdown is the value of Timings.Dwell where a household chose the countdown for people who cannot hold a button.
const DwellCountdown = 6 * time.Second

func (t Timings) validate() error {
	for _, d := range []time.Duration{
		t.Waiting, t.Reading, t.PerPage, t.MaxReading, t.PageMin, t.PerCodePoint, t.Longest, t.Linger, t.Tap, t.Hold, t.Revoke, t.Spend, t.Next, t.Result, t.Reason,
		t.Panic, t.AdminHold, t.AdminPrompt, t.Gesture, t.Pairing, t.Doubt, t.Trust, t.Quiet, t.DrawTimeout, t.Retry,
	} {
		if d <= 0 {
			return errors.New("confirm: every timing but the dwell must be positive")
		}
	}
	if t.Pace < 1 || t.Longest < t.MaxReading {
		return errors.New("confirm: a window holds the pages at least once, and the longest is no shorter than others")
	}
	if t.Waiting <= t.Next {
		return errors.New("confirm: a card must wait for longer than NEXT REQUEST lasts")
	}
	if t.Dwell < 0 || t.Tap >= t.Linger || t.Linger >= t.Hold || t.Hold >= t.Revoke {
		return errors.New("confirm: a tap must be shorter than a hold, and a hold than what looks like a stuck button")
	}
	if t.AdminHold >= t.Panic {
		return errors.New("confirm: both buttons must be held for less than deny alone for panic")
	}
	return nil
}

// Unhurried returns the numbers for people who need more time to read.
func (t Timings) Unhurried() Timings {
	t.Reading, t.PerPage, t.MaxReading, t.Pace = 2*t.Reading, 2*t.PerPage, 2*t.MaxReading, t.Pace+1
	t.AdminPrompt = 2 * t.AdminPrompt
	return t
}

// window returns how long a card may be read from the tap that opens it on.
func (t Timings) window(pages []screen.Page) time.Duration {
	return max(t.reading(len(pages)), t.needed(pages))
}

// needed is a time in which somebody without haste can have read pages and given a press, however many there are.
func (t Timings) needed(pages []screen.Page) time.Duration {
	sum := t.Hold
	if t.Dwell != 0 { // which asks for taps, and the last page stays once more after them
		sum = t.Dwell + 6*t.Tap + 2*t.Quiet + t.onGlass(pages[len(pages)-1].CodePoints)
	}
	for _, p := range pages {
		sum += time.Duration(t.Pace) * t.onGlass(p.CodePoints)
	}
	return sum
}

// reading returns how long a card of n pages may be read if its pages are of a usual length.
func (t Timings) reading(n int) time.Duration {
	return min(t.Reading+time.Duration(max(0, n-2))*t.PerPage, t.MaxReading)
}

// prompt returns how long an administrative prompt may be read and answered.
func (t Timings) prompt(pages []screen.Page) time.Duration {
	return max(t.AdminPrompt+time.Duration(max(0, len(pages)-2))*t.PerPage, t.needed(pages)+t.AdminHold)
}

// onGlass returns how long a page of n code points must be shown before it counts as read.
func (t Timings) onGlass(n int) time.Duration { return t.PageMin + time.Duration(n)*t.PerCodePoint }
