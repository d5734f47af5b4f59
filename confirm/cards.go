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
	window  time.Duration   // boot: until when it may be read, from when it was first opened on; zero while nobody has
	hasty   bool            // a press came before a page could be read
	wary    bool            // it takes the number of taps: presses came too early more than once, or what was no tap made it begin again
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

// end decides the front card. Approved is said in one place only, when a hold that is complete is let go.
func (m *machine) end(d Decision) { m.endFor(d, d.Outcome.cause(), resultWords[d.Outcome]) }

// notTaken ends the front card without approval, since nobody can say what the buttons do.
func (m *machine) notTaken(cause Cause, reason ...string) {
	m.endFor(Decision{Outcome: DisplayLost}, cause, notApproved, reason...)
}

// notApproved is what the glass says, with the reason, of a card that somebody may have meant to approve.
const notApproved = "NOT APPROVED"

func (m *machine) endFor(d Decision, cause Cause, words string, reason ...string) {
	c := m.front
	d.Pages, d.ScreenDigest, d.Fronted, d.Shown, d.Course = c.pages, c.digest, c.fronted, c.shown, m.closing(cause)
	if d.Outcome == Approved {
		m.do(approve{c, d})
	} else {
		d.Expires = m.until
		m.do(decide{c, d})
	}
	stay := m.rules.Result
	if len(reason) > 0 {
		stay = m.rules.Reason
	}
	m.result, m.reason = words, reason
	m.to(StateResult, m.now.boot+stay, cause)
	m.front, m.turn = nil, 0
}

func (m *machine) deny(pressed time.Duration) { m.end(Decision{Outcome: Denied, Pressed: pressed}) }

func isPress(ev device.Event, b device.Button) bool {
	return ev.Edge == device.Press && ev.Button == b
}

func isRelease(ev device.Event, b device.Button) bool {
	return ev.Edge == device.Release && ev.Button == b
}

func (m *machine) waitingEdge(ev device.Event) {
	if isPress(ev, device.Approve) {
		c := m.front
		if c.window == 0 {
			c.window = m.now.boot + m.rules.window(c.pages)
		}
		m.page, m.challenge = 0, challenge{}
		m.to(StateReading, c.window, CauseOpened)
	}
}

func (m *machine) readingEdge(ev device.Event) {
	switch {
	case isPress(ev, device.Approve) && ev.Mono >= m.readAt():
		if !m.lastPage() {
			m.page++
			return
		}
		if m.challenged() {
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
	if !m.visible() || !m.lastPage() || !l.up || m.challenged() {
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
	return m.visible() && m.now.mono >= m.readAt() && (!m.lastPage() || m.challenged())
}

// challenge asks for a number of taps that only somebody who sees the glass can know.
type challenge struct {
	want, taps, failed int
	last               time.Duration // mono: the last edge of a tap
	spoiled            bool          // one of the taps was none
	passed             bool
}

// maxFailed is how many wrong numbers of taps end the card: a blind guess is right one time in three.
const maxFailed = 2

// challenged reports whether the card asks for taps before anything approves it: where nobody knows what the glass shows, where
// moments count that a bad contact also makes, and while the button does what no finger does.
func (m *machine) challenged() bool {
	return (!m.kit.readsBack || m.rules.Dwell != 0 || m.doubted()) && !m.challenge.passed
}

// startChallenge asks for 2 to 4 taps.
func (m *machine) startChallenge(failed int) {
	m.challenge = challenge{want: 2 + int(m.dice%3), failed: failed}
	m.to(StateChallenge, m.until, CauseChallenge)
}

func (m *machine) challengeEdge(ev device.Event) {
	switch {
	case isPress(ev, device.Deny):
		m.endPrompt(AdminDenied, CauseDenied)
	case isPress(ev, device.Approve):
		m.challenge.taps++
		m.challenge.last = ev.Mono
	case isRelease(ev, device.Approve):
		l := m.line(device.Approve)
		if l.since > m.glass.shown && ev.Mono-l.since >= m.rules.Linger {
			m.challenge.spoiled = true
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
	case c.taps == c.want && !c.spoiled:
		c.passed = true
		if m.front != nil {
			m.to(StateReading, m.until, CausePassed)
		} else {
			m.to(StateAdmin, m.until, CausePassed)
		}
	case c.failed+1 < maxFailed:
		m.startChallenge(c.failed + 1)
	case m.front != nil:
		m.notTaken(CauseFailed, "wrong number", "of taps")
	default:
		m.endPrompt(AdminDenied, CauseFailed)
	}
}
