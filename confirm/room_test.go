package confirm

import (
	"errors"
	"slices"
	"time"

	"assent.home.arpa/capabilities"
	"assent.home.arpa/confirm/screen"
	"assent.home.arpa/device"
)

// room is a box without pixels, goroutines or waiting: a machine, its contacts, its bus and two clocks. What happens in it is
// a happening; a judge watches.
type room struct {
	m    machine
	j    judge
	deck *deck
	now  instant
	dice uint64
	lag  time.Duration // of a bus that answers

	late [3]kept
	bus  bus
	sent mark
	out  bool          // a draw is in flight
	due  time.Duration // mono: when a bus that answers acknowledges it

	cards  [maxTags + 1]*card
	dealt  uint8
	prompt *prompt
	offer  *prompt // until it is answered
	second *prompt // offered beside it
	steps  int
	probes bool
}

// kept are edges of one line that happened and have not arrived yet.
type kept struct {
	n  int
	ev [2]device.Event
}

// bus is what the display's bus does.
type bus uint8

const (
	answers bus = iota
	hangs
	fails
)

var errNoAck = errors.New("no acknowledgement")

// bulletins are what the room has to say.
var bulletins = []Bulletin{{ID: [32]byte{1}, Pages: make([]screen.Page, 2)}, {ID: [32]byte{2}, Pages: make([]screen.Page, 1)}}

// offered marks the pages of a prompt that was offered.
const offered = 1

// stopMark tells the picture of a deny that is held from that of a panic.
const stopMark = 1

// promptWords is the length of a page of the room's administrative prompts.
const promptWords = 10

// wordsOf is how many code points a page of the room's cards has.
func wordsOf(page int) int { return 12 + 8*page }

// deck holds the pages of the cards. They carry a mark where others have a picture.
type deck struct {
	pages   [maxTags + 1][3][]screen.Page // by tag and by number of pages
	people  [4]string
	prompts [2][]screen.Page // of one page and of two
}

func newDeck() *deck {
	d := &deck{people: [4]string{"ann", "bob", "cem", "dee"}}
	for n := range d.prompts {
		d.prompts[n] = slices.Repeat([]screen.Page{{CodePoints: promptWords}}, n+1)
	}
	for tag := range d.pages {
		for n := range 3 {
			for i := range n + 1 {
				p := screen.Page{CodePoints: wordsOf(i)}
				p.Frame[0], p.Frame[1], p.Frame[2] = byte(StateReading), byte(tag), byte(i+1)
				d.pages[tag][n] = append(d.pages[tag][n], p)
			}
		}
	}
	return d
}

// sketch stands in for render. A page's frame is the card's own, as there; the bar and the seconds are drawn over it.
func sketch(m *machine, l look) (device.Frame, error) {
	var f device.Frame
	if l.stop {
		f[0], f[3], f[4] = byte(StatePanic), byte(l.bar), stopMark
		return f, nil
	}
	switch l.state {
	case StateReading:
		copy(f[:3], m.front.pages[l.page].Frame[:3])
	case StateWaiting:
		f[0], f[1] = byte(l.state), m.front.req.Inv[0]
	case StateChallenge:
		f[0], f[4] = byte(l.state), byte(m.challenge.want)
		if m.front != nil {
			f[1] = m.front.req.Inv[0]
		}
	case StateAdmin:
		f[0], f[2], f[4] = byte(l.state), byte(l.page+1), byte(len(m.prompt.pages))
		if m.prompt.req.Offer {
			f[1] = offered
		}
	case StateBulletin:
		f[0], f[2], f[4] = byte(l.state), byte(l.page+1), m.bulletins[0].ID[0]
	default:
		f[0] = byte(l.state)
	}
	f[3], f[5] = byte(l.bar), byte(l.left)
	return f, nil
}

func read(f *device.Frame) mark {
	return mark{state: State(f[0]), tag: f[1], page: f[2], bar: f[3], want: f[4], left: f[5]}
}

func newRoom(d *deck, rules Timings, k kit) *room {
	r := &room{deck: d, m: *newMachine(rules, k, false), now: instant{boot: time.Hour, mono: time.Hour}}
	r.m.draws = sketch
	r.j = judge{rules: rules, kit: k}
	r.step(tick{})
	r.settle()
	return r
}

// step feeds the machine, does what it says and lets the judge see it.
func (r *room) step(ev event) {
	r.once(ev)
	_, ticked := ev.(tick)
	r.answerProbes()
	r.j.after(r.now, ticked)
}

// answerProbes reads the levels.
func (r *room) answerProbes() {
	for r.probes {
		r.probes = false
		lv := level{approve: r.j.lines[device.Approve].down, deny: r.m.kit.deny && r.j.lines[device.Deny].down}
		if r.j.unread {
			lv = level{err: errNoAck}
		} else {
			r.j.level(device.Approve, lv.approve, r.now)
			r.j.level(device.Deny, lv.deny, r.now)
			if lv.approve && !lv.deny {
				r.j.agrees(r.now)
			}
		}
		r.once(lv)
	}
}

func (r *room) once(ev event) {
	r.steps++
	r.dice = r.dice*6364136223846793005 + 1442695040888963407
	state, shown, pairing, gesture := r.m.state, r.m.prompt, r.j.pairing, r.j.gesture
	for _, a := range r.m.step(r.now, r.dice>>33, ev) {
		switch a := a.(type) {
		case draw:
			if r.out {
				r.j.blame("two draws at once")
			}
			r.out, r.sent, r.due = true, read(&a.frame), r.now.mono+r.lag
			r.j.sent(r.sent, r.now)
		case probe:
			r.probes = true
		case decide:
			if a.decision.Outcome == Approved {
				r.j.blame("approved without a token")
			}
			r.j.ended(a.card.req.Inv[0], a.decision.Outcome, r.now)
		case approve:
			r.j.approved(a.card.req.Inv[0], a.decision, a.card.digest, r.now)
		case answer:
			r.answered(a)
			switch {
			case a.decision.Outcome != AdminConfirmed:
			case a.prompt.req.Kind == AdminUnfreeze && r.m.kit.deny:
				r.j.thawed()
			default:
				r.j.confirmed(r.now)
			}
		case openPairing:
			if r.m.kit.deny {
				r.j.bothHeld("pairing mode", r.j.calm, r.now)
			}
			if r.offer != nil || r.m.kit.deny && r.j.lines[device.Deny].edges[0].at < r.j.over {
				r.j.blame("pairing mode opens by a gesture for what is, or was, offered")
			}
			r.j.pairing, r.j.gesture = true, r.now.boot+r.j.rules.Gesture
		case closePairing:
			r.j.pairing, r.j.gesture = false, 0
		case notify:
			r.notice(a.notice)
		case journal:
			if a.transition.From != state {
				r.j.blame("the journal jumps from %v to %v", state, a.transition.From)
			}
			if a.transition.To == StateNext && state != StateNext {
				r.j.fair(a.transition.Inv[0])
			}
			state = a.transition.To
			r.j.journaled(a.transition)
		}
	}
	if p := r.m.prompt; p != nil && p != shown {
		r.j.promptBest = [2]time.Duration{}
		if p.req.Offer {
			r.j.offerShown(p.req.Afresh, pairing, gesture, r.now)
		}
		r.j.gesture = 0
	}
	if r.j.told != 0 {
		r.j.blame("the journal keeps quiet on the cards %b", r.j.told)
	}
	if r.m.state != state {
		r.j.blame("the journal ends at %v, the panel is %v", state, r.m.state)
	}
}

func (r *room) notice(n Notice) {
	switch n.Kind {
	case Panic:
		r.j.frozen = true
		r.j.panics(r.now)
		r.allEnds()
	case Unfrozen:
		r.j.frozen = false
	case PanelLost:
		r.j.lost = true
		r.allEnds()
	case ButtonsLost:
		r.allEnds()
	case PanelBack:
		r.j.lost = false
	}
}

// allEnds checks that what is offered has ended with all else that was pending.
func (r *room) allEnds() {
	if r.offer != nil {
		r.j.blame("what is offered outlives what ends everything")
	}
	r.j.gesture = 0
}

// move closes or opens a contact. The edge arrives now, later or never.
func (r *room) move(b device.Button, way arrivalWay) {
	l := &r.j.lines[b]
	l.down, l.moved = !l.down, r.now.mono
	l.moves++
	ev := device.Event{Mono: r.now.mono, Edge: device.Release, Seq: l.moves, Button: b}
	if l.down {
		ev.Edge = device.Press
	}
	k := &r.late[b]
	switch {
	case way == isLost:
	case way == isLate && k.n < len(k.ev):
		k.ev[k.n] = ev
		k.n++
	default:
		r.arrive(b)
		r.edge(ev)
	}
}

// arrivalWay is what becomes of an edge.
type arrivalWay uint8

const (
	atOnce arrivalWay = iota
	isLate
	isLost
)

// arrive delivers what was kept back.
func (r *room) arrive(b device.Button) {
	k := r.late[b]
	r.late[b] = kept{}
	for _, ev := range k.ev[:k.n] {
		r.edge(ev)
	}
}

func (r *room) edge(ev device.Event) {
	if r.j.gone {
		return
	}
	denied := r.j.arrives(ev, r.now)
	r.step(edge{ev})
	if f := &r.j.files[denied]; denied != 0 && (!f.ended || f.outcome == Approved) {
		r.j.blame("card %d was denied, and is not", denied)
	}
}

// settle lets a bus that answers, or fails, do so.
func (r *room) settle() {
	for range 100 {
		if !r.out || r.bus == hangs || r.bus == answers && r.now.mono < r.due {
			return
		}
		r.acknowledge()
	}
	r.j.blame("the panel draws without end")
}

func (r *room) acknowledge() {
	r.out = false
	if r.bus == fails {
		r.bus = answers
		r.j.unknown(r.now)
		r.step(drawn{at: r.now.mono, err: errNoAck})
		return
	}
	r.j.acknowledged(r.now)
	r.step(drawn{at: r.now.mono})
}

// advance lets d pass, stopping wherever the machine or the display has something to do.
func (r *room) advance(d time.Duration) {
	end := r.now.mono + d
	for r.j.broke == "" {
		next := end
		if at := r.m.wake(); at != 0 {
			next = min(next, max(r.now.mono, at-(r.now.boot-r.now.mono)))
		}
		if r.out && r.bus != hangs {
			next = min(next, max(r.now.mono, r.due))
		}
		r.now.boot += next - r.now.mono
		r.now.mono = next
		r.settle()
		r.step(tick{})
		r.settle()
		if at := r.m.wake(); at != 0 && at <= r.now.boot {
			r.j.blame("%v: a tick at %v leaves the wake-up at %v", r.m.state, r.now.boot, at)
		}
		if next >= end {
			return
		}
	}
}

// sleep lets d pass while the box is suspended.
func (r *room) sleep(d time.Duration) {
	r.j.slept = r.now.mono
	r.now.boot, r.now.mono = r.now.boot+d, r.now.mono+time.Microsecond
	r.step(tick{})
}

// deal submits a card of n pages, if there is one left.
func (r *room) deal(person uint8, n int) {
	if r.dealt == maxTags {
		return
	}
	r.dealt++
	tag := r.dealt
	c := &card{
		req:   Request{Inv: capabilities.InvocationID{tag}, Person: r.deck.people[person]},
		pages: r.deck.pages[tag][n-1], digest: [32]byte{tag, byte(n)},
	}
	r.cards[tag] = c
	r.j.files[tag] = file{known: true, person: person, pages: n, order: int(tag)}
	r.step(submit{c})
}

func (r *room) ask() {
	if r.prompt != nil {
		return
	}
	r.prompt = &prompt{req: AdminRequest{Kind: AdminFeed}, pages: r.deck.prompts[r.steps%2]}
	r.step(ask{r.prompt})
}

// offers has a prompt wait for a gesture, which a phone has caused or not. A second one must be busy.
func (r *room) offers(afresh bool) {
	p := &prompt{req: AdminRequest{Kind: AdminExport, Offer: true, Afresh: afresh}, pages: r.deck.prompts[r.steps%2]}
	if r.offer == nil {
		r.offer, r.j.made = p, r.now.mono
		r.step(ask{p})
		if r.offer == nil {
			r.j.blame("an offer is not taken")
		}
		return
	}
	r.second = p
	r.step(ask{p})
	if r.second != nil {
		r.j.blame("two prompts are offered at once")
	}
}

// answered is a prompt that has ended, which each does once.
func (r *room) answered(a answer) {
	switch {
	case a.prompt == r.prompt:
		r.prompt = nil
	case a.prompt == r.offer:
		r.offer, r.j.made = nil, 0
		if a.decision.Pages == nil {
			r.j.over = r.now.mono
		}
	case a.prompt == r.second && a.decision.Outcome == AdminBusy:
		r.second = nil
	case a.prompt.req.Kind != AdminUnfreeze:
		r.j.blame("a prompt is answered twice, now %v", a.decision.Outcome)
	}
}
