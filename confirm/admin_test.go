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

// prompting is an AskAdmin under way.
type prompting struct {
	b      *box
	cancel func()
	done   chan struct{}
	out    confirm.AdminDecision
	err    error
}

func (b *box) admin(kind confirm.AdminKind) *prompting {
	return b.prompting(confirm.AdminRequest{Kind: kind, Title: "New feed", Text: "pi.hole"})
}

func (b *box) prompting(r confirm.AdminRequest) *prompting {
	ctx, cancel := context.WithCancel(context.Background())
	p := &prompting{b: b, cancel: cancel, done: make(chan struct{})}
	go func() {
		defer close(p.done)
		p.out, p.err = b.desk.AskAdmin(ctx, r)
	}()
	synctest.Wait()
	return p
}

func (p *prompting) answered() bool {
	synctest.Wait()
	select {
	case <-p.done:
		return true
	default:
		return false
	}
}

func (p *prompting) want(o confirm.AdminOutcome) {
	p.b.Helper()
	if !p.answered() {
		p.b.Fatalf("not answered, want %v", o)
	}
	if p.err != nil || p.out.Outcome != o {
		p.b.Fatalf("answered %v, %v; want %v", p.out.Outcome, p.err, o)
	}
}

// gesture opens pairing mode and the window for administrative prompts.
func (b *box) gesture() { b.hands.HoldBoth(3100 * time.Millisecond) }

func TestAdminNeedsBothButtonsHeld(t *testing.T) {
	for _, tt := range []struct {
		name string
		do   func(b *box)
		want confirm.AdminOutcome
	}{
		{"both held", func(b *box) { b.hands.HoldBoth(3100 * time.Millisecond) }, confirm.AdminConfirmed},
		{"both not long enough", func(b *box) { b.hands.HoldBoth(2900 * time.Millisecond) }, 0},
		{"approve alone", func(b *box) { b.hands.Hold(approve, 4*time.Second) }, 0},
		{"both, and approve let go", func(b *box) {
			b.hands.Press(deny)
			b.hands.Hold(approve, 2*time.Second)
			b.hands.Hold(approve, 2*time.Second)
			b.hands.Release(deny)
		}, 0},
		{"both, and the release of deny was lost", func(b *box) {
			b.hands.Press(approve)
			b.hands.Press(deny)
			b.hands.Wait(time.Second)
			b.buttons.Lose(deny, 1)
			b.hands.Release(deny)
			b.hands.Wait(4 * time.Second)
		}, 0},
		{"deny tapped", func(b *box) { b.hands.Tap(deny) }, confirm.AdminDenied},
		{"deny for 5 s", func(b *box) { b.hands.Hold(deny, 5100*time.Millisecond) }, confirm.AdminPanicked},
		{"nobody", func(b *box) { b.hands.Wait(time.Minute) }, confirm.AdminExpired},
		{"the box sleeps", func(b *box) { b.clock.Suspend(time.Minute) }, confirm.AdminExpired},
		{"the bus dies", func(b *box) { b.panel.Fail(0); b.hands.HoldBoth(3100 * time.Millisecond) }, confirm.AdminDisplayLost},
	} {
		t.Run(tt.name, func(t *testing.T) {
			inBox(t, func(b *box) {
				b.gesture()
				p := b.admin(confirm.AdminFeed)
				b.hands.Wait(2 * time.Second) // it has to be on the glass for a while
				tt.do(b)
				if tt.want == 0 {
					if p.answered() {
						t.Fatalf("answered %v", p.out.Outcome)
					}
					p.cancel()
					p.want(confirm.AdminWithdrawn)
					return
				}
				p.want(tt.want)
			})
		})
	}
}

func TestAdminTooFastDoesNotCount(t *testing.T) {
	inBox(t, func(b *box) {
		// The gesture's own press, held on, must not answer the prompt that follows it.
		b.hands.Press(approve)
		b.hands.Press(deny)
		b.hands.Wait(3100 * time.Millisecond)
		p := b.admin(confirm.AdminReset)
		b.hands.Wait(10 * time.Second)
		b.hands.Release(approve)
		b.hands.Wait(100 * time.Millisecond)
		b.hands.Press(approve) // deny is still down since the gesture
		b.hands.Wait(4 * time.Second)
		if p.answered() {
			t.Errorf("answered %v", p.out.Outcome)
		}
		b.hands.Release(approve)
		b.hands.Release(deny)
		b.hands.Wait(2 * time.Second) // it was covered while deny was down alone, and is read again
		b.hands.HoldBoth(3100 * time.Millisecond)
		b.hands.Wait(time.Second)
		b.hands.Tap(approve)
		p.want(confirm.AdminConfirmed)
	})
}

func TestAdminNeedsAGesture(t *testing.T) {
	inBox(t, func(b *box) {
		b.admin(confirm.AdminFeed).want(confirm.AdminNoGesture)
		b.admin(confirm.AdminPair).want(confirm.AdminNoGesture)
		b.gesture()
		b.hands.Wait(59 * time.Second)
		p := b.admin(confirm.AdminFeed)
		b.hands.Tap(deny)
		p.want(confirm.AdminDenied)
		b.hands.Wait(3 * time.Second)
		b.admin(confirm.AdminFeed).want(confirm.AdminNoGesture)
		pair := b.admin(confirm.AdminPair) // pairing mode is still open
		b.hands.Wait(2 * time.Second)
		b.hands.HoldBoth(3100 * time.Millisecond)
		pair.want(confirm.AdminConfirmed)
		if _, open := b.desk.PairingCode(); open {
			t.Error("pairing mode is open after a phone was paired")
		}
		b.hands.Wait(3 * time.Second)
		b.admin(confirm.AdminPair).want(confirm.AdminNoGesture)
	})
}

func TestAdminNeverReplacesACard(t *testing.T) {
	inBox(t, func(b *box) {
		b.gesture()
		b.hands.Tap(deny) // close pairing mode; the window stays
		b.hands.Wait(time.Second)
		card := b.ask(request(1))
		b.admin(confirm.AdminFeed).want(confirm.AdminBusy)
		b.reach()
		b.admin(confirm.AdminFeed).want(confirm.AdminBusy)
		card.undecided()
		b.hands.Tap(deny)
		b.hands.Wait(3 * time.Second)
		p := b.admin(confirm.AdminFeed)
		b.admin(confirm.AdminTool).want(confirm.AdminBusy)
		queued := b.ask(request(2))
		b.hands.Wait(2 * time.Second)
		pages, err := screen.AdminPages("New feed", "pi.hole", false)
		if err != nil || b.panel.Glass() != screen.DrawAdmin(pages[0], "HOLD BOTH 3 S", 58*time.Second, 0) {
			t.Errorf("the prompt is not on the glass (%v)", err)
		}
		b.hands.HoldBoth(3100 * time.Millisecond)
		p.want(confirm.AdminConfirmed)
		queued.undecided()
		b.hands.Wait(4 * time.Second)
		b.hands.Tap(deny)
		queued.want(confirm.Denied)
	})
}

func TestAdminRefusesWhatCannotBeDrawn(t *testing.T) {
	inBox(t, func(b *box) {
		if _, err := b.desk.AskAdmin(context.Background(), confirm.AdminRequest{}); !errors.Is(err, confirm.ErrRequest) {
			t.Errorf("no kind: %v", err)
		}
		_, err := b.desk.AskAdmin(context.Background(), confirm.AdminRequest{Kind: confirm.AdminRole, Title: "x", Text: "a\u202eb"})
		var bad *screen.UndisplayableError
		if !errors.As(err, &bad) {
			t.Errorf("a bidi override: %v", err)
		}
	})
}

func TestPairingMode(t *testing.T) {
	inBox(t, func(b *box) {
		b.desk.SetAddress("https://10.0.0.2")
		if _, open := b.desk.PairingCode(); open || b.desk.CheckPairingCode("") || b.desk.CheckPairingCode("000000") {
			t.Fatal("open before anybody came")
		}
		b.hands.HoldBoth(2900 * time.Millisecond)
		if _, open := b.desk.PairingCode(); open {
			t.Fatal("opened by a hold that is too short")
		}
		b.gesture()
		code, open := b.desk.PairingCode()
		if !open || len(code) != 6 || b.noticed(confirm.PairingOpened) != 1 {
			t.Fatalf("code %q, open %v", code, open)
		}
		left := 120 * time.Second
		if b.panel.Glass() != screen.DrawPairing(code, "https://10.0.0.2", left, false) {
			t.Error("code and address are not on the glass")
		}
		for range 9 {
			if b.desk.CheckPairingCode("12345") {
				t.Fatal("a wrong code fits")
			}
		}
		if !b.desk.CheckPairingCode(code) {
			t.Error("the code does not fit")
		}
		b.desk.CheckPairingCode("999999x")
		if b.desk.CheckPairingCode(code) {
			t.Error("the tenth wrong code did not close pairing mode")
		}
		if b.noticed(confirm.PairingClosed) != 1 {
			t.Error("nobody was told")
		}
		if b.panel.Glass() != screen.DrawNotice("CLOSED", "too many wrong", "pairing codes") {
			t.Error("the panel does not say why")
		}
		b.hands.Wait(6 * time.Second)
		b.gesture()
		if again, _ := b.desk.PairingCode(); again == code || again == "" {
			t.Errorf("the next code is %q again", again)
		}
		b.hands.Wait(2 * time.Minute)
		if _, open := b.desk.PairingCode(); open || b.noticed(confirm.PairingClosed) != 2 {
			t.Error("open after its time")
		}
	})
}

func TestPanicDropsAndFreezes(t *testing.T) {
	inBox(t, func(b *box) {
		front, queued := b.ask(request(1)), b.ask(request(2))
		b.reach()
		b.hands.Press(deny)
		front.want(confirm.Denied) // the press itself denies
		b.hands.Wait(4900 * time.Millisecond)
		queued.undecided()
		b.hands.Wait(150 * time.Millisecond)
		queued.want(confirm.Panicked)
		if b.noticed(confirm.Panic) != 1 {
			t.Error("nobody was told")
		}
		b.hands.Wait(20 * time.Second) // held on: still one panic
		b.hands.Release(deny)
		if b.noticed(confirm.Panic) != 1 {
			t.Errorf("%d panics", b.noticed(confirm.Panic))
		}
		b.ask(request(3)).want(confirm.Panicked)
		b.desk.SetFrozen(false)
		b.ask(request(4)).want(confirm.Panicked)

		b.gesture() // opens the panel's own prompt, not pairing mode
		if _, open := b.desk.PairingCode(); open {
			t.Error("pairing mode opens on a frozen box")
		}
		b.hands.Wait(2 * time.Second)
		b.ask(request(5)).want(confirm.Panicked)
		b.hands.HoldBoth(3100 * time.Millisecond)
		if b.noticed(confirm.Unfrozen) != 0 {
			t.Error("released without the tap that the glass asks for")
		}
		b.hands.Wait(time.Second)
		b.hands.Tap(approve)
		if b.noticed(confirm.Unfrozen) != 1 {
			t.Fatal("not released at the box")
		}
		b.hands.Wait(3 * time.Second)
		b.grant(request(6))
	})
}

func TestFreezeOutlivesARestart(t *testing.T) {
	inBox(t, func(b *box) {
		p := b.ask(request(1))
		b.desk.SetFrozen(true)
		p.want(confirm.Panicked)
		b.ask(request(2)).want(confirm.Panicked)
		b.hands.Wait(3 * time.Second)
		if b.panel.Glass() != screen.DrawIdle(screen.Idle{Frozen: true, Shift: int(b.clock.Boot() / time.Minute)}) {
			t.Error("the idle screen does not say frozen")
		}
	})
}

func TestPanicIsDenyAlone(t *testing.T) {
	inBox(t, func(b *box) {
		b.hands.HoldBoth(6 * time.Second)
		b.hands.Hold(deny, 4900*time.Millisecond)
		b.hands.Press(deny)
		b.hands.Wait(time.Second)
		b.buttons.Lose(deny, 1)
		b.hands.Release(deny)
		b.hands.Wait(10 * time.Second)
		if b.noticed(confirm.Panic) != 0 {
			t.Error("panic without deny alone for 5 s")
		}
	})
}

func TestOneButtonKit(t *testing.T) {
	inBox(t, func(b *box) {
		b.grant(request(1))
		b.hands.Wait(3 * time.Second)
		for range 4 {
			b.hands.Tap(approve)
		}
		b.hands.Wait(2 * time.Second)
		b.hands.Tap(approve)
		if _, open := b.desk.PairingCode(); open {
			t.Fatal("four taps and a late one are no gesture")
		}
		b.hands.Wait(2 * time.Second)
		for range 5 {
			b.hands.Tap(approve)
		}
		if _, open := b.desk.PairingCode(); !open {
			t.Fatal("five taps do not open pairing mode")
		}
		p := b.admin(confirm.AdminPair)
		b.hands.Hold(approve, 4*time.Second)
		b.hands.Wait(2 * time.Second)
		if p.answered() {
			t.Fatalf("answered %v without the taps that the glass asks for", p.out)
		}
		b.passChallenge()
		b.hands.Wait(2 * time.Second)
		b.hands.Hold(approve, 3100*time.Millisecond)
		p.want(confirm.AdminConfirmed)
	}, oneButton)
}

// passChallenge reads the number of taps from the glass.
func (b *box) passChallenge() {
	b.Helper()
	for n, word := range map[int]string{2: "TAP 2 TIMES", 3: "TAP 3 TIMES", 4: "TAP 4 TIMES"} {
		if b.panel.Glass() == screen.DrawNotice(word, "then wait") {
			for range n {
				b.hands.Tap(approve)
			}
			b.hands.Wait(1100 * time.Millisecond)
			return
		}
	}
	b.Fatal("no number of taps on the glass")
}

// TestDisplayWithoutAcknowledgementArmsByChallenge: only somebody who sees the glass can go on (W11).
func TestDisplayWithoutAcknowledgementArmsByChallenge(t *testing.T) {
	r := request(1)
	inBox(t, func(b *box) {
		p := b.ask(r)
		b.reach()
		b.read(r)
		b.hands.Hold(approve, fullHold) // is asked for taps instead
		p.undecided()
		b.hands.Wait(2 * time.Second)
		b.passChallenge()
		p.undecided()
		b.hands.Wait(3 * time.Second)
		b.hands.Hold(approve, fullHold)
		if d := p.want(confirm.Approved); d.Mode != confirm.ModeChallenge {
			t.Errorf("approved by mode %d", d.Mode)
		}
	}, blind)
	inBox(t, func(b *box) {
		p := b.ask(r)
		b.reach()
		b.read(r)
		b.hands.Tap(approve)
		for range 2 {
			p.undecided()
			for range 9 { // more taps than it can have asked for
				b.hands.Tap(approve)
			}
			b.hands.Wait(1100 * time.Millisecond)
		}
		p.want(confirm.DisplayLost)
	}, blind)
}

func TestDwell(t *testing.T) {
	r := request(1)
	for _, tt := range []struct {
		name string
		do   func(b *box)
		want bool
	}{
		{"tap, countdown, tap", func(b *box) {
			b.hands.Tap(approve)
			b.hands.Wait(6 * time.Second)
			b.hands.Tap(approve)
		}, true},
		{"second tap too early", func(b *box) {
			b.hands.Tap(approve)
			b.hands.Wait(5 * time.Second)
			b.hands.Tap(approve)
			b.hands.Wait(5 * time.Second)
		}, false},
		{"one tap", func(b *box) { b.hands.Tap(approve); b.hands.Wait(20 * time.Second) }, false},
		{"a hold", func(b *box) { b.hands.Hold(approve, 10*time.Second) }, false},
		{"a second tap that does not end", func(b *box) {
			b.hands.Tap(approve)
			b.hands.Wait(6 * time.Second)
			b.hands.Hold(approve, 3*time.Second)
		}, false},
		{"the box sleeps in the countdown", func(b *box) {
			b.hands.Tap(approve)
			b.hands.Wait(3 * time.Second)
			b.clock.Suspend(4 * time.Second)
			b.hands.Tap(approve)
		}, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			inBox(t, func(b *box) {
				p := b.ask(r)
				b.reach()
				b.read(r)
				b.hands.Tap(approve)
				b.hands.Wait(time.Second)
				b.passChallenge()
				b.hands.Wait(2 * time.Second)
				tt.do(b)
				if !tt.want {
					p.undecided()
					return
				}
				d := p.want(confirm.Approved)
				if d.Mode != confirm.ModeDwell {
					t.Errorf("approved by mode %d", d.Mode)
				}
				if _, err := b.desk.Redeem(d.Receipt, binding(r)); err != nil {
					t.Error(err)
				}
			}, dwell)
		})
	}
}

// The press for a copy begins it. A glass that said DONE would have the stick pulled out at once.
func TestExportBeginsWithItsPress(t *testing.T) {
	inBox(t, func(b *box) {
		p := b.offer()
		b.gesture()
		b.hands.Wait(2 * time.Second)
		b.hands.HoldBoth(3100 * time.Millisecond)
		p.want(confirm.AdminConfirmed)
		if b.panel.Glass() != screen.DrawNotice("COPYING") {
			t.Error("the glass does not say that it begins")
		}
	})
}
