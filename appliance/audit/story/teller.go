package story

import (
	"cmp"
	"encoding/hex"
	"maps"
	"slices"

	"assent.home.arpa/appliance/audit"
)

// Bounds of what is remembered, so that a year's log takes the memory of a day's.
const (
	maxOpen  = 128      // calls whose end has not come
	maxHeld  = 1024     // stories that wait for a date
	maxBytes = 16 << 20 // literal bytes of either
)

// Teller tells the stories of a log. Its Add is a VerifyOptions.Visit.
type Teller struct {
	tell func(Story) error

	clock  clockwork
	sealed audit.Seq          // the last seal
	open   map[audit.ID]*call // calls whose end has not come
	batch  batch
	held   []held // told in this order, once the first has its date
	weight int    // of held
}

// batch is what came since the last seal.
type batch struct {
	ended   []draft // what has all its records, and no seal that vouches for them
	removed bool    // a blob is gone
	loose   []blob  // of no call: texts of administrative prompts and foreign tools
}

// draft is a story that is being collected.
type draft interface {
	// close hears at the end of each batch what was in it.
	close(*batch)
	// finish writes the story.
	finish() *Story
	weight() int
}

type held struct {
	*Story
	weight int
}

// New returns a Teller. tell gets each story once, with all that is known of it. A story is told when nothing more is to
// come, a seal vouches for it, and it has a date or will never have one. So the order is that of their ends.
func New(tell func(Story) error) *Teller {
	return &Teller{tell: tell, open: map[audit.ID]*call{}}
}

// Add takes the next record.
func (t *Teller) Add(e audit.Entered) error {
	if e.Redacted {
		t.batch.removed = true
		return nil
	}
	settled := t.clock.see(e.Record)
	switch e.Payload.(type) {
	case *audit.Seal:
		return t.seal(e.Seq)
	case *audit.Boot:
		t.abandon()
	}
	t.record(e.Record)
	if settled {
		return t.release()
	}
	return nil
}

// Close tells what is left: what has not ended where the log does, and what was never sealed.
func (t *Teller) Close() error {
	for _, c := range t.inOrder() {
		t.end(c)
	}
	t.settle()
	return t.flush()
}

// record gives a record to the story that it belongs to.
func (t *Teller) record(r audit.Record) {
	when := whenOf(r)
	t.clock.date(&when)
	if r.Inv == (audit.ID{}) {
		t.event(r, &when)
		return
	}
	c := t.open[r.Inv]
	if c == nil && begins(r.Payload) {
		c = &call{inv: r.Inv}
		c.ID, c.First, c.when = hex.EncodeToString(r.Inv[:]), r.Seq, &when
		_, blob := r.Payload.(*audit.Blob)
		_, proposal := r.Payload.(*audit.Proposal)
		c.Partial = !blob && !proposal
		t.open[r.Inv] = c
	}
	if c == nil || !c.add(r, &when) {
		t.event(r, &when)
	}
}

// begins reports whether a record may be the first that is seen of a call: it is, or the log begins after it.
func begins(p audit.Payload) bool {
	switch p.(type) {
	case *audit.Blob, *audit.Proposal, *audit.IntentRecord, *audit.EffectRecord, *audit.Observe:
		return true
	}
	return false
}

// event adds a record that stands for itself, or goes with the one before it.
func (t *Teller) event(r audit.Record, when *When) {
	if b, ok := r.Payload.(*audit.Blob); ok {
		t.batch.loose = append(t.batch.loose, blobOf(r, b))
		return
	}
	if n := len(t.batch.ended); n > 0 {
		if e, ok := t.batch.ended[n-1].(*event); ok && e.takes(r) {
			return
		}
	}
	if tellable(r.Payload) {
		t.batch.ended = append(t.batch.ended, newEvent(r, when))
	}
}

// abandon ends the calls that died undecided with the run of the box before.
func (t *Teller) abandon() {
	for _, c := range t.open {
		c.abandoned = c.intent == nil && c.effect == nil && !c.Partial
	}
}

// seal ends a batch, and vouches for it.
func (t *Teller) seal(seq audit.Seq) error {
	t.sealed = seq
	for _, c := range t.inOrder() {
		c.close(&t.batch)
		if c.ended() {
			t.end(c)
		}
	}
	t.crowd()
	t.settle()
	return t.release()
}

func (t *Teller) end(c *call) {
	delete(t.open, c.inv)
	t.batch.ended = append(t.batch.ended, c)
}

func (t *Teller) inOrder() []*call {
	return slices.SortedFunc(maps.Values(t.open), func(a, b *call) int { return cmp.Compare(a.First, b.First) })
}

// crowd ends the oldest calls where too many wait for somebody to look.
func (t *Teller) crowd() {
	bytes := 0
	for _, c := range t.open {
		bytes += c.weight()
	}
	for _, c := range t.inOrder() {
		if len(t.open) <= maxOpen && bytes <= maxBytes {
			return
		}
		bytes -= c.weight()
		t.end(c)
	}
}

// settle writes the stories that ended and holds them until they have their dates.
func (t *Teller) settle() {
	var stories []held
	for _, d := range t.batch.ended {
		d.close(&t.batch)
		weight := d.weight()
		s := d.finish()
		if s.Last < t.sealed {
			s.Seal = t.sealed
		}
		stories = append(stories, held{s, weight})
		t.weight += weight
	}
	slices.SortStableFunc(stories, func(a, b held) int { return cmp.Compare(a.First, b.First) })
	t.held = append(t.held, stories...)
	t.batch = batch{}
}

// release tells what needs not wait.
func (t *Teller) release() error {
	for len(t.held) > 0 && (len(t.held) > maxHeld || t.weight > maxBytes || !t.clock.waits(t.held[0].when)) {
		if err := t.next(); err != nil {
			return err
		}
	}
	return nil
}

// flush tells everything.
func (t *Teller) flush() error {
	for len(t.held) > 0 {
		if err := t.next(); err != nil {
			return err
		}
	}
	return nil
}

func (t *Teller) next() error {
	h := t.held[0]
	t.held, t.weight = t.held[1:], t.weight-h.weight
	s := *h.Story
	s.When = *s.when
	return t.tell(s)
}
