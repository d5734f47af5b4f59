package confirm_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"assent.home.arpa/capabilities"
	"assent.home.arpa/confirm"
	"assent.home.arpa/confirm/screen"
)

func TestOnePendingDecisionAPhone(t *testing.T) {
	inBox(t, func(b *box) {
		first := b.ask(request(1))
		again := request(2)
		again.Slot = 1
		b.ask(again).want(confirm.Busy)
		other := b.ask(request(3))
		first.undecided()
		other.undecided()
		first.cancel()
		first.want(confirm.Withdrawn)
		b.ask(again).undecided()
	})
}

// TestQueueIsFairByPerson: a guest with many phones gets every other turn, not all of them (W10).
func TestQueueIsFairByPerson(t *testing.T) {
	inBox(t, func(b *box) {
		var asks []*pending
		var order []byte
		for n := byte(1); n <= 8; n++ {
			r := request(n)
			r.Person = "guest"
			if n > 5 {
				r.Person = string(rune('a' + n)) // 6, 7, 8: one request each, after the guest's five
			}
			asks = append(asks, b.ask(r))
		}
		for range asks {
			b.hands.Wait(4 * time.Second)
			b.hands.Tap(deny)
			for i, p := range asks {
				if p.decided() && !slices.Contains(order, byte(i+1)) {
					p.want(confirm.Denied)
					order = append(order, byte(i+1))
				}
			}
		}
		if want := []byte{1, 6, 7, 8, 2, 3, 4, 5}; !slices.Equal(order, want) {
			t.Errorf("served %v, want %v", order, want)
		}
	})
}

func TestQueueIsBounded(t *testing.T) {
	inBox(t, func(b *box) {
		for n := range byte(64) {
			b.ask(request(n + 1)).undecided()
		}
		b.ask(request(100)).want(confirm.Busy)
	})
}

func TestWithdrawEndsADecision(t *testing.T) {
	inBox(t, func(b *box) {
		front, queued := b.ask(request(1)), b.ask(request(2))
		b.reach()
		b.desk.Withdraw(capabilities.InvocationID{99}) // of nobody
		b.desk.Withdraw(capabilities.InvocationID{2})
		queued.want(confirm.Withdrawn)
		front.undecided()
		b.desk.Withdraw(capabilities.InvocationID{1})
		b.desk.Withdraw(capabilities.InvocationID{1})
		front.want(confirm.Withdrawn)
	})
}

// TestWithdrawAfterTheHoldChangesNothing: it can end a decision and never make, alter or hide one.
func TestWithdrawAfterTheHoldChangesNothing(t *testing.T) {
	inBox(t, func(b *box) {
		r := request(1)
		d := b.grant(r)
		b.desk.Withdraw(r.Inv)
		synctest.Wait()
		if _, err := b.desk.Redeem(d.Receipt, binding(r)); err != nil {
			t.Error(err)
		}
	})
}

func TestAskRefuses(t *testing.T) {
	inBox(t, func(b *box) {
		for name, break_ := range map[string]func(*confirm.Request){
			"no invocation":        func(r *confirm.Request) { r.Inv = capabilities.InvocationID{} },
			"no capability":        func(r *confirm.Request) { r.Capability = "Search the web" },
			"no version":           func(r *confirm.Request) { r.Version = 0 },
			"nobody":               func(r *confirm.Request) { r.Person = "" },
			"a person without end": func(r *confirm.Request) { r.Person = string(make([]byte, 129)) },
			"a revision too long":  func(r *confirm.Request) { r.Revision = string(make([]byte, 65)) },
			"a card without words": func(r *confirm.Request) { r.Card = screen.Card{} },
		} {
			r := request(1)
			break_(&r)
			if p := b.ask(r); !p.decided() || !errors.Is(p.err, confirm.ErrRequest) {
				t.Errorf("%s: %v", name, p.err)
			}
		}
		for name, break_ := range map[string]func(*confirm.Request){
			"a bidi override in the text":  func(r *confirm.Request) { r.Card.Text = "a\u202eb" },
			"more pages than allowed":      func(r *confirm.Request) { r.Card.Text = strings.Repeat("\u00a0", 8000) },
			"a bidi override in the phone": func(r *confirm.Request) { r.Phone = "a\u202eb" },
		} {
			r := request(1)
			break_(&r)
			p := b.ask(r)
			var bad *screen.UndisplayableError
			if !p.decided() || !errors.As(p.err, &bad) {
				t.Errorf("%s: %v", name, p.err)
			}
		}
		if b.passed(confirm.StateNext) {
			t.Error("something of it reached the panel")
		}
		b.ask(request(1)).undecided() // a refusal leaves nothing behind
		if p := b.ask(request(1)); !p.decided() || !errors.Is(p.err, confirm.ErrRequest) {
			t.Errorf("the same invocation twice: %v", p.err)
		}
	})
}

func TestRunOnce(t *testing.T) {
	inBox(t, func(b *box) {
		if err := b.desk.Run(context.Background()); err == nil {
			t.Error("the panel ran twice")
		}
	})
}

func TestNewRefuses(t *testing.T) {
	if _, err := confirm.New(confirm.Config{}); err == nil {
		t.Error("a panel without parts")
	}
	for name, change := range map[string]func(*confirm.Config){
		"no boot id":        func(c *confirm.Config) { c.BootID = [16]byte{} },
		"no key":            func(c *confirm.Config) { c.Key = nil },
		"a hold of no time": func(c *confirm.Config) { c.Timings = confirm.DefaultTimings(); c.Timings.Hold = 0 },
		"a hold longer than its revocation": func(c *confirm.Config) {
			c.Timings = confirm.DefaultTimings()
			c.Timings.Hold = 6 * time.Second
		},
	} {
		synctest.Test(t, func(t *testing.T) {
			cfg := parts()
			if _, err := confirm.New(cfg); err != nil {
				t.Fatal(err)
			}
			change(&cfg)
			if _, err := confirm.New(cfg); err == nil {
				t.Errorf("%s: accepted", name)
			}
		})
	}
}
