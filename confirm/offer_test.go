package confirm_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"assent.home.arpa/confirm"
	"assent.home.arpa/confirm/screen"
)

// offer has a prompt wait for a gesture.
func (b *box) offer() *prompting {
	return b.prompting(confirm.AdminRequest{Kind: confirm.AdminExport, Title: "Copy", Text: "to stick", Offer: true})
}

// offered reports whether the prompt that offer makes is on the glass.
func (b *box) offered() bool {
	b.Helper()
	pages, err := screen.AdminPages("Copy", "to stick", false)
	if err != nil {
		b.Fatal(err)
	}
	return b.shows(pages[0])
}

// noPairing demands that pairing mode is closed, and that no code is on the glass once nothing else is.
func (b *box) noPairing() {
	b.Helper()
	b.hands.Wait(7 * time.Second)
	if _, open := b.desk.PairingCode(); open || b.passed(confirm.StatePairing) {
		b.Error("pairing mode was opened, and nobody asked for it")
	}
}

// TestGestureOpensWhatIsOffered: it opens the prompt and nothing else, however that ends.
func TestGestureOpensWhatIsOffered(t *testing.T) {
	for _, tt := range []struct {
		event string
		do    func(b *box, p *prompting)
		want  confirm.AdminOutcome
	}{
		{"held", func(b *box, _ *prompting) { b.hands.HoldBoth(3100 * time.Millisecond) }, confirm.AdminConfirmed},
		{"denied", func(b *box, _ *prompting) { b.hands.Tap(deny) }, confirm.AdminDenied},
		{"nobody", func(b *box, _ *prompting) { b.hands.Wait(time.Minute) }, confirm.AdminExpired},
		{"pulled out", func(_ *box, p *prompting) { p.cancel() }, confirm.AdminWithdrawn},
		{"panic", func(b *box, _ *prompting) { b.hands.Hold(deny, 5100*time.Millisecond) }, confirm.AdminPanicked},
		{"frozen", func(b *box, _ *prompting) { b.desk.SetFrozen(true) }, confirm.AdminPanicked},
		{"the bus dies", func(b *box, _ *prompting) { b.panel.Fail(0); b.hands.Wait(3 * time.Second) }, confirm.AdminDisplayLost},
		{"the lines close", func(b *box, _ *prompting) { b.buttons.Unplug(errors.New("cut")) }, confirm.AdminDisplayLost},
	} {
		t.Run(tt.event, func(t *testing.T) {
			inBox(t, func(b *box) {
				p := b.offer()
				b.hands.Wait(time.Hour / confirm.Thin) // it has no deadline
				if p.answered() || b.offered() {
					t.Fatal("it does not wait for a gesture")
				}
				b.gesture()
				if !b.offered() || p.answered() {
					t.Fatal("the gesture does not open it")
				}
				b.hands.Wait(2 * time.Second)
				tt.do(b, p)
				p.want(tt.want)
				if p.out.Pages == nil || p.out.Shown == 0 {
					t.Error("the decision does not tell what was drawn")
				}
				b.panel.Heal()
				b.noPairing()
			})
		})
	}
}

// TestWhatIsOfferedEndsUnseen: whatever ends all that is pending ends it, too, and so does its own end. It can be offered again at once,
// and then waits until it can be shown.
func TestWhatIsOfferedEndsUnseen(t *testing.T) {
	for _, tt := range []struct {
		event string
		do    func(b *box, p *prompting)
		want  confirm.AdminOutcome
		heal  func(b *box)
	}{
		{"pulled out", func(_ *box, p *prompting) { p.cancel() }, confirm.AdminWithdrawn, func(*box) {}},
		{"panic", func(b *box, _ *prompting) { b.hands.Hold(deny, 5100*time.Millisecond) }, confirm.AdminPanicked, (*box).thaw},
		{"frozen", func(b *box, _ *prompting) { b.desk.SetFrozen(true) }, confirm.AdminPanicked, (*box).thaw},
		{"the bus dies", func(b *box, _ *prompting) { b.panel.Fail(0); b.hands.Wait(3 * time.Minute) }, confirm.AdminDisplayLost, func(b *box) {
			b.panel.Heal()
			b.hands.Wait(5 * time.Second)
		}},
	} {
		t.Run(tt.event, func(t *testing.T) {
			inBox(t, func(b *box) {
				p := b.offer()
				tt.do(b, p)
				p.want(tt.want)
				if p.out.Pages != nil {
					t.Error("the decision tells of pictures that nobody saw")
				}
				again := b.offer()
				b.hands.Wait(time.Minute)
				if again.answered() {
					t.Fatalf("it does not wait: %v", again.out.Outcome)
				}
				tt.heal(b)
				b.hands.Wait(3 * time.Second)
				b.gesture()
				b.hands.Wait(2 * time.Second)
				b.hands.HoldBoth(3100 * time.Millisecond)
				again.want(confirm.AdminConfirmed)
				b.noPairing()
			})
		})
	}
	inBox(t, func(b *box) {
		b.buttons.Unplug(errors.New("cut"))
		p := b.offer()
		b.hands.Wait(time.Hour / confirm.Thin)
		if p.answered() {
			t.Errorf("without buttons it is answered: %v", p.out.Outcome)
		}
		p.cancel()
		p.want(confirm.AdminWithdrawn)
	})
}

// thaw releases a freeze; the gesture for it opens nothing that is offered.
func (b *box) thaw() {
	b.Helper()
	b.hands.Wait(7 * time.Second)
	b.gesture()
	if b.offered() {
		b.Fatal("what is offered goes before the release of a freeze")
	}
	b.hands.Wait(2 * time.Second)
	b.hands.HoldBoth(3100 * time.Millisecond)
	b.hands.Wait(time.Second)
	b.hands.Tap(approve)
	if b.noticed(confirm.Unfrozen) == 0 {
		b.Fatal("not released")
	}
	b.hands.Wait(3 * time.Second)
	if b.offered() {
		b.Fatal("what is offered follows the release of a freeze without a gesture of its own")
	}
}

// TestOneGestureOneOffer: whoever offers again and again, as a stick with a bad contact does, asks once a gesture.
func TestOneGestureOneOffer(t *testing.T) {
	t.Run("gesture first", func(t *testing.T) {
		inBox(t, func(b *box) {
			b.gesture()
			b.hands.Wait(20 * time.Second)
			p := b.offer()
			if _, open := b.desk.PairingCode(); open || !b.offered() {
				t.Fatal("the gesture of a moment ago does not open it in place of pairing mode")
			}
			for range 20 {
				p.cancel()
				p.want(confirm.AdminWithdrawn)
				b.hands.Wait(2500 * time.Millisecond)
				p = b.offer()
				b.hands.Wait(time.Second)
				if b.offered() {
					t.Fatal("a gesture opened a second prompt")
				}
			}
		})
	})
	t.Run("gesture later", func(t *testing.T) {
		inBox(t, func(b *box) {
			p := b.offer()
			b.gesture()
			p.cancel()
			b.hands.Wait(2500 * time.Millisecond)
			p = b.offer()
			b.admin(confirm.AdminFeed).want(confirm.AdminNoGesture)
			b.admin(confirm.AdminPair).want(confirm.AdminNoGesture)
			b.hands.Wait(time.Second)
			if b.offered() {
				t.Fatal("a gesture opened a second prompt")
			}
			p.cancel()
			b.hands.Wait(time.Second)
			b.gesture()
			if _, open := b.desk.PairingCode(); !open {
				t.Error("nothing is offered, and pairing mode does not open")
			}
		})
	})
	t.Run("pulled out under the gesture", func(t *testing.T) {
		inBox(t, func(b *box) {
			p := b.offer()
			b.hands.Press(approve)
			b.hands.Press(deny)
			b.hands.Wait(2900 * time.Millisecond)
			p.cancel()
			p.want(confirm.AdminWithdrawn)
			b.hands.Wait(10 * time.Second)
			b.hands.Release(approve)
			b.hands.Release(deny)
			b.noPairing()
			b.gesture()
			if _, open := b.desk.PairingCode(); !open {
				t.Error("the next gesture does not open pairing mode")
			}
		})
	})
	t.Run("pulled out under the gesture of a frozen box", func(t *testing.T) {
		inBox(t, func(b *box) {
			b.desk.SetFrozen(true)
			p := b.offer()
			b.hands.Press(approve)
			b.hands.Press(deny)
			b.hands.Wait(2900 * time.Millisecond)
			p.cancel()
			b.hands.Wait(time.Second)
			if !b.passed(confirm.StateAdmin) {
				t.Error("the release of the freeze is not asked about")
			}
			b.hands.Release(approve)
			b.hands.Release(deny)
		})
	})
	t.Run("pulled out between the taps of the only button", func(t *testing.T) {
		inBox(t, func(b *box) {
			p := b.offer()
			for n := range 5 {
				if n == 4 {
					p.cancel()
					p.answered()
				}
				b.hands.Tap(approve)
			}
			b.noPairing()
		}, oneButton)
	})
	t.Run("gesture too long ago", func(t *testing.T) {
		inBox(t, func(b *box) {
			b.gesture()
			b.hands.Wait(61 * time.Second)
			p := b.offer()
			if code, open := b.desk.PairingCode(); b.offered() || !open || code == "" {
				t.Error("it takes the glass from the pairing code")
			}
			p.cancel()
		})
	})
}

// TestOneOfferAtATime: a second one is busy, while the first waits and while it is on the glass; then the place is free.
func TestOneOfferAtATime(t *testing.T) {
	inBox(t, func(b *box) {
		p := b.offer()
		b.offer().want(confirm.AdminBusy)
		b.gesture()
		b.offer().want(confirm.AdminBusy)
		b.hands.Wait(time.Second)
		b.hands.Tap(deny)
		p.want(confirm.AdminDenied)
		next := b.offer()
		b.hands.Wait(time.Minute)
		if next.answered() {
			t.Errorf("the next one is answered: %v", next.out.Outcome)
		}
	})
}

// TestOfferWaitsForCards: it takes the glass from no card, and the gesture's own press does not answer it.
func TestOfferWaitsForCards(t *testing.T) {
	inBox(t, func(b *box) {
		b.gesture()
		b.hands.Tap(deny) // closes pairing mode
		b.hands.Wait(time.Second)
		card := b.ask(request(1))
		p := b.offer()
		b.reach()
		b.read(request(1))
		b.hands.Hold(approve, fullHold)
		card.want(confirm.Approved)
		b.hands.Wait(3 * time.Second)
		if b.offered() {
			t.Error("it comes by itself, long after its gesture")
		}
		b.hands.HoldBoth(20 * time.Second)
		if !b.offered() || p.answered() {
			t.Fatal("the hold that opened it answered it")
		}
		queued := b.ask(request(2))
		b.hands.Wait(time.Second)
		b.hands.HoldBoth(3100 * time.Millisecond)
		p.want(confirm.AdminConfirmed)
		b.hands.Wait(4 * time.Second)
		queued.undecided()
	})
}

// TestOfferOnOneButton: five taps open it, and then it takes the number of taps and the hold.
func TestOfferOnOneButton(t *testing.T) {
	inBox(t, func(b *box) {
		p := b.offer()
		for range 5 {
			b.hands.Tap(approve)
		}
		b.passChallenge()
		b.hands.Wait(2 * time.Second)
		b.hands.Hold(approve, 3100*time.Millisecond)
		p.want(confirm.AdminConfirmed)
		b.noPairing()
	}, oneButton)
}

// TestWhatIsNotOffered: a phone is paired by its code, and the panel alone asks about a freeze.
func TestWhatIsNotOffered(t *testing.T) {
	inBox(t, func(b *box) {
		for _, r := range []confirm.AdminRequest{
			{Kind: confirm.AdminPair, Title: "x", Text: "y", Offer: true},
			{Kind: confirm.AdminUnfreeze, Title: "x", Text: "y", Offer: true},
			{Kind: confirm.AdminUnfreeze, Title: "x", Text: "y"},
			{Kind: confirm.AdminExport, Title: "x", Text: "y", Afresh: true},
		} {
			if _, err := b.desk.AskAdmin(context.Background(), r); !errors.Is(err, confirm.ErrRequest) {
				t.Errorf("%+v: %v", r, err)
			}
		}
	})
}

// TestOfferEndsWithThePanel: nobody waits for a panel that has ended.
func TestOfferEndsWithThePanel(t *testing.T) {
	inBox(t, func(b *box) {
		p := b.offer()
		stop := b.stop
		err := stop()
		b.stop = func() error { return err }
		synctest.Wait()
		if !p.answered() || !errors.Is(p.err, confirm.ErrClosed) {
			t.Errorf("answered %v, %v", p.out.Outcome, p.err)
		}
	})
}
