package stats_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"assent.home.arpa/appliance/audit"
	"assent.home.arpa/appliance/audit/audittest"
	"assent.home.arpa/appliance/audit/stats"
	"assent.home.arpa/appliance/clock/clocktest"
	"assent.home.arpa/capabilities"
)

type box struct {
	*audit.Log
	t     *testing.T
	disk  *audittest.Disk
	clock *clocktest.Clock
}

func newBox(t *testing.T) *box {
	t.Helper()
	b := &box{t: t, disk: audittest.NewDisk(), clock: clocktest.New()}
	b.start()
	return b
}

func (b *box) start() {
	b.t.Helper()
	l, err := audit.Open(b.t.Context(), audittest.Options(b.clock, b.disk))
	if err != nil {
		b.t.Fatal(err)
	}
	b.Log = l
	b.t.Cleanup(func() { l.Close() })
}

func (b *box) cut() {
	b.t.Helper()
	b.disk = b.disk.Crash(func(int) int { return 0 })
	b.start()
}

func (b *box) barrier(entries ...audit.Entry) {
	b.t.Helper()
	if _, err := b.Barrier(b.t.Context(), entries...); err != nil {
		b.t.Fatal(err)
	}
}

func (b *box) intend(c audittest.Call) audit.Intent {
	b.t.Helper()
	i, err := b.Intend(b.t.Context(), c.Entries(), c.Intent, c.Inv)
	if err != nil {
		b.t.Fatal(err)
	}
	return i
}

func (b *box) effect(i audit.Intent, e audit.EffectRecord, more ...audit.Entry) {
	b.t.Helper()
	if _, err := b.Effect(b.t.Context(), i, e, more...); err != nil {
		b.t.Fatal(err)
	}
}

// refuse records a call that a stage ended.
func (b *box) refuse(c audittest.Call, o audit.ApprovalOutcome, stage capabilities.Stage, s capabilities.Status) {
	b.t.Helper()
	entries := []audit.Entry{{Inv: c.Inv, Payload: c.Proposal}}
	if o != 0 {
		c.Approval.Outcome, c.Approval.Receipt, c.Approval.By = o, nil, audit.ByBox
		entries = append(entries, audit.Entry{Inv: c.Inv, Payload: c.Decision}, audit.Entry{Inv: c.Inv, Payload: c.Approval})
	}
	b.barrier(append(entries, audit.Entry{Inv: c.Inv, Payload: audit.Decision{Stage: stage, Verdict: audit.Refuse, Status: s}})...)
}

// count closes the log and counts what it holds.
func (b *box) count(corpus *stats.Corpus) stats.Report {
	b.t.Helper()
	if err := b.Close(); err != nil {
		b.t.Fatal(err)
	}
	c := stats.New(corpus)
	r, err := audit.Verify(context.Background(), b.disk.FS(), audit.VerifyOptions{Visit: c.Add})
	if err != nil || r.Status != audit.Intact {
		b.t.Fatalf("%v, %v: %v", err, r.Status, r.Problem)
	}
	return c.Report()
}

// TestCallsAreToldApartFromProposalToEnd is acceptance C48.
func TestCallsAreToldApartFromProposalToEnd(t *testing.T) {
	b := newBox(t)
	b.barrier(
		audit.Entry{Payload: audit.Claim{From: audit.ByGateway, Class: audit.ClaimTurn, Offered: []string{"system_health__v1", "web_search__v1"}}},
		audit.Entry{Payload: audit.Claim{From: audit.ByGateway, Class: audit.ClaimTurn, Offered: []string{"system_health__v1"}}},
		audit.Entry{Payload: audit.Claim{From: audit.ByGateway, Class: audit.ClaimParseFailure}},
		audit.Entry{Payload: audit.Claim{From: audit.ByGateway, Class: audit.ClaimBudget}},
		audit.Entry{Payload: audit.Claim{From: audit.ByGateway, Class: audit.ClaimProvider}},
		audit.Entry{Payload: audit.Suppressed{Of: audit.KindClaim, Count: 4}},
	)
	b.effect(b.intend(audittest.Automatic(1)), audit.EffectRecord{Status: capabilities.Done})
	done := audittest.Required(b.clock, 2)
	i := b.intend(done)
	b.effect(i, audit.EffectRecord{Status: capabilities.Done}, audit.Entry{Inv: done.Inv, Payload: audit.Observe{
		Intent: i.Seq(), Matches: audit.Yes, Status: capabilities.Done, Final: true, By: audit.ByGuard,
	}})
	b.effect(b.intend(audittest.Required(b.clock, 3)), audit.EffectRecord{Status: capabilities.Failed, Accepted: audit.Yes})
	b.refuse(audittest.Required(b.clock, 4), audit.Denied, capabilities.StageConfirm, capabilities.Denied)
	b.refuse(audittest.Required(b.clock, 5), audit.ExpiredUnseen, capabilities.StageConfirm, capabilities.ExpiredUnseen)
	b.refuse(audittest.Required(b.clock, 6), 0, capabilities.StageValidate, capabilities.Rejected)
	nameless := audittest.Automatic(7)
	nameless.Proposal.Capability, nameless.Proposal.Version = "", 0
	b.refuse(nameless, 0, capabilities.StageResolve, capabilities.Rejected)
	seen := audittest.Required(b.clock, 8)
	i = b.intend(seen)
	b.cut()
	b.barrier(audit.Entry{Inv: seen.Inv, Payload: audit.Observe{Intent: i.Seq(), Status: capabilities.Unknown, Final: true, By: audit.ByPhone, Slot: 1}})
	b.intend(audittest.Required(b.clock, 9)) // under way when the power goes, and not seen by anybody
	b.cut()

	want := stats.Report{
		Turns: 2, Proposals: 9, Suppressed: 4,
		Outcomes: map[string]uint64{"done": 2, "failed": 1, "denied": 1, "expired_unseen": 1, "rejected": 2, "unknown": 2},
		Refusals: map[string]uint64{"confirm": 2, "validate": 1, "resolve": 1},
		Claims:   map[string]uint64{"parse failure": 1, "budget": 1, "provider": 1},
		Presses: stats.Presses{
			Outcomes: map[string]uint64{"approved": 4, "denied": 1, "expired unseen": 1}, Median: 2 * time.Second,
		},
		Structured: stats.Share{Good: 7, Of: 10},
		Capabilities: []stats.Capability{
			{Proposed: 1, Final: 1, Outcomes: map[string]uint64{"rejected": 1}},
			{
				Name: "system.health", Version: 1, Offered: 2, Proposed: 1, Invoked: 1, Accepted: 1, Final: 1,
				Outcomes: map[string]uint64{"done": 1},
			},
			{
				Name: "web.search", Version: 1, Offered: 1, Proposed: 7, Denied: 1, Approved: 4, Invoked: 4, Accepted: 2, Observed: 1,
				Final: 6, Outcomes: map[string]uint64{"done": 1, "failed": 1, "denied": 1, "expired_unseen": 1, "rejected": 1, "unknown": 2},
			},
		},
	}
	if diff := cmp.Diff(want, b.count(nil)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestMedianOfPresses(t *testing.T) {
	for _, c := range []struct {
		event string
		waits []time.Duration
		want  time.Duration
	}{
		{"none", nil, 0},
		{"one", []time.Duration{1500 * time.Millisecond}, 1500 * time.Millisecond},
		{"two", []time.Duration{28800 * time.Millisecond, 2300 * time.Millisecond}, 15550 * time.Millisecond},
		{"three, one of them a long time", []time.Duration{300 * time.Second, 3 * time.Second, time.Second}, 3 * time.Second},
		{"four, the middle two alike", []time.Duration{time.Second, 3 * time.Second, 3 * time.Second, time.Minute}, 3 * time.Second},
		{"to ten milliseconds", []time.Duration{1234567 * time.Microsecond}, 1230 * time.Millisecond},
	} {
		t.Run(c.event, func(t *testing.T) {
			counter := stats.New(nil)
			for _, w := range c.waits {
				add(t, counter, audit.ID{1}, &audit.Approval{Outcome: audit.Approved, Shown: time.Minute, Pressed: time.Minute + w})
			}
			add(t, counter, audit.ID{1}, &audit.Approval{Outcome: audit.Denied, Shown: time.Minute, Pressed: time.Hour})
			if got := counter.Report().Presses.Median; got != c.want {
				t.Errorf("the median is %v, want %v", got, c.want)
			}
		})
	}
}

func add(t *testing.T, c *stats.Counter, inv audit.ID, p audit.Payload) {
	t.Helper()
	if err := c.Add(audit.Entered{Record: audit.Record{Kind: p.Kind(), Inv: inv, Payload: p}}); err != nil {
		t.Fatal(err)
	}
}

const corpus = `{"version":"test/1","cases":[
	{"question":"Is it hot?","expect":"system_health__v1"},
	{"question":"Who won?","expect":"web_search__v1"},
	{"question":"Hello!","expect":"none"},
	{"question":"Is it full?","expect":"system_health__v1"},
	{"question":"Never asked","expect":"none"}]}`

// TestAccuracyAgainstACorpus is acceptance A37.
func TestAccuracyAgainstACorpus(t *testing.T) {
	c, err := stats.ReadCorpus(strings.NewReader(corpus))
	if err != nil {
		t.Fatal(err)
	}
	b := newBox(t)
	n := byte(0)
	id := func() audit.ID { n++; return audit.ID{0: 0xa5, 15: n} }
	propose := func(ask audit.ID, text string, capability capabilities.Name, stage capabilities.Stage) {
		n++
		call := audittest.Automatic(n)
		call.Proposal.Ask, call.Proposal.AskDigest, call.Proposal.Capability = ask, audittest.Sum(text), capability
		if stage == 0 {
			b.effect(b.intend(call), audit.EffectRecord{Status: capabilities.Done})
			return
		}
		b.refuse(call, 0, stage, capabilities.Rejected)
	}
	unreadable := func(ask audit.ID) {
		b.barrier(audit.Entry{Payload: audit.Claim{From: audit.ByGateway, Class: audit.ClaimParseFailure, Ask: ask}})
	}
	over := func(ask audit.ID, text string, count uint16) {
		b.barrier(audit.Entry{Payload: audit.Claim{From: audit.ByGateway, Class: audit.ClaimTurn, Ask: ask, AskDigest: audittest.Sum(text), Count: count}})
	}

	right := id()
	propose(right, "Is it hot?", "system.health", 0)
	propose(right, "Is it hot?", "web.search", 0) // only the first counts
	over(right, "Is it hot?", 2)
	again := id()
	propose(again, "Is it hot?", "web.search", capabilities.StageValidate)
	over(again, "Is it hot?", 1)
	late := id() // waited for a press, and is recorded after its turn
	over(late, "Who won?", 1)
	propose(late, "Who won?", "web.search", 0)
	silent := id()
	over(silent, "Hello!", 0)
	garbled := id() // its question is known only when its turn ends
	unreadable(garbled)
	over(garbled, "Hello!", 0)
	lost := id()
	propose(lost, "Is it full?", "", capabilities.StageResolve)
	over(lost, "Is it full?", 1)
	stranger := id() // not of the corpus
	unreadable(stranger)
	propose(stranger, "What else?", "web.search", 0)
	over(stranger, "What else?", 1)

	got := b.count(c).Corpus
	want := &stats.CorpusReport{
		Version: "test/1", Digest: audittest.Sum(corpus).String(), Questions: 5, Asked: 4,
		Selection: stats.Share{Good: 3, Of: 6}, Structured: stats.Share{Good: 3, Of: 6},
		Wrong: []stats.Wrong{
			{Question: "Is it hot?", Expected: "system_health__v1", Chosen: "web_search__v1", Times: 1},
			{Question: "Hello!", Expected: "none", Chosen: "unreadable", Times: 1},
			{Question: "Is it full?", Expected: "system_health__v1", Chosen: "unknown capability", Times: 1},
		},
		Never: []string{"Never asked"},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestQuestionThatIsStillOpenCountsByItsFirstProposal(t *testing.T) {
	c, err := stats.ReadCorpus(strings.NewReader(corpus))
	if err != nil {
		t.Fatal(err)
	}
	counter := stats.New(c)
	add(t, counter, audit.ID{1}, &audit.Proposal{Ask: audit.ID{7}, AskDigest: audittest.Sum("Is it hot?"), Capability: "system.health", Version: 1})
	add(t, counter, audit.ID{2}, &audit.Claim{From: audit.ByGateway, Class: audit.ClaimBudget, Ask: audit.ID{8}, AskDigest: audittest.Sum("Hello!")})
	for range 2 { // asking for the report changes nothing
		if s := counter.Report().Corpus.Selection; s != (stats.Share{Good: 1, Of: 1}) {
			t.Errorf("%+v", s)
		}
	}
}

func TestCorpusThatIsNone(t *testing.T) {
	for _, c := range []struct{ event, file, problem string }{
		{"a bare list", `[]`, "no object"},
		{"no version", `{"cases":[{"question":"a","expect":"none"}]}`, "no version"},
		{"no cases", `{"version":"1"}`, "0 cases"},
		{"a dotted name", `{"version":"1","cases":[{"question":"a","expect":"web.search"}]}`, "case 1 expects neither"},
		{"the same question twice", `{"version":"1","cases":[{"question":"a","expect":"none"},{"question":"a","expect":"none"}]}`, "case 2"},
		{"an empty question", `{"version":"1","cases":[{"question":"","expect":"none"}]}`, "case 1"},
		{"unknown members", `{"version":"1","case":[]}`, "unknown field"},
		{"something after it", `{"version":"1","cases":[{"question":"a","expect":"none"}]}{}`, "after the object"},
		{"too large", `{"version":"` + strings.Repeat("1", 9<<20), "over 8 MiB"},
	} {
		t.Run(c.event, func(t *testing.T) {
			if _, err := stats.ReadCorpus(strings.NewReader(c.file)); err == nil || !strings.Contains(err.Error(), c.problem) {
				t.Errorf("%v", err)
			}
		})
	}
}
