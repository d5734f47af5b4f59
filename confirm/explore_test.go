package confirm

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"assent.home.arpa/capabilities"
	"assent.home.arpa/confirm/screen"
	"assent.home.arpa/device"
)

// The machine is walked at random, many times, over real pictures, and an observer who knows only the glass, the edges that arrived
// and the clocks checks every approval. The observer shares no rule with the machine but the numbers. The room (room_test.go) goes
// further, with marks for pictures.

const (
	walks        = 180 / Thin
	eventsAWalk  = 900
	minApprovals = 40 / Thin // a walk that never approves would prove nothing
)

// world is the box around the machine.
type world struct {
	t   *testing.T
	rng *rand.Rand
	m   *machine
	now instant
	max int // events

	contact [3]bool
	seq     [3]uint32
	queue   []device.Event // edges not yet delivered

	flight  *device.Frame
	due     time.Duration // mono
	fails   bool
	cards   map[*card]*watched
	order   []*card
	count   int
	pending int
	approve int
	o       observer
}

// watched is what the observer knows of one card.
type watched struct {
	first   time.Duration   // boot: its first page was sent to the display
	longest []time.Duration // mono: how long each page stayed on the glass in one piece
	lastAck time.Duration   // mono: the last page came on the glass
	ended   bool
	pages   [][]byte
}

// observer knows the glass and the finger from outside.
type observer struct {
	sure   bool
	card   *card
	page   int
	since  time.Duration // mono
	glass  []byte
	edges  [2]device.Event // last edges of approve that arrived, the newest first
	sound  [2]bool         // they fit the ones before
	agreed time.Duration   // mono: approve was last read as down
	upSeen time.Duration   // mono: a release arrived, or a level was up, before the last press
	up     time.Duration   // mono: likewise, by now
	slept  time.Duration   // mono: last suspend
	frozen bool
	gone   bool
}

func picture(f *device.Frame) []byte { return f[:device.Width*(device.Height/8-1)] }

func TestExploredPressesAreEarned(t *testing.T) {
	approvals, events := 0, 0
	seed := uint64(20261130)
	for i := range walks {
		w := newWorld(t, seed+uint64(i))
		w.walk()
		if t.Failed() {
			t.Fatalf("seed %d, event %d", seed+uint64(i), w.count)
		}
		approvals += w.approve
		events += w.count
	}
	t.Logf("%d events, %d approvals", events, approvals)
	if events < 200_000/Thin || approvals < minApprovals {
		t.Errorf("only %d events and %d approvals: the walk proves too little", events, approvals)
	}
}

func newWorld(t *testing.T, seed uint64) *world {
	rng := rand.New(rand.NewPCG(seed, 1))
	rules := DefaultTimings()
	rules.Doubt, rules.Trust = 10*time.Second, 10*time.Second // or it would do nothing but tap
	rules.Waiting = 20 * time.Second                          // nothing can arm then, and it is the dearest time to draw
	return &world{
		t: t, rng: rng, m: newMachine(rules, kit{deny: true, readsBack: true}, false), max: eventsAWalk,
		now: instant{boot: time.Hour, mono: time.Hour}, cards: map[*card]*watched{},
	}
}

func (w *world) chance(percent int) bool { return w.rng.IntN(100) < percent }

// walk lives through a random while, and then long enough for everything to end.
func (w *world) walk() {
	for w.count < w.max && !w.t.Failed() {
		switch n := w.rng.IntN(100); {
		case n < 18:
			w.submit()
		case n < 22:
			if len(w.order) > 0 {
				w.step(withdraw{w.order[max(0, len(w.order)-1-w.rng.IntN(4))].req.Inv})
			}
		case n < 50:
			w.read()
		case n < 62:
			w.hold(device.Approve, time.Duration(1200+w.rng.IntN(700))*time.Millisecond)
		case n < 74:
			w.hold(device.Approve, time.Duration(w.rng.IntN(300))*time.Millisecond)
		case n < 77:
			w.hold(device.Deny, time.Duration(w.rng.IntN(300))*time.Millisecond)
		case n < 78:
			w.hold(device.Approve, time.Duration(w.rng.IntN(9000))*time.Millisecond)
		case n < 80:
			w.suspend()
		case n < 82:
			w.move(device.Approve, !w.contact[device.Approve])
		case n < 83:
			w.loseEdges()
		case n == 83 && w.chance(20):
			w.o.frozen = true
			w.step(freeze{})
		case n == 84 && w.chance(10):
			w.o.gone = true
			w.step(buttonsLost{})
		case n == 85:
			w.move(device.Deny, true)
			w.move(device.Approve, true)
			w.advance(3200 * time.Millisecond)
			w.move(device.Approve, false)
			w.move(device.Deny, false)
		case n == 86:
			w.step(ask{w.prompt()})
		default:
			w.advance(time.Duration(w.rng.IntN(2500)) * time.Millisecond)
		}
	}
	for range 50 {
		if w.pending > 0 {
			w.advance(30 * time.Second)
		}
	}
	for c, watched := range w.cards {
		if !watched.ended {
			w.t.Errorf("card %v was never decided", c.req.Inv)
		}
	}
}

func (w *world) submit() {
	if w.pending >= 6 {
		return
	}
	w.pending++
	n := byte(w.rng.IntN(200))
	text := fmt.Sprintf("card %d", w.count)
	for range w.rng.IntN(3) {
		text += " with more words that take another page of the panel"
	}
	r := Request{
		Inv: capabilities.InvocationID{n, byte(w.count), byte(w.count >> 8)}, Person: string(rune('a' + n%3)), Phone: "KITCHEN",
		Card: screen.Card{Title: "Search for", Text: text},
	}
	pages, err := screen.Pages(r.Card)
	if err != nil {
		w.t.Fatal(err)
	}
	c := &card{req: r, pages: pages, digest: screen.Digest(pages)}
	seen := &watched{longest: make([]time.Duration, len(pages))}
	for i := range pages {
		seen.pages = append(seen.pages, picture(&pages[i].Frame))
	}
	w.cards[c], w.order = seen, append(w.order, c)
	w.step(submit{c})
}

func (w *world) prompt() *prompt {
	p, err := newPrompt(AdminRequest{Kind: AdminFeed, Title: "Feed", Text: "x"}, false, nil)
	if err != nil {
		w.t.Fatal(err)
	}
	return p
}

// read is what a willing person does: open the card, give each page its time, and sometimes hold.
func (w *world) read() {
	w.advance(3100 * time.Millisecond)
	for range 1 + w.rng.IntN(6) {
		w.hold(device.Approve, 100*time.Millisecond)
		w.advance(time.Duration(400+w.rng.IntN(2200)) * time.Millisecond)
	}
	if w.chance(60) {
		w.hold(device.Approve, time.Duration(1450+w.rng.IntN(400))*time.Millisecond)
	}
}

func (w *world) hold(b device.Button, d time.Duration) {
	w.move(b, true)
	w.advance(d)
	w.move(b, false)
}

func (w *world) move(b device.Button, down bool) {
	if w.contact[b] == down {
		return
	}
	w.contact[b] = down
	w.seq[b]++
	ev := device.Event{Mono: w.now.mono, Edge: device.Release, Seq: w.seq[b], Button: b}
	if down {
		ev.Edge = device.Press
	}
	if w.chance(1) {
		return // lost
	}
	w.queue = append(w.queue, ev)
	if !w.chance(5) { // else it is read later
		w.deliver()
	}
}

func (w *world) loseEdges() {
	w.seq[device.Approve] += 2
}

func (w *world) deliver() {
	for _, ev := range w.queue {
		if ev.Button == device.Approve {
			o := &w.o
			o.sound = [2]bool{ev.Seq == o.edges[0].Seq+1 && ev.Edge != o.edges[0].Edge, o.sound[0]}
			o.edges = [2]device.Event{ev, o.edges[0]}
			if ev.Edge == device.Press {
				o.upSeen = o.up
			} else if o.sound[0] {
				o.up = ev.Mono
			}
		}
		w.step(edge{ev})
	}
	w.queue = w.queue[:0]
}

func (w *world) suspend() {
	w.now.boot += time.Duration(50+w.rng.IntN(20_000)) * time.Millisecond
	w.o.slept = w.now.mono
	w.step(tick{})
}

// advance lets d pass, stopping wherever the machine or the display has something to do.
func (w *world) advance(d time.Duration) {
	end := w.now.mono + d
	for w.now.mono < end && !w.t.Failed() {
		next := end
		if at := w.m.wake(); at != 0 {
			next = min(next, max(w.now.mono, at-(w.now.boot-w.now.mono)))
		}
		if w.flight != nil {
			next = min(next, max(w.now.mono, w.due))
		}
		passed := next - w.now.mono
		w.now.mono, w.now.boot = next, w.now.boot+passed
		w.deliver()
		if w.flight != nil && w.now.mono >= w.due {
			w.acknowledge()
		}
		w.step(tick{})
		if at := w.m.wake(); at != 0 && at <= w.now.boot {
			w.t.Errorf("%v: a tick at %v leaves the wake-up at %v", w.m.state, w.now.boot, at)
		}
	}
}

func (w *world) acknowledge() {
	frame := w.flight
	w.flight = nil
	if w.fails {
		w.o.leave(w)
		w.o.sure = false
		w.step(drawn{at: w.now.mono, err: errors.New("no acknowledgement")})
		return
	}
	w.o.see(w, frame)
	w.step(drawn{at: w.now.mono})
}

func (w *world) step(ev event) {
	w.count++
	for _, a := range w.m.step(w.now, w.rng.Uint64(), ev) {
		switch a := a.(type) {
		case draw:
			if w.flight != nil {
				w.t.Error("two draws at once")
			}
			w.flight, w.fails = &a.frame, w.rng.IntN(2000) == 0
			w.due = w.now.mono + time.Duration(w.rng.IntN(40))*time.Millisecond
			if w.rng.IntN(1000) == 0 {
				w.due += 3 * time.Second // longer than the machine waits
			}
			w.o.sent(w, &a.frame)
		case probe:
			w.deliver()
			up := !w.contact[device.Approve]
			if up {
				w.o.up = w.now.mono
			} else {
				w.o.agreed = w.now.mono
			}
			w.step(level{approve: !up, deny: w.contact[device.Deny]})
		case decide:
			w.end(a.card, a.decision)
		case approve:
			w.end(a.card, a.decision)
			w.earned(a.card, a.decision)
		case notify:
			switch a.notice.Kind {
			case Panic:
				w.o.frozen = true
			case Unfrozen:
				w.o.frozen = false
			}
		}
	}
}

func (w *world) end(c *card, d Decision) {
	if w.cards[c].ended {
		w.t.Errorf("card %v was decided twice, now %v", c.req.Inv, d.Outcome)
	}
	w.cards[c].ended = true
	w.pending--
}

// earned is the whole point: what must be true of the world when a press approves.
func (w *world) earned(c *card, d Decision) {
	w.approve++
	seen, o, rules := w.cards[c], &w.o, DefaultTimings()
	last := len(c.pages) - 1
	check := func(ok bool, what string) {
		if !ok {
			w.t.Errorf("approved, although %s", what)
		}
	}
	check(!o.frozen, "the box is frozen")
	check(!o.gone, "the button lines are closed")
	check(o.sure && bytes.Equal(o.glass, seen.pages[last]), "the glass does not show its last page")
	for i, p := range c.pages {
		longest := seen.longest[i]
		if o.card == c && o.page == i {
			longest = max(longest, w.now.mono-o.since)
		}
		check(longest >= rules.onGlass(p.CodePoints), fmt.Sprintf("page %d was shown for %v", i+1, longest))
	}
	release, press := o.edges[0], o.edges[1]
	check(release.Edge == device.Release && o.sound[0] && press.Edge == device.Press && o.sound[1], "the last edges are no press that was let go")
	check(o.agreed >= d.Completed && o.agreed <= release.Mono, "the button was up")
	check(d.Completed-press.Mono >= rules.Hold && release.Mono >= d.Completed, "the hold is too short")
	check(release.Mono-press.Mono < rules.Revoke, "the button looks stuck")
	check(press.Mono >= seen.lastAck+rules.onGlass(c.pages[last].CodePoints), "the hold began before the last page had its time")
	check(o.upSeen >= seen.lastAck, "the line was not seen up after the last page came on the glass")
	check(press.Mono >= o.slept && seen.lastAck >= o.slept, "the box slept in between")
	check(w.now.boot-(w.now.mono-d.Completed) < seen.first+rules.reading(len(c.pages)), "the deadline has passed")
	check(d.Pressed == press.Mono && d.Completed <= w.now.mono, "the decision tells of another press")
	// A draw that was under way when the box fell asleep does not count for the machine; the next one does.
	check(d.Shown >= seen.lastAck && d.Shown <= d.Pressed, "the decision tells of another draw")
	check(d.ScreenDigest == screen.Digest(c.pages), "the decision names another screen")
}

// sent notes when a card's page first went to the display, and that the page on the glass may be gone from now on.
func (o *observer) sent(w *world, f *device.Frame) {
	if c := w.m.front; c != nil && w.cards[c].first == 0 {
		for _, p := range w.cards[c].pages {
			if bytes.Equal(p, picture(f)) {
				w.cards[c].first = w.now.boot
			}
		}
	}
	if !bytes.Equal(o.glass, picture(f)) {
		o.leave(w)
	}
}

// see notes what the display acknowledged.
func (o *observer) see(w *world, f *device.Frame) {
	same := o.sure && bytes.Equal(o.glass, picture(f)) && o.since >= o.slept
	o.glass, o.sure = bytes.Clone(picture(f)), true
	if same && o.card != nil {
		return
	}
	o.leave(w)
	c := w.m.front // two cards may share a page: whose turn it is tells them apart
	if c == nil {
		return
	}
	seen := w.cards[c]
	for i, p := range seen.pages {
		if bytes.Equal(p, o.glass) {
			o.card, o.page, o.since = c, i, w.now.mono
			if i == len(seen.pages)-1 {
				seen.lastAck = w.now.mono
			}
		}
	}
}

// leave ends the stay of the page on the glass.
func (o *observer) leave(w *world) {
	if o.card == nil {
		return
	}
	stay := &w.cards[o.card].longest[o.page]
	*stay = max(*stay, w.now.mono-o.since)
	o.card = nil
}
