package confirm_test

import (
	"testing"
	"time"

	"assent.home.arpa/confirm"
	"assent.home.arpa/confirm/screen"
)

// TestHeldDenySaysWhereItLeads: whatever is on the glass, after a second of deny it says that going on stops everything, and how far
// that is; whoever lets go finds what was there before.
func TestHeldDenySaysWhereItLeads(t *testing.T) {
	for name, to := range map[string]func(b *box){
		"idle":    func(*box) {},
		"pairing": func(b *box) { b.gesture(); b.hands.Wait(time.Second) },
		"prompt":  func(b *box) { b.gesture(); b.admin(confirm.AdminFeed); b.hands.Wait(2 * time.Second) },
		"offer":   func(b *box) { b.offer(); b.gesture(); b.hands.Wait(2 * time.Second) },
		"notice":  func(b *box) { b.say(long) },
		"frozen":  func(b *box) { b.desk.SetFrozen(true); b.hands.Wait(3 * time.Second) },
		"next request": func(b *box) {
			b.ask(request(1))
		},
		"announced": func(b *box) { b.ask(request(1)); b.ask(request(2)); b.reach() },
		"last page": func(b *box) { b.ask(request(1)); b.ask(request(2)); b.reach(); b.read(request(1)) },
		"held": func(b *box) {
			b.ask(request(1))
			b.reach()
			b.read(request(1))
			b.hands.Press(approve)
			b.hands.Wait(2500 * time.Millisecond)
		},
		"an outcome": func(b *box) { p := b.ask(request(1)); b.reach(); p.cancel(); p.decided() },
	} {
		t.Run(name, func(t *testing.T) {
			inBox(t, func(b *box) {
				to(b)
				b.hands.Press(deny)
				b.hands.Wait(900 * time.Millisecond)
				if b.panel.Glass() == screen.DrawStop(0.15) {
					t.Error("a press that may be a tap is taken for more")
				}
				b.hands.Wait(150 * time.Millisecond)
				if b.panel.Glass() != screen.DrawStop(0.2) {
					t.Error("the glass does not say that everything stops")
				}
				b.hands.Wait(3800 * time.Millisecond)
				if b.panel.Glass() != screen.DrawStop(0.95) || b.noticed(confirm.Panic) != 0 {
					t.Error("the bar is not near its end")
				}
				b.hands.Wait(200 * time.Millisecond)
				if b.panel.Glass() != screen.DrawNotice("PANIC", "all requests", "were dropped") || b.noticed(confirm.Panic) != 1 {
					t.Error("no panic where the bar ended")
				}
			})
		})
	}
}

// TestLetGoBeforeAPanic: nothing has happened but what the press itself did, and what was covered is announced and read again.
func TestLetGoBeforeAPanic(t *testing.T) {
	t.Run("idle", func(t *testing.T) {
		inBox(t, func(b *box) {
			before := b.panel.Glass()
			b.hands.Hold(deny, 4900*time.Millisecond)
			b.hands.Wait(100 * time.Millisecond)
			if b.panel.Glass() != before || b.noticed(confirm.Panic) != 0 {
				t.Error("what was on the glass does not come back")
			}
		})
	})
	t.Run("a card is next", func(t *testing.T) {
		inBox(t, func(b *box) {
			p := b.ask(request(1))
			b.hands.Hold(deny, 4*time.Second)
			b.hands.Wait(900 * time.Millisecond)
			if b.panel.Glass() != screen.DrawNext() {
				t.Error("NEXT REQUEST does not have its second after it was covered")
			}
			b.hands.Wait(200 * time.Millisecond)
			p.undecided()
			b.read(request(1))
			b.hands.Hold(approve, fullHold)
			p.want(confirm.Approved)
		})
	})
	t.Run("a prompt", func(t *testing.T) {
		inBox(t, func(b *box) {
			b.offer()
			b.gesture()
			b.hands.Wait(2 * time.Second)
			b.hands.Hold(deny, 4*time.Second) // no tap: it denies nothing
			b.hands.Wait(100 * time.Millisecond)
			if !b.offered() {
				t.Error("the prompt is not on the glass again")
			}
		})
	})
}
