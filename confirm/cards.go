package confirm

import (
	"time"

	"assent.home.arpa/capabilities"
	"assent.home.arpa/confirm/screen"
	"assent.home.arpa/device"
)

// card is a Request on its way through the panel.
type card struct {
	req     Request
	pages   []screen.Page
	digest  [32]byte
	fronted time.Duration   // boot
	came    time.Duration   // mono: acknowledgement of its announcement; from then on deny means this card
	shown   time.Duration   // mono: acknowledgement of the last page
	course  Course          // while it was in front
	reply   chan<- Decision // holds one; for whoever performs the actions
}

// resultWords is what the glass says of an outcome.
var resultWords = [...]string{
	Approved:      "APPROVED",
	Denied:        "DENIED",
	Expired:       "EXPIRED",
	ExpiredUnseen: "NOT OPENED",
	Withdrawn:     "WITHDRAWN",
	Panicked:      "DROPPED",
	DisplayLost:   "NOT SHOWN",
	Busy:          "BUSY",
}

func (m *machine) submit(c *card) {
	switch {
	case m.frozen:
		m.refuse(c, Panicked)
	case m.state == StateLost:
		m.refuse(c, DisplayLost)
	default:
		m.queue.push(c)
		if m.state == StateIdle || m.state == StateBulletin {
			m.advance(CauseRequest)
		}
	}
}

func (m *machine) withdraw(inv capabilities.InvocationID) {
	if m.front != nil && m.front.req.Inv == inv {
		m.end(Decision{Outcome: Withdrawn})
	} else if c := m.queue.take(inv); c != nil {
		m.refuse(c, Withdrawn)
	}
}

// refuse ends a card that is not in front.
func (m *machine) refuse(c *card, o Outcome) {
	m.do(decide{c, Decision{Outcome: o, Pages: c.pages, ScreenDigest: c.digest}})
}

// end decides the front card. Approved is said in one place only, when a hold completes.
func (m *machine) end(d Decision) {
	c := m.front
	d.Pages, d.ScreenDigest, d.Fronted, d.Shown, d.Course = c.pages, c.digest, c.fronted, c.shown, m.closing(d.Outcome.cause())
	if d.Outcome == Approved {
		m.do(approve{c, d})
	} else {
		d.Expires = m.until
		m.do(decide{c, d})
	}
	m.result, m.reason = resultWords[d.Outcome], nil
	m.to(StateResult, m.now.boot+m.rules.Result, d.Outcome.cause())
	m.front = nil
}

func (m *machine) deny(ev device.Event) { m.end(Decision{Outcome: Denied, Pressed: ev.Mono}) }

func isPress(ev device.Event, b device.Button) bool {
	return ev.Edge == device.Press && ev.Button == b
}

func isRelease(ev device.Event, b device.Button) bool {
	return ev.Edge == device.Release && ev.Button == b
}

func (m *machine) waitingEdge(ev device.Event) {
	if isPress(ev, device.Approve) {
		m.page, m.challenge = 0, challenge{}
		m.to(StateReading, m.now.boot+m.rules.window(m.front.pages), CauseOpened)
	}
}

func (m *machine) readingEdge(ev device.Event) {
	switch {
	case isPress(ev, device.Approve) && ev.Mono >= m.readAt():
		if !m.lastPage() {
			m.page++
			return
		}
		if !m.kit.readsBack && !m.challenge.passed {
			m.startChallenge(0)
			return
		}
		if from, ok := m.armedFrom(); ok && ev.Mono >= from {
			m.beginHold(ev)
		}
	case isRelease(ev, device.Approve) && m.hold.first != 0:
		m.beginDwell(ev)
	}
}

// pages are those of what is in front.
func (m *machine) pages() []screen.Page {
	if m.front != nil {
		return m.front.pages
	}
	return m.prompt.pages
}

func (m *machine) lastPage() bool { return m.page == len(m.pages())-1 }

// readAt is the moment from which the page on the glass counts as read.
func (m *machine) readAt() time.Duration {
	return m.glass.shown + m.rules.onGlass(m.pages()[m.page].CodePoints)
}

// armedFrom is the moment from which a press begins a hold, if all else that it needs is there.
func (m *machine) armedFrom() (time.Duration, bool) {
	l := m.line(device.Approve)
	if !m.visible() || !m.lastPage() || !l.up || !m.kit.readsBack && !m.challenge.passed {
		return 0, false
	}
	return max(m.readAt(), l.upAt), true
}

// arm keeps the state in step with whether a hold may begin.
func (m *machine) arm() {
	if m.state != StateReading && m.state != StateArmed {
		return
	}
	from, ok := m.armedFrom()
	ok = ok && m.now.mono >= from
	switch {
	case ok && m.state == StateReading:
		m.shift(StateArmed, CauseRead)
	case !ok && m.state == StateArmed:
		m.shift(StateReading, CauseDisarmed)
	}
}

// ready reports whether a press would do what the hint on the glass promises: turn the page, or begin the hold.
func (m *machine) ready() bool {
	if m.state != StateReading {
		return true
	}
	return m.visible() && m.now.mono >= m.readAt() && (!m.lastPage() || !m.kit.readsBack && !m.challenge.passed)
}

// challenge asks for a number of taps that only somebody who sees the glass can know.
type challenge struct {
	want, taps, failed int
	last               time.Duration // mono: the last edge of a tap
	passed             bool
}

// maxFailed is how many wrong numbers of taps end the card: a blind guess is right one time in three.
const maxFailed = 3

// startChallenge asks for 2 to 4 taps.
func (m *machine) startChallenge(failed int) {
	m.challenge = challenge{want: 2 + int(m.dice%3), failed: failed}
	m.to(StateChallenge, m.until, CauseChallenge)
}

func (m *machine) challengeEdge(ev device.Event) {
	switch {
	case isPress(ev, device.Deny):
		m.endPrompt(AdminDenied, CauseDenied)
	case ev.Button == device.Approve:
		if ev.Edge == device.Press {
			m.challenge.taps++
		}
		m.challenge.last = ev.Mono
	}
}

// challengeAt is the moment at which the series of taps has ended, or zero.
func (m *machine) challengeAt() time.Duration {
	if m.state != StateChallenge || m.challenge.taps == 0 || m.line(device.Approve).down {
		return 0
	}
	return m.challenge.last + m.rules.Quiet
}

func (m *machine) tickChallenge() {
	at := m.challengeAt()
	if at == 0 || m.now.mono < at {
		return
	}
	c := &m.challenge
	switch {
	case c.taps == c.want:
		c.passed = true
		if m.front != nil {
			m.to(StateReading, m.until, CausePassed)
		} else {
			m.to(StateAdmin, m.until, CausePassed)
		}
	case c.failed+1 < maxFailed:
		m.startChallenge(c.failed + 1)
	case m.front != nil:
		m.end(Decision{Outcome: DisplayLost})
	default:
		m.endPrompt(AdminDenied, CauseFailed)
	}
}
