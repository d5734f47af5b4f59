package checkup_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"assent.home.arpa/appliance/checkup"
	"assent.home.arpa/appliance/clock/clocktest"
	"assent.home.arpa/device"
	"assent.home.arpa/device/devicetest"
)

// person stands at the box: it reads what the program writes, answers, and moves fingers.
type person struct {
	clock   *clocktest.Clock
	panel   *devicetest.Panel
	buttons *devicetest.Buttons
	lamp    device.Lamp

	answer func(question string) string                 // to questions; "" for none
	finger func(p *person, b device.Button, say string) // "tap", "hold" or "let go"

	mu   sync.Mutex
	said bytes.Buffer // guarded by mu
	todo chan string
	in   *io.PipeWriter
}

func newPerson() *person {
	c := clocktest.New()
	return &person{
		clock: c, panel: devicetest.NewPanel(c), buttons: devicetest.NewButtons(c), lamp: &devicetest.Lamp{},
		answer: func(string) string { return "y" }, finger: press(nil), todo: make(chan string, 64),
	}
}

// Write takes what the program says.
func (p *person) Write(b []byte) (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.todo <- string(b)
	return p.said.Write(b)
}

// pass lets time pass on both clocks.
func (p *person) pass(d time.Duration) {
	time.Sleep(d)
	p.clock.Advance(d)
}

// press is a finger whose contact bounces at the given times after it closes or opens.
func press(bounces []time.Duration) func(*person, device.Button, string) {
	move := func(p *person, b device.Button, down bool) {
		for i := range len(bounces) + 1 {
			if (i%2 == 0) == down {
				p.buttons.Press(b)
			} else {
				p.buttons.Release(b)
			}
			if i < len(bounces) {
				p.pass(bounces[i])
			}
		}
	}
	return func(p *person, b device.Button, say string) {
		switch say {
		case "tap":
			for range 5 {
				move(p, b, true)
				p.pass(120 * time.Millisecond)
				move(p, b, false)
				p.pass(150 * time.Millisecond)
			}
		case "hold":
			move(p, b, true)
		case "let go":
			move(p, b, false)
		}
	}
}

// visit runs the program with the person beside it.
func (p *person) visit(t *testing.T) (checkup.Verdict, string) {
	t.Helper()
	in, answers := io.Pipe()
	p.in = answers
	done := make(chan struct{})
	go func() {
		defer close(done)
		for line := range p.todo {
			p.react(line)
		}
	}()
	v := checkup.Run(t.Context(), checkup.Parts{Display: p.panel, Buttons: p.buttons, Lamp: p.lamp, Mono: p.clock.Mono}, in, p)
	answers.Close()
	close(p.todo)
	<-done
	return v, p.said.String()
}

func (p *person) react(line string) {
	if strings.HasSuffix(line, "[y/n] ") || strings.HasPrefix(line, "please answer") {
		if a := p.answer(line); a == "" {
			p.in.Close()
		} else {
			fmt.Fprintln(p.in, a)
		}
		return
	}
	for _, b := range []device.Button{device.Approve, device.Deny} {
		for words, say := range map[string]string{"tap it": "tap", "hold it": "hold", "let go\n": "let go"} {
			if strings.HasPrefix(line, b.String()+": "+words) {
				p.finger(p, b, say)
			}
		}
	}
}

func TestVisit(t *testing.T) {
	const ms = time.Millisecond
	for _, tc := range []struct {
		event string
		set   func(p *person)
		want  checkup.Verdict
		says  []string
	}{
		{"a good panel", func(*person) {}, checkup.Good, []string{
			"approve: 5 presses, the shortest 120ms; 0 of 10 changes bounced, at worst 1 edges in 0s", "deny: held for 3s without a break", "the panel: good",
		}},
		{"contacts that bounce as contacts do", func(p *person) { p.finger = press([]time.Duration{ms, 2 * ms}) }, checkup.Good, []string{
			"10 of 10 changes bounced, at worst 3 edges in 3ms",
		}},
		{"a kit with one button", func(p *person) { p.buttons = devicetest.NewOneButton(p.clock) }, checkup.Good, []string{"deny: this kit has none"}},
		{"a kit without a lamp", func(p *person) { p.lamp = device.NoLamp{} }, checkup.Good, []string{"the panel: good"}},
		{"a picture on its head", func(p *person) {
			p.answer = func(q string) string {
				if strings.Contains(q, "TOP") {
					return "n"
				}
				return "y"
			}
		}, checkup.Bad, []string{"change panel.rotate"}},
		{"an answer that is none, then one", func(p *person) {
			n := 0
			p.answer = func(string) string { n++; return []string{"perhaps", "yes"}[(n-1)%2] }
		}, checkup.Good, []string{"please answer y or n"}},
		{"nobody answers", func(p *person) { p.answer = func(string) string { return "" } }, checkup.Unknown, []string{"no answer", "the panel: could not tell"}},
		{"a display that is not there", func(p *person) { p.panel.Fail(0) }, checkup.Bad, []string{"bus did not acknowledge", "check its four wires"}},
		{"a display that goes away", func(p *person) { p.panel.Fail(5) }, checkup.Bad, []string{"bus did not acknowledge"}},
		{"nobody presses", func(p *person) { p.finger = func(*person, device.Button, string) {} }, checkup.Unknown, []string{"approve: nothing moved in 30s", "panel.deny"}},
		{"buttons that are swapped", func(p *person) {
			p.finger = func(p *person, b device.Button, say string) { press(nil)(p, 3-b, say) }
		}, checkup.Bad, []string{"approve: the line of deny moved instead"}},
		{"a contact that is closed", func(p *person) { p.buttons.HeldSinceBoot(device.Deny) }, checkup.Bad, []string{"deny: it is down already"}},
		{"a wire that opens during the hold", func(p *person) {
			p.finger = func(p *person, b device.Button, say string) {
				press(nil)(p, b, say)
				if say == "hold" {
					p.pass(time.Second)
					p.buttons.Release(b)
					p.buttons.Press(b)
				}
			}
		}, checkup.Bad, []string{"approve: release of approve during the hold"}},
		{"a contact that opens while it is tapped", func(p *person) {
			p.finger = press([]time.Duration{12 * ms, 12 * ms})
		}, checkup.Bad, []string{"a press of 12ms is none of a finger"}},
		{"a line that floats", func(p *person) {
			p.finger = func(p *person, b device.Button, say string) {
				p.buttons.Ring(b, 600, 2*ms)
			}
		}, checkup.Bad, []string{"the line floats"}},
		{"noise on a line", func(p *person) {
			p.finger = func(p *person, b device.Button, say string) {
				p.buttons.Press(b)
				p.buttons.Release(b)
				p.pass(50 * ms)
				press(nil)(p, b, say)
			}
		}, checkup.Bad, []string{"1 times it moved and was back at once"}},
		{"edges that the kernel drops", func(p *person) {
			p.finger = func(p *person, b device.Button, say string) {
				if say == "tap" { // once by itself, then a tap that gets lost
					p.buttons.Press(b)
					p.pass(90 * ms)
					p.buttons.Release(b)
					p.buttons.Lose(b, 2)
					p.pass(20 * ms)
					p.buttons.Press(b)
					p.buttons.Release(b)
				}
				press(nil)(p, b, say)
			}
		}, checkup.Bad, []string{"2 edges were lost"}},
		{"lines that are lost", func(p *person) {
			p.finger = func(p *person, b device.Button, say string) { p.buttons.Unplug(errors.New("the chip is gone")) }
		}, checkup.Bad, []string{"the chip is gone"}},
		{"a machine that is too busy", func(p *person) {
			p.finger = func(p *person, b device.Button, say string) {
				if say != "tap" {
					press(nil)(p, b, say)
					return
				}
				for range 5 {
					p.buttons.PressAt(b, p.clock.Mono()-80*ms)
					p.pass(200 * ms)
					p.buttons.ReleaseAt(b, p.clock.Mono()-80*ms)
					p.pass(200 * ms)
				}
			}
		}, checkup.Bad, []string{"an edge took 80ms to get here"}},
	} {
		t.Run(tc.event, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p := newPerson()
				tc.set(p)
				got, said := p.visit(t)
				if got != tc.want {
					t.Errorf("verdict %v, want %v; it said:\n%s", got, tc.want, said)
				}
				for _, want := range tc.says {
					if !strings.Contains(said, want) {
						t.Errorf("it does not say %q; it said:\n%s", want, said)
					}
				}
			})
		})
	}
}
