package guard_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"assent.home.arpa/appliance/audit"
	"assent.home.arpa/appliance/ipc"
	"assent.home.arpa/appliance/wire"
	"assent.home.arpa/capabilities"
)

// turnsOver are the claims that end a turn.
func turnsOver(records []audit.Entered) (out []*audit.Claim) {
	for _, c := range find[*audit.Claim](records) {
		if c.Class == audit.ClaimTurn {
			out = append(out, c)
		}
	}
	return out
}

// A36, A37: each ask leaves one claim, whether it was ended, replaced or cut short, with what could have been proposed.
func TestEachAskLeavesOneClaim(t *testing.T) {
	live(t, t.TempDir(), func(t *testing.T, h *house) {
		p := h.pair("Kitchen")
		offer := func(conversation ipc.ID) {
			ask[*ipc.Catalog](h, h.gateway, &ipc.CatalogRequest{Slot: p.slot, Conversation: conversation})
		}
		ended := h.turn(p, ipc.ID{1})
		offer(ipc.ID{1})
		h.want(h.now(state(ended)), capabilities.Done, "")
		h.want(h.now(state(ended)), capabilities.Done, "")
		if err := h.gateway.Tell(&ipc.EndAsk{Ask: ended}); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		replaced := h.turn(p, ipc.ID{2}) // nothing is offered for it
		cut := h.turn(p, ipc.ID{2})
		offer(ipc.ID{2})
		records := h.records() // ends the third with the guard
		got := turnsOver(records)
		if len(got) != 3 {
			t.Fatalf("%d claims", len(got))
		}
		for i, want := range []audit.Claim{
			{Ask: audit.ID(ended), Conversation: audit.ID{1}, Count: 2, Offered: []string{"box_state__v1", "find_pages__v1"}},
			{Ask: audit.ID(replaced), Conversation: audit.ID{2}},
			{Ask: audit.ID(cut), Conversation: audit.ID{2}, Offered: []string{"box_state__v1", "find_pages__v1"}},
		} {
			want.From, want.Class, want.Slot, want.AskDigest = audit.ByGateway, audit.ClaimTurn, p.slot, wire.TextDigest("how tall is the tower?")
			if (got[i].Catalog == audit.Digest{}) != (want.Offered == nil) {
				t.Errorf("claim %d: catalog %s", i, got[i].Catalog)
			}
			want.Catalog = got[i].Catalog
			if d := cmp.Diff(&want, got[i]); d != "" {
				t.Errorf("claim %d: %s", i, d)
			}
		}
		if got[0].Catalog != got[2].Catalog {
			t.Error("one catalog has two digests")
		}
	})
}

// A phone that asks without end fills no log with it, and what it does wrong is recorded all the same.
func TestAsksWithoutEndAreCounted(t *testing.T) {
	live(t, t.TempDir(), func(t *testing.T, h *house) {
		p := h.pair("Kitchen")
		for range 60 {
			h.turn(p, ipc.ID{1})
		}
		if err := h.gateway.Tell(&ipc.Claim{Class: ipc.ClaimProtocol, Slot: p.slot, Code: "unknown_type"}); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		h.clock.Advance(2 * time.Hour)
		synctest.Wait()
		records := h.records()
		turns := len(turnsOver(records))
		var counted uint64
		for _, s := range find[*audit.Suppressed](records) {
			if s.Of == audit.KindClaim && s.Class == uint8(audit.ClaimTurn) && s.Slot == p.slot {
				counted += s.Count
			}
		}
		if turns > 40 || uint64(turns)+counted != 60 {
			t.Errorf("%d recorded, %d counted", turns, counted)
		}
		if len(reports(records)) != 1 {
			t.Error("the phone's questions used up what records its mistakes")
		}
	})
}
