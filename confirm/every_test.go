package confirm

import (
	"flag"
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"
)

var depth = flag.Int("depth", 2, "how many happenings TestEveryInterleaving tries, in every order, from each place where it begins")

// faultsAtOnce bounds how many of them may be faults or interferences.
const faultsAtOnce = 2

// place is where an exploration begins: a box, and what happened at it.
type place struct {
	name  string
	rules Timings
	kit   kit
	path  []moment
}

func on(what ...happening) []moment {
	var all []moment
	for _, h := range what {
		all = append(all, moment{what: h})
	}
	return all
}

// places are one for each state of the panel, on the boxes where it matters. All else is reached from them.
func places() []place {
	both, blind, one := kit{deny: true, readsBack: true}, kit{deny: true}, kit{readsBack: true}
	hold, dwell := brisk(), brisk()
	dwell.Dwell = DwellCountdown
	waiting := on(dealOne, toNext)
	reading := slices.Concat(waiting, on(pressApprove, pressApprove))
	armed := slices.Concat(reading, on(toRead))
	holding := slices.Concat(armed, on(pressApprove))
	held := slices.Concat(holding, on(toHold))
	second := slices.Concat(on(dealTwo, dealOne, toNext, pressApprove, pressApprove, toRead, pressApprove, pressApprove))
	challenged := slices.Concat(armed, on(pressApprove, pressApprove))
	counting := slices.Concat(challenged, on(pressApprove, pressApprove, pressApprove, pressApprove, toLater, toRead, pressApprove, toTap, pressApprove))
	tapped := slices.Concat(challenged, on(pressApprove, pressApprove, pressApprove, pressApprove))
	paired := on(pressApprove, pressDeny, toHold, pressApprove, pressDeny)
	prompted := slices.Concat(paired, on(asked, toRead))
	return []place{
		{"idle", hold, both, nil},
		{"next", hold, both, on(dealOne, dealTwo)},
		{"waiting", hold, both, waiting},
		{"reading", hold, both, reading},
		{"second page, one behind", hold, both, second},
		{"armed", hold, both, armed},
		{"holding", hold, both, holding},
		{"nearly held", hold, both, slices.Concat(holding, []moment{{toHold, -time.Millisecond}})},
		{"holding, let go unseen", hold, both, slices.Concat(holding, on(approveLost, approveLost))},
		{"holding, let go untold", hold, both, slices.Concat(holding, on(approveLate, approveLate))},
		{"held, still down", hold, both, held},
		{"held, let go untold", hold, both, slices.Concat(held, on(approveLate))},
		{"approved", hold, both, slices.Concat(held, on(pressApprove))},
		{"pairing", hold, both, paired},
		{"prompt", hold, both, prompted},
		{"prompt, held", hold, both, slices.Concat(prompted, on(pressApprove, pressDeny))},
		{"offered", hold, both, on(offer)},
		{"offered by a phone", hold, both, on(offerAfresh)},
		{"offered by a phone to whoever pairs", hold, both, slices.Concat(paired, on(offerAfresh))},
		{"offer, nearly opened", hold, both, append(on(offer, pressApprove, pressDeny), moment{toHold, -time.Millisecond})},
		{"offer, opened", hold, both, on(offer, pressApprove, pressDeny, toHold, pressApprove, pressDeny, toRead)},
		{"offer, held", hold, both, on(offer, pressApprove, pressDeny, toHold, pressApprove, pressDeny, toRead, pressApprove, pressDeny)},
		{"offered, frozen", hold, both, on(frozenByGuard, offer)},
		{"offered, one button", hold, one, on(offer)},
		{"on the way to panic", hold, both, on(pressDeny, toLater)},
		{"notice, both down", hold, both, on(newBulletins, toLater, pressApprove, pressDeny)},
		{"deny held", hold, both, on(dealOne, dealTwo, toNext, pressDeny)},
		{"frozen", hold, both, on(frozenByGuard)},
		{"nearly thawed", hold, both, on(frozenByGuard, pressApprove, pressDeny, toHold, pressApprove, pressDeny, toRead, pressApprove, pressDeny, toHold, pressApprove, pressDeny)},
		{"lost", hold, both, slices.Concat(waiting, on(busFails, pressApprove))},
		{"one button, armed", hold, one, armed},
		{"one button, holding", hold, one, holding},
		{"challenge", hold, blind, challenged},
		{"challenge, tapped", hold, blind, tapped},
		{"bulletin", hold, both, on(newBulletins)},
		{"dwell, challenge", dwell, both, challenged},
		{"dwell, counting", dwell, both, counting},
		{"dwell, counted", dwell, both, slices.Concat(counting, on(toHold, pressApprove))},
	}
}

// fork returns a room that goes its own way from here.
func (r *room) fork() *room {
	s := *r
	s.m.out = nil
	s.m.queue.cards, s.m.queue.served = slices.Clone(r.m.queue.cards), slices.Clone(r.m.queue.served)
	if r.m.prompt != nil {
		p := *r.m.prompt
		p.course.Steps, p.course.Presses = slices.Clip(p.course.Steps), slices.Clip(p.course.Presses)
		s.m.prompt = &p
		switch r.m.prompt {
		case r.prompt:
			s.prompt = &p
		case r.offer:
			s.offer = &p
		}
	}
	for tag := uint8(1); tag <= r.dealt; tag++ {
		c := *r.cards[tag]
		c.course.Steps, c.course.Presses = slices.Clip(c.course.Steps), slices.Clip(c.course.Presses)
		s.cards[tag] = &c
		if r.m.front == r.cards[tag] {
			s.m.front = &c
		}
		for i := range s.m.queue.cards {
			if r.m.queue.cards[i] == r.cards[tag] {
				s.m.queue.cards[i] = &c
			}
		}
	}
	return &s
}

// explorer tries happenings in every order, breadth first, and goes on from each room once.
type explorer struct {
	t           *testing.T
	met         map[string]struct{}
	transitions int
	tokens      int
	offers      int
	states      map[State]int
	edges       map[[2]State]int
}

// found is a room, and the way to it.
type found struct {
	room   *room
	faults int
	way    *trail
}

type trail struct {
	moment
	before *trail
}

func (w *trail) String() string {
	if w == nil {
		return ""
	}
	return fmt.Sprintf("%v, %v", w.before, w.moment)
}

// moments are all that may happen next.
func moments() []moment {
	var all []moment
	for h := range happenings {
		all = append(all, moment{what: h})
		if h.timed() {
			all = append(all, moment{h, -time.Millisecond}, moment{h, time.Millisecond})
		}
	}
	return all
}

func (e *explorer) explore(begin *room, depth int) {
	all := moments()
	level := []found{{room: begin}}
	for d := range depth {
		var next []found
		for _, f := range level {
			for _, mo := range all {
				faults := f.faults
				if mo.what >= ordinary && mo.what != arriveAll {
					faults++
				}
				if faults > faultsAtOnce {
					continue
				}
				r := f.room.fork()
				if !r.happen(mo.what, mo.skew) {
					continue
				}
				e.transitions++
				way := &trail{mo, f.way}
				if r.j.broke != "" {
					e.t.Fatalf("%s\nafter%v", r.j.broke, way)
				}
				e.tokens += r.j.tokens - f.room.j.tokens
				e.offers += r.j.offers - f.room.j.offers
				e.edges[[2]State{f.room.m.state, r.m.state}]++
				key := r.key(faults)
				if _, ok := e.met[key]; ok {
					continue
				}
				e.met[key] = struct{}{}
				e.states[r.m.state]++
				if d+1 < depth {
					next = append(next, found{r, faults, way})
				}
			}
		}
		level = next
	}
}

// TestEveryInterleaving tries every order of what fingers, programs, the bus and time can do, from every state of the panel: each
// press and release, seen at once, late or never; each moment that matters, a step before and a step after it.
func TestEveryInterleaving(t *testing.T) {
	began := time.Now()
	d := newDeck()
	e := &explorer{t: t, met: map[string]struct{}{}, states: map[State]int{}, edges: map[[2]State]int{}}
	for _, p := range places() {
		r := newRoom(d, p.rules, p.kit)
		for _, mo := range p.path {
			if !r.happen(mo.what, mo.skew) {
				t.Fatalf("%s: %v cannot happen", p.name, mo.what)
			}
		}
		if r.j.broke != "" {
			t.Fatalf("%s: %s", p.name, r.j.broke)
		}
		clear(e.met) // rooms of different boxes must not be taken for each other
		from, was := e.transitions, e.total()
		e.explore(r, *depth)
		t.Logf("%-24s %-10v %8d states, %9d transitions", p.name, r.m.state, e.total()-was, e.transitions-from)
	}
	t.Logf("depth %d: %d states, %d transitions, %d tokens in %v", *depth, e.total(), e.transitions, e.tokens, time.Since(began).Round(time.Millisecond))
	for _, s := range slices.Sorted(maps.Keys(e.states)) {
		t.Logf("  %-10v %d", s, e.states[s])
	}
	for s := StateIdle; s <= StateBulletin; s++ {
		if e.states[s] == 0 {
			t.Errorf("%v was never reached: the exploration proves too little", s)
		}
	}
	if *figures != "" {
		writeFigures(t, fmt.Sprintf("panel/explored_transitions %d count >=5000000\n", e.transitions))
	}
	if e.tokens == 0 || e.offers == 0 {
		t.Errorf("%d tokens were made, %d offers opened: the exploration proves too little", e.tokens, e.offers)
	}
}

// TestWhatOnceBroke are sequences that an exploration too deep for every day found.
func TestWhatOnceBroke(t *testing.T) {
	both := kit{deny: true, readsBack: true}
	read := on(dealOne, toNext, pressApprove, pressApprove, toRead)
	for name, path := range map[string][]moment{
		"edges of a hold that was broken come after the level told of its end": slices.Concat(read, on(
			pressApprove, approveLate, approveLate, approveLost, toHold, approveLost, arriveAll)),
		"the button is down again when the release of a hold is told": slices.Concat(read, on(
			pressApprove, toHold, approveLate, toNext, approveLost, looked, pressApprove)),
		"a press is let go, and another begins, in the moment in which its hold is complete": slices.Concat(read, on(pressApprove),
			[]moment{{toHold, -time.Millisecond}}, on(busHangs, toHold, approveLate, approveLost, busAnswers, pressApprove)),
		"a hold goes on over a page that was covered": on(
			denyLost, dealOne, toNext, pressApprove, pressApprove, toRead, pressApprove, toHold, toTap, pressApprove, denyLate,
			pressApprove, toHold, pressApprove),
		"a release whose press was lost puts panic off": on(
			pressApprove, pressDeny, toHold, pressApprove, toLater, toLater, toLater, approveLost, pressApprove, toLater, toLater, toLater),
	} {
		t.Run(name, func(t *testing.T) {
			r := newRoom(newDeck(), brisk(), both)
			for _, mo := range path {
				if !r.happen(mo.what, mo.skew) {
					t.Fatalf("%v cannot happen", mo.what)
				}
			}
			if r.j.broke != "" {
				t.Error(r.j.broke)
			}
		})
	}
}

func (e *explorer) total() int {
	n := 0
	for _, k := range e.states {
		n += k
	}
	return n
}
