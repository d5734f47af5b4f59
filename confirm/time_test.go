package confirm_test

import (
	"errors"
	"strings"
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
		b.hands.Wait(179 * time.Second) // the first of them shows NEXT REQUEST
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

// TestReadingIsBounded: long texts get 300 s, and more only where their pages cannot be read in that.
func TestReadingIsBounded(t *testing.T) {
	for name, c := range map[string]struct {
		letters int
		large   bool
		window  time.Duration // 0: what the pages need
	}{
		"long":        {2000, false, 300 * time.Second},
		"large":       {900, true, 300 * time.Second},
		"large, long": {2000, true, 0},
	} {
		t.Run(name, func(t *testing.T) {
			r := request(1)
			r.Card.Text, r.Card.Large = words(c.letters), c.large
			inBox(t, func(b *box) {
				window := c.window
				if window == 0 {
					for _, p := range b.pages(r) {
						window += 2 * onGlass(p)
					}
					window += 1500 * time.Millisecond
				}
				p := b.ask(r)
				b.reach()
				b.hands.Tap(approve)
				b.hands.Wait(window - 150*time.Millisecond)
				p.undecided()
				b.hands.Wait(50 * time.Millisecond)
				p.want(confirm.Expired)
			})
		})
	}
}

// words is a text of n code points.
func words(n int) string { return strings.Repeat("words as they come, ", n/20+1)[:n-1] + "." }

// TestWhatIsAllowedCanBeRead: a text of the longest that a capability may show can be read to the end and approved in its window,
// however large the letters and whoever reads it (W3, W12).
func TestWhatIsAllowedCanBeRead(t *testing.T) {
	for name, c := range map[string]struct {
		large bool
		more  []option
	}{
		"plain":        {false, nil},
		"large":        {true, nil},
		"large, dwell": {true, []option{dwell}},
		"large, slow":  {true, []option{func(cfg *confirm.Config, _ *box) { cfg.Timings = confirm.DefaultTimings().Unhurried() }}},
	} {
		t.Run(name, func(t *testing.T) {
			r := request(1)
			r.Card.Text, r.Card.Large = words(2000), c.large
			inBox(t, func(b *box) {
				p := b.ask(r)
				b.reach()
				b.read(r)
				if name == "large, dwell" {
					b.hands.Tap(approve)
					b.hands.Wait(time.Second)
					b.passChallenge()
					b.hands.Wait(onGlass(b.pages(r)[len(b.pages(r))-1]))
					b.hands.Tap(approve)
					b.hands.Wait(6100 * time.Millisecond)
					b.hands.Tap(approve)
				} else {
					b.hands.Hold(approve, fullHold)
				}
				d := p.want(confirm.Approved)
				if d.ScreenDigest != screen.Digest(b.pages(r)) {
					t.Error("the digest does not cover all of it")
				}
			}, c.more...)
		})
	}
}

// TestWhatNobodyCouldReadIsRefused: a box for each letter, on a page of its own, is beyond every window, or beyond that of somebody
// who needs more time.
func TestWhatNobodyCouldReadIsRefused(t *testing.T) {
	slow := func(cfg *confirm.Config, _ *box) { cfg.Timings = confirm.DefaultTimings().Unhurried() }
	for name, c := range map[string]struct {
		letters int
		refused bool
		more    []option
	}{
		"more pages than are kept":       {600, true, nil},
		"longer than the longest window": {450, true, []option{slow}},
		"the same, for somebody quicker": {450, false, nil},
		"not so long, for somebody slow": {300, false, []option{slow}},
	} {
		t.Run(name, func(t *testing.T) {
			r := request(1)
			r.Card.Text, r.Card.Large = strings.Repeat("\u00a0", c.letters), true
			inBox(t, func(b *box) {
				p := b.ask(r)
				if !c.refused {
					p.undecided()
					return
				}
				var bad *screen.UndisplayableError
				if !p.decided() || !errors.As(p.err, &bad) || bad.Reason != screen.TooLong {
					t.Errorf("got %v", p.err)
				}
				if b.passed(confirm.StateNext) {
					t.Error("something of it reached the panel")
				}
			}, c.more...)
		})
	}
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
					Pages: len(b.pages(request(1))), Left: 174 * time.Second,
				})
				if b.panel.Glass() != want {
					t.Error("the panel does not show 174 s left")
				}
				b.hands.Wait(173 * time.Second)
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
		if d.Shown <= d.Course.Presses[len(d.Course.Presses)-3].Mono {
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
