package audit_test

import (
	"bytes"
	"context"
	"sync"
	"testing"
	"time"

	"assent.home.arpa/appliance/audit"
	"assent.home.arpa/appliance/audit/audittest"
	"assent.home.arpa/appliance/clock/clocktest"
	"assent.home.arpa/capabilities"
)

// ledger is what somebody outside knows of a log: the last seal that was acknowledged, and what was executed on the word
// of an intent.
type ledger struct {
	mu       sync.Mutex
	head     audit.Head
	executed []execution
}

type execution struct {
	intent  audit.Seq
	settled bool // the outcome was acknowledged
}

func (k *ledger) acknowledge(h audit.Head) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if h.Seq > k.head.Seq {
		k.head = h
	}
}

func (k *ledger) execute(i audit.Intent) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.executed = append(k.executed, execution{intent: i.Seq()})
}

func (k *ledger) settle(i audit.Intent) {
	k.mu.Lock()
	defer k.mu.Unlock()
	for n := range k.executed {
		if k.executed[n].intent == i.Seq() {
			k.executed[n].settled = true
		}
	}
}

// now is what is known at this moment.
func (k *ledger) now() (audit.Head, []execution) {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.head, append([]execution{}, k.executed...)
}

// user uses a log on a disk that may fail: it stops at the first error, and executes only what is promised.
type user struct {
	t     testing.TB
	clk   *clocktest.Clock
	disk  *audittest.Disk
	known *ledger
	log   *audit.Log
	err   error
	n     byte // calls so far
	under []audit.Intent
	blobs []audit.Seq // so far
}

func (u *user) open() {
	o := audittest.Options(u.clk, u.disk)
	u.log, u.err = audit.Open(context.Background(), o)
	if u.err == nil {
		u.known.acknowledge(u.log.Head())
	}
	u.under = nil
}

func (u *user) close() {
	if u.log == nil {
		return
	}
	if err := u.log.Close(); err != nil && u.err == nil {
		u.err = err
	}
	u.log = nil
}

// do runs one step where none has failed, and notes what it acknowledged.
func (u *user) do(step func() error) {
	if u.err != nil {
		return
	}
	if u.err = step(); u.err == nil {
		// What somebody else's barrier sealed in the meantime is on flash as well.
		u.known.acknowledge(u.log.Head())
	}
}

func (u *user) barrier(p audit.Payload) (seq audit.Seq) {
	u.do(func() error {
		seqs, err := u.log.Barrier(context.Background(), audit.Entry{Payload: p})
		if err == nil {
			seq = seqs[0]
		}
		return err
	})
	return seq
}

func (u *user) blob(size int) {
	u.n++
	e, _ := audit.BlobOf(audit.BlobRaw, [16]byte{}, bytes.Repeat([]byte{u.n}, size))
	u.do(func() error {
		seqs, err := u.log.Barrier(context.Background(), e)
		u.blobs = append(u.blobs, seqs...)
		return err
	})
}

func (u *user) begin(c audittest.Call) {
	u.do(func() error {
		i, err := u.log.Intend(context.Background(), c.Entries(), c.Intent, c.Inv)
		if err == nil {
			u.known.execute(i)
			u.under = append(u.under, i)
		}
		return err
	})
}

func (u *user) finish() {
	u.do(func() error {
		i := u.under[0]
		u.under = u.under[1:]
		_, err := u.log.Effect(context.Background(), i, audit.EffectRecord{Status: capabilities.Done})
		if err == nil {
			u.known.settle(i)
		}
		return err
	})
}

// refuse appends what nobody waits for.
func (u *user) refuse() {
	u.n++
	c := audittest.Automatic(u.n)
	u.do(func() error {
		return u.log.Append(context.Background(),
			audit.Entry{Inv: c.Inv, Payload: c.Proposal},
			audit.Entry{Inv: c.Inv, Payload: audit.Decision{Stage: capabilities.StageResolve, Verdict: audit.Refuse, Status: capabilities.Rejected, Code: capabilities.CodeUnknownCapability}})
	})
}

func (u *user) automatic() { u.n++; u.begin(audittest.Automatic(u.n)) }
func (u *user) pressed()   { u.n++; u.begin(audittest.Required(u.clk, u.n)) }

// scenario is a part of a log's life, from a disk on.
type scenario struct {
	begun func(testing.TB) *audittest.Disk // nil: an empty one
	run   func(*user)
	holds []audit.Kind // what must be in the log for the scenario to be what it says
}

func (s scenario) user(t testing.TB, disk *audittest.Disk) *user {
	return &user{t: t, clk: clocktest.New(), disk: disk, known: &ledger{}, n: 100}
}

// play runs the scenario until something fails.
func (s scenario) play(t testing.TB, disk *audittest.Disk) *user {
	u := s.user(t, disk)
	u.open()
	if u.err == nil {
		s.run(u)
	}
	u.close()
	return u
}

func scenarios() map[string]scenario {
	return map[string]scenario{
		"calls": {holds: []audit.Kind{audit.KindGenesis, audit.KindApproval, audit.KindDecision, audit.KindEffect}, run: func(u *user) {
			u.automatic()
			u.finish()
			u.refuse()
			u.pressed() // two at a time
			u.automatic()
			u.finish()
			u.finish()
			u.refuse()
			u.refuse()
			u.blob(3000)
		}},
		"a new day": {holds: []audit.Kind{audit.KindExport, audit.KindEpoch}, run: func(u *user) {
			u.clk.Advance(25 * time.Hour)
			u.automatic()
			u.finish()
			if u.err == nil {
				u.barrier(audit.Export{Last: u.log.Head().Seq, OK: true})
			}
		}},
		"a restart with a torn tail": {holds: []audit.Kind{audit.KindEffect}, run: func(u *user) {
			u.pressed()
			u.automatic()
			u.finish() // the automatic call stays open
			u.close()
			if u.err != nil {
				return
			}
			content := u.disk.Content(segment0)
			copy(content[endOf(content):], bytes.Repeat([]byte{0x83, 0, 0x59, 1, 0xff}, 300))
			u.disk.Put(segment0, content)
			u.open()
			u.automatic()
			u.finish()
		}},
		"the next segment": {holds: []audit.Kind{audit.KindSegment}, begun: nearlyFull, run: func(u *user) {
			u.automatic()
			for range 3 {
				u.blob(audit.MaxBlob)
			}
			u.finish()
		}},
		"a start that needs the next segment": {holds: []audit.Kind{audit.KindSegment}, begun: brimful, run: func(u *user) {
			u.n = 200 // an invocation is used once in a boot, whoever starts anew
			u.automatic()
			u.finish()
		}},
		"removing literal payloads": {holds: []audit.Kind{audit.KindRedact}, run: func(u *user) {
			u.automatic()
			u.finish()
			for range 2 {
				u.blob(3000)
			}
			u.do(func() error {
				_, err := u.log.Redact(context.Background(), audit.RedactOptions{Seqs: u.blobs, By: audit.ByBox, Reason: "asked for"})
				return err
			})
			u.automatic()
			u.finish()
		}},
		"pruning by a press": {holds: []audit.Kind{audit.KindPrune}, begun: exported, run: func(u *user) {
			at := u.barrier(audit.Admin{Action: audit.AdminPrune, Outcome: audit.Approved, By: audit.ByBox})
			u.do(func() error { return u.log.Prune(context.Background(), 0, at) })
			u.automatic()
			u.finish()
		}},
	}
}

// nearlyFull is a log whose first segment has room for two large blobs.
func nearlyFull(t testing.TB) *audittest.Disk {
	u := scenario{}.user(t, audittest.NewDisk())
	u.open()
	for range 13 {
		u.blob(audit.MaxBlob)
	}
	u.close()
	if u.err != nil {
		t.Fatal(u.err)
	}
	return u.disk
}

// brimful is a log whose first segment has no block left, with a call that ended and one that did not.
func brimful(t testing.TB) *audittest.Disk {
	u := scenario{}.user(t, audittest.NewDisk())
	u.open()
	u.automatic()
	u.automatic()
	u.finish()
	for range 14 {
		u.blob(audit.MaxBlob)
	}
	for u.err == nil && endOf(u.disk.Content(segment0)) < audit.SegmentSize {
		u.blob(1)
	}
	u.close()
	if u.err != nil {
		t.Fatal(u.err)
	}
	return u.disk
}

// exported is a log of three segments, of which an export holds all. The last is nearly full.
func exported(t testing.TB) *audittest.Disk {
	u := scenario{}.user(t, audittest.NewDisk())
	u.open()
	for u.err == nil && u.disk.Content("seg-00000002.cborseq") == nil {
		u.blob(audit.MaxBlob)
	}
	u.barrier(audit.Export{Last: u.log.Head().Seq, OK: true})
	for range 11 {
		u.blob(audit.MaxBlob)
	}
	u.close()
	if u.err != nil {
		t.Fatal(u.err)
	}
	return u.disk
}

// moment is a disk as a fault may leave it, and what was known outside just then.
type moment struct {
	disk     *audittest.Disk
	head     audit.Head
	executed []execution
}

// start opens and closes the log.
func (s scenario) start(t testing.TB, disk *audittest.Disk, where string) audit.Head {
	t.Helper()
	o := audittest.Options(clocktest.New(), disk)
	l, err := audit.Open(context.Background(), o)
	if err != nil {
		t.Fatalf("%s: the log cannot be opened again: %v", where, err)
	}
	if err := l.Close(); err != nil {
		t.Fatalf("%s: %v", where, err)
	}
	return l.Head()
}

// outlives demands of the next start what was promised.
func (s scenario) outlives(t testing.TB, m moment, where string) (started audit.Head) {
	t.Helper()
	first := s.start(t, m.disk, where)
	effects := map[audit.Seq]capabilities.Status{}
	intents := map[audit.Seq]bool{}
	o := audit.VerifyOptions{AllSeals: true, Anchors: [][]byte{first.Seal}, Visit: func(e audit.Entered) error {
		switch p := e.Payload.(type) {
		case *audit.IntentRecord:
			intents[e.Seq] = true
		case *audit.EffectRecord:
			effects[p.Intent] = p.Status
		}
		return nil
	}}
	if len(m.head.Seal) > 0 {
		o.Anchors = append(o.Anchors, m.head.Seal)
	}
	r, err := audit.Verify(context.Background(), m.disk.FS(), o)
	if err != nil {
		t.Fatalf("%s: %v", where, err)
	}
	if r.Status.ExitCode() != 0 || len(r.Open) != 0 || r.Unproven != 0 {
		t.Fatalf("%s: after a start the log is %s, %v, with %d effects that nobody recorded", where, r.Status, r.Problem, len(r.Open))
	}
	for _, a := range r.Anchors {
		if a.State != audit.AnchorHeld {
			t.Fatalf("%s: record %d was acknowledged, and is %s", where, a.Seq, a.State)
		}
	}
	for _, e := range m.executed {
		if s := effects[e.intent]; !intents[e.intent] || (s != capabilities.Done && s != capabilities.Unknown) || (e.settled && s != capabilities.Done) {
			t.Fatalf("%s: executed on the word of record %d, an intent %v; settled %v, and its effect is %s", where, e.intent, intents[e.intent], e.settled, s)
		}
	}
	return first
}

// onceMore demands of another start that it changes nothing and adds only its own records.
func (s scenario) onceMore(t testing.TB, m moment, first audit.Head, where string) {
	t.Helper()
	before, names := segments(m.disk), list(t, m.disk)
	s.start(t, m.disk, where+", the second time")
	for name, content := range before {
		end := endOf(content)
		if after := m.disk.Content(name); len(after) < end || !bytes.Equal(after[:end], content[:end]) {
			t.Fatalf("%s: a second start changed %s", where, name)
		}
	}
	for _, name := range names {
		if m.disk.Content(name) == nil {
			t.Fatalf("%s: a second start removed %s", where, name)
		}
	}
	for _, e := range recordsAfter(t, m.disk, first.Seq) {
		if e.Kind != audit.KindBoot && e.Kind != audit.KindEpoch && e.Kind != audit.KindSeal {
			t.Fatalf("%s: a second start wrote %s", where, e.Kind)
		}
	}
}

func list(t testing.TB, disk *audittest.Disk) []string {
	t.Helper()
	names, err := disk.List()
	if err != nil {
		t.Fatal(err)
	}
	return names
}

func segments(disk *audittest.Disk) map[string][]byte {
	contents := map[string][]byte{}
	for i := range 8 {
		if b := disk.Content(segmentFile(i)); b != nil {
			contents[segmentFile(i)] = b
		}
	}
	return contents
}

func recordsAfter(t testing.TB, disk *audittest.Disk, seq audit.Seq) []audit.Entered {
	t.Helper()
	var all []audit.Entered
	_, err := audit.Verify(context.Background(), disk.FS(), audit.VerifyOptions{Visit: func(e audit.Entered) error {
		if e.Seq > seq {
			all = append(all, e)
		}
		return nil
	}})
	if err != nil {
		t.Fatal(err)
	}
	return all
}
