package confirm

import (
	"time"

	"assent.home.arpa/device"
)

// doubts is how many presses that no finger has a reason for make the button doubtful.
const doubts = 3

// doubt is whether approve is pressed by fingers. A loose contact also presses where there is nothing to press for.
type doubt struct {
	recent [doubts]time.Duration // mono: the newest presses without a reason, the newest first
	until  time.Duration         // mono: until then cards ask for taps; zero: there is no doubt
}

// suspect looks at an edge of approve for what no finger has a reason for.
func (m *machine) suspect(ev device.Event) {
	if ev.Edge == device.Release {
		m.turnEnds(ev.Mono)
		return
	}
	m.turn = 0
	switch m.state {
	case StateIdle:
		// The gesture is of both buttons, or of a series of taps.
		if m.kit.deny && !m.line(device.Deny).down || !m.kit.deny && ev.Mono > m.taps.last+m.rules.Quiet {
			m.suspicious(ev.Mono)
		}
	case StateNext, StateResult, StatePairing, StatePanic, StateLost:
		m.suspicious(ev.Mono)
	case StateWaiting:
		if m.visible() && ev.Mono >= m.glass.shown {
			m.turn = ev.Mono
		}
	case StateReading, StateArmed:
		if !m.visible() || ev.Mono < m.readAt() {
			if m.front.hasty { // once is impatience
				m.front.wary = true
				m.suspicious(ev.Mono)
			}
			m.front.hasty = true
		}
		if !m.lastPage() || !m.visible() || ev.Mono < m.glass.shown {
			m.turn = ev.Mono
		}
	}
}

// suspicious is a press that no finger has a reason for.
func (m *machine) suspicious(at time.Duration) {
	d := &m.doubt
	copy(d.recent[1:], d.recent[:])
	d.recent[0] = at
	first := d.recent[doubts-1]
	if d.until == 0 && (first == 0 || at-first > m.rules.Doubt) {
		return
	}
	if d.until == 0 {
		m.idleRev++
		m.do(notify{Notice{Kind: ButtonDoubted}})
	}
	d.until = m.now.mono + m.rules.Trust
}

// doubted reports whether the button is doubtful, at least as far as the card in front goes.
func (m *machine) doubted() bool { return m.doubt.until != 0 || m.front.wary }

// clearDoubt ends the doubt: the number of taps, the hold and its release are what a finger does and a loose contact hardly ever.
func (m *machine) clearDoubt() {
	if m.doubt.until != 0 {
		m.idleRev++
	}
	m.doubt = doubt{}
}

// fadeDoubt ends the doubt after a time in which nothing was odd.
func (m *machine) fadeDoubt() {
	if m.doubt.until != 0 && m.now.mono >= m.doubt.until {
		m.clearDoubt()
	}
}

// lingers ends the reading of a card whose pages are turned by what is no tap.
func (m *machine) lingers() {
	if m.turn != 0 && m.line(device.Approve).down && m.now.mono >= m.turn+m.rules.Linger {
		m.startOver()
	}
}

// turnEnds is the release of approve at a moment.
func (m *machine) turnEnds(at time.Duration) {
	if m.turn != 0 && at >= m.turn+m.rules.Linger {
		m.startOver()
	}
	m.turn = 0
}

// startOver announces the card again. Its window goes on.
func (m *machine) startOver() {
	at := m.turn
	m.turn = 0
	m.suspicious(at)
	switch m.state {
	case StateReading, StateArmed, StateHolding, StateChallenge:
		if m.front != nil {
			m.page, m.challenge, m.front.wary = 0, challenge{}, true
			m.to(StateWaiting, m.until, CauseStuck)
		}
	}
}
