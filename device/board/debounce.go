package board

import (
	"cmp"
	"slices"
	"time"

	"assent.home.arpa/device"
)

// settleTime is how long a contact must keep its level before a change counts.
const settleTime = 10 * time.Millisecond

// debouncer turns raw edges into debounced ones where the kernel does not: a change counts once the line has kept it for
// settleTime, and carries the time of the line's last edge, after which it was still. Raw edges come in order of time.
type debouncer map[device.Button]*contact

// contact is one line.
type contact struct {
	pending device.Event // a change that is not settled; Edge is 0 if there is none
	settled device.Edge  // the last change delivered, or the reverse of the first raw edge; 0 if nobody can say
	raw     uint32       // count of the last raw edge
	seq     uint32       // count of the last edge delivered or lost
}

// take adds a raw edge, and returns the changes that are settled by then.
func (d debouncer) take(raw device.Event) []device.Event {
	done := d.settle(raw.Mono)
	c := d[raw.Button]
	if c == nil {
		c = &contact{}
		d[raw.Button] = c
	}
	switch {
	case raw.Seq != c.raw+1: // edges were lost, so what the line did is unknown: let the count show it, and deliver what comes
		c.seq++
		c.settled = 0
	case raw.Seq == 1:
		c.settled = opposite(raw.Edge)
	}
	c.raw, c.pending = raw.Seq, raw
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
