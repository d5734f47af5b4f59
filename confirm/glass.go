package confirm

import (
	"fmt"
	"time"

	"assent.home.arpa/confirm/screen"
	"assent.home.arpa/device"
)

// look says what belongs on the glass: a picture, and the small things that change on it while it stays.
type look struct {
	state  State // StateReading also for armed and holding
	serial uint64
	page   int
	stop   bool // instead of the state's picture: deny is held on its way to a panic

	left, bar, behind, shift int // seconds, per cent, cards in the queue, minutes
	ready                    bool
	rev                      uint64
}

// picture drops the small things. Edges count only while the picture that the person sees is the one of the state.
func (l look) picture() look {
	return look{state: l.state, serial: l.serial, page: l.page, stop: l.stop}
}

// glass is what is known of the display. One draw is in flight at a time.
type glass struct {
	serial uint64 // counts pictures

	acked look
	sure  bool          // acked is on the glass
	shown time.Duration // mono: acknowledgement of the picture of acked

	flight bool
	hung   bool // the draw in flight has been given up
	sent   look
	began  time.Duration // mono
}

// barStep is the granularity of the filling bar in per cent: a redraw takes some 25 ms at 400 kHz.
const barStep = 5

// renew makes the next draw a new picture, even where its pixels are the same.
func (m *machine) renew() { m.glass.serial++ }

// visible reports whether the glass is known to show the state's picture.
func (m *machine) visible() bool {
	g := &m.glass
	covered := g.flight && g.sent.stop // or is about to be
	return g.sure && g.acked.picture() == m.picture() && !covered
}

// picture is the state's picture.
func (m *machine) picture() look {
	switch m.state {
	case StateReading, StateArmed, StateHolding:
		return look{state: StateReading, serial: m.glass.serial, page: m.page}
	case StateAdmin, StateBulletin:
		return look{state: m.state, serial: m.glass.serial, page: m.page}
	}
	return look{state: m.state, serial: m.glass.serial}
}

func (m *machine) look() look {
	if m.stopping() {
		return look{stop: true, bar: stopBar(m.now.mono-m.panicFrom(), m.rules.Panic)}
	}
	l := m.picture()
	switch m.state {
	case StateIdle:
		l.shift, l.rev = int(m.now.boot/time.Minute), m.idleRev
	case StateWaiting:
		l.left, l.behind = m.left(), m.queue.len()
	case StateReading, StateArmed, StateHolding:
		l.left, l.bar, l.ready = m.left(), m.bar(), m.ready()
	case StatePairing:
		l.left, l.rev = m.left(), m.idleRev
	case StateAdmin:
		l.left, l.bar, l.ready = m.left(), m.bar(), m.prompt.held != 0
	}
	return l
}

// whole reports whether all of l must be sent to the display, and not only what changes. An acknowledgement does not say that
// the part had every byte right, so whatever a decision rests on is drawn whole: each picture as it comes, and the full bar. In
// between the strip of a screen that is read changes by itself, with every second that passes and every step of the bar.
func (g *glass) whole(l look) bool {
	if !g.sure || l.bar == 100 {
		return true
	}
	switch l.state {
	case StateWaiting, StateReading, StateAdmin:
		return g.acked.picture() != l.picture()
	}
	return true
}

// render draws l, which must be the look of now.
func (m *machine) render(l look) (device.Frame, error) {
	if l.stop {
		return screen.DrawStop(float64(l.bar) / 100), nil
	}
	left := time.Duration(l.left) * time.Second
	switch l.state {
	case StateNext:
		return screen.DrawNext(), nil
	case StateWaiting:
		r := &m.front.req
		return screen.DrawWaiting(screen.Waiting{
			Phone: r.Phone, Title: r.Card.Title, Destination: r.Card.Destination,
			Pages: len(m.front.pages), Left: left, Queue: l.behind, Large: m.large,
		}), nil
	case StateReading:
		last := l.page == len(m.front.pages)-1
		return screen.DrawReading(m.front.pages[l.page], left, last, l.ready, float64(l.bar)/100, m.doneHint()), nil
	case StateChallenge:
		return screen.DrawNotice(fmt.Sprintf("TAP %d TIMES", m.challenge.want), m.challengeLines()...), nil
	case StateResult:
		return screen.DrawNotice(m.result, m.reason...), nil
	case StatePairing:
		return screen.DrawPairing(m.pairing.code, m.address, left, m.large), nil
	case StateAdmin:
		return screen.DrawAdmin(m.prompt.pages[l.page], m.adminHint(), left, float64(l.bar)/100), nil
	case StateBulletin:
		return m.bulletins[0].Pages[l.page].Frame, nil
	case StatePanic:
		return screen.DrawNotice("PANIC", "all requests", "were dropped"), nil
	case StateLost:
		if m.buttonsGone {
			return screen.DrawNotice("NO BUTTONS", "nothing can be", "approved"), nil
		}
	}
	idle := m.idle
	idle.Shift, idle.Frozen, idle.Large = l.shift, m.frozen, m.large
	if m.doubt.until != 0 && idle.Note == "" {
		idle.Note, idle.Hint = doubtNote, doubtHint
	}
	return screen.DrawIdle(idle), nil
}

// doneHint says what is to be done at the full bar.
func (m *machine) doneHint() string {
	if m.rules.Dwell != 0 {
		return "TAP NOW"
	}
	return "LET GO"
}

// What the idle screen says while the button is doubtful. It is true of a bad contact and of somebody without patience.
const (
	doubtNote = "too many presses:"
	doubtHint = "cards ask for taps"
)

// challengeLines says what to do after the taps, and why they are asked for where that is new.
func (m *machine) challengeLines() []string {
	if m.front != nil && m.doubted() && m.kit.readsBack && m.rules.Dwell == 0 {
		return []string{"wait, then hold", "too many presses"}
	}
	return []string{"then wait"}
}

// adminHint says what the buttons do on a page of a prompt.
func (m *machine) adminHint() string {
	switch {
	case m.prompt.held != 0:
		return "NOW TAP APPROVE"
	case !m.lastPage():
		return "TAP: NEXT PAGE"
	case m.kit.deny:
		return "HOLD BOTH 3 S"
	}
	return "HOLD FOR 3 S"
}

// paint draws what belongs on the glass, if it is not there and no draw is in flight.
func (m *machine) paint() {
	g, want := &m.glass, m.look()
	if g.flight || g.sure && g.acked == want || m.state == StateLost && m.now.boot < m.retry {
		return
	}
	frame, err := m.draws(m, want)
	if err != nil {
		m.lose(CauseNotDrawn)
		return
	}
	if want.stop && !g.sent.stop {
		m.covered()
	}
	g.flight, g.sent, g.began = true, want, m.now.mono
	m.do(draw{frame: frame, whole: g.whole(want), dim: want.state == StateIdle || want.state == StateBulletin})
}

// covered is called when the state's picture goes away under another: what is under way begins anew when it comes back.
func (m *machine) covered() {
	m.disarm(CauseDisarmed)
	if m.state == StateNext {
		m.until = 0
	}
}

// drawn takes the end of the draw in flight.
func (m *machine) drawn(ev drawn) {
	g := &m.glass
	if !g.flight {
		return
	}
	hung := g.hung
	g.flight, g.hung = false, false
	switch {
	case ev.err != nil:
		m.lose(CauseNotTaken)
	case hung:
		// It came back, too late to say what is on the glass now. The next try will.
	case m.state == StateLost && !m.buttonsGone:
		m.do(notify{Notice{Kind: PanelBack}})
		m.advance(CauseBack)
	default:
		known := g.sure && g.acked.picture() == g.sent.picture()
		g.acked, g.sure = g.sent, true
		if !known {
			g.shown = ev.at
			m.pictureShown()
		}
	}
}

// pictureShown is called when a picture has come on the glass, for the first time or again.
func (m *machine) pictureShown() {
	m.seeUp()
	if !m.visible() {
		m.calm = 0
		return
	}
	page := 0
	if m.state == StateReading || m.state == StateAdmin {
		page = m.page + 1
	}
	m.happened(m.state, CauseDrawn, page)
	switch m.state {
	case StateIdle, StateBulletin:
		m.beCalm()
	case StateNext:
		m.until = m.now.boot + m.rules.Next
	case StateWaiting:
		if m.front.came == 0 {
			m.front.came = m.glass.shown
		}
	case StateReading:
		if m.page == len(m.front.pages)-1 {
			m.front.shown = m.glass.shown
		}
	case StateAdmin:
		if m.lastPage() {
			m.prompt.shown = m.glass.shown
		}
	}
}

// lose ends everything that depends on the glass, since nobody can say what it shows.
func (m *machine) lose(cause Cause) {
	m.glass.sure = false
	m.retry = m.now.boot + m.rules.Retry
	if m.state == StateLost {
		return
	}
	m.happened(m.state, cause, 0)
	m.drop(DisplayLost, AdminDisplayLost, cause)
	m.do(notify{Notice{Kind: PanelLost}})
	m.to(StateLost, 0, cause)
}

// loseButtons ends everything for good: without their lines nobody can approve, deny or stop anything.
func (m *machine) loseButtons() {
	if m.buttonsGone {
		return
	}
	m.buttonsGone = true
	m.drop(DisplayLost, AdminDisplayLost, CauseLinesClosed)
	m.do(revokeAll{})
	m.do(notify{Notice{Kind: ButtonsLost}})
	m.to(StateLost, 0, CauseLinesClosed)
}

// drop ends the front card, all queued ones, the administrative prompt, what is offered and pairing mode.
func (m *machine) drop(o Outcome, a AdminOutcome, cause Cause) {
	for _, c := range m.queue.drain() {
		m.refuse(c, o)
	}
	if m.front != nil {
		m.end(Decision{Outcome: o})
	}
	if m.prompt != nil {
		m.endPrompt(a, cause)
	}
	if m.offer != nil {
		m.endOffer(a)
	}
	m.endPairing(cause)
	m.gesture = 0
}

// slept is called when the box was suspended: the glass may have lost its picture, and edges may be missing.
func (m *machine) slept() {
	m.cancelHold(CauseSlept)
	m.calm = 0
	m.happened(m.state, CauseSlept, 0)
	m.challenge.passed = false
	for b := range m.lines {
		m.lines[b].void = true
	}
	switch m.state {
	case StateNext:
		m.until = 0 // its second begins again: nobody saw the one that passed
	case StateChallenge:
		m.startChallenge(m.challenge.failed)
	}
	m.renew()
}

func (m *machine) tickGlass() {
	g := &m.glass
	if g.flight && !g.hung && m.now.mono >= g.began+m.rules.DrawTimeout {
		g.hung = true
		m.lose(CauseNoAnswer)
	}
}

func (m *machine) wakeGlass(boot, mono func(time.Duration)) {
	g := &m.glass
	if g.flight && !g.hung {
		mono(g.began + m.rules.DrawTimeout)
	}
	if m.state == StateLost && !g.flight && !g.sure {
		boot(m.retry)
	}
	if m.state == StateIdle {
		boot(m.now.boot.Truncate(time.Minute) + time.Minute)
	}
}
