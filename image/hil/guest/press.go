package main

import (
	"time"

	"assent.home.arpa/confirm"
	"assent.home.arpa/confirm/screen"
	"assent.home.arpa/device"
)

// pressCases are about fingers.
func pressCases() []sample {
	return []sample{
		{name: "read and hold", do: readAndHold},
		{name: "read and hold on an sh1106", part: "sh1106", do: readAndHold},
		{name: "press 300 ms before the draw", do: pressBeforeTheDraw},
		{name: "held since boot", first: func(r *room) { r.press(device.Approve) }, do: heldSinceBoot},
		{name: "held through the draw", do: heldThroughTheDraw},
		{name: "bounce with the next card ready", do: bounceSparesTheNextCard},
		{name: "bounce opens and does not turn", do: bounceOpensOnly},
		{name: "a line that rings", do: ringing},
		{name: "stuck for ever", do: stuck},
		{name: "hold before the page was read", do: earlyPress},
		{name: "second proposal", do: secondProposal},
		{name: "deny", do: deny},
		{name: "panic", do: panics},
	}
}

func readAndHold(r *room) {
	p := r.ask(1)
	p.reach()
	r.photograph("announced")
	r.tap(device.Approve)
	for i := range p.pages {
		p.see(i)
		r.photograph("page")
		p.turn(i)
	}
	r.in(confirm.StateArmed)
	r.photograph("armed")
	r.press(device.Approve)
	time.Sleep(time.Second)
	r.photograph("holding")
	p.undecided()
	r.lit(true)
	r.until("the full bar", func() bool { return r.fullBar(p) })
	r.photograph("let go")
	p.undecided()
	r.release(device.Approve)
	d := p.conclude(patience)
	r.until("the result", func() bool { return r.glass() == screen.DrawNotice("APPROVED") })
	r.photograph("approved")

	if d.ScreenDigest != screen.Digest(p.pages) {
		r.problem("the decision names another screen")
	}
	const hold = 1500 * time.Millisecond
	if d.Shown == 0 || d.Shown > d.Pressed || d.Completed < d.Pressed+hold {
		r.problem("shown at %v, pressed at %v, completed at %v", d.Shown, d.Pressed, d.Completed)
	}
	if want := 2*len(p.pages) + 2; len(d.Course.Presses) != want { // a tap to open, one a turn, and the hold
		r.problem("%d edges are on record instead of %d", len(d.Course.Presses), want)
	}
	for i, ev := range d.Course.Presses {
		if i > 0 && ev.Mono <= d.Course.Presses[i-1].Mono {
			r.problem("edge %d is not after the one before it", i)
		}
	}
	time.Sleep(5 * time.Second)
	if n := r.noticed(confirm.HoldRevoked); n != 0 {
		r.problem("the receipt was revoked")
	}
	r.lit(false)
}

// fullBar reports whether the glass asks to let go, and somebody has seen it.
func (r *room) fullBar(p *pending) bool {
	return r.glass() == screen.DrawReading(p.pages[len(p.pages)-1], 0, true, true, 1, "LET GO") && r.adapter.Still(reaction)
}

// pressBeforeTheDraw presses while the last page is on its way to a slow display, and holds on.
func pressBeforeTheDraw(r *room) {
	p := r.ask(1)
	p.reach()
	r.tap(device.Approve)
	last := len(p.pages) - 1
	for i := range last - 1 {
		p.turn(i)
	}
	r.until("the page before the last", func() bool { return r.shows(p.pages[last-1]) })
	time.Sleep(onGlass(p.pages[last-1]) + 150*time.Millisecond)
	r.adapter.Slow(60 * time.Millisecond) // a page takes half a second and more
	r.tap(device.Approve)
	pressed := r.clock.Mono()
	r.press(device.Approve)
	r.until("the last page", func() bool { return r.shows(p.pages[last]) })
	if early := r.clock.Mono() - pressed; early < 300*time.Millisecond {
		r.problem("the press was only %v before the draw", early)
	}
	r.adapter.Slow(0)
	time.Sleep(5 * time.Second)
	r.notHolding()
	p.giveUp()
}

func heldSinceBoot(r *room) {
	p := r.ask(1)
	r.in(confirm.StateWaiting)
	time.Sleep(5 * time.Second)
	if r.passed(confirm.StateReading) {
		r.problem("a button that was down all the time opened a request")
	}
	r.notHolding()
	p.giveUp()
}

// heldThroughTheDraw turns to the last page with a press that does not end.
func heldThroughTheDraw(r *room) {
	p := r.ask(1)
	p.reach()
	r.tap(device.Approve)
	last := len(p.pages) - 1
	for i := range last - 1 {
		p.turn(i)
	}
	r.until("the page before the last", func() bool { return r.shows(p.pages[last-1]) })
	time.Sleep(onGlass(p.pages[last-1]) + 150*time.Millisecond)
	r.press(device.Approve)
	r.until("the last page", func() bool { return r.shows(p.pages[last]) })
	time.Sleep(5 * time.Second)
	r.notHolding()
	p.giveUp()
}

// notHolding demands that no hold has begun.
func (r *room) notHolding() {
	if r.passed(confirm.StateArmed) || r.passed(confirm.StateHolding) {
		r.fatal("the panel armed")
	}
}

// contact is how a worn contact closes: it moves at 0, 3, 7 and 12 ms, and then once more before it stays.
func contact() []time.Duration {
	const ms = time.Millisecond
	return []time.Duration{0, 3 * ms, 7 * ms, 12 * ms, 15 * ms}
}

func bounceSparesTheNextCard(r *room) {
	p, next := r.ask(1), r.ask(2)
	p.reach()
	r.bounce(device.Deny, contact()...)
	time.Sleep(100 * time.Millisecond)
	r.release(device.Deny)
	d := p.conclude(patience)
	if len(d.Course.Presses) != 1 {
		r.problem("%d edges instead of one press", len(d.Course.Presses))
	}
	next.reach()
	next.undecided()
	r.tap(device.Deny)
	if d := next.want(confirm.Denied); len(d.Course.Presses) != 1 {
		r.problem("%d edges for the next card", len(d.Course.Presses))
	}
}

func bounceOpensOnly(r *room) {
	p := r.ask(1)
	p.reach()
	r.bounce(device.Approve, contact()...)
	time.Sleep(100 * time.Millisecond)
	r.release(device.Approve)
	r.until("the first page", func() bool { return r.shows(p.pages[0]) })
	time.Sleep(3 * time.Second)
	if !r.shows(p.pages[0]) {
		r.problem("the first page is not on the glass any more")
	}
	p.giveUp()
}

// ringing is a line that floats: it stays down for a moment, so that it seems pressed, and then moves faster than any finger, for
// longer than a hold.
func ringing(r *room) {
	p := r.ask(1)
	p.read()
	for range 4 {
		moves := []time.Duration{0}
		for at := 40 * time.Millisecond; at < 3*time.Second; at += 3 * time.Millisecond {
			moves = append(moves, at)
		}
		r.bounce(device.Approve, moves...)
		r.release(device.Approve)
		p.undecided()
	}
	p.giveUp()
}

func stuck(r *room) {
	p, next := r.ask(1), r.ask(2)
	p.read()
	r.press(device.Approve)
	pressed := r.clock.Mono()
	p.want(confirm.DisplayLost)
	if held := r.clock.Mono() - pressed; held < 5900*time.Millisecond {
		r.problem("ended after %v", held)
	}
	r.until("the notice", func() bool { return r.noticed(confirm.HoldRevoked) == 1 })
	p.conclude(patience)
	if next.decided() {
		r.problem("the next card ended as %v", next.dec.Outcome)
	}
	opened, _ := r.last(confirm.StateReading)
	time.Sleep(4 * time.Second)
	if again, _ := r.last(confirm.StateReading); again != opened {
		r.problem("the stuck button opened the next card")
	}
}

// earlyPress holds before the last page had its time, then does it right.
func earlyPress(r *room) {
	p := r.ask(1)
	p.open()
	r.hold(device.Approve, 3*time.Second)
	if r.passed(confirm.StateHolding) {
		r.problem("a press before the page was read began a hold")
	}
	p.undecided()
	r.in(confirm.StateArmed)
	r.hold(device.Approve, time.Second) // too short
	time.Sleep(200 * time.Millisecond)
	p.undecided()
	r.in(confirm.StateArmed)
	r.hold(device.Approve, fullHold)
	p.conclude(patience)
}

func secondProposal(r *room) {
	p := r.ask(1)
	p.read()
	r.press(device.Approve)
	time.Sleep(500 * time.Millisecond)
	next := r.ask(2)
	time.Sleep(500 * time.Millisecond)
	if !r.shows(p.pages[len(p.pages)-1]) {
		r.problem("the screen changed under the finger")
	}
	r.until("the full bar", func() bool { return r.fullBar(p) })
	r.release(device.Approve)
	if d := p.conclude(patience); d.ScreenDigest != screen.Digest(p.pages) {
		r.problem("the press approved another screen")
	}
	next.reach()
	next.undecided()
}

func deny(r *room) {
	p := r.ask(1)
	p.read()
	r.press(device.Approve)
	time.Sleep(time.Second)
	r.tap(device.Deny) // in the middle of the hold
	r.release(device.Approve)
	p.conclude(patience)
}

func panics(r *room) {
	p := r.ask(1)
	r.in(confirm.StateNext) // in which a press denies nothing
	r.press(device.Deny)
	r.until("the panic", func() bool { return r.noticed(confirm.Panic) == 1 })
	r.release(device.Deny)
	p.conclude(patience)
	r.ask(2).want(confirm.Panicked) // frozen
}
