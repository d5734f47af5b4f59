package confirm

import (
	"time"

	"assent.home.arpa/device"
)

// hold is the press that is being measured: the approving one, the one that answers an administrative prompt, or the
// gesture on the idle screen. In the dwell it is a countdown between two taps.
type hold struct {
	active     bool
	from, need time.Duration // mono; how long

	dwell  bool
	first  time.Duration // mono: press of the first tap
	second time.Duration // mono: press of the second tap
	done   bool          // the second tap ended

	completed time.Duration // mono: all that it takes was there; it has only to be let go. Else zero
	expires   time.Duration // boot: of the receipt that it earns
}

func (m *machine) beginHold(ev device.Event) {
	if m.rules.Dwell != 0 {
		m.hold = hold{first: ev.Mono}
		return
	}
	m.hold = hold{active: true, from: ev.Mono, need: m.rules.Hold}
	m.shift(StateHolding, CausePressed)
}

func (m *machine) beginDwell(ev device.Event) {
	tap := ev.Mono - m.hold.first
	m.hold = hold{}
	if tap > m.rules.Hold {
		return
	}
	m.hold = hold{active: true, from: ev.Mono, need: m.rules.Dwell, dwell: true}
	m.shift(StateHolding, CauseTapped)
}

// beginBoth starts measuring once every button that counts is down, each by a press that began at from or later.
func (m *machine) beginBoth(from time.Duration) {
	start := from
	for _, b := range m.needed() {
		l := m.line(b)
		if !l.down || l.void || !l.sound || l.since < from {
			return
		}
		start = max(start, l.since)
	}
	m.hold = hold{active: true, from: start, need: m.rules.AdminHold}
}

// needed is what an administrative hold takes: both buttons, or the only one.
func (m *machine) needed() []device.Button {
	if m.kit.deny {
		return []device.Button{device.Approve, device.Deny}
	}
	return []device.Button{device.Approve}
}

func (m *machine) holdingEdge(ev device.Event) {
	if m.hold.dwell {
		m.dwellEdge(ev)
		return
	}
	if !isRelease(ev, device.Approve) {
		return
	}
	if m.hold.completed != 0 {
		m.letGo(ev)
		return
	}
	tap := ev.Mono-m.hold.from < m.rules.Tap
	m.cancelHold(CauseReleased)
	if tap && len(m.front.pages) > 1 { // read it again
		m.page, m.challenge.passed = 0, false
		m.happened(m.state, CauseReread, 0)
	}
}

// letGo takes the release of a hold that is complete: only now is it plain that it was a finger, which comes and goes.
func (m *machine) letGo(ev device.Event) {
	switch h := m.hold; {
	case ev.Mono <= h.completed: // in that very moment, what the levels said may have been of the press after it
		m.cancelHold(CauseHoldBroken)
	case ev.Mono >= h.from+m.rules.Revoke:
		m.heldOn()
	default:
		m.approve(h.from)
	}
}

// heldOn ends the card of a hold that is complete and was not let go: the button is stuck, or taped down.
func (m *machine) heldOn() {
	m.do(notify{Notice{Kind: HoldRevoked, Inv: m.front.req.Inv}})
	m.notTaken(CauseHeldOn, "the button was", "held too long")
}

func (m *machine) dwellEdge(ev device.Event) {
	h := &m.hold
	counted := ev.Mono >= h.from+h.need && m.fullBar()
	switch {
	case isPress(ev, device.Approve) && counted && h.second == 0:
		h.second = ev.Mono
	case isRelease(ev, device.Approve) && h.second != 0 && ev.Mono-h.second <= m.rules.Hold:
		h.done = true
	default:
		m.cancelHold(CauseBrokenOff)
	}
}

// cancelHold forgets the press under way.
func (m *machine) cancelHold(cause Cause) {
	m.hold = hold{}
	if m.state == StateHolding {
		m.shift(StateReading, cause)
	}
}

// bar is how far the hold is, in per cent. It says 100 only when the time is up.
func (m *machine) bar() int {
	if !m.hold.active {
		return 0
	}
	share := int(100 * (m.now.mono - m.hold.from) / m.hold.need)
	return max(0, min(100, share-share%barStep))
}

// fullBar reports whether the display has acknowledged the full bar over the state's picture, and nothing since is in doubt. It
// is the last proof, made while the finger is down, that the glass shows what is being approved.
func (m *machine) fullBar() bool {
	return m.visible() && !m.glass.flight && m.glass.acked.bar == 100
}

// ripe reports whether only the level is missing.
func (m *machine) ripe() bool {
	switch h := &m.hold; {
	case !h.active || h.completed != 0:
		return false
	case h.dwell:
		return h.done && m.fullBar()
	case m.now.mono < h.from+h.need:
		return false
	case m.state == StateIdle || m.state == StateBulletin:
		return m.visible()
	}
	return m.fullBar()
}

// tryComplete asks for the level once all else is there.
func (m *machine) tryComplete() {
	if m.state == StateHolding && !m.hold.dwell && m.now.mono >= m.hold.from+m.rules.Revoke {
		if m.hold.completed != 0 {
			m.heldOn()
		} else {
			m.disarm(CauseStuck)
		}
		return
	}
	if m.ripe() {
		m.do(probe{})
	}
}

// finishHold is where a hold completes: the level agrees now, not only the edges.
func (m *machine) finishHold(ev level) {
	if !m.hold.active || m.hold.completed != 0 {
		return
	}
	ripe := m.ripe()
	if m.hold.dwell {
		switch {
		case ripe && (ev.err != nil || ev.approve || ev.deny):
			m.cancelHold(CauseSecondTap)
		case ripe:
			m.complete()
		}
		return
	}
	down := ev.err == nil && ev.approve
	if m.state == StateHolding {
		down = down && !ev.deny
	} else if m.kit.deny {
		down = down && ev.deny
	}
	switch {
	case !down:
		m.cancelHold(CauseLevel)
	case ripe:
		m.complete()
	}
}

// complete does what the hold was for.
func (m *machine) complete() {
	switch m.state {
	case StateIdle, StateBulletin:
		m.gestureMade()
	case StateAdmin:
		m.promptHeld()
	case StateHolding:
		m.hold.completed, m.hold.expires = m.now.mono, m.now.boot+m.rules.Spend
		if m.hold.dwell { // it was let go already
			m.approve(m.hold.second)
		}
	}
}

// approve ends the card as approved, by the press that began at pressed.
func (m *machine) approve(pressed time.Duration) {
	if m.challenge.passed {
		m.clearDoubt()
	}
	m.end(Decision{
		Outcome: Approved, Pressed: pressed, Completed: m.hold.completed, Expires: m.hold.expires, Mode: m.mode(),
	})
}

// mode says how the hold that completes was asked for.
func (m *machine) mode() Mode {
	switch {
	case !m.kit.readsBack:
		return ModeChallenge
	case m.hold.dwell:
		return ModeDwell
	case m.challenge.passed:
		return ModeChallenge
	}
	return ModeHold
}

func (m *machine) wakeHold(mono func(time.Duration)) {
	after := func(t time.Duration) {
		if t > m.now.mono {
			mono(t)
		}
	}
	if h := &m.hold; h.active {
		step := h.need * barStep / 100
		after(min(h.from+step*((m.now.mono-h.from)/step+1), h.from+h.need))
		if m.state == StateHolding && !h.dwell {
			after(h.from + m.rules.Revoke)
		}
	}
	if m.state == StateReading && m.visible() {
		after(m.readAt())
		if from, ok := m.armedFrom(); ok {
			after(from)
		}
	}
	if at := m.challengeAt(); at != 0 {
		mono(at)
	}
}
