package board

import (
	"cmp"
	"slices"
	"time"

	"assent.home.arpa/device"
)

// settleTime is how long a contact must keep its level before a change counts.
const settleTime = 10 * time.Millisecond

// unrest is how long a closed contact may go on moving and still count as closed. Contacts of tact switches come to rest within
// about 10 ms; a wire that floats does not.
const unrest = 30 * time.Millisecond

// debouncer turns raw edges into debounced ones: a change counts once the line has kept it for settleTime, and carries the time
// of the line's last edge, after which it was still. A closed contact that does not come to rest, or of which edges were lost,
// counts as open from then on. Raw edges come in order of time.
//
// The kernel could debounce (GPIO_V2_LINE_ATTR_ID_DEBOUNCE), but it says nothing of a line that moves all the time: whoever
// touched a loose wire for 10 ms would seem to hold the button for as long as it rings.
type debouncer map[device.Button]*contact

// contact is one line.
type contact struct {
	pending device.Event  // a change that is not settled; Edge is 0 if there is none
	since   time.Duration // when the line began to move, while a change is pending
	settled device.Edge   // the last change delivered, or the reverse of the first raw edge; 0 if nobody can say
	raw     uint32        // count of the last raw edge
	seq     uint32        // count of the last edge delivered or lost
}

// take adds a raw edge, and returns the changes that are settled by then.
func (d debouncer) take(raw device.Event) []device.Event {
	done := d.settle(raw.Mono)
	c := d[raw.Button]
	if c == nil {
		c = &contact{}
		d[raw.Button] = c
	}
	if c.pending.Edge == 0 {
		c.since = raw.Mono
	}
	lost := raw.Seq != c.raw+1
	switch {
	case lost:
		c.seq++ // let the count show it
	case raw.Seq == 1:
		c.settled = opposite(raw.Edge)
	}
	c.raw, c.pending = raw.Seq, raw
	if c.settled == device.Press && (lost || raw.Mono-c.since > unrest) {
		c.seq++
		c.settled = device.Release
		done = append(done, device.Event{Mono: raw.Mono, Edge: device.Release, Seq: c.seq, Button: raw.Button})
	}
	if lost {
		c.settled = 0 // what the line did is unknown: deliver whatever comes
	}
	return done
}

// settle returns the changes that the lines have kept for settleTime at the time now, in order.
func (d debouncer) settle(now time.Duration) []device.Event {
	var done []device.Event
	for _, c := range d {
		ev := c.pending
		if ev.Edge == 0 || now-ev.Mono < settleTime {
			continue
		}
		c.pending = device.Event{}
		if ev.Edge == c.settled { // it bounced back
			continue
		}
		c.seq++
		c.settled, ev.Seq = ev.Edge, c.seq
		done = append(done, ev)
	}
	slices.SortFunc(done, func(a, b device.Event) int { return cmp.Compare(a.Mono, b.Mono) })
	return done
}

// next is when the first pending change would settle.
func (d debouncer) next() (at time.Duration, pending bool) {
	for _, c := range d {
		if c.pending.Edge != 0 && (!pending || c.pending.Mono+settleTime < at) {
			at, pending = c.pending.Mono+settleTime, true
		}
	}
	return at, pending
}

// level is what a line settled on; it is known only after an edge.
func (d debouncer) level(b device.Button) (down, known bool) {
	c := d[b]
	if c == nil || c.settled == 0 {
		return false, false
	}
	return c.settled == device.Press, true
}

func opposite(e device.Edge) device.Edge {
	if e == device.Press {
		return device.Release
	}
	return device.Press
}
