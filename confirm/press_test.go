package confirm_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"assent.home.arpa/confirm"
	"assent.home.arpa/confirm/screen"
	"assent.home.arpa/device"
)

func TestACardThatCallsNobody(t *testing.T) {
	inBox(t, func(b *box) {
		r := request(1)
		r.Still = true
		p := b.ask(r)
		b.reach()
		b.read(r)
		if b.lamp.Last() != device.Still {
			t.Errorf("lamp says %v", b.lamp.Last())
		}
		b.hands.Hold(approve, 1600*time.Millisecond)
		p.want(confirm.Approved)
	})
}

func TestReadThenHoldApproves(t *testing.T) {
	inBox(t, func(b *box) {
		r := request(1)
		p := b.ask(r)
		b.reach()
		b.read(r)
		if b.lamp.Last() != device.Waiting {
			t.Errorf("lamp says %v", b.lamp.Last())
		}
		pressed := b.clock.Mono()
		b.hands.Press(approve)
		b.hands.Wait(1450 * time.Millisecond)
		if b.panel.Glass() == screen.DrawReading(b.pages(r)[len(b.pages(r))-1], 0, true, true, 1, "LET GO") {
			t.Error("asked to let go before the hold was complete")
		}
		if b.lamp.Last() != device.Holding {
			t.Errorf("lamp says %v during the hold", b.lamp.Last())
		}
		b.hands.Wait(50 * time.Millisecond)
		if b.panel.Glass() != screen.DrawReading(b.pages(r)[len(b.pages(r))-1], 0, true, true, 1, "LET GO") {
			t.Error("the full bar does not say to let go")
		}
		b.hands.Wait(time.Second)
		p.undecided()
		b.hands.Release(approve)
		d := p.want(confirm.Approved)

		pages := b.pages(r)
		if d.ScreenDigest != screen.Digest(pages) {
			t.Error("the decision names another screen")
		}
		if d.Shown == 0 || d.Shown > d.Pressed || d.Pressed != pressed || d.Completed != pressed+1500*time.Millisecond {
			t.Errorf("shown %v, pressed %v, completed %v; pressed at %v", d.Shown, d.Pressed, d.Completed, pressed)
		}
		if d.Mode != confirm.ModeHold || d.Fronted == 0 || d.Fronted > d.Expires {
			t.Errorf("mode %d, fronted %v", d.Mode, d.Fronted)
		}
		if len(d.Course.Presses) != 2*len(pages)+2 { // a tap to open, one a page turn, and the hold
			t.Errorf("%d edges recorded for %d pages", len(d.Course.Presses), len(pages))
		}
		if _, err := b.desk.Redeem(d.Receipt, binding(r)); err != nil {
			t.Error(err)
		}
	})
}

// TestNoPressNoToken holds what people and faults do instead of reading and holding. None of it approves.
func TestNoPressNoToken(t *testing.T) {
	r := request(1)
	for _, tt := range []struct {
		name    string
		do      func(b *box, p *pending)
		options []option
	}{
		{"nobody comes", func(b *box, p *pending) { b.hands.Wait(time.Minute) }, nil},
		{"a hold on the announcement", func(b *box, p *pending) { b.hands.Hold(approve, 3*time.Second) }, nil},
		{"a hold before the last page", func(b *box, p *pending) {
			b.hands.Tap(approve)
			b.hands.Wait(2 * time.Second)
			b.hands.Hold(approve, 3*time.Second)
			if b.passed(confirm.StateArmed) {
				b.Error("armed before the last page")
			}
		}, nil},
		{"taps through all pages at once", func(b *box, p *pending) {
			for range 10 {
				b.hands.Tap(approve)
			}
			b.hands.Hold(approve, fullHold)
		}, nil},
		{"a hold that begins before the last page had its time", func(b *box, p *pending) {
			b.hands.Tap(approve)
			for i, page := range b.pages(r) {
				if i > 0 {
					b.hands.Tap(approve)
				}
				if i < len(b.pages(r))-1 {
					b.hands.Wait(onGlass(page))
				}
			}
			b.hands.Hold(approve, 5*time.Second)
		}, nil},
		{"a hold that begins 10 ms before the last page had its time", func(b *box, _ *pending) {
			b.hands.Tap(approve)
			pages := b.pages(r)
			for i, page := range pages[:len(pages)-1] {
				b.hands.Wait(onGlass(page))
				b.hands.Press(approve)
				if i < len(pages)-2 {
					b.hands.Wait(50 * time.Millisecond)
				}
				b.hands.Release(approve)
			}
			b.hands.Wait(onGlass(pages[len(pages)-1]) - 10*time.Millisecond)
			b.hands.Hold(approve, 5*time.Second)
		}, nil},
		{"a hold that is 50 ms short", func(b *box, p *pending) {
			b.read(r)
			b.hands.Hold(approve, 1450*time.Millisecond)
		}, nil},
		{"many holds that are too short", func(b *box, p *pending) {
			b.read(r)
			for range 5 {
				b.hands.Hold(approve, time.Second)
			}
		}, nil},
		{"a press 300 ms before the draw", func(b *box, p *pending) {
			b.hands.Tap(approve)
			b.buttons.PressAt(approve, b.clock.Mono()-300*time.Millisecond)
			b.hands.Wait(5 * time.Second)
		}, nil},
		{"held through the draw of the last page", func(b *box, p *pending) {
			b.hands.Tap(approve)
			pages := b.pages(r)
			for i := range pages {
				b.hands.Wait(onGlass(pages[i]))
				if i < len(pages)-2 {
					b.hands.Tap(approve)
				}
			}
			b.hands.Hold(approve, 5*time.Second)
		}, nil},
		{"held since boot", func(b *box, p *pending) { b.hands.Wait(5 * time.Second) }, []option{heldSinceBoot}},
		{"a line that rings", func(b *box, p *pending) {
			b.read(r)
			for range 100 {
				b.buttons.Ring(approve, 10, 4*time.Millisecond)
				b.hands.Wait(50 * time.Millisecond)
			}
		}, nil},
		{"edges lost during the hold", func(b *box, p *pending) {
			b.read(r)
			b.hands.Press(approve)
			b.hands.Wait(700 * time.Millisecond)
			b.buttons.Lose(approve, 1)
			b.hands.Release(approve)
			b.hands.Press(approve)
			b.hands.Wait(800 * time.Millisecond)
			b.hands.Release(approve)
		}, nil},
		{"the release was lost and the level is up", func(b *box, p *pending) {
			b.read(r)
			b.hands.Press(approve)
			b.hands.Wait(time.Second)
			b.buttons.Lose(approve, 1)
			b.hands.Release(approve)
			b.hands.Wait(2 * time.Second)
		}, nil},
		{"the box sleeps during the hold", func(b *box, p *pending) {
			b.read(r)
			b.hands.Press(approve)
			b.hands.Wait(time.Second)
			b.clock.Suspend(5 * time.Second)
			b.hands.Wait(2 * time.Second)
		}, nil},
		{"a hold right after the box slept", func(b *box, p *pending) {
			b.read(r)
			b.clock.Suspend(5 * time.Second)
			b.hands.Hold(approve, fullHold)
		}, nil},
		{"a frozen bar", func(b *box, p *pending) { // the display takes longer than the hold for its last frames
			b.read(r)
			b.hands.Press(approve)
			b.hands.Wait(time.Second)
			b.panel.Slow(time.Second)
			b.hands.Wait(600 * time.Millisecond)
			b.panel.Slow(0)
			b.hands.Release(approve)
		}, nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			inBox(t, func(b *box) {
				p := b.ask(r)
				b.reach()
				tt.do(b, p)
				p.undecided()
				p.cancel()
				p.want(confirm.Withdrawn)
			}, tt.options...)
		})
	}
}

func TestApprovesAfterAStumble(t *testing.T) {
	r := request(1)
	for _, tt := range []struct {
		name    string
		stumble func(b *box)
	}{
		{"a hold too short", func(b *box) { b.hands.Hold(approve, time.Second) }},
		{"a suspend", func(b *box) {
			b.clock.Suspend(5 * time.Second)
			b.hands.Wait(3 * time.Second)
		}},
		{"lost edges", func(b *box) {
			b.buttons.Lose(approve, 2)
			b.hands.Tap(approve)
			b.hands.Tap(approve)
			b.hands.Wait(time.Second)
		}},
		{"reading it again", func(b *box) {
			b.hands.Tap(approve) // on the armed last page: back to the first
			pages := b.pages(r)
			if !b.shows(pages[0]) {
				b.Error("a tap on the last page does not go back to the first")
			}
			for _, p := range pages[:len(pages)-1] {
				b.hands.Wait(onGlass(p))
				b.hands.Tap(approve)
			}
			b.hands.Wait(onGlass(pages[len(pages)-1]))
		}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			inBox(t, func(b *box) {
				p := b.ask(r)
				b.reach()
				b.read(r)
				tt.stumble(b)
				p.undecided()
				b.hands.Hold(approve, fullHold)
				p.want(confirm.Approved)
			})
		})
	}
}

func TestBounceIsOnePressAndSparesTheNextCard(t *testing.T) {
	inBox(t, func(b *box) {
		a, next := b.ask(request(1)), b.ask(request(2))
		b.reach()
		ms := time.Millisecond
		b.clock.Advance(20 * ms)
		b.buttons.Bounce(deny, b.clock.Mono()-12*ms, 0, 3*ms, 7*ms, 12*ms)
		b.hands.Wait(100 * ms)
		a.want(confirm.Denied)
		b.hands.Wait(4 * time.Second)
		next.undecided()
		b.hands.Tap(deny)
		next.want(confirm.Denied)
	})
}

// TestEdgesOfAnotherScreenAreIgnored: a finger that moved before the display acknowledged the announcement meant something else.
func TestEdgesOfAnotherScreenAreIgnored(t *testing.T) {
	for _, button := range []device.Button{approve, deny} {
		for name, press := range map[string]func(b *box){
			"read late": func(b *box) {
				b.panel.Slow(200 * time.Millisecond)
				early := b.clock.Mono() + 1150*time.Millisecond // the announcement comes on the glass 50 ms later
				b.hands.Wait(2 * time.Second)
				b.buttons.PressAt(button, early)
			},
			"read at once": func(b *box) {
				b.panel.Slow(200 * time.Millisecond)
				b.hands.Wait(1100 * time.Millisecond)
				if b.panel.Glass() != screen.DrawNext() {
					b.Error("this test presses at the wrong time")
				}
				b.hands.Press(button)
			},
		} {
			t.Run(button.String()+" "+name, func(t *testing.T) {
				inBox(t, func(b *box) {
					p := b.ask(request(1))
					press(b)
					b.hands.Wait(400 * time.Millisecond)
					b.hands.Release(button)
					p.undecided()
					if !b.passed(confirm.StateWaiting) || b.passed(confirm.StateReading) {
						t.Error("the edge counted")
					}
				})
			})
		}
	}
}

func TestBounceOpensWithoutTurning(t *testing.T) {
	inBox(t, func(b *box) {
		r := request(1)
		p := b.ask(r)
		b.reach()
		ms := time.Millisecond
		b.buttons.Bounce(approve, b.clock.Mono(), 0, 3*ms, 7*ms, 12*ms)
		b.clock.Advance(12 * ms)
		b.hands.Wait(100 * ms)
		if !b.shows(b.pages(r)[0]) {
			t.Error("the first page is not on the glass")
		}
		p.undecided()
	})
}

func TestSecondProposalLeavesTheScreenAlone(t *testing.T) {
	inBox(t, func(b *box) {
		r := request(1)
		first := b.ask(r)
		b.reach()
		b.read(r)
		b.hands.Press(approve)
		b.hands.Wait(time.Second)
		second := b.ask(request(2))
		pages := b.pages(r)
		if !b.shows(pages[len(pages)-1]) {
			t.Error("the screen changed under the finger")
		}
		b.hands.Wait(600 * time.Millisecond)
		b.hands.Release(approve)
		if d := first.want(confirm.Approved); d.ScreenDigest != screen.Digest(pages) {
			t.Error("the press approved another screen")
		}
		second.undecided()
	})
}

func TestNextRequestThrowsEdgesAway(t *testing.T) {
	for _, button := range []device.Button{approve, deny} {
		t.Run(button.String(), func(t *testing.T) {
			inBox(t, func(b *box) {
				a, next := b.ask(request(1)), b.ask(request(2))
				b.reach()
				a.cancel() // card A is withdrawn 50 ms before the finger lands
				a.want(confirm.Withdrawn)
				b.hands.Wait(50 * time.Millisecond)
				b.hands.Tap(button)
				b.hands.Wait(1850 * time.Millisecond)
				if glass := b.panel.Glass(); glass != screen.DrawNext() {
					t.Fatal("no NEXT REQUEST between the cards")
				}
				b.hands.Tap(button)
				b.hands.Wait(time.Second)
				next.undecided()
				if b.passed(confirm.StateReading) {
					t.Error("a tap meant for another card opened this one")
				}
			})
		})
	}
}

func TestDenyDenies(t *testing.T) {
	r := request(1)
	for name, prepare := range map[string]func(b *box){
		"announced":       func(*box) {},
		"reading":         func(b *box) { b.hands.Tap(approve) },
		"armed":           func(b *box) { b.read(r) },
		"during the hold": func(b *box) { b.read(r); b.hands.Press(approve); b.hands.Wait(time.Second) },
	} {
		t.Run(name, func(t *testing.T) {
			inBox(t, func(b *box) {
				p := b.ask(r)
				b.reach()
				prepare(b)
				b.hands.Tap(deny)
				d := p.want(confirm.Denied)
				if d.Pressed == 0 {
					t.Errorf("pressed at %v", d.Pressed)
				}
				if _, err := b.desk.Redeem(d.Receipt, binding(r)); !errors.Is(err, confirm.ErrReceiptUnknown) {
					t.Errorf("a denied decision redeems: %v", err)
				}
			})
		})
	}
}

func TestDisplayFailureEndsTheCard(t *testing.T) {
	r := request(1)
	for name, prepare := range map[string]func(b *box){
		"announced": func(b *box) { b.panel.Fail(0); b.hands.Wait(1100 * time.Millisecond) },
		"turning a page": func(b *box) {
			b.hands.Tap(approve)
			b.hands.Wait(2 * time.Second)
			b.panel.Fail(0)
			b.hands.Tap(approve)
		},
		"during the hold": func(b *box) { b.read(r); b.panel.Fail(3); b.hands.Hold(approve, fullHold) },
		"the last frame": func(b *box) {
			b.read(r)
			b.hands.Press(approve)
			b.hands.Wait(1400 * time.Millisecond)
			b.panel.Fail(0)
			b.hands.Wait(100 * time.Millisecond)
			b.hands.Release(approve)
		},
		"a display that hangs": func(b *box) { b.read(r); b.panel.Hang(); b.hands.Hold(approve, 3*time.Second) },
		"the button lines": func(b *box) {
			b.read(r)
			b.hands.Press(approve)
			b.buttons.Unplug(errors.New("cut"))
			b.hands.Wait(2 * time.Second)
		},
	} {
		t.Run(name, func(t *testing.T) {
			inBox(t, func(b *box) {
				p, queued := b.ask(r), b.ask(request(2))
				b.reach()
				prepare(b)
				p.want(confirm.DisplayLost)
				queued.want(confirm.DisplayLost)
				b.ask(request(3)).want(confirm.DisplayLost)
				if b.lamp.Last() != device.Alarm {
					t.Errorf("lamp says %v", b.lamp.Last())
				}
				b.panel.Heal()
				b.hands.Wait(5 * time.Second)
				if name == "the button lines" {
					if b.noticed(confirm.ButtonsLost) != 1 {
						t.Error("nobody was told")
					}
					b.ask(request(4)).want(confirm.DisplayLost)
					return
				}
				if b.noticed(confirm.PanelLost) != 1 || b.noticed(confirm.PanelBack) != 1 {
					t.Errorf("lost %d times, back %d times", b.noticed(confirm.PanelLost), b.noticed(confirm.PanelBack))
				}
				b.grant(request(5))
			})
		})
	}
}

func TestPanelEndAnswersEveryAsk(t *testing.T) {
	inBox(t, func(b *box) {
		p, queued := b.ask(request(1)), b.ask(request(2))
		b.reach()
		_ = b.stop()
		for _, p := range []*pending{p, queued} {
			if !p.decided() || !errors.Is(p.err, confirm.ErrClosed) {
				t.Errorf("ask ended with %v, %v", p.dec.Outcome, p.err)
			}
		}
		if _, err := b.desk.Ask(context.Background(), request(3)); !errors.Is(err, confirm.ErrClosed) {
			t.Errorf("ask after the end says %v", err)
		}
		b.stop = func() error { return context.Canceled }
	})
}
