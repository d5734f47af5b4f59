package confirm

import (
	"time"

	"assent.home.arpa/capabilities"
	"assent.home.arpa/confirm/screen"
	"assent.home.arpa/device"
)

// instant is one moment on both clocks that decide something.
type instant struct{ boot, mono time.Duration }

// sleepJitter is how far two readings of Boot − Mono may differ without a suspend in between: the two clocks are read one
// after the other, and a program can be kept waiting between the reads.
const sleepJitter = 20 * time.Millisecond

// kit says what the box has.
type kit struct {
	deny      bool // a second button
	readsBack bool // an acknowledged draw is on the glass
}

// machine is the panel's state machine. It is pure: step takes the time, eight random bytes and an event, and returns what
// is to be done; it reads no clock, draws nothing and waits for nothing. One goroutine steps it.
type machine struct {
	rules Timings
	kit   kit
	large bool                                       // letters
	draws func(*machine, look) (device.Frame, error) // render, or what tests that live through millions of presses put there

	now  instant
	dice uint64
	out  []action
	slip time.Duration // Boot − Mono at the last step
	ran  bool

	state State
	until time.Duration // boot: the state's own deadline, or zero
	glass glass
	lines [3]line // by device.Button
	lamp  device.Signal

	queue     queue
	front     *card
	page      int
	result    string   // words of StateResult
	reason    []string // lines below them
	hold      hold
	turn      time.Duration // mono: the press under way that opened the card or came before its last page, or zero
	challenge challenge
	doubt     doubt

	prompt  *prompt
	offer   *prompt // waits for a gesture
	pairing pairing
	gesture time.Duration // boot: until then administrative prompts may be shown
	taps    taps          // the one-button gesture
	calm    time.Duration // mono: from when on the glass showed nothing but the idle screen and notices, or zero

	idle        screen.Idle
	idleRev     uint64
	address     string
	bulletins   []Bulletin
	frozen      bool
	buttonsGone bool
	retry       time.Duration // boot: when a lost display is tried again
}

func newMachine(rules Timings, k kit, large bool) *machine {
	return &machine{rules: rules, kit: k, large: large, draws: (*machine).render, state: StateIdle}
}

// event is something that happened.
type event interface{ isEvent() }

type (
	drawn struct {
		at  time.Duration
		err error
	} // the draw in flight ended, at mono
	edge  struct{ device.Event }
	level struct {
		approve, deny bool
		err           error
	} // the answer to a probe
	tick       struct{}
	submit     struct{ card *card }
	withdraw   struct{ inv capabilities.InvocationID }
	ask        struct{ prompt *prompt }
	unask      struct{ prompt *prompt }
	setIdle    struct{ idle screen.Idle }
	setAddress struct{ address string }
	// setBulletins names what the box has to say from now on
	setBulletins struct{ all []Bulletin }
	freeze       struct{}
	codeSpent    struct{} // too many wrong pairing codes
	buttonsLost  struct{}
)

func (drawn) isEvent()        {}
func (edge) isEvent()         {}
func (level) isEvent()        {}
func (tick) isEvent()         {}
func (submit) isEvent()       {}
func (withdraw) isEvent()     {}
func (ask) isEvent()          {}
func (unask) isEvent()        {}
func (setIdle) isEvent()      {}
func (setAddress) isEvent()   {}
func (setBulletins) isEvent() {}
func (freeze) isEvent()       {}
func (codeSpent) isEvent()    {}
func (buttonsLost) isEvent()  {}

// action is something to be done, in order.
type action interface{ isAction() }

type (
	draw struct { // one at a time; answered by drawn
		frame device.Frame
		whole bool // a new picture; else one with something small changed
		dim   bool
	}
	probe  struct{} // read both levels; answered by level
	decide struct {
		card     *card
		decision Decision
	}
	approve struct { // mint a receipt, then decide
		card     *card
		decision Decision // complete but for the receipt
	}
	revokeAll struct{}
	answer    struct {
		prompt   *prompt
		decision AdminDecision
	}
	openPairing struct {
		code  string
		until time.Duration
	}
	closePairing struct{}
	notify       struct{ notice Notice }
	signal       struct{ lamp device.Signal }
	journal      struct{ transition Transition }
)

func (draw) isAction()         {}
func (probe) isAction()        {}
func (decide) isAction()       {}
func (approve) isAction()      {}
func (revokeAll) isAction()    {}
func (answer) isAction()       {}
func (openPairing) isAction()  {}
func (closePairing) isAction() {}
func (notify) isAction()       {}
func (signal) isAction()       {}
func (journal) isAction()      {}

// step takes one event at one moment. dice is fresh randomness; it is used at most once a step.
func (m *machine) step(now instant, dice uint64, ev event) []action {
	m.now, m.dice, m.out = now, dice, nil
	slip := now.boot - now.mono
	if m.ran && (slip-m.slip).Abs() > sleepJitter {
		m.slept()
	}
	m.slip, m.ran = slip, true
	m.overdue() // what comes after a deadline comes too late, whatever it is
	m.fadeDoubt()
	if m.pairing.open && now.boot >= m.pairing.until {
		m.endPairing(CauseTimeUp)
	}

	switch ev := ev.(type) {
	case drawn:
		m.drawn(ev)
	case edge:
		m.edge(ev.Event)
	case level:
		m.level(ev)
	case tick:
		m.tick()
	case submit:
		m.submit(ev.card)
	case withdraw:
		m.withdraw(ev.inv)
	case ask:
		m.ask(ev.prompt)
	case unask:
		m.unask(ev.prompt)
	case setIdle:
		m.idle, m.idleRev = ev.idle, m.idleRev+1
	case setAddress:
		m.address, m.idleRev = ev.address, m.idleRev+1
	case setBulletins:
		m.setBulletins(ev.all)
	case freeze:
		if !m.frozen {
			m.freeze()
		}
	case codeSpent:
		m.endPairing(CauseWrongCodes)
	case buttonsLost:
		m.loseButtons()
	}
	m.lingers()
	m.overdue() // a hold that was let go too late, or broken, was all that kept the deadline waiting
	m.arm()
	m.tryComplete()
	m.paint()
	m.shine()
	return m.out
}

func (m *machine) do(a action) { m.out = append(m.out, a) }

// to changes the state. until is the new state's deadline on the boot clock, or zero. Every change asks for a new picture, so
// that whatever is on the glass counts as another screen's until the display acknowledges.
func (m *machine) to(s State, until time.Duration, cause Cause) {
	m.journal(s, cause)
	m.state, m.until, m.hold = s, until, hold{}
	if s != StateIdle && s != StateBulletin {
		m.calm = 0
	}
	m.renew()
}

// shift changes between states that share a picture and a deadline.
func (m *machine) shift(s State, cause Cause) {
	m.journal(s, cause)
	m.state = s
}

func (m *machine) journal(s State, cause Cause) {
	tr := Transition{Boot: m.now.boot, Mono: m.now.mono, From: m.state, To: s, Cause: cause}
	if m.front != nil {
		tr.Inv = m.front.req.Inv
	}
	m.do(journal{tr})
	m.happened(s, cause, 0)
}

// tick does whatever has become due.
func (m *machine) tick() {
	m.tickGlass()
	m.tickLines()
	m.tickChallenge()
}

// overdue ends what has had its time. A hold that was complete in time has only to be let go.
func (m *machine) overdue() {
	if m.until != 0 && m.now.boot >= m.until && m.hold.completed == 0 {
		m.deadline()
	}
}

// deadline ends the state whose time is up.
func (m *machine) deadline() {
	switch m.state {
	case StateNext:
		if m.stopping() {
			m.until = 0 // its second begins again when its picture comes back
			return
		}
		m.to(StateWaiting, m.now.boot+m.rules.Waiting-m.rules.Next, CauseAnnounced)
	case StateWaiting:
		if m.front.window != 0 { // it was opened, and has to be read anew
			m.end(Decision{Outcome: Expired})
			return
		}
		m.end(Decision{Outcome: ExpiredUnseen})
	case StateReading, StateArmed, StateHolding:
		m.end(Decision{Outcome: Expired})
	case StateChallenge:
		if m.front != nil {
			m.end(Decision{Outcome: Expired})
		} else {
			m.endPrompt(AdminExpired, CauseExpired)
		}
	case StateAdmin:
		m.endPrompt(AdminExpired, CauseExpired)
	case StatePairing:
		m.endPairing(CauseTimeUp)
	case StateResult, StatePanic:
		m.advance(CauseShown)
	}
}

// advance moves on to the next card, to what the box has to say, or to the idle screen.
func (m *machine) advance(cause Cause) {
	if m.pairing.open {
		m.to(StatePairing, m.pairing.until, cause)
		return
	}
	if m.front = m.queue.next(); m.front != nil {
		m.front.fronted = m.now.boot
		m.to(StateNext, 0, cause)
		return
	}
	if m.showBulletin(cause) {
		return
	}
	m.to(StateIdle, 0, cause)
}

// shine tells somebody across the room.
func (m *machine) shine() {
	want := device.Quiet
	switch m.state {
	case StateNext, StateWaiting, StateReading, StateChallenge, StateArmed:
		want = device.Waiting
		if m.front != nil && m.front.req.Still {
			want = device.Still
		}
	case StateHolding:
		want = device.Holding
	case StatePanic, StateLost:
		want = device.Alarm
	}
	if want != m.lamp {
		m.lamp = want
		m.do(signal{want})
	}
}

// wake returns the boot time at which the machine next needs a tick, or zero for never.
func (m *machine) wake() time.Duration {
	var at time.Duration
	boot := func(t time.Duration) {
		if t != 0 && (at == 0 || t < at) {
			at = t
		}
	}
	mono := func(t time.Duration) {
		if t != 0 {
			boot(t + m.slip)
		}
	}
	if m.hold.completed == 0 {
		boot(m.until)
	}
	boot(m.pairing.until)
	mono(m.doubt.until)
	if left := m.left(); left > 0 {
		boot(m.until - time.Duration(left-1)*time.Second)
	}
	m.wakeGlass(boot, mono)
	m.wakeLines(mono)
	m.wakeHold(mono)
	return at
}

// left is the time to the deadline in whole seconds, rounded up, as the panel shows it.
func (m *machine) left() int {
	if m.until <= m.now.boot {
		return 0
	}
	return int((m.until - m.now.boot + time.Second - 1) / time.Second)
}
