package confirm_test

import (
	"errors"
	"testing"
	"time"

	"assent.home.arpa/confirm"
	"assent.home.arpa/confirm/screen"
)

// TestStillDownAtSixSecondsApprovesNothing: a hold that is complete is worth nothing until the button came up (W4).
func TestStillDownAtSixSecondsApprovesNothing(t *testing.T) {
	inBox(t, func(b *box) {
		r := request(1)
		p, next := b.ask(r), b.ask(request(2))
		b.reach()
		b.read(r)
		b.hands.Press(approve)
		b.buttons.Stick(approve)
		b.hands.Wait(5950 * time.Millisecond)
		p.undecided()
		b.hands.Wait(100 * time.Millisecond)
		d := p.want(confirm.DisplayLost)
		if _, err := b.desk.Redeem(d.Receipt, binding(r)); !errors.Is(err, confirm.ErrReceiptUnknown) {
			t.Errorf("redeem says %v", err)
		}
		if last := d.Course.Steps[len(d.Course.Steps)-1]; last.Cause != confirm.CauseHeldOn || b.noticed(confirm.HoldRevoked) != 1 {
			t.Errorf("ended by %v", last.Cause)
		}
		if b.panel.Glass() != screen.DrawNotice("NOT APPROVED", "the button was", "held too long") {
			t.Error("the glass does not say why")
		}
		b.hands.Wait(4 * time.Minute)
		next.want(confirm.ExpiredUnseen)
	})
}

// TestWhatComesBeforeTheReleaseCounts: until the button is up, everything that ends a card ends it.
func TestWhatComesBeforeTheReleaseCounts(t *testing.T) {
	for o, do := range map[confirm.Outcome]func(b *box, p *pending){
		confirm.Denied:      func(b *box, _ *pending) { b.hands.Tap(deny) },
		confirm.Withdrawn:   func(_ *box, p *pending) { p.cancel(); p.decided() },
		confirm.Panicked:    func(b *box, _ *pending) { b.desk.SetFrozen(true) },
		confirm.DisplayLost: func(b *box, _ *pending) { b.buttons.Unplug(errors.New("cut")) },
	} {
		t.Run(o.String(), func(t *testing.T) {
			inBox(t, func(b *box) {
				p := b.ask(request(1))
				b.reach()
				b.read(request(1))
				b.hands.Press(approve)
				b.hands.Wait(2 * time.Second)
				do(b, p)
				b.hands.Release(approve)
				p.want(o)
			})
		})
	}
	inBox(t, func(b *box) { // the edge says that the finger was up before the hold was complete
		p := b.ask(request(1))
		b.reach()
		b.read(request(1))
		b.hands.Press(approve)
		b.hands.Wait(1500 * time.Millisecond)
		b.buttons.ReleaseAt(approve, b.clock.Mono()-time.Millisecond)
		b.hands.Wait(time.Second)
		p.undecided()
	})
}

// TestAPressThatLingersIsNoTap: the card is announced again, and then takes the number of taps; its window goes on.
func TestAPressThatLingersIsNoTap(t *testing.T) {
	inBox(t, func(b *box) {
		r := request(1)
		p := b.ask(r)
		b.reach()
		b.hands.Hold(approve, 1100*time.Millisecond)
		if b.shows(b.pages(r)[0]) {
			t.Error("a press of 1.1 s turned to the first page")
		}
		b.read(r)
		b.hands.Tap(approve)
		if b.passed(confirm.StateArmed) || !b.passed(confirm.StateChallenge) {
			t.Error("nothing is asked besides the hold")
		}
		b.hands.Wait(75 * time.Second) // from when it was first opened
		p.want(confirm.Expired)
	})
}

// TestPressesWithoutAReasonAreNoticed: a line that rings where there is nothing to press for is told of, until it is quiet.
func TestPressesWithoutAReasonAreNoticed(t *testing.T) {
	inBox(t, func(b *box) {
		for range 600 {
			b.hands.Hold(approve, 500*time.Millisecond)
			b.hands.Wait(500 * time.Millisecond)
		}
		if n := b.noticed(confirm.ButtonDoubted); n != 1 {
			t.Errorf("noticed %d times", n)
		}
		want := screen.Idle{Note: "too many presses:", Hint: "cards ask for taps", Shift: int(b.clock.Boot() / time.Minute)}
		if b.panel.Glass() != screen.DrawIdle(want) {
			t.Error("the idle screen says nothing")
		}
		r := request(1)
		p := b.ask(r)
		b.reach()
		b.read(r)
		b.hands.Tap(approve)
		if !b.passed(confirm.StateChallenge) {
			t.Error("the next card asks for no taps")
		}
		p.cancel()
		b.hands.Wait(11 * time.Minute)
		b.grant(request(2))
	})
}

// TestPanicIsNotLost: neither a bad approve line nor a lost edge takes panic away.
func TestPanicIsNotLost(t *testing.T) {
	for name, do := range map[string]func(b *box){
		"approve glitches": func(b *box) {
			b.hands.Press(deny)
			for range 15 {
				b.hands.Wait(4 * time.Second)
				b.hands.Hold(approve, 50*time.Millisecond)
			}
		},
		"approve is stuck": func(b *box) {
			b.hands.Press(approve)
			b.hands.Wait(3 * time.Second)
			b.hands.Hold(deny, 6*time.Second)
		},
		"the edge of deny was lost": func(b *box) {
			b.buttons.Lose(deny, 1)
			b.hands.Press(deny)
			b.hands.Wait(8 * time.Second)
		},
	} {
		t.Run(name, func(t *testing.T) {
			inBox(t, func(b *box) {
				do(b)
				if n := b.noticed(confirm.Panic); n != 1 {
					t.Errorf("%d panics", n)
				}
			})
		})
	}
	inBox(t, func(b *box) {
		p := b.ask(request(1))
		b.reach()
		b.buttons.Lose(deny, 1)
		b.hands.Press(deny)
		b.hands.Wait(4 * time.Second)
		p.want(confirm.Denied)
	})
}

// TestLinesThatMoveTogetherThawNothing: lines that go to and fro together make the gesture, and no tap.
func TestLinesThatMoveTogetherThawNothing(t *testing.T) {
	inBox(t, func(b *box) {
		b.desk.SetFrozen(true)
		for range 20 {
			b.hands.HoldBoth(4 * time.Second)
			b.hands.Wait(4 * time.Second)
		}
		if b.noticed(confirm.Unfrozen) > 0 {
			t.Error("unfrozen by nobody")
		}
	})
}

// TestPromptsSayHowTheyEnded: REFUSED is what somebody did.
func TestPromptsSayHowTheyEnded(t *testing.T) {
	for word, do := range map[string]func(b *box, p *prompting){
		"REFUSED":   func(b *box, _ *prompting) { b.hands.Tap(deny) },
		"WITHDRAWN": func(_ *box, p *prompting) { p.cancel() },
		"EXPIRED":   func(b *box, _ *prompting) { b.hands.Wait(58500 * time.Millisecond) },
		"CONFIRMED": func(b *box, _ *prompting) { b.hands.HoldBoth(3100 * time.Millisecond) },
	} {
		inBox(t, func(b *box) {
			b.gesture()
			p := b.admin(confirm.AdminFeed)
			b.hands.Wait(2 * time.Second)
			do(b, p)
			b.hands.Wait(50 * time.Millisecond)
			if b.panel.Glass() != screen.DrawNotice(word) {
				t.Errorf("the glass does not say %s", word)
			}
		})
	}
}
