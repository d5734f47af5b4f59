package confirm

import (
	"time"

	"assent.home.arpa/device"
)

// line is what is known of one button.
type line struct {
	seq   uint32
	down  bool
	void  bool          // the press under way counts for no hold: the box slept, or it was used already
	sound bool          // the press under way fitted the edges before it
	at    time.Duration // mono: the last edge
	since time.Duration // mono: the press under way
	up    bool          // seen up since the picture on the glass was acknowledged
	upAt  time.Duration // mono: when
	alone time.Duration // mono: from when on the press under way counts towards panic
	claim time.Duration // mono: from when on levels say down, and no edge did; or zero
}

// note takes an edge and reports whether it fits what came before: the next in count, not older than the last, not from the
// future, and a change.
func (l *line) note(ev device.Event, now time.Duration) bool {
	sound := ev.Seq == l.seq+1 && ev.Mono >= l.at && ev.Mono <= now && (ev.Edge == device.Release || !l.down)
	l.seq, l.at, l.down, l.claim = ev.Seq, ev.Mono, ev.Edge == device.Press, 0
	if l.down {
		l.since, l.alone, l.void, l.sound, l.up = ev.Mono, ev.Mono, false, sound, l.up && sound
	}
	return sound
}

func (m *machine) line(b device.Button) *line { return &m.lines[b] }

// edge takes one edge of a button.
func (m *machine) edge(ev device.Event) {
	if ev.Button != device.Approve && (ev.Button != device.Deny || !m.kit.deny) ||
		ev.Edge != device.Press && ev.Edge != device.Release {
		return
	}
	l := m.line(ev.Button)
	ends := l.down && ev.Edge == device.Release // a press that is known
	sound := l.note(ev, m.now.mono)
	if c := m.course(); c != nil {
		c.press(ev)
	}
	if ev.Button == device.Approve {
		if ends {
			m.leftAlone(ev.Mono)
		}
		m.suspect(ev)
	}
	if isPress(ev, device.Deny) && m.front != nil && m.front.came != 0 && ev.Mono >= m.front.came {
		m.deny(ev.Mono) // never too much, whatever edges were lost before it, and whichever page is being drawn
		return
	}
	if !sound {
		m.disarm(CauseEdgesLost)
		if ev.Button != device.Deny {
			return
		}
	}
	// What is older than the acknowledgement was meant for another screen.
	if !m.visible() || ev.Mono < m.glass.shown {
		return
	}
	if ev.Edge == device.Release && sound {
		// The level may have been seen up after this edge: a press in between, told only now, is over.
		l.up, l.upAt = true, max(l.upAt, ev.Mono)
	}
	switch m.state {
	case StateIdle:
		m.idleEdge(ev)
	case StateWaiting:
		m.waitingEdge(ev)
	case StateReading, StateArmed:
		m.readingEdge(ev)
	case StateHolding:
		m.holdingEdge(ev)
	case StateChallenge:
		m.challengeEdge(ev)
	case StatePairing:
		if ev.Button == device.Deny && ev.Edge == device.Press {
			m.endPairing(CauseClosed)
		}
	case StateAdmin:
		m.adminEdge(ev)
	case StateBulletin:
		m.bulletinEdge(ev)
	}
}

// level takes the answer to a probe. It corrects what lost edges left wrong, and it is the last word on a hold.
func (m *machine) level(ev level) {
	if ev.err == nil {
		m.seen(device.Approve, ev.approve)
		m.seen(device.Deny, ev.deny)
		m.tickChallenge() // the edge that ended its series may be lost
	}
	m.finishHold(ev)
	if m.panicRipe() { // also where the levels cannot be read: then the edges are the last word, and panic only takes rights away
		m.panic()
	}
}

// seen takes one line's level. Up is believed even where an edge says down: that release was lost, or is about to come. Down
// without an edge is not, but of deny, which only takes rights away, if it stays so.
func (m *machine) seen(b device.Button, down bool) {
	l := m.line(b)
	if down {
		if b == device.Deny && !l.down {
			m.claimed()
		}
		return
	}
	l.claim = 0
	told := !l.down // by an edge
	if b == device.Approve && l.down {
		m.leftAlone(m.now.mono)
	}
	l.down = false
	if m.visible() && !(l.up && told) {
		l.up, l.upAt = true, m.now.mono
	}
}

// disarm makes a new release, and after it a new press, necessary.
func (m *machine) disarm(cause Cause) {
	m.cancelHold(cause)
	for b := range m.lines {
		m.lines[b].up = false
	}
	if m.state == StateChallenge {
		m.startChallenge(m.challenge.failed)
	}
}

// seeUp forgets that the lines were seen up, and asks for their levels.
func (m *machine) seeUp() {
	for b := range m.lines {
		m.lines[b].up = false
	}
	m.do(probe{})
}

// disbelief is how long levels must say that deny is down before they are believed without an edge.
const disbelief = 2 * time.Second

// claimed is a level of deny that says down, where no edge did: its edge was lost, or is about to come.
func (m *machine) claimed() {
	l := m.line(device.Deny)
	if l.claim == 0 {
		l.claim = m.now.mono
	}
	if m.now.mono < l.claim+disbelief {
		return
	}
	l.down, l.since, l.alone, l.sound, l.void = true, l.claim, l.claim, false, false
	m.disarm(CauseEdgesLost)
	if m.front != nil && m.front.came != 0 && l.since >= m.front.came {
		m.deny(l.since)
	}
}

// panicFrom is the moment from which deny's press counts towards panic, or zero. A press of approve beside it changes nothing, or
// else a bad contact would take panic away; but while both are down that went down together, it is the gesture of both.
func (m *machine) panicFrom() time.Duration {
	deny, other := m.line(device.Deny), m.line(device.Approve)
	if !deny.down || deny.void || other.down && m.together() {
		return 0
	}
	return deny.alone
}

// together reports whether the newest presses of both buttons are one gesture. Where one came later than this, panic is due before
// both were held for long enough.
func (m *machine) together() bool {
	return (m.line(device.Approve).since - m.line(device.Deny).since).Abs() <= m.rules.Panic-m.rules.AdminHold
}

// leftAlone is approve that goes up at a moment. If that ends the gesture of both, deny is alone only from then on.
func (m *machine) leftAlone(at time.Duration) {
	if deny := m.line(device.Deny); deny.down && m.together() {
		deny.alone = max(deny.alone, at)
	}
}

// stopNotice is how long deny is held before the glass says what that leads to. A tap is shorter.
const stopNotice = time.Second

// stopping reports whether that belongs on the glass, whatever else would.
func (m *machine) stopping() bool {
	from := m.panicFrom()
	return from != 0 && m.now.mono >= from+stopNotice && m.state != StateLost
}

// stopBar is how much of the way to a panic is gone, in per cent.
func stopBar(held, need time.Duration) int {
	share := int(100 * held / need)
	return min(100, share-share%barStep)
}

func (m *machine) panicRipe() bool {
	from := m.panicFrom()
	return from != 0 && m.now.mono >= from+m.rules.Panic
}

func (m *machine) tickLines() {
	if m.panicRipe() || m.wantsUp() {
		m.do(probe{})
	}
}

// wantsUp reports whether only a line not yet seen up keeps the screen from arming.
func (m *machine) wantsUp() bool {
	switch m.state {
	case StateReading, StateAdmin:
		return m.visible() && !m.allUp()
	}
	return false
}

// allUp reports whether each line that a hold needs was seen up under the present picture.
func (m *machine) allUp() bool {
	if !m.line(device.Approve).up {
		return false
	}
	return m.state != StateAdmin || !m.kit.deny || m.line(device.Deny).up
}

func (m *machine) wakeLines(mono func(time.Duration)) {
	if m.turn != 0 && m.line(device.Approve).down {
		mono(m.turn + m.rules.Linger)
	}
	if from := m.panicFrom(); from != 0 {
		step := m.rules.Panic * barStep / 100
		mono(min(from+max(stopNotice, step*((m.now.mono-from)/step+1)), from+m.rules.Panic))
	}
}
