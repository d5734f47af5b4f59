package confirm

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"assent.home.arpa/confirm/internal/mint"
	"assent.home.arpa/confirm/receipt"
	"assent.home.arpa/device"
)

// Limits of one round, so that a ringing line or a busy guard cannot keep the other inputs waiting.
const (
	edgesARound    = 256
	commandsARound = 64
	maxNotices     = 64
)

// pollEvery is how often the levels are read while nothing asks for them, so that a lost edge of deny is not lost for ever.
const pollEvery = time.Second

// loop drives a machine: it stamps events with the time, performs actions and waits for what comes next.
type loop struct {
	d       *Desk
	m       *machine
	canvas  chan draw  // to the goroutine that owns the display
	drawn   chan drawn // from it
	events  <-chan device.Event
	notices []Notice
	probe   bool          // the machine asked for the levels
	polled  time.Duration // boot: they were read
	dice    [8]byte       // for the next step
	err     error
}

// Run shows the panel and answers every Ask until ctx ends, or until the box can no longer draw random numbers or sign. It is
// the one goroutine that owns buttons and state, and owns the one that owns the display. It may be called once.
func (d *Desk) Run(ctx context.Context) error {
	if !d.started.CompareAndSwap(false, true) {
		return errors.New("confirm: the panel runs already, or has ended")
	}
	defer close(d.closed)
	l := &loop{
		d: d, m: newMachine(d.cfg.Timings, d.kit, d.cfg.Large),
		canvas: make(chan draw, 1), drawn: make(chan drawn, 1), events: d.cfg.Buttons.Events(),
	}
	gone := make(chan struct{})
	go func() {
		defer close(gone)
		d.artist(l.canvas, l.drawn)
	}()
	defer d.ledger.revokeAll()
	defer d.codes.close()
	defer l.dismiss(gone)
	l.roll()
	for l.err == nil {
		if err := ctx.Err(); err != nil {
			return err
		}
		l.round(ctx)
	}
	return l.err
}

// artist owns the display. It draws what it is given, one frame at a time.
func (d *Desk) artist(in <-chan draw, out chan<- drawn) {
	dimmed := false
	for a := range in {
		put := d.cfg.Display.Update
		if a.whole {
			put = d.cfg.Display.Draw
		}
		err := put(&a.frame)
		at := d.cfg.Clock.Mono()
		if err == nil && a.dim != dimmed {
			err = d.cfg.Display.Dim(a.dim)
			dimmed = a.dim
		}
		out <- drawn{at: at, err: err}
	}
}

// dismiss waits for the artist, but not for a display that hangs: its goroutine ends when the bus gives up.
func (l *loop) dismiss(gone <-chan struct{}) {
	close(l.canvas)
	reached, stop := l.d.cfg.Clock.Until(l.d.cfg.Clock.Boot() + l.d.cfg.Timings.DrawTimeout)
	defer stop()
	if l.m.glass.hung {
		return
	}
	select {
	case <-gone:
	case <-reached:
	}
}

// round takes what is there, in the order that is safe: what the glass shows first, then what people and programs want, then
// time.
func (l *loop) round(ctx context.Context) {
	l.step(tick{})
	l.poll()
	l.answerProbes()
	if l.err != nil {
		return
	}
	reached, stop := l.alarm()
	defer stop()
	var notices chan<- Notice
	var notice Notice
	if len(l.notices) > 0 {
		notices, notice = l.d.notices, l.notices[0]
	}
	select {
	case <-ctx.Done():
	case ev := <-l.drawn:
		l.step(ev)
	case ev := <-l.d.commands:
		l.takeDrawn()
		l.step(ev)
	case ev, ok := <-l.events:
		l.takeDrawn()
		l.stepEdge(ev, ok)
	case <-l.d.poke:
		for _, ev := range l.d.collect() {
			l.step(ev)
		}
	case notices <- notice:
		l.notices = l.notices[1:]
	case <-reached:
	}
	l.takeDrawn()
	l.takeCommands()
	l.takeEdges()
	l.answerProbes()
}

// alarm waits for the machine's next tick, or for the next poll.
func (l *loop) alarm() (<-chan struct{}, func()) {
	at := l.polled + pollEvery
	if tick := l.m.wake(); tick != 0 {
		at = min(at, tick)
	}
	return l.d.cfg.Clock.Until(at)
}

// poll has the levels read when it is time.
func (l *loop) poll() {
	if now := l.d.cfg.Clock.Boot(); now >= l.polled+pollEvery {
		l.polled, l.probe = now, true
	}
}

func (l *loop) takeDrawn() {
	select {
	case ev := <-l.drawn:
		l.step(ev)
	default:
	}
}

func (l *loop) takeCommands() {
	for range commandsARound {
		select {
		case ev := <-l.d.commands:
			l.step(ev)
		default:
			return
		}
	}
}

func (l *loop) takeEdges() {
	for range edgesARound {
		select {
		case ev, ok := <-l.events:
			l.stepEdge(ev, ok)
		default:
			return
		}
	}
}

func (l *loop) stepEdge(ev device.Event, ok bool) {
	if !ok {
		l.events = nil
		l.step(buttonsLost{})
		return
	}
	l.step(edge{ev})
}

// answerProbes reads the levels, after the edges that came before them.
func (l *loop) answerProbes() {
	for l.probe && l.err == nil {
		l.probe = false
		l.takeEdges()
		var ev level
		ev.approve, ev.err = l.d.cfg.Buttons.Down(device.Approve)
		if ev.err == nil && l.d.kit.deny {
			ev.deny, ev.err = l.d.cfg.Buttons.Down(device.Deny)
		}
		l.step(ev)
	}
}

// step feeds the machine and does what it says.
func (l *loop) step(ev event) {
	for _, a := range l.m.step(l.instant(), binary.LittleEndian.Uint64(l.dice[:]), ev) {
		l.perform(a)
	}
	l.roll()
}

// roll draws the next step's randomness ahead, so that no edge waits for it.
func (l *loop) roll() {
	if l.err != nil {
		return
	}
	if _, err := io.ReadFull(l.d.cfg.Rand, l.dice[:]); err != nil {
		l.err = fmt.Errorf("confirm: no randomness: %w", err)
	}
}

// instant reads both clocks so close together that their difference means something.
func (l *loop) instant() instant {
	c := l.d.cfg.Clock
	const tries, near = 8, 5 * time.Millisecond
	var now instant
	for range tries {
		before := c.Mono()
		now.boot, now.mono = c.Boot(), c.Mono()
		if now.mono-before < near {
			break
		}
	}
	return now
}

func (l *loop) perform(a action) {
	d := l.d
	switch a := a.(type) {
	case draw:
		l.canvas <- a
	case probe:
		l.probe = true
	case decide:
		a.card.reply <- a.decision
	case approve:
		l.approve(a)
	case revokeAll:
		d.ledger.revokeAll()
	case answer:
		if a.prompt.reply != nil {
			a.prompt.reply <- a.decision
		}
	case openPairing:
		d.codes.open(a.code, a.until)
	case closePairing:
		d.codes.close()
	case notify:
		l.notify(a.notice)
	case signal:
		// A lamp that fails must not stop the panel, and nothing that allows anything hangs on it.
		_ = d.cfg.Lamp.Show(a.lamp)
	case journal:
		d.cfg.Journal(a.transition)
	}
}

// approve mints the receipt of a hold that was complete and let go. Nothing else in the product calls the mint.
func (l *loop) approve(a approve) {
	d, r, dec := l.d, &a.card.req, a.decision
	minted, err := mint.Mint(d.cfg.Rand, d.cfg.Key, receipt.Claims{
		Inv: r.Inv, ArgsDigest: r.ArgsDigest, ScreenDigest: dec.ScreenDigest, RequestDigest: r.RequestDigest,
		Capability: r.Capability, Version: r.Version, Revision: r.Revision, SchemaDigest: r.SchemaDigest,
		BootID: d.cfg.BootID, Shown: dec.Shown, Pressed: dec.Pressed, Completed: dec.Completed, Expires: dec.Expires,
		Slot: r.Slot, Registry: r.Registry,
	})
	if err != nil {
		// The glass is about to say APPROVED and no receipt exists: a panel that cannot sign must not go on.
		l.err = fmt.Errorf("confirm: signing an approval: %w", err)
		return
	}
	dec.Receipt = d.ledger.add(minted, r.Inv, dec.Expires, l.m.now.boot)
	a.card.reply <- dec
}

// notify queues n for the guard. Where nobody reads, the oldest notice that is no panic makes room.
func (l *loop) notify(n Notice) {
	if len(l.notices) == maxNotices {
		i := max(0, slices.IndexFunc(l.notices, func(n Notice) bool { return n.Kind != Panic }))
		l.notices = slices.Delete(l.notices, i, i+1)
	}
	l.notices = append(l.notices, n)
}
