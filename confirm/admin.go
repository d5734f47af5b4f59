package confirm

import (
	"fmt"
	"time"

	"assent.home.arpa/confirm/screen"
	"assent.home.arpa/device"
)

// prompt is an administrative prompt on its way through the panel.
type prompt struct {
	req     AdminRequest
	pages   []screen.Page
	course  Course
	shown   time.Duration        // mono: acknowledgement of the last page
	held    time.Duration        // mono: both buttons were held for its time, and a tap on approve is all that lacks; or zero
	pressed time.Duration        // mono: the press that began that hold
	reply   chan<- AdminDecision // holds one; nil for the panel's own prompt; for whoever performs the actions
}

func newPrompt(r AdminRequest, large bool, reply chan<- AdminDecision) (*prompt, error) {
	pages, err := screen.AdminPages(r.Title, r.Text, large, r.Name)
	if err != nil {
		return nil, err
	}
	return &prompt{req: r, pages: pages, reply: reply}, nil
}

// pairing is pairing mode: a code on the glass that a phone must name.
type pairing struct {
	open  bool
	code  string
	until time.Duration // boot
	used  bool          // something was shown to whoever opened it
}

// taps counts the one-button gesture.
type taps struct {
	n    int
	last time.Duration // mono
}

// adminWords is what the glass says of how a prompt ended. What was confirmed may yet fail.
var adminWords = [...]string{
	AdminConfirmed:   "CONFIRMED",
	AdminDenied:      "REFUSED",
	AdminExpired:     "EXPIRED",
	AdminWithdrawn:   "WITHDRAWN",
	AdminPanicked:    "DROPPED",
	AdminDisplayLost: "NOT SHOWN",
}

// gestureTaps is the gesture of a box with one button.
const gestureTaps = 5

// thaw is the prompt that the panel shows by itself: the freeze is released only here.
func thaw(large bool) *prompt {
	p, err := newPrompt(AdminRequest{Kind: AdminUnfreeze, Title: "Unfreeze", Text: "Let requests be approved again"}, large, nil)
	if err != nil {
		panic("confirm: internal error: " + err.Error())
	}
	return p
}

func (m *machine) idleEdge(ev device.Event) {
	if !m.kit.deny {
		m.countTap(ev)
		return
	}
	m.hold = hold{}
	if ev.Edge == device.Press {
		m.beginGesture()
	}
}

// beginGesture starts measuring if both buttons are down. They may have gone down on a notice, which that closes.
func (m *machine) beginGesture() {
	if m.kit.deny && m.calm != 0 && m.visible() {
		m.beginBoth(m.calm)
	}
}

// beCalm is called when the idle screen or a notice has come on the glass.
func (m *machine) beCalm() {
	if m.calm == 0 {
		m.calm = m.glass.shown
	}
	m.beginGesture()
}

func (m *machine) countTap(ev device.Event) {
	if ev.Edge != device.Press {
		return
	}
	if ev.Mono > m.taps.last+m.rules.Quiet {
		m.taps.n = 0
	}
	m.taps = taps{n: m.taps.n + 1, last: ev.Mono}
	if m.taps.n == gestureTaps {
		m.taps = taps{}
		m.gestureMade()
	}
}

// gestureMade opens what only somebody at the box may open: the release of a freeze, or else what is offered, or else pairing
// mode and, for a while, administrative prompts.
func (m *machine) gestureMade() {
	m.gesture = 0                            // one for each prompt that it opens
	m.doubt.recent = [doubts]time.Duration{} // those presses were meant
	switch {
	case m.frozen:
		m.show(thaw(m.large))
		return
	case m.offer != nil:
		m.showOffer()
		return
	}
	m.gesture = m.now.boot + m.rules.Gesture
	m.pairing = pairing{open: true, code: fmt.Sprintf("%06d", m.dice%1_000_000), until: m.now.boot + m.rules.Pairing}
	m.do(openPairing{m.pairing.code, m.pairing.until})
	m.do(notify{Notice{Kind: PairingOpened, Code: m.pairing.code}})
	m.to(StatePairing, m.pairing.until, CauseGesture)
}

func (m *machine) endPairing(cause Cause) {
	if !m.pairing.open {
		return
	}
	m.pairing = pairing{}
	m.do(closePairing{})
	m.do(notify{Notice{Kind: PairingClosed}})
	switch {
	case m.state != StatePairing:
	case cause == CauseWrongCodes:
		m.result, m.reason = "CLOSED", []string{"too many wrong", "pairing codes"}
		m.to(StateResult, m.now.boot+m.rules.Reason, cause)
	default:
		m.advance(cause)
	}
}

// ask takes an administrative prompt. It is shown at once or not at all: it never waits for a card, and never replaces one.
func (m *machine) ask(p *prompt) {
	if p.req.Offer {
		m.take(p)
		return
	}
	allowed := m.now.boot < m.gesture
	if p.req.Kind == AdminPair {
		allowed = m.pairing.open
	}
	switch {
	case m.state == StateLost:
		m.do(answer{p, AdminDecision{Outcome: AdminDisplayLost}})
	case !m.spare():
		m.do(answer{p, AdminDecision{Outcome: AdminBusy}})
	case !allowed:
		m.do(answer{p, AdminDecision{Outcome: AdminNoGesture}})
	default:
		m.show(p)
	}
}

func (m *machine) unask(p *prompt) {
	switch p {
	case m.prompt:
		m.endPrompt(AdminWithdrawn, CauseWithdrawn)
	case m.offer:
		m.endOffer(AdminWithdrawn)
	}
}

// spare reports whether the glass can be had for a prompt.
func (m *machine) spare() bool {
	return m.state == StateIdle || m.state == StatePairing || m.state == StateBulletin
}

func (m *machine) show(p *prompt) {
	m.prompt, m.page, m.pairing.used = p, 0, true
	m.until = m.now.boot + m.rules.prompt(p.pages)
	if !m.kit.deny || !m.kit.readsBack {
		m.startChallenge(0)
		return
	}
	m.to(StateAdmin, m.until, CausePrompt)
}

// adminEdge starts the hold of both buttons on the last page. A tap on approve alone turns pages, one on deny alone is a no.
func (m *machine) adminEdge(ev device.Event) {
	m.hold = hold{}
	switch p := m.prompt; {
	case p.held != 0 && isPress(ev, device.Deny):
		p.held = 0
	case p.held != 0 && isRelease(ev, device.Approve) && m.tapped(device.Approve, device.Deny, p.held):
		m.endPrompt(AdminConfirmed, CauseConfirmed)
	case ev.Edge == device.Press && m.allUp() && m.lastPage():
		from := m.readAt()
		for _, b := range m.needed() {
			from = max(from, m.line(b).upAt)
		}
		m.beginBoth(from)
	case isRelease(ev, device.Approve) && m.tapped(device.Approve, device.Deny, m.readAt()) && len(m.prompt.pages) > 1:
		m.page = (m.page + 1) % len(m.prompt.pages) // the last page's tap reads it again
	case isRelease(ev, device.Deny) && m.tapped(device.Deny, device.Approve, m.glass.shown):
		m.endPrompt(AdminDenied, CauseDenied)
	}
}

// promptHeld is a hold of both buttons that is complete. A release of the box, and what destroys a part of the record, take a tap on
// approve besides, which lines that move to and fro together do not give.
func (m *machine) promptHeld() {
	if p := m.prompt; m.kit.deny && (p.req.Kind == AdminUnfreeze || p.req.Kind == AdminPrune || p.req.Kind == AdminReset) {
		p.pressed, p.held, m.hold = m.hold.from, m.now.mono, hold{}
		return
	}
	m.endPrompt(AdminConfirmed, CauseConfirmed)
}

// tapped reports whether the release of b ends a press of b alone, begun at from or later.
func (m *machine) tapped(b, other device.Button, from time.Duration) bool {
	l, o := m.line(b), m.line(other)
	return l.since >= from && l.sound && !o.down && o.at < l.since
}

// endPrompt answers the administrative prompt and says so on the glass.
func (m *machine) endPrompt(o AdminOutcome, cause Cause) {
	p := m.prompt
	d := AdminDecision{Outcome: o, Pages: p.pages, ScreenDigest: screen.Digest(p.pages), Shown: p.shown, Course: m.closing(cause)}
	if o == AdminConfirmed {
		d.Pressed, d.Completed = m.hold.from, m.now.mono
		if p.held != 0 {
			d.Pressed, d.Completed = p.pressed, p.held
		}
	}
	m.do(answer{p, d})
	m.result, m.reason = adminWords[o], nil
	if o == AdminConfirmed && p.req.Kind == AdminExport {
		m.result = "COPYING" // whoever reads anything else pulls the stick out
	}
	m.to(StateResult, m.now.boot+m.rules.Result, cause)
	m.prompt = nil
	if o != AdminConfirmed {
		return
	}
	switch p.req.Kind {
	case AdminPair: // one phone for one gesture
		m.endPairing(CausePaired)
	case AdminUnfreeze:
		if m.frozen {
			m.frozen, m.idleRev = false, m.idleRev+1
			m.do(notify{Notice{Kind: Unfrozen}})
		}
	}
}

// panic drops everything that could still act, and freezes the box until somebody thaws it here.
func (m *machine) panic() {
	m.line(device.Deny).void = true // one panic a press
	m.freeze()
	m.do(notify{Notice{Kind: Panic}})
	if m.state != StateLost {
		m.to(StatePanic, m.now.boot+m.rules.Panic, CauseDenyHeld)
	}
}

// freeze ends all that is pending and refuses what comes, without saying panic.
func (m *machine) freeze() {
	m.drop(Panicked, AdminPanicked, CausePanicked)
	m.do(revokeAll{})
	m.frozen, m.idleRev = true, m.idleRev+1
}
