package confirm_test

import (
	"testing"
	"testing/synctest"
	"time"

	"assent.home.arpa/confirm"
	"assent.home.arpa/confirm/screen"
)

// TestDenyCountsWhileTheNextPageIsDrawn: whoever presses deny means the card, whichever of its pages is on the glass (A26, W4).
func TestDenyCountsWhileTheNextPageIsDrawn(t *testing.T) {
	inBox(t, func(b *box) {
		r := request(1)
		p := b.ask(r)
		b.reach()
		b.hands.Tap(approve)
		b.hands.Wait(onGlass(b.pages(r)[0]) + 50*time.Millisecond)
		b.panel.Slow(500 * time.Millisecond)
		b.hands.Tap(approve)
		if !b.shows(b.pages(r)[0]) {
			t.Fatal("this test presses at the wrong time")
		}
		b.hands.Press(deny)
		p.want(confirm.Denied)
	})
}

// TestSuspendBeginsNextRequestAgain: the second in which edges are thrown away is one that somebody can see.
func TestSuspendBeginsNextRequestAgain(t *testing.T) {
	inBox(t, func(b *box) {
		p := b.ask(request(1))
		b.hands.Wait(500 * time.Millisecond)
		b.clock.Suspend(10 * time.Second)
		b.hands.Wait(900 * time.Millisecond)
		if b.panel.Glass() != screen.DrawNext() {
			t.Error("NEXT REQUEST is gone as soon as the box wakes")
		}
		b.hands.Tap(deny)
		p.undecided()
		b.hands.Wait(200 * time.Millisecond)
		b.hands.Tap(deny)
		p.want(confirm.Denied)
	})
}

// TestSuspendBeginsTheChallengeAgain: taps before a suspend answered a number that may have gone from the glass.
func TestSuspendBeginsTheChallengeAgain(t *testing.T) {
	inBox(t, func(b *box) {
		r := request(1)
		p := b.ask(r)
		b.reach()
		b.read(r)
		b.hands.Tap(approve)
		b.hands.Wait(100 * time.Millisecond)
		for n, word := range map[int]string{2: "TAP 2 TIMES", 3: "TAP 3 TIMES", 4: "TAP 4 TIMES"} {
			if b.panel.Glass() == screen.DrawNotice(word, "then wait") {
				for range n {
					b.hands.Tap(approve)
				}
				break
			}
		}
		b.clock.Suspend(time.Second)
		b.hands.Wait(5 * time.Second)
		b.hands.Hold(approve, fullHold)
		p.undecided()
		if b.passed(confirm.StateArmed) {
			t.Error("armed by taps from before the suspend")
		}
	}, blind)
}

// TestEveryEndIsJournaled: each end of a card that had the panel is a transition with its name and its reason.
func TestEveryEndIsJournaled(t *testing.T) {
	for o, do := range map[confirm.Outcome]func(b *box, p *pending){
		confirm.Approved:      func(b *box, _ *pending) { b.read(request(1)); b.hands.Hold(approve, fullHold) },
		confirm.Denied:        func(b *box, _ *pending) { b.hands.Tap(deny) },
		confirm.Expired:       func(b *box, _ *pending) { b.hands.Tap(approve); b.hands.Wait(80 * time.Second) },
		confirm.ExpiredUnseen: func(b *box, _ *pending) { b.hands.Wait(180 * time.Second) },
		confirm.Withdrawn:     func(_ *box, p *pending) { p.cancel() },
		confirm.Panicked:      func(b *box, _ *pending) { b.desk.SetFrozen(true) },
		confirm.DisplayLost:   func(b *box, _ *pending) { b.panel.Fail(0); b.hands.Wait(2 * time.Second) },
	} {
		t.Run(o.String(), func(t *testing.T) {
			inBox(t, func(b *box) {
				r := request(1)
				p := b.ask(r)
				b.reach()
				do(b, p)
				p.want(o)
				var states []confirm.State
				ends := 0
				state := confirm.StateIdle
				for _, tr := range b.transitions() {
					if tr.From != state {
						t.Errorf("the journal jumps from %v to %v", state, tr.From)
					}
					state = tr.To
					states = append(states, state)
					if tr.To == confirm.StateResult {
						ends++
						if tr.Inv != r.Inv || tr.Cause.String() != o.String() || tr.Boot == 0 || tr.Mono == 0 {
							t.Errorf("the end is journaled as %+v", tr)
						}
					}
				}
				if ends != 1 {
					t.Errorf("%d ends in %v", ends, states)
				}
			})
		})
	}
}

func (b *box) transitions() []confirm.Transition {
	synctest.Wait()
	b.mu.Lock()
	defer b.mu.Unlock()
	return append([]confirm.Transition(nil), b.journal...)
}

// TestOneChallengeEndsTheDoubt: whoever was only impatient gives the number of taps once, and not for ten minutes.
func TestOneChallengeEndsTheDoubt(t *testing.T) {
	inBox(t, func(b *box) {
		for range 3 {
			b.hands.Tap(approve)
			b.hands.Wait(2 * time.Second)
		}
		r := request(1)
		p := b.ask(r)
		b.reach()
		b.read(r)
		b.hands.Tap(approve)
		b.hands.Wait(100 * time.Millisecond)
		for n, word := range map[int]string{2: "TAP 2 TIMES", 3: "TAP 3 TIMES", 4: "TAP 4 TIMES"} {
			if b.panel.Glass() == screen.DrawNotice(word, "wait, then hold", "too many presses") {
				for range n {
					b.hands.Tap(approve)
				}
				break
			}
		}
		if !b.passed(confirm.StateChallenge) {
			t.Fatal("three presses without a reason ask for no taps; this test is in vain")
		}
		b.hands.Wait(2500 * time.Millisecond) // the series ends, and the page is read again
		b.hands.Hold(approve, fullHold)
		p.want(confirm.Approved)
		b.hands.Wait(3 * time.Second)
		if want := (screen.Idle{Shift: int(b.clock.Boot() / time.Minute)}); b.panel.Glass() != screen.DrawIdle(want) {
			t.Error("the idle screen still speaks of too many presses")
		}
		b.hands.Tap(approve) // what was before the challenge does not count any more: this is the first without a reason
		b.hands.Wait(2 * time.Second)
		b.grant(request(2))
	})
}
