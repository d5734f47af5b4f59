package main

import (
	"strings"
	"time"

	"assent.home.arpa/confirm"
	"assent.home.arpa/confirm/screen"
	"assent.home.arpa/device"
	"assent.home.arpa/device/board"
	"assent.home.arpa/image/hil/hiltest"
)

// faultCases are about parts that fail, and parts that pretend.
func faultCases() []sample {
	return []sample{
		{name: "button lines unplugged", do: linesUnplugged},
		{name: "display stops acknowledging", do: displaySilent},
		{name: "display loses its supply", do: displayReset},
		{name: "display bus hangs", do: displayHangs},
		{name: "display bus unplugged", do: displayUnplugged},
		{name: "another chip with the same names", do: impostor},
	}
}

func linesUnplugged(r *room) {
	p, queued := r.ask(1), r.ask(2)
	p.read()
	r.press(device.Approve)
	time.Sleep(700 * time.Millisecond)
	r.must(r.bank.Remove())
	r.bank = nil
	p.conclude(patience)
	queued.want(confirm.DisplayLost)
	r.until("the notice", func() bool { return r.noticed(confirm.ButtonsLost) == 1 })
	r.until("words for it", func() bool { return r.glass() == screen.DrawNotice("NO BUTTONS", "nothing can be", "approved") })
	r.photograph("buttons lost")
	r.ask(3).want(confirm.DisplayLost)
	if err := r.board.Buttons.Err(); err == nil {
		r.problem("the lines do not say why they ended")
	}
}

// loses waits for the end of a request whose display fails in the middle of a hold, and for what the panel says of it.
func (p *pending) loses(queued *pending) {
	r := p.room
	p.conclude(patience)
	r.release(device.Approve)
	queued.want(confirm.DisplayLost)
	r.until("the notice", func() bool { return r.noticed(confirm.PanelLost) == 1 })
	r.tap(device.Approve) // nobody can know for what
}

// recovers waits for the display to come back, sees that it shows what it should, and approves on it.
func (r *room) recovers() {
	r.until("the display", func() bool { return r.noticed(confirm.PanelBack) == 1 })
	r.in(confirm.StateIdle)
	again := r.ask(9)
	again.read()
	r.photograph("after it came back")
	r.hold(device.Approve, fullHold)
	again.want(confirm.Approved)
}

func displaySilent(r *room) {
	p, queued := r.ask(1), r.ask(2)
	p.read()
	r.press(device.Approve)
	time.Sleep(700 * time.Millisecond)
	r.adapter.Display.FailAfter(0)
	p.loses(queued)
	r.ask(3).want(confirm.DisplayLost)
	r.adapter.Display.Heal()
	r.recovers()
}

// displayReset is a loose wire: the display answers again before anybody asks, but what it showed is gone.
func displayReset(r *room) {
	p, queued := r.ask(1), r.ask(2)
	p.read()
	r.press(device.Approve)
	time.Sleep(700 * time.Millisecond)
	r.adapter.Display.PowerCycle()
	p.loses(queued)
	r.recovers()
}

func displayHangs(r *room) {
	p, queued := r.ask(1), r.ask(2)
	p.read()
	r.press(device.Approve)
	time.Sleep(700 * time.Millisecond)
	r.adapter.Hang()
	p.loses(queued)
	r.adapter.Resume()
	r.recovers()
}

func displayUnplugged(r *room) {
	p, queued := r.ask(1), r.ask(2)
	p.read()
	r.press(device.Approve)
	time.Sleep(700 * time.Millisecond)
	r.must(r.adapter.Pull())
	p.loses(queued)
	time.Sleep(3 * time.Second) // some tries in vain
	r.ask(3).want(confirm.DisplayLost)
	r.adapter.Display.PowerCycle()
	r.must(r.adapter.Plug())
	r.recovers()
}

// impostor is a second chip whose lines have the names of the buttons' lines. It can neither be taken for the buttons when
// the box starts nor take them over while it runs.
func impostor(r *room) {
	fake, err := hiltest.NewBank("impostor", "", "assent-approve", "assent-deny")
	r.must(err)
	defer fake.Remove()

	plain := r.panel("ssd1306")
	plain.Approve, plain.Deny, plain.Lamp, plain.Buzzer = "assent-approve", "assent-deny", "", ""
	r.refused(plain.Approve+" of many", func() (*board.Board, error) { return board.Open(plain) }, `gpio lines are named "assent-approve"`, fake.Place())
	elsewhere := plain
	elsewhere.Approve, elsewhere.Deny = "assent-approve@fe200000.gpio", "assent-deny@fe200000.gpio"
	r.refused("the place of another board", func() (*board.Board, error) { return board.Open(elsewhere) }, `no gpio line "assent-approve" at "fe200000.gpio"`)
	mixed := r.panel("ssd1306")
	mixed.Deny, mixed.Lamp, mixed.Buzzer = "assent-deny@"+fake.Place(), "", ""
	r.refused("buttons on two chips", func() (*board.Board, error) { return board.Open(mixed) }, "in use", "two gpio chips")

	p := r.ask(1)
	p.read()
	r.must(fake.Close(approveLine))
	time.Sleep(3 * time.Second)
	r.must(fake.Open(approveLine))
	r.must(fake.Close(denyLine))
	time.Sleep(200 * time.Millisecond)
	p.undecided()
	if r.passed(confirm.StateHolding) {
		r.problem("the other chip's line began a hold")
	}
	r.hold(device.Approve, fullHold)
	p.conclude(patience)
}

// refused demands that a board cannot be opened, with an error that says one of the texts.
func (r *room) refused(what string, open func() (*board.Board, error), says ...string) {
	b, err := open()
	if err == nil {
		_ = b.Close()
		r.problem("%s: opened", what)
		return
	}
	for _, s := range says {
		if strings.Contains(err.Error(), s) {
			return
		}
	}
	r.problem("%s: the error says %q", what, err)
}
