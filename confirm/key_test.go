package confirm

import (
	"encoding/binary"
	"reflect"
	"testing"
	"time"
)

// keyed writes what tells two rooms apart: all that machine, contacts, bus and judge know, with times as distances from now.
type keyed struct {
	b   []byte
	now instant
}

func (k *keyed) num(v ...int64) {
	for _, n := range v {
		k.b = binary.AppendVarint(k.b, n)
	}
}

func (k *keyed) yes(v ...bool) {
	var bits int64
	for i, b := range v {
		if b {
			bits |= 1 << i
		}
	}
	k.num(bits)
}

// old is how far back times are told apart: no rule looks further.
const old = 5 * time.Minute

func (k *keyed) since(now time.Duration, v ...time.Duration) {
	for _, t := range v {
		k.num(int64(max(t-now, -old) / time.Microsecond))
	}
}

func (k *keyed) mono(v ...time.Duration) { k.since(k.now.mono, v...) }
func (k *keyed) boot(v ...time.Duration) { k.since(k.now.boot, v...) }

func (k *keyed) mark(v ...mark) {
	for _, m := range v {
		k.num(int64(m.state), int64(m.tag), int64(m.page), int64(m.bar), int64(m.want), int64(m.left))
	}
}

func (k *keyed) look(l look, m *machine) {
	k.num(int64(l.state), int64(m.glass.serial-l.serial), int64(l.page), int64(l.left), int64(l.bar), int64(l.behind), int64(m.idleRev-l.rev))
	k.yes(l.ready, l.stop)
}

// key tells two rooms apart that may have different futures. Rooms with the same key have the same one, but for the dice.
func (r *room) key(faults int) string {
	k := &keyed{now: r.now}
	k.machine(&r.m)
	k.judge(&r.j)
	k.num(int64(faults), int64(r.bus), int64(r.dealt), int64(r.late[1].n), int64(r.late[2].n), int64(r.steps%12))
	for b := 1; b <= 2; b++ {
		k.num(int64(r.j.lines[b].moves - r.m.lines[b].seq))
		for _, ev := range r.late[b].ev[:r.late[b].n] {
			k.num(int64(ev.Edge), int64(r.j.lines[b].moves-ev.Seq))
			k.mono(ev.Mono)
		}
	}
	k.yes(r.out, r.prompt != nil, r.offer != nil)
	if r.out {
		k.mark(r.sent)
		k.mono(r.due)
	}
	return string(k.b)
}

func (k *keyed) machine(m *machine) {
	k.num(int64(m.state), int64(m.page), int64(m.lamp), int64(m.now.boot/time.Minute-m.now.mono/time.Minute))
	k.boot(m.until, m.gesture, m.retry, m.pairing.until)
	k.mono(m.hold.from, m.hold.first, m.hold.second, m.hold.completed, m.challenge.last, m.taps.last, m.turn, m.doubt.until, m.calm)
	k.mono(m.doubt.recent[:]...)
	k.boot(m.hold.expires)
	k.num(int64(m.hold.need), int64(m.challenge.want), int64(m.challenge.taps), int64(m.challenge.failed), int64(m.taps.n))
	k.yes(m.hold.active, m.hold.dwell, m.hold.done, m.challenge.passed, m.challenge.spoiled, m.pairing.open, m.pairing.used, m.frozen, m.buttonsGone, m.prompt != nil, m.offer != nil, m.offer != nil && m.offer.req.Afresh)
	for b := 1; b <= 2; b++ {
		l := &m.lines[b]
		k.yes(l.down, l.void, l.sound, l.up)
		k.mono(l.at, l.since, l.upAt, l.alone, l.claim)
	}
	g := &m.glass
	k.look(g.acked, m)
	k.look(g.sent, m)
	k.yes(g.sure, g.flight, g.hung)
	k.mono(g.shown, g.began)
	if m.front != nil {
		k.num(int64(m.front.req.Inv[0]))
		k.boot(m.front.fronted, m.front.window)
		k.yes(m.front.wary, m.front.hasty)
		k.mono(m.front.came, m.front.shown)
	}
	k.num(-1)
	for _, c := range m.queue.cards {
		k.num(int64(c.req.Inv[0]))
	}
	k.num(-1)
	for _, p := range m.queue.served {
		k.num(int64(p[0]))
	}
	if m.prompt != nil {
		k.num(int64(m.prompt.req.Kind), int64(len(m.prompt.pages)))
		k.mono(m.prompt.held, m.prompt.pressed)
	}
	if m.offer != nil {
		k.num(int64(len(m.offer.pages)))
	}
	k.num(int64(len(m.bulletins)))
	for _, b := range m.bulletins {
		k.num(int64(b.ID[0]))
	}
}

func (k *keyed) judge(j *judge) {
	g := &j.glass
	k.mark(g.mark, g.sent)
	k.mono(g.since, g.began, j.slept, j.nextSince, j.prompted, g.full, j.alone, j.doubted, j.calm)
	for _, r := range j.agreed {
		k.num(int64(j.lines[1].moves - r.press))
		k.mono(r.at)
	}
	k.mono(j.odd[:]...)
	k.boot(max(j.gesture, k.now.boot)) // one that is over is like any other
	k.mono(j.over, j.made)
	k.yes(g.known, j.passed, j.pairing, j.frozen, j.lost, j.gone, j.unread)
	k.num(int64(j.onTop), int64(j.taps), int64(j.lines[1].seq-j.pressed), int64(j.lines[2].seq-j.panicked), int64(j.lines[1].turned))
	for b := 1; b <= 2; b++ {
		l := &j.lines[b]
		k.yes(l.down)
		k.mono(l.moved, l.seenUp, l.upBefore, l.low)
		for _, e := range l.edges {
			k.num(int64(e.edge))
			k.yes(e.sound)
			k.mono(e.at)
		}
	}
	for i := range j.files {
		f := &j.files[i]
		k.yes(f.known, f.ended)
		if f.known && !f.ended {
			k.num(int64(f.person), int64(f.pages), int64(f.turn))
			k.boot(f.announced, f.opened)
			k.mono(f.came, f.lastAck)
			for _, b := range f.best {
				k.num(int64(b / time.Millisecond))
			}
		}
	}
	for _, best := range j.promptBest {
		k.num(int64(best / time.Millisecond))
	}
	for _, n := range j.served {
		k.num(int64(n))
	}
}

// TestKeyKnowsEveryField fails where the machine learns something that key does not tell apart.
func TestKeyKnowsEveryField(t *testing.T) {
	for typ, want := range map[reflect.Type]int{
		reflect.TypeFor[machine](): 36, reflect.TypeFor[line](): 10, reflect.TypeFor[hold](): 9, reflect.TypeFor[doubt](): 2,
		reflect.TypeFor[challenge](): 6, reflect.TypeFor[pairing](): 4, reflect.TypeFor[taps](): 2, reflect.TypeFor[glass](): 8,
		reflect.TypeFor[look](): 10, reflect.TypeFor[card](): 11, reflect.TypeFor[prompt](): 7, reflect.TypeFor[queue](): 2, reflect.TypeFor[kit](): 2,
	} {
		if got := typ.NumField(); got != want {
			t.Errorf("%v has %d fields, key was written for %d", typ, got, want)
		}
	}
}
