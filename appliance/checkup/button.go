package checkup

import (
	"context"
	"fmt"
	"time"

	"assent.home.arpa/confirm/screen"
	"assent.home.arpa/device"
)

const (
	taps     = 5
	holding  = 3 * time.Second        // the longest hold that the box asks for, of both buttons
	quiet    = 100 * time.Millisecond // after the last edge of a press
	patience = 30 * time.Second       // for somebody to press
	late     = 50 * time.Millisecond  // for an edge to reach the program
	most     = 1000                   // edges of taps, however bad the contact is
)

// button lets somebody tap and hold one button.
func (v *visit) button(ctx context.Context, b device.Button) {
	down, err := v.parts.Buttons.Down(b)
	switch {
	case err != nil:
		v.worse(Bad, "%v: %v", b, err)
		return
	case down:
		v.worse(Bad, "%v: it is down already; its contact must close only while it is pressed, to ground", b)
		return
	}
	v.drain()
	if !v.show(screen.DrawNotice("TAP", fmt.Sprintf("%v,", b), fmt.Sprintf("%d times", taps))) {
		return
	}
	v.say("%v: tap it %d times", b, taps)
	seen, ok := v.watch(ctx, b, false, func(m measured) bool { return m.releases >= taps })
	if !ok {
		return
	}
	v.report(b, seen)
	v.hold(ctx, b)
}

// drain forgets edges from before.
func (v *visit) drain() {
	for {
		select {
		case _, more := <-v.parts.Buttons.Events():
			if !more {
				return
			}
		default:
			return
		}
	}
}

// seen is what came of a button while it was watched.
type seen struct {
	measured
	late time.Duration // the longest way of an edge to this program
}

// watch collects edges of a button, whose contact was down or not before, until enough says so once it is quiet. It reports
// false if nobody pressed, or the lines were lost.
func (v *visit) watch(ctx context.Context, b device.Button, down bool, enough func(measured) bool) (seen, bool) {
	var s seen
	var events []device.Event
	var calm <-chan time.Time
	timeout := time.After(patience)
	for {
		select {
		case ev, more := <-v.parts.Buttons.Events():
			if !more {
				v.worse(Bad, "%v: %v", b, v.parts.Buttons.Err())
				return s, false
			}
			if ev.Button != b {
				v.worse(Bad, "%v: the line of %v moved instead; are the two swapped, or their wires close together?", b, ev.Button)
				return s, false
			}
			if len(events) == most {
				v.worse(Bad, "%v: more than %d edges; the line floats: check that the button's other pin is at ground", b, most)
				return s, false
			}
			events = append(events, ev)
			s.late = max(s.late, v.parts.Mono()-ev.Mono)
			calm, timeout = time.After(quiet), time.After(patience)
		case <-calm:
			if s.measured = measure(events, down); enough(s.measured) {
				return s, true
			}
		case <-timeout:
			v.worse(Unknown, "%v: nothing moved in %v; check its two wires and panel.%v in the configuration", b, patience, b)
			return s, false
		case <-ctx.Done():
			v.worse(Unknown, "%v: interrupted", b)
			return s, false
		}
	}
}

// hold lets somebody keep a button down: a contact that opens meanwhile would break every hold that approves.
func (v *visit) hold(ctx context.Context, b device.Button) {
	if !v.show(screen.DrawNotice("HOLD", b.String(), "until told")) {
		return
	}
	v.say("%v: hold it down until the display says so", b)
	if _, ok := v.watch(ctx, b, false, func(m measured) bool { return m.presses > 0 }); !ok {
		return
	}
	select {
	case ev, more := <-v.parts.Buttons.Events():
		if !more {
			v.worse(Bad, "%v: %v", b, v.parts.Buttons.Err())
			return
		}
		v.worse(Bad, "%v: %v of %v during the hold; if you did not let go, its contact or its wire is loose", b, ev.Edge, ev.Button)
		return
	case <-time.After(holding):
	case <-ctx.Done():
		v.worse(Unknown, "%v: interrupted", b)
		return
	}
	if !v.show(screen.DrawNotice("LET GO", b.String())) {
		return
	}
	v.say("%v: let go", b)
	if _, ok := v.watch(ctx, b, true, func(m measured) bool { return m.releases > 0 }); ok {
		v.say("%v: held for %v without a break", b, holding)
	}
}

// report says what a contact did, and what is wrong with it.
func (v *visit) report(b device.Button, s seen) {
	v.say("%v: %d presses, the shortest %v; %d of %d changes bounced, at worst %d edges in %v; edges came within %v",
		b, s.presses, s.shortest.Round(time.Millisecond), s.bounced, s.presses+s.releases, s.most, s.longest.Round(100*time.Microsecond), s.late.Round(100*time.Microsecond))
	if s.lost > 0 {
		v.worse(Bad, "%v: %d edges were lost; a line that moves so much floats or picks up noise", b, s.lost)
	}
	if s.glitches > 0 {
		v.worse(Bad, "%v: %d times it moved and was back at once; check for a loose wire", b, s.glitches)
	}
	if s.shortest > 0 && s.shortest < short {
		v.worse(Bad, "%v: a press of %v is none of a finger; its contact opens while it is held", b, s.shortest.Round(time.Millisecond))
	}
	if s.late > late {
		v.worse(Bad, "%v: an edge took %v to get here, over %v: the machine is too busy to judge a hold", b, s.late.Round(time.Millisecond), late)
	}
}
