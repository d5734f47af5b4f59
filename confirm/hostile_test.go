package confirm_test

import (
	"errors"
	"testing"
	"time"

	"assent.home.arpa/confirm"
	"assent.home.arpa/confirm/screen"
)

// TestHostileSequences are what somebody does who wants a prompt, a code or a release that nobody gave, or wants panic not to come.
func TestHostileSequences(t *testing.T) {
	both := func(b *box, down bool) {
		for _, line := range []func(){func() { b.hands.Press(approve) }, func() { b.hands.Press(deny) }} {
			if down {
				line()
			}
		}
		if !down {
			b.hands.Release(approve)
			b.hands.Release(deny)
		}
	}
	for name, do := range map[string]func(b *box){
		"a stick that flaps under one long hold": func(b *box) {
			p := b.offer()
			both(b, true)
			for range 30 {
				b.hands.Wait(1100 * time.Millisecond)
				p.cancel()
				p.answered()
				p = b.offer()
			}
			b.hands.Wait(20 * time.Second)
			if p.answered() {
				b.Errorf("one hold answers a prompt that came under it: %v", p.out.Outcome)
			}
			both(b, false)
		},
		"the hold for one stick answers for the next": func(b *box) {
			first := b.offer()
			b.gesture()
			b.hands.Wait(2 * time.Second)
			both(b, true)
			b.hands.Wait(2900 * time.Millisecond)
			first.cancel()
			first.want(confirm.AdminWithdrawn)
			second := b.offer()
			b.hands.Wait(20 * time.Second)
			both(b, false)
			if second.answered() {
				b.Errorf("%v", second.out.Outcome)
			}
		},
		"a notice comes under the hold that answers": func(b *box) {
			p := b.offer()
			b.gesture()
			b.hands.Wait(2 * time.Second)
			both(b, true)
			b.hands.Wait(time.Second)
			b.say(short)
			b.hands.Wait(2100 * time.Millisecond)
			both(b, false)
			p.want(confirm.AdminConfirmed)
			b.hands.Wait(5 * time.Second)
			if b.noticed(confirm.BulletinRead) != 0 {
				b.Error("the hold closed a notice that came under it")
			}
		},
		"a notice comes under the gesture": func(b *box) {
			b.offer()
			both(b, true)
			b.hands.Wait(time.Second)
			b.say(long)
			b.hands.Wait(3 * time.Second)
			both(b, false)
			if !b.offered() || b.noticed(confirm.BulletinRead) != 0 {
				b.Error("the gesture is lost, or closed what nobody saw")
			}
		},
		"notices by the dozen keep the gesture away": func(b *box) {
			b.offer()
			both(b, true)
			for n := range 40 {
				b.say(short[:1+n%12])
			}
			both(b, false)
			if !b.passed(confirm.StateAdmin) {
				b.Error("whatever the box says, somebody at it can always make the gesture")
			}
		},
		"the display comes back under the gesture": func(b *box) {
			p := b.offer()
			both(b, true)
			b.hands.Wait(time.Second)
			b.panel.Fail(0)
			b.clock.Suspend(time.Second)
			b.hands.Wait(3 * time.Second)
			p.want(confirm.AdminDisplayLost)
			b.panel.Heal()
			b.offer()
			b.hands.Wait(20 * time.Second)
			if b.passed(confirm.StateAdmin) {
				b.Error("a hold from before the display was lost opens something")
			}
			both(b, false)
		},
		"panic is kept away by approve that goes to and fro": func(b *box) {
			b.offer()
			b.hands.Press(deny)
			for range 40 {
				b.hands.Wait(150 * time.Millisecond)
				b.hands.Tap(approve)
			}
			b.hands.Release(deny)
			if b.noticed(confirm.Panic) != 1 {
				b.Error("no panic")
			}
		},
		"the bar of a panic hides a prompt that a hold goes on under": func(b *box) {
			p := b.offer()
			b.gesture()
			b.hands.Wait(2 * time.Second)
			b.hands.Press(deny)
			b.hands.Wait(2500 * time.Millisecond)
			if b.panel.Glass() != screen.DrawStop(0.5) {
				b.Error("the bar is not there")
			}
			b.hands.Hold(approve, 4*time.Second)
			b.hands.Release(deny)
			if p.answered() && p.out.Outcome == confirm.AdminConfirmed {
				b.Error("confirmed under another picture")
			}
		},
		"a panic and its release leave no window": func(b *box) {
			p := b.offer()
			b.gesture()
			b.hands.Wait(time.Second)
			b.hands.Hold(deny, 5100*time.Millisecond)
			p.want(confirm.AdminPanicked)
			p = b.offer()
			b.thaw()
			b.admin(confirm.AdminFeed).want(confirm.AdminNoGesture)
			if p.answered() || b.offered() {
				b.Error("what is offered needs no gesture after a release")
			}
		},
		"lines that close for good": func(b *box) {
			p := b.offer()
			both(b, true)
			b.hands.Wait(2900 * time.Millisecond)
			b.buttons.Unplug(errors.New("cut"))
			p.want(confirm.AdminDisplayLost)
			b.offer()
			b.hands.Wait(time.Minute)
			if b.passed(confirm.StateAdmin) {
				b.Error("opened without buttons")
			}
		},
		"a request at every moment of the gesture": func(b *box) {
			for n := range byte(31) {
				p := b.offer()
				both(b, true)
				b.hands.Wait(time.Duration(n) * 100 * time.Millisecond)
				card := b.ask(request(n + 1))
				b.hands.Wait(4 * time.Second)
				both(b, false)
				b.hands.Wait(time.Second)
				if p.answered() && p.out.Outcome == confirm.AdminConfirmed || card.decided() && card.dec.Outcome == confirm.Approved {
					b.Fatalf("after %d ms: %v, %v", int(n)*100, p.out.Outcome, card.dec.Outcome)
				}
				card.cancel()
				p.cancel()
				b.hands.Wait(70 * time.Second)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			inBox(t, func(b *box) {
				do(b)
				b.panel.Heal()
				b.hands.Wait(70 * time.Second)
				if _, open := b.desk.PairingCode(); open || b.passed(confirm.StatePairing) {
					b.Error("pairing mode was opened, and nobody asked for it")
				}
			})
		})
	}
}
