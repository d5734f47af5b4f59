package main

import (
	"fmt"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"

	"assent.home.arpa/appliance/clock"
	"assent.home.arpa/confirm"
	"assent.home.arpa/confirm/screen"
	"assent.home.arpa/device"
	"assent.home.arpa/image/emulator/first"
)

// timeCases are about deadlines and clocks.
func timeCases() []sample {
	return []sample{
		{name: "hold that spans the deadline", do: func(r *room) { holdAtDeadline(r, time.Second) }},
		{name: "press at expiry", do: func(r *room) { holdAtDeadline(r, 30*time.Millisecond) }},
		{name: "wall clock steps", do: wallClockSteps},
		{name: "the box sleeps during the hold", do: sleepsDuringTheHold},
		{name: "the box sleeps past the deadline", do: sleepsPastTheDeadline},
	}
}

// window is how long an opened request may be read (the panel's rules for pages of this number).
func (p *pending) window() time.Duration {
	return 60*time.Second + time.Duration(max(0, len(p.pages)-2))*6*time.Second
}

// deadline is when an opened request ends, on the boot clock.
func (p *pending) deadline() time.Duration {
	r := p.room
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, t := range r.journal {
		if t.To == confirm.StateReading && t.Cause == confirm.CauseOpened {
			return t.Boot + p.window()
		}
	}
	return 0
}

// holdAtDeadline begins to hold shortly before the deadline, and holds beyond it.
func holdAtDeadline(r *room, before time.Duration) {
	p := r.ask(1)
	p.read()
	end := p.deadline()
	time.Sleep(end - before - r.clock.Boot())
	p.undecided()
	r.press(device.Approve)
	d := p.conclude(patience)
	if now := r.clock.Boot(); now < end || d.Expires != end {
		r.problem("ended at %v with the deadline %v; it was %v", now, d.Expires, end)
	}
	time.Sleep(3 * time.Second)
	r.release(device.Approve)
}

// wallClockSteps sets the date to and fro while a request waits and while it is read. Others are being decided meanwhile in
// other rooms, and notice nothing either.
func wallClockSteps(r *room) {
	began := r.clock.Boot()
	wall := time.Now()
	step := func(by time.Duration) {
		at := unix.NsecToTimeval(wall.Add(by + r.clock.Boot() - began).UnixNano())
		r.must(unix.Settimeofday(&at))
	}
	p := r.ask(1)
	p.reach()
	waiting, _ := r.last(confirm.StateWaiting)
	for i, by := range []time.Duration{3 * time.Hour, -24 * time.Hour, 57 * 365 * 24 * time.Hour} {
		step(by)
		time.Sleep(1200 * time.Millisecond)
		left := waiting.Boot + 179*time.Second - r.clock.Boot()
		if !r.announces(p, left) {
			r.photograph("instead")
			r.problem("after step %d the glass does not say that %v are left", i+1, left)
		}
		p.undecided()
	}
	r.tap(device.Approve)
	step(-24 * time.Hour)
	for i := range p.pages {
		p.turn(i)
	}
	r.in(confirm.StateArmed)
	step(3 * time.Hour)
	r.press(device.Approve)
	time.Sleep(700 * time.Millisecond)
	step(-24 * time.Hour)
	r.until("the full bar", func() bool { return r.fullBar(p) })
	r.release(device.Approve)
	p.conclude(patience)
	step(0)
	if _, state := r.clock.Wall(); state == clock.Synced {
		r.problem("a clock that nothing confirms says that it is right")
	}
}

// announces reports whether the glass announces a request with about that time left.
func (r *room) announces(p *pending, left time.Duration) bool {
	glass := r.glass()
	seconds := (left + time.Second - 1).Truncate(time.Second)
	for _, near := range []time.Duration{0, time.Second, -time.Second} { // the next picture may be on its way
		c := p.req.Card
		want := screen.DrawWaiting(screen.Waiting{
			Phone: p.req.Phone, Title: c.Title, Destination: c.Destination, Pages: len(p.pages), Left: seconds + near,
		})
		if glass == want {
			return true
		}
	}
	return false
}

// sleepsDuringTheHold lets the box's clock say what it says after a suspend; the machine itself cannot sleep, see trySuspend.
func sleepsDuringTheHold(r *room) {
	p := r.ask(1)
	p.read()
	r.press(device.Approve)
	time.Sleep(time.Second)
	r.clock.sleep(5 * time.Second)
	time.Sleep(3 * time.Second)
	p.undecided()
	r.release(device.Approve)
	r.in(confirm.StateArmed)
	r.hold(device.Approve, fullHold)
	p.conclude(patience)
}

func sleepsPastTheDeadline(r *room) {
	p := r.ask(1)
	p.read()
	r.clock.sleep(10 * time.Minute)
	r.hold(device.Approve, fullHold)
	p.conclude(patience)
}

// trySuspend finds out whether this machine can sleep, and says so. The cases above do not need it.
func trySuspend(c *first.Console) {
	alarms, err := filepath.Glob("/sys/class/rtc/rtc*/wakealarm")
	if err != nil || len(alarms) == 0 {
		c.Say("suspend: not tried, no clock could wake the machine")
		return
	}
	const nap = 2
	if err := os.WriteFile(alarms[0], fmt.Appendf(nil, "+%d", nap), 0); err != nil {
		c.Say("suspend: not tried: " + err.Error())
		return
	}
	system := clock.System()
	before, began := system.Boot()-system.Mono(), time.Now()
	err = os.WriteFile("/sys/power/state", []byte("freeze"), 0)
	switch slept := system.Boot() - system.Mono() - before; {
	case err != nil:
		c.Say("suspend: the kernel refuses: " + err.Error())
	default:
		c.Say(fmt.Sprintf("suspend: back after %v, of which the clocks say that %v were slept", time.Since(began).Round(time.Millisecond), slept.Round(time.Millisecond)))
	}
}
