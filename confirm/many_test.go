package confirm

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"runtime"
	"sync"
	"testing"
	"time"
)

var (
	sequences = flag.Int("sequences", 10_000/Thin, "how many random sequences of events TestNoSequenceMakesATokenUnearned lives through")
	figures   = flag.String("figures", "", "write figures, one a line (name value unit limit), to this `file`")
)

// A sequence is a box that starts, and between minEvents and maxEvents random happenings at it.
const (
	minEvents = 12
	maxEvents = 40
)

// tally is what sequences led to.
type tally struct {
	sequences, events, steps, tokens, offers, broken, unearned int
	outcomes                                                   [len(outcomeNames)]int
	states                                                     [len(stateNames)]int
	firstSeed                                                  uint64
	first                                                      string
}

func (t *tally) add(o tally) {
	t.sequences, t.events, t.steps, t.tokens = t.sequences+o.sequences, t.events+o.events, t.steps+o.steps, t.tokens+o.tokens
	t.offers, t.broken, t.unearned = t.offers+o.offers, t.broken+o.broken, t.unearned+o.unearned
	for i := range t.outcomes {
		t.outcomes[i] += o.outcomes[i]
	}
	for i := range t.states {
		t.states[i] += o.states[i]
	}
	if t.first == "" {
		t.firstSeed, t.first = o.firstSeed, o.first
	}
}

// brisk are the rules with shorter windows: their whole seconds, each of which is drawn, are the dearest time there is, and tell
// nothing.
func brisk() Timings {
	t := DefaultTimings()
	t.Waiting, t.Reading, t.PerPage, t.MaxReading, t.AdminPrompt, t.Pairing, t.Gesture = 20*time.Second, 25*time.Second, 6*time.Second, 35*time.Second, 10*time.Second, 12*time.Second, 15*time.Second
	return t
}

// kits are the boxes that exist: two buttons or one, a display that acknowledges or not, hold or dwell.
func kits() []func(*deck) *room {
	var all []func(*deck) *room
	for _, k := range []kit{{deny: true, readsBack: true}, {deny: true}, {readsBack: true}, {}} {
		for _, dwell := range []time.Duration{0, DwellCountdown} {
			rules := brisk()
			rules.Dwell = dwell
			all = append(all, func(d *deck) *room { return newRoom(d, rules, k) })
		}
	}
	return all
}

// sequence is one sequence. Half of its happenings are what somebody does who wants the request to be done, or else hardly any
// sequence would come to a token; the rest is anything.
func sequence(d *deck, boxes []func(*deck) *room, seed uint64) (*room, []moment) {
	rng := rand.New(rand.NewPCG(seed, 2))
	box := 0
	if rng.IntN(2) == 0 {
		box = rng.IntN(len(boxes))
	}
	r := boxes[box](d)
	r.dice = seed
	if rng.IntN(2) == 0 {
		r.lag = time.Duration(rng.IntN(40)) * time.Millisecond
	}
	want := minEvents + rng.IntN(maxEvents-minEvents+1)
	told := make([]moment, 0, maxEvents)
	for range 4 * want {
		h, skew := happening(rng.IntN(int(happenings))), time.Duration(0)
		if n := rng.IntN(10); n < 6 {
			h = r.willing(rng)
		} else if n < 8 && h >= ordinary {
			h = happening(rng.IntN(int(ordinary)))
		}
		if (h == linesClose || h == frozenByGuard) && rng.IntN(8) != 0 {
			continue
		}
		if h.timed() {
			skew = time.Duration(rng.IntN(3)-1) * time.Millisecond
		}
		if !r.happen(h, skew) {
			continue
		}
		told = append(told, moment{h, skew})
		if r.j.broke != "" || len(told) == want {
			break
		}
	}
	return r, told
}

// willing is what somebody does next who sees the glass and wants the request to be done.
func (r *room) willing(rng *rand.Rand) happening {
	j := &r.j
	down := j.lines[1].down
	switch j.glass.mark.state {
	case StateAdmin:
		return r.bothForIt()
	case StateIdle:
		switch n := rng.IntN(4); {
		case r.offer != nil && n > 0:
			return r.bothForIt()
		case r.m.kit.deny && n == 0:
			return offer
		}
		if r.dealt == maxTags {
			return toLater
		}
		return dealOne + happening(rng.IntN(3))
	case StateWaiting:
		return pressApprove
	case StateReading:
		f := &j.files[j.glass.mark.tag]
		read := r.until(toRead) == 0
		switch {
		case down && j.glass.mark.bar == 100:
			return pressApprove
		case down && int(j.glass.mark.page) == f.pages && j.glass.mark.bar > 0 && j.rules.Dwell == 0:
			return toHold
		case down && j.glass.mark.bar == 0 && read && int(j.glass.mark.page) == f.pages && r.m.state == StateHolding && j.rules.Dwell == 0:
			return toHold
		case down:
			return pressApprove
		case !read:
			return toRead
		case j.rules.Dwell != 0 && r.until(toHold) > 0 && r.until(toHold) < j.rules.Dwell:
			return toHold
		}
		return pressApprove
	case StateChallenge:
		if j.taps < int(j.glass.mark.want) || down {
			return pressApprove
		}
		return toLater
	case StateResult:
		if down {
			return pressApprove
		}
	}
	return toNext
}

// bothForIt is what somebody does next who holds both buttons for what is on the glass.
func (r *room) bothForIt() happening {
	a, d := r.j.lines[1].down, r.j.lines[2].down
	switch {
	case !r.m.kit.deny:
		return pressApprove
	case !a && !d && r.until(toRead) > 0:
		return toRead
	case a == d && (!a || r.until(toHold) == 0):
		return pressApprove
	case a == d:
		return toHold
	}
	return pressDeny
}

func (t *tally) live(d *deck, from, n int) {
	boxes := kits()
	for i := range n {
		seed := uint64(from + i)
		r, told := sequence(d, boxes, seed)
		t.sequences, t.events, t.steps, t.tokens = t.sequences+1, t.events+len(told), t.steps+r.steps, t.tokens+r.j.tokens
		t.offers += r.j.offers
		for tag := uint8(1); tag <= r.dealt; tag++ {
			t.outcomes[r.j.files[tag].outcome]++
		}
		t.states[r.m.state]++
		if r.j.broke != "" {
			t.broken++
			if r.j.unearned {
				t.unearned++
			}
			if t.first == "" {
				t.firstSeed, t.first = seed, fmt.Sprintf("%s\n%+v, dwell %v, after %v", r.j.broke, r.m.kit, r.m.rules.Dwell, told)
			}
		}
	}
}

// TestNoSequenceMakesATokenUnearned: whatever happens at the box, in whatever order, a token is made only where the judge, who
// knows the glass and the fingers and not the machine, finds that it was earned (D1, A22 to A26, W3, W4, W11).
func TestNoSequenceMakesATokenUnearned(t *testing.T) {
	began := time.Now()
	d := newDeck()
	workers := runtime.GOMAXPROCS(0)
	tallies := make([]tally, workers)
	var wg sync.WaitGroup
	for w := range workers {
		from := *sequences * w / workers
		wg.Go(func() { tallies[w].live(d, from, *sequences*(w+1)/workers-from) })
	}
	wg.Wait()
	var all tally
	for _, one := range tallies {
		all.add(one)
	}
	t.Logf("%d sequences, %d events, %d steps, %d offers opened, %d tokens in %v", all.sequences, all.events, all.steps, all.offers, all.tokens, time.Since(began).Round(time.Millisecond))
	for o, n := range all.outcomes {
		t.Logf("  %-15v %d", Outcome(o), n)
	}
	if all.broken > 0 {
		t.Errorf("%d sequences break a rule; seed %d: %s", all.broken, all.firstSeed, all.first)
	}
	if all.tokens < all.sequences/20 || all.offers < all.sequences/50 {
		t.Errorf("only %d tokens, and %d offers opened, in %d sequences: they prove too little", all.tokens, all.offers, all.sequences)
	}
	if *figures != "" {
		writeFigures(t, fmt.Sprintf("panel/sequences %d count >=10000000\npanel/unpressed_tokens %d count <=0\n", all.sequences, all.unearned))
	}
}

func writeFigures(t *testing.T, lines string) {
	t.Helper()
	f, err := os.OpenFile(*figures, os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.WriteString(lines); err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
}
