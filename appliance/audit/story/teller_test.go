package story_test

import (
	"slices"
	"testing"

	"pgregory.net/rapid"

	"assent.home.arpa/appliance/audit"
	"assent.home.arpa/appliance/audit/audittest"
	"assent.home.arpa/appliance/audit/story"
	"assent.home.arpa/capabilities"
)

// TestUnsealedStoriesSayThatNothingVouchesForThem: a log that was cut off ends in records that nobody relied on.
func TestUnsealedStoriesSayThatNothingVouchesForThem(t *testing.T) {
	b := newBox(t)
	b.barrier(audit.Entry{Payload: audit.Freeze{On: true, By: audit.ByBox}})
	records := b.records()
	stories := tell(t, records[:len(records)-1])
	if s := stories[len(stories)-1]; s.Kind != story.KindFreeze || s.Seal != 0 {
		t.Errorf("%s is sealed by %d", s.Kind, s.Seal)
	}
	if s := stories[0]; s.Kind != story.KindStart || s.Seal == 0 {
		t.Errorf("%s is sealed by %d", s.Kind, s.Seal)
	}
}

// TestLogThatBeginsInItsMiddle: the first records of a call went with a segment that was pruned.
func TestLogThatBeginsInItsMiddle(t *testing.T) {
	b := newBox(t)
	c := audittest.Required(b.clock, 1)
	b.effect(b.intend(c), audit.EffectRecord{Status: capabilities.Done, Sent: true})
	records := b.records()
	from := slices.IndexFunc(records, func(e audit.Entered) bool { return e.Kind == audit.KindEffect })
	stories := tell(t, records[from:])
	s := of(stories, c.Inv)
	if !s.Partial || s.Outcome != story.Done || s.Headline == "" {
		t.Errorf("%+v", s)
	}
}

// TestMemoryIsBounded: calls whose outcome nobody ever looks at do not pile up.
func TestMemoryIsBounded(t *testing.T) {
	const calls = 2000
	told := 0
	teller := story.New(func(story.Story) error { told++; return nil })
	seq := audit.Seq(0)
	add := func(inv audit.ID, p audit.Payload) {
		e := audit.Entered{Record: audit.Record{Kind: p.Kind(), Seq: seq, BootID: audit.ID{1}, Inv: inv, Payload: p}}
		if err := teller.Add(e); err != nil {
			t.Fatal(err)
		}
		seq++
	}
	for i := range calls {
		inv := audit.ID{0: 1, 1: byte(i), 2: byte(i >> 8)}
		add(inv, &audit.Proposal{Capability: "web.search"})
		add(inv, &audit.EffectRecord{Status: capabilities.Unknown})
		add(audit.ID{}, &audit.Seal{})
	}
	// 128 wait for somebody to look, 1,024 for the clock to be set.
	if kept := calls - told; kept > 128+1024 {
		t.Errorf("%d of %d stories are kept in memory", kept, calls)
	}
	if err := teller.Close(); err != nil || told != calls {
		t.Errorf("%d of %d stories were told: %v", told, calls, err)
	}
}

// TestNothingOfACallIsLeftOut: whatever happens in whatever order, each call is one story that names all its records.
func TestNothingOfACallIsLeftOut(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		var records []audit.Entered
		write := func(inv audit.ID, payloads ...audit.Payload) {
			for _, p := range payloads {
				records = append(records, audit.Entered{Record: audit.Record{
					Kind: p.Kind(), Seq: audit.Seq(len(records)), BootID: audit.ID{1}, Inv: inv, Payload: p,
				}})
			}
		}
		seal := func() { write(audit.ID{}, &audit.Seal{}) }
		propose := func(inv audit.ID) {
			write(inv, &audit.Blob{Purpose: audit.BlobRaw}, &audit.Proposal{Capability: "web.search"})
			if rapid.Bool().Draw(r, "pressed") {
				write(inv, &audit.Decision{Stage: capabilities.StagePolicy, Verdict: audit.Confirm}, &audit.Approval{Outcome: audit.Approved, PageCount: 1})
			} else {
				write(inv, &audit.Decision{Stage: capabilities.StagePolicy, Verdict: audit.Allow})
			}
		}
		var running []audit.ID
		for i := range rapid.IntRange(1, 20).Draw(r, "calls") {
			inv := audit.ID{0: 0xca, 15: byte(i)}
			propose(inv)
			if rapid.Bool().Draw(r, "taken back") {
				write(inv, &audit.Withdraw{By: audit.ByPhone}, &audit.Decision{Stage: capabilities.StageConfirm, Verdict: audit.Refuse, Status: capabilities.Withdrawn})
			} else {
				write(inv, &audit.IntentRecord{})
				seal()
				running = append(running, inv)
			}
			for len(running) > 0 && rapid.Bool().Draw(r, "settles") {
				n := rapid.IntRange(0, len(running)-1).Draw(r, "which")
				status := rapid.SampledFrom([]capabilities.Status{capabilities.Done, capabilities.Failed, capabilities.Unknown}).Draw(r, "status")
				write(running[n], &audit.EffectRecord{Status: status}, &audit.Observe{Status: status, Final: status != capabilities.Unknown})
				if status == capabilities.Unknown && rapid.Bool().Draw(r, "seen") {
					seal()
					write(running[n], &audit.Observe{Status: status, Final: true, By: audit.ByPhone})
				}
				running = slices.Delete(running, n, n+1)
				if rapid.Bool().Draw(r, "sealed") {
					seal()
				}
			}
		}
		named := map[audit.Seq]string{}
		told := map[string]int{}
		for _, s := range tell(t, records) {
			told[s.ID]++
			for _, step := range s.Steps {
				for _, seq := range step.Records {
					named[seq] = s.ID
				}
			}
		}
		for _, e := range records {
			if e.Kind == audit.KindSeal || e.Kind == audit.KindBlob {
				continue
			}
			if id := e.Inv.String(); named[e.Seq] != id || told[id] != 1 {
				r.Fatalf("record %d (%s) of %s: named by %q, told %d times", e.Seq, e.Kind, id, named[e.Seq], told[id])
			}
		}
	})
}
