package confirm_test

import (
	"math/rand/v2"
	"testing"
	"time"

	"assent.home.arpa/confirm"
	"assent.home.arpa/confirm/screen"
)

// contact closes and opens a line that nobody touches, until the card ends or 200 times.
func (b *box) contact(p *pending, closed, open func() time.Duration) {
	for range 200 {
		b.hands.Press(approve)
		b.hands.Wait(closed())
		b.hands.Release(approve)
		b.hands.Wait(open())
		if p.decided() {
			return
		}
	}
}

func always(d time.Duration) func() time.Duration { return func() time.Duration { return d } }

// TestALooseContactApprovesNothing: a line that closes and opens by itself opens cards and turns pages; it must not come to their
// end (W4). Seeds are fixed: what is random in it is always the same.
func TestALooseContactApprovesNothing(t *testing.T) {
	short := request(1)
	short.Card = screen.Card{Title: "Blink", Phone: "KITCHEN"} // one page: the least there is to get through
	two := request(1)
	two.Card = screen.Card{Title: "Note", Text: "buy bread", Phone: "KITCHEN"}
	uniform := func(r *rand.Rand, least, most int) func() time.Duration {
		return func() time.Duration { return time.Duration(least+r.IntN(most-least)) * time.Millisecond }
	}
	mixed := func(r *rand.Rand) func() time.Duration { // half of it quick, half of it slow
		return func() time.Duration { return time.Duration(50+r.IntN(300+3700*r.IntN(2))) * time.Millisecond }
	}
	for _, tt := range []struct {
		name         string
		request      confirm.Request
		closed, open func(r *rand.Rand) func() time.Duration
		options      []option
		most         int // of 60 may be approved
	}{
		{"0.05 to 4 s", request(1), func(r *rand.Rand) func() time.Duration { return uniform(r, 50, 4050) }, func(r *rand.Rand) func() time.Duration { return uniform(r, 50, 4050) }, nil, 1},
		{"0.05 to 4 s, one page", short, func(r *rand.Rand) func() time.Duration { return uniform(r, 50, 4050) }, func(r *rand.Rand) func() time.Duration { return uniform(r, 50, 4050) }, nil, 11},
		{"0.05 to 4 s, two pages", two, func(r *rand.Rand) func() time.Duration { return uniform(r, 50, 4050) }, func(r *rand.Rand) func() time.Duration { return uniform(r, 50, 4050) }, nil, 3},
		{"quick and slow, two pages", two, mixed, mixed, nil, 3},
		{"quick and slow", request(1), mixed, mixed, nil, 1},
		{"quick and slow, one page", short, mixed, mixed, nil, 31},
		{"quick and slow, on a display that is not read back", request(1), mixed, mixed, []option{blind}, 1},
		{"shorter than a hold", request(1), func(r *rand.Rand) func() time.Duration { return uniform(r, 10, 1410) }, func(r *rand.Rand) func() time.Duration { return uniform(r, 50, 2050) }, nil, 0},
		{"50 ms, in the dwell", request(1), func(*rand.Rand) func() time.Duration { return always(50 * time.Millisecond) }, func(r *rand.Rand) func() time.Duration { return uniform(r, 500, 12500) }, []option{dwell}, 2},
		{"50 ms, in the dwell, one page", short, func(*rand.Rand) func() time.Duration { return always(50 * time.Millisecond) }, func(r *rand.Rand) func() time.Duration { return uniform(r, 500, 12500) }, []option{dwell}, 1},
	} {
		t.Run(tt.name, func(t *testing.T) {
			approved := 0
			ended := map[confirm.Outcome]int{}
			for seed := range uint64(60 / confirm.Thin) {
				inBox(t, func(b *box) {
					r := rand.New(rand.NewPCG(seed, 1))
					p := b.ask(tt.request)
					b.contact(p, tt.closed(r), tt.open(r))
					if p.decided() {
						ended[p.dec.Outcome]++
						if p.dec.Outcome == confirm.Approved {
							approved++
						}
					}
				}, tt.options...)
			}
			t.Logf("%v", ended)
			if approved > tt.most {
				t.Errorf("%d of %d cards are approved by nobody", approved, 60/confirm.Thin)
			}
		})
	}
	for _, half := range []time.Duration{1600 * time.Millisecond, 2 * time.Second, 3 * time.Second, 5 * time.Second} {
		for _, r := range []confirm.Request{request(1), short} {
			inBox(t, func(b *box) {
				p := b.ask(r)
				b.contact(p, always(half), always(half))
				if p.decided() && p.dec.Outcome == confirm.Approved {
					t.Errorf("approved by a line that is down and up for %v each", half)
				}
			})
		}
	}
}
