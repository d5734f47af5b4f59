package confirm_test

import (
	"testing"
	"time"

	"assent.home.arpa/confirm"
)

// afresh has a prompt wait for a gesture of its own, as one does that a phone has caused.
func (b *box) afresh() *prompting {
	return b.prompting(confirm.AdminRequest{Kind: confirm.AdminExport, Title: "Copy", Text: "to stick", Offer: true, Afresh: true})
}

// TestOneGestureServesOnce: one that something has used, or that was called off, opens nothing that is offered after it.
func TestOneGestureServesOnce(t *testing.T) {
	for event, do := range map[string]func(b *box){
		"a phone was paired": func(b *box) {
			p := b.admin(confirm.AdminPair)
			b.hands.Wait(2 * time.Second)
			b.hands.HoldBoth(3100 * time.Millisecond)
			p.want(confirm.AdminConfirmed)
		},
		"a phone was refused": func(b *box) {
			p := b.admin(confirm.AdminPair)
			b.hands.Wait(2 * time.Second)
			b.hands.Tap(deny)
			p.want(confirm.AdminDenied)
		},
		"something else was asked": func(b *box) {
			p := b.admin(confirm.AdminFeed)
			b.hands.Wait(2 * time.Second)
			b.hands.Tap(deny)
			p.want(confirm.AdminDenied)
		},
		"pairing was closed by deny": func(b *box) { b.hands.Tap(deny) },
		"too many wrong codes were tried": func(b *box) {
			for range 10 {
				b.desk.CheckPairingCode("")
			}
		},
	} {
		t.Run(event, func(t *testing.T) {
			inBox(t, func(b *box) {
				b.gesture()
				b.hands.Wait(time.Second)
				do(b)
				b.hands.Wait(8 * time.Second)
				p := b.offer()
				b.hands.Wait(20 * time.Second)
				if b.offered() || p.answered() {
					t.Fatal("what is offered comes without a gesture of its own")
				}
				if _, open := b.desk.PairingCode(); open {
					b.hands.Tap(deny)
					b.hands.Wait(time.Second)
				}
				b.gesture()
				if !b.offered() {
					t.Error("its own gesture does not open it")
				}
			})
		})
	}
}

// TestNoEarlierGestureOpensWhatAPhoneCaused: and a pairing mode that somebody at the box has opened stays.
func TestNoEarlierGestureOpensWhatAPhoneCaused(t *testing.T) {
	inBox(t, func(b *box) {
		b.gesture()
		b.hands.Wait(time.Second)
		code, _ := b.desk.PairingCode()
		p := b.afresh()
		b.hands.Wait(time.Second)
		if now, open := b.desk.PairingCode(); !open || now != code || b.offered() {
			t.Fatal("what a phone has caused takes the place of the pairing code")
		}
		pair := b.admin(confirm.AdminPair)
		b.hands.Wait(2 * time.Second)
		b.hands.HoldBoth(3100 * time.Millisecond)
		pair.want(confirm.AdminConfirmed)
		b.hands.Wait(5 * time.Second)
		if b.offered() || p.answered() {
			t.Fatal("it follows the pairing without a gesture of its own")
		}
		b.gesture()
		if !b.offered() {
			t.Fatal("its own gesture does not open it")
		}
		b.hands.Wait(2 * time.Second)
		b.hands.HoldBoth(3100 * time.Millisecond)
		p.want(confirm.AdminConfirmed)
	})
}

// TestGestureUnderWayOpensNothingNew: whoever began it meant what there was then.
func TestGestureUnderWayOpensNothingNew(t *testing.T) {
	for name, offer := range map[string]func(*box) *prompting{"stick": (*box).offer, "phone": (*box).afresh} {
		t.Run(name, func(t *testing.T) {
			inBox(t, func(b *box) {
				b.hands.Press(approve)
				b.hands.Press(deny)
				b.hands.Wait(2900 * time.Millisecond)
				p := offer(b)
				b.hands.Wait(10 * time.Second)
				if b.offered() || p.answered() {
					t.Error("a gesture that was begun before it was offered opens it")
				}
				b.hands.Release(approve)
				b.hands.Release(deny)
				b.noPairing()
				b.gesture()
				if !b.offered() {
					t.Error("the next gesture does not open it")
				}
			})
		})
	}
	t.Run("between the taps of the only button", func(t *testing.T) {
		inBox(t, func(b *box) {
			for n := range 5 {
				if n == 4 {
					b.offer()
				}
				b.hands.Tap(approve)
			}
			if b.passed(confirm.StateAdmin) || b.passed(confirm.StateChallenge) {
				t.Error("taps that were begun before it was offered open it")
			}
			b.noPairing()
		}, oneButton)
	})
}

// TestWhatDestroysTakesATapBesides: lines that only move to and fro together do not confirm it, a person does.
func TestWhatDestroysTakesATapBesides(t *testing.T) {
	for _, kind := range []confirm.AdminKind{confirm.AdminPrune, confirm.AdminReset} {
		inBox(t, func(b *box) {
			b.gesture()
			p := b.admin(kind)
			for range 4 {
				b.hands.Wait(3400 * time.Millisecond)
				b.hands.HoldBoth(3400 * time.Millisecond)
			}
			if p.answered() {
				t.Fatalf("kind %v ends as %v by lines that move together", kind, p.out.Outcome)
			}
			b.hands.Wait(2 * time.Second)
			began := b.clock.Mono()
			b.hands.HoldBoth(3100 * time.Millisecond)
			held := b.clock.Mono()
			b.hands.Wait(time.Second)
			b.hands.Tap(approve)
			p.want(confirm.AdminConfirmed)
			if p.out.Pressed < began || p.out.Completed < p.out.Pressed+3*time.Second || p.out.Completed > held {
				t.Errorf("the decision tells of a hold from %v to %v, it was from %v to %v", p.out.Pressed, p.out.Completed, began, held)
			}
		})
	}
}
