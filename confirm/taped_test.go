package confirm_test

import (
	"testing"
	"testing/synctest"
	"time"

	"assent.home.arpa/confirm"
)

// pass lets a long time pass in which nobody touches anything.
func (b *box) pass(d time.Duration) {
	for range d / (10 * time.Second) {
		b.clock.Advance(10 * time.Second)
		synctest.Wait()
	}
}

// TestButtonTapedDownForADay: whoever tapes it down before a request comes, or while approving one, gets nothing from it, and
// nothing arms until it was let go (W4).
func TestButtonTapedDownForADay(t *testing.T) {
	inBox(t, func(b *box) {
		b.hands.Press(approve)
		for n := range byte(8) {
			p := b.ask(request(n + 1))
			b.pass(3 * time.Hour / confirm.Thin)
			p.want(confirm.ExpiredUnseen)
		}
		if b.passed(confirm.StateReading) || b.passed(confirm.StatePairing) {
			t.Error("a taped button opened something")
		}
		b.hands.Release(approve)
		b.hands.Wait(time.Second)
		b.grant(request(9)) // it works again
	})
	inBox(t, func(b *box) {
		r := request(1)
		p := b.ask(r)
		b.reach()
		b.read(r)
		b.hands.Press(approve)
		b.hands.Wait(10 * time.Second)
		p.want(confirm.DisplayLost)
		next := b.ask(request(2))
		b.pass(24 * time.Hour / confirm.Thin)
		next.want(confirm.ExpiredUnseen)
	})
	inBox(t, func(b *box) { // a taped deny is a no, and then panic, once
		p := b.ask(request(1))
		b.reach()
		b.hands.Press(deny)
		b.pass(24 * time.Hour / confirm.Thin)
		p.want(confirm.Denied)
		if b.noticed(confirm.Panic) != 1 {
			t.Errorf("%d panics", b.noticed(confirm.Panic))
		}
	})
}
