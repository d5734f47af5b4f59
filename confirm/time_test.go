package confirm_test

import (
	"testing"
	"testing/synctest"
	"time"

	"assent.home.arpa/appliance/clock"
	"assent.home.arpa/confirm"
	"assent.home.arpa/confirm/screen"
)

func TestUnopenedExpiresUnseen(t *testing.T) {
	inBox(t, func(b *box) {
		p := b.ask(request(1))
		b.hands.Wait(time.Second) // NEXT REQUEST; the window opens now
		b.hands.Wait(179 * time.Second)
		p.undecided()
		b.hands.Wait(time.Second)
		p.want(confirm.ExpiredUnseen)
	})
}

func TestOpenedExpires(t *testing.T) {
	long := request(1)
	for range 8 {
		long.Card.Text += " and then some more words to read on yet another page"
	}
	for _, tt := range []struct {
		name string
		r    confirm.Request
	}{
		{"short", request(1)},
		{"long", long},
	} {
		t.Run(tt.name, func(t *testing.T) {
			inBox(t, func(b *box) {
				n := len(b.pages(tt.r))
				window := min(60*time.Second+time.Duration(max(0, n-2))*6*time.Second, 300*time.Second)
				p := b.ask(tt.r)
				b.reach()
				b.hands.Wait(100 * time.Second) // the waiting window does not count
				b.hands.Press(approve)
				b.hands.Wait(100 * time.Millisecond)
				b.hands.Release(approve)
				b.hands.Wait(window - 150*time.Millisecond)
				p.undecided()
				b.hands.Wait(50 * time.Millisecond)
				if d := p.want(confirm.Expired); d.Expires != b.clock.Boot() {
					t.Errorf("expired at %v, deadline %v", b.clock.Boot(), d.Expires)
				}
			})
		})
	}
}

func TestReadingIsBounded(t *testing.T) {
	r := request(1)
	for len(r.Card.Text) < 4000 {
		r.Card.Text += "as many words as the panel takes, "
	}
	inBox(t, func(b *box) {
		if n := len(b.pages(r)); n < 42 {
			t.Fatalf("only %d pages", n)
		}
		p := b.ask(r)
		b.reach()
		b.hands.Tap(approve)
		b.hands.Wait(299 * time.Second)
		p.undecided()
		b.hands.Wait(time.Second)
		p.want(confirm.Expired)
	})
}

func TestHoldThatSpansTheDeadlineExpires(t *testing.T) {
	inBox(t, func(b *box) {
		r := request(1)
		p := b.ask(r)
		b.reach()
		opened := b.clock.Boot()
		window := 60*time.Second + time.Duration(max(0, len(b.pages(r))-2))*6*time.Second
		b.read(r)
		b.hands.Wait(opened + window - b.clock.Boot() - time.Second)
		p.undecided()
		b.hands.Hold(approve, 2*time.Second)
		p.want(confirm.Expired)
	})
}

// TestQueuedTimeDoesNotRun: the second card gets its whole window however long the first one takes.
func TestQueuedTimeDoesNotRun(t *testing.T) {
	inBox(t, func(b *box) {
		first, second := b.ask(request(1)), b.ask(request(2))
		b.hands.Wait(182 * time.Second)
		first.want(confirm.ExpiredUnseen)
		b.hands.Wait(179 * time.Second)
		second.undecided()
		b.hands.Wait(5 * time.Second)
		second.want(confirm.ExpiredUnseen)
	})
}

// TestWallClockIsIrrelevant: a jumping date neither opens nor closes anything (D7).
func TestWallClockIsIrrelevant(t *testing.T) {
	for name, jump := range map[string]time.Duration{
		"three hours on": 3 * time.Hour, "a day back": -24 * time.Hour, "from 1970 to now": 57 * 365 * 24 * time.Hour,
	} {
		t.Run(name, func(t *testing.T) {
			inBox(t, func(b *box) {
				p := b.ask(request(1))
				b.hands.Wait(time.Second)
				b.hands.Wait(5 * time.Second)
				wall, _ := b.clock.Wall()
				b.clock.SetWall(wall.Add(jump), clock.Synced)
				synctest.Wait()
				p.undecided()
				want := screen.DrawWaiting(screen.Waiting{
					Phone: "KITCHEN", Title: "Search Wikipedia for", Destination: "wikipedia.org",
					Pages: len(b.pages(request(1))), Left: 175 * time.Second,
				})
				if b.panel.Glass() != want {
					t.Error("the panel does not show 175 s left")
				}
				b.hands.Wait(174 * time.Second)
				p.undecided()
				b.hands.Wait(time.Second)
				p.want(confirm.ExpiredUnseen)
			})
		})
	}
}

// TestSuspendCounts: the box sleeps, the deadline does not (D7), and what was on the glass is drawn again.
func TestSuspendCounts(t *testing.T) {
	inBox(t, func(b *box) {
		p := b.ask(request(1))
		b.reach()
		b.clock.Suspend(4 * time.Minute)
		synctest.Wait()
		p.want(confirm.ExpiredUnseen)
	})
	inBox(t, func(b *box) {
		r := request(1)
		p := b.ask(r)
		b.reach()
		b.read(r)
		draws := b.panel.Draws()
		b.clock.Suspend(2 * time.Second)
		synctest.Wait()
		if b.panel.Draws() == draws {
			t.Error("nothing was drawn again after the box slept")
		}
		b.hands.Wait(3 * time.Second)
		b.hands.Hold(approve, fullHold)
		d := p.want(confirm.Approved)
		if d.Shown <= d.Presses[len(d.Presses)-2].Mono {
			t.Error("the receipt names the draw before the suspend")
		}
	})
}

func TestIdleMovesAndDims(t *testing.T) {
	inBox(t, func(b *box) {
		b.desk.SetIdle(screen.Idle{Today: 3, HeadCode: "ABCD2345", Phones: 1, Shift: 77, Frozen: true})
		b.hands.Wait(time.Second)
		shift := int(b.clock.Boot() / time.Minute)
		if b.panel.Glass() != screen.DrawIdle(screen.Idle{Today: 3, HeadCode: "ABCD2345", Phones: 1, Shift: shift}) {
			t.Error("the idle screen is not on the glass")
		}
		if !b.panel.Dimmed() {
			t.Error("the idle screen is not dim")
		}
		b.hands.Wait(time.Minute)
		if b.panel.Glass() != screen.DrawIdle(screen.Idle{Today: 3, HeadCode: "ABCD2345", Phones: 1, Shift: shift + 1}) {
			t.Error("the idle screen does not wander")
		}
		b.ask(request(1))
		b.reach()
		if b.panel.Dimmed() {
			t.Error("a request is dim")
		}
	})
}
