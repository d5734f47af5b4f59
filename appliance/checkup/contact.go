package checkup

import (
	"time"

	"assent.home.arpa/device"
)

// still is how long a contact must keep its level before a change counts, as for the box's own driver.
const still = 10 * time.Millisecond

// short is a press that no finger makes: a contact that opens for a moment while it is held.
const short = 25 * time.Millisecond

// measured is what a contact did.
type measured struct {
	presses, releases int           // changes that lasted
	bounced           int           // of these, how many came with more than one edge
	most              int           // edges of the worst of them
	longest           time.Duration // from its first edge to its last
	glitches          int           // edges that led back to where the contact was: noise, or a loose wire
	lost              int           // edges that the kernel counted and nobody got
	shortest          time.Duration // press, from the first edge to the first of its release; 0 if there was none
}

// measure looks at the edges of one button, in order of time. down is the level before the first.
func measure(events []device.Event, down bool) measured {
	var m measured
	var pressed time.Duration
	for len(events) > 0 {
		n := 1
		for n < len(events) && events[n].Mono-events[n-1].Mono < still {
			n++
		}
		move := events[:n]
		if len(events) > n {
			m.lost += gap(events[n-1], events[n])
		}
		for i := 1; i < n; i++ {
			m.lost += gap(move[i-1], move[i])
		}
		events = events[n:]
		after := move[n-1].Edge == device.Press
		if after == down {
			m.glitches++
			continue
		}
		down = after
		if n > 1 {
			m.bounced++
		}
		m.most, m.longest = max(m.most, n), max(m.longest, move[n-1].Mono-move[0].Mono)
		if down {
			m.presses++
			pressed = move[0].Mono
			continue
		}
		m.releases++
		if took := move[0].Mono - pressed; m.presses > 0 && (m.shortest == 0 || took < m.shortest) {
			m.shortest = took
		}
	}
	return m
}

// gap is how many edges are missing between two of one button.
func gap(a, b device.Event) int { return int(b.Seq - a.Seq - 1) }
