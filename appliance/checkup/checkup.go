// Package checkup walks a person who has just wired a box through its display, buttons and lamp, and says what it saw.
//
// What a program cannot see (is the picture upright? did the lamp flash?) the person answers; the contacts it measures
// itself, from edges that nobody has debounced. It approves nothing and keeps nothing.
package checkup

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"strings"
	"time"

	"assent.home.arpa/confirm/screen"
	"assent.home.arpa/device"
)

// Parts are what is checked.
type Parts struct {
	Display device.Display
	// Buttons delivers every edge, bounces included.
	Buttons device.Buttons
	Lamp    device.Lamp
	// Mono is CLOCK_MONOTONIC, which the edges' times are of.
	Mono func() time.Duration
}

// Verdict is how it ended. The zero value is no verdict.
type Verdict uint8

// The verdicts.
const (
	Good    Verdict = 1
	Bad     Verdict = 2 // something does not work
	Unknown Verdict = 3 // nothing is known to be wrong, but not all was tried or answered
)

func (v Verdict) String() string {
	switch v {
	case Good:
		return "good"
	case Bad:
		return "bad"
	case Unknown:
		return "could not tell"
	}
	return fmt.Sprintf("verdict(%d)", uint8(v))
}

// visit is one walk.
type visit struct {
	parts   Parts
	answers <-chan string
	out     io.Writer
	verdict Verdict
}

// Run walks through all parts. It asks on out and reads answers from in, a line each, until ctx ends.
func Run(ctx context.Context, p Parts, in io.Reader, out io.Writer) Verdict {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	v := &visit{parts: p, answers: lines(ctx, in), out: out, verdict: Good}
	v.display(ctx)
	for _, b := range []device.Button{device.Approve, device.Deny} {
		if !p.Buttons.Has(b) {
			v.say("%v: this kit has none", b)
			continue
		}
		v.button(ctx, b)
	}
	v.lamp(ctx)
	if err := p.Display.Draw(&device.Frame{}); err != nil {
		v.worse(Bad, "display: %v", err)
	}
	v.say("the panel: %v", v.verdict)
	return v.verdict
}

// lines reads answers until ctx ends. A read that hangs by then is left behind; the program ends soon after.
func lines(ctx context.Context, in io.Reader) <-chan string {
	c := make(chan string)
	go func() {
		defer close(c)
		s := bufio.NewScanner(in)
		for s.Scan() {
			select {
			case c <- s.Text():
			case <-ctx.Done():
				return
			}
		}
	}()
	return c
}

func (v *visit) say(format string, args ...any) { fmt.Fprintf(v.out, format+"\n", args...) }

// worse says what is wrong, and remembers the worst.
func (v *visit) worse(to Verdict, format string, args ...any) {
	v.say(format, args...)
	if v.verdict == Good || to == Bad {
		v.verdict = to
	}
}

// ask wants a yes or a no.
func (v *visit) ask(ctx context.Context, question, wrong string) {
	fmt.Fprintf(v.out, "%s [y/n] ", question)
	for {
		var line string
		var more bool
		select {
		case line, more = <-v.answers:
		case <-ctx.Done():
		}
		switch answer := strings.ToLower(strings.TrimSpace(line)); {
		case !more:
			v.worse(Unknown, "\nno answer")
			return
		case answer == "y" || answer == "yes":
			return
		case answer == "n" || answer == "no":
			v.worse(Bad, "%s", wrong)
			return
		}
		fmt.Fprint(v.out, "please answer y or n: ")
	}
}

// show draws, and says so if that fails.
func (v *visit) show(f device.Frame) bool {
	before := v.parts.Mono()
	if err := v.parts.Display.Draw(&f); err != nil {
		v.worse(Bad, "display: %v; check its four wires, and panel.display and panel.bus in the configuration", err)
		return false
	}
	if took := v.parts.Mono() - before; took > slowDraw {
		v.worse(Bad, "display: a picture took %v, over %v: the bus runs too slowly", took.Round(time.Millisecond), slowDraw)
	}
	return true
}

// slowDraw is well above what a whole picture takes at 100 kHz, some 100 ms, and below what the guard calls a lost display.
const slowDraw = 500 * time.Millisecond

func (v *visit) display(ctx context.Context) {
	for _, p := range patterns() {
		if !v.show(p.frame) {
			return
		}
		v.ask(ctx, "display: "+p.question, "display: "+p.wrong)
	}
	if err := v.parts.Display.Dim(true); err != nil {
		v.worse(Bad, "display: %v", err)
		return
	}
	v.ask(ctx, "display: is the picture darker now?", "display: it does not dim; that is harmless, but it wears out sooner")
	if err := v.parts.Display.Dim(false); err != nil {
		v.worse(Bad, "display: %v", err)
	}
}

func (v *visit) lamp(ctx context.Context) {
	if _, none := v.parts.Lamp.(device.NoLamp); none {
		return
	}
	v.show(screen.DrawNotice("LAMP", "watch, listen"))
	for _, s := range []struct {
		signal device.Signal
		looks  string
	}{{device.Waiting, "flash slowly"}, {device.Holding, "stay lit"}, {device.Alarm, "flash fast"}} {
		if err := v.parts.Lamp.Show(s.signal); err != nil {
			v.worse(Bad, "lamp: %v", err)
			return
		}
		v.ask(ctx, "lamp: does the lamp "+s.looks+", if the kit has one?", "lamp: check its wire and panel.lamp in the configuration")
	}
	if err := v.parts.Lamp.Show(device.Quiet); err != nil {
		v.worse(Bad, "lamp: %v", err)
	}
}
