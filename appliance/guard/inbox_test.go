package guard_test

import (
	"bytes"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"assent.home.arpa/appliance/audit"
	"assent.home.arpa/appliance/audit/audittest"
	"assent.home.arpa/appliance/clock/clocktest"
	"assent.home.arpa/appliance/grant"
	"assent.home.arpa/appliance/ipc"
	"assent.home.arpa/appliance/wire"
	"assent.home.arpa/capabilities"
)

// interrupted is a courier's answer when its worker died after it had begun to send.
func interrupted(c grant.Claims) ipc.Message {
	return &ipc.Result{Inv: c.Inv, Status: capabilities.Unknown, Code: capabilities.CodeInterrupted, Sent: true}
}

// inbox is what a phone may know.
func (h *house) inbox(slot uint32) []ipc.Unknown {
	h.t.Helper()
	return ask[*ipc.Inbox](h, h.gateway, &ipc.InboxRequest{Slot: slot}).Items
}

// seen says that the phone's person has read of a call, and returns what is left.
func (h *house) seen(p *phone, inv capabilities.InvocationID) (*ipc.Inbox, error) {
	h.t.Helper()
	a, err := h.gateway.Call(context.Background(), &ipc.Seen{Slot: p.slot, Inv: inv, Sig: p.sign(h.t, wire.SeenBytes(p.slot, inv))}, nil)
	left, _ := a.(*ipc.Inbox)
	return left, err
}

func refused(err error, code capabilities.Code) bool {
	var e *ipc.Error
	return errors.As(err, &e) && e.Code == code
}

// finals are the records that took a call out of the inbox.
func finals(records []audit.Entered) (out []*audit.Observe) {
	for _, o := range find[*audit.Observe](records) {
		if o.Final && o.Status == capabilities.Unknown {
			out = append(out, o)
		}
	}
	return out
}

// W14: what ended as unknown waits, over restarts, for the person whose it was or an owner; to have seen it makes it
// neither done nor failed, and it is never made again.
func TestUnknownOutcomeWaitsUntilAPersonHasSeenIt(t *testing.T) {
	live(t, t.TempDir(), func(t *testing.T, h *house) {
		owner, desk, other := h.pair("Kitchen"), h.pair("Desk"), h.pair("Garden")
		h.courier.answer = interrupted
		k := h.propose(h.gateway, search(h.turn(desk, ipc.ID{1}), query))
		h.want(h.approve(k), capabilities.Unknown, capabilities.CodeInterrupted)
		if !h.noticed(ipc.NoticeInbox) {
			t.Error("phones were not told")
		}
		h.restart()

		want := []ipc.Unknown{{
			Inv: k.pending.Inv, Slot: desk.slot, Phone: "Desk", Name: "find.pages", Version: 1, Title: k.pending.Title, Text: "tall towers",
			Destination: "pages.example", Why: capabilities.CodeInterrupted, Sent: true,
		}}
		for _, p := range []*phone{owner, desk} {
			got := h.inbox(p.slot)
			if d := cmp.Diff(want, got, cmpopts.IgnoreFields(ipc.Unknown{}, "When", "Seq")); d != "" || got[0].When == 0 || got[0].Seq == 0 {
				t.Fatalf("slot %d: %s\n%+v", p.slot, d, got)
			}
		}
		if got := append(h.inbox(other.slot), h.inbox(99)...); len(got) != 0 {
			t.Errorf("others are shown %+v", got)
		}

		if _, err := h.seen(other, k.pending.Inv); !refused(err, "not_in_inbox") {
			t.Errorf("another person's phone: %v", err)
		}
		forged := *other
		forged.slot = desk.slot
		if _, err := h.seen(&forged, k.pending.Inv); !refused(err, "bad_signature") {
			t.Errorf("another key: %v", err)
		}
		if len(h.inbox(desk.slot)) != 1 {
			t.Fatal("it left the inbox without being seen")
		}
		left, err := h.seen(desk, k.pending.Inv)
		if err != nil || len(left.Items) != 0 {
			t.Fatalf("%+v, %v", left, err)
		}
		if left, err := h.seen(owner, k.pending.Inv); err != nil || len(left.Items) != 0 {
			t.Errorf("the second of two phones: %+v, %v", left, err)
		}
		records := h.records()
		if n := len(h.inbox(owner.slot)); n != 0 {
			t.Errorf("after a restart %d are back", n)
		}
		if n := h.courier.count(); n != 1 {
			t.Errorf("it was sent %d times", n)
		}
		o := finals(records)
		intent := find[*audit.EffectRecord](records)[0].Intent
		if len(o) != 1 || o[0].By != audit.ByPhone || o[0].Slot != desk.slot || o[0].Intent != intent || o[0].Matches != audit.NotKnown {
			t.Errorf("recorded as %+v", o)
		}
	})
}

// cutOff leaves a log on disk in which calls were promised and the power went: a search by the phone in slot 1, and a look
// at the box itself.
func cutOff(t *testing.T, disk *audittest.Disk, clk *clocktest.Clock, person string) (inv capabilities.InvocationID) {
	t.Helper()
	l, err := audit.Open(t.Context(), audittest.Options(clk, disk))
	if err != nil {
		t.Fatal(err)
	}
	for n, name := range []capabilities.Name{"find.pages", "box.state"} {
		c := audittest.Automatic(byte(n + 1))
		args, digest := audit.BlobOf(audit.BlobArguments, c.Inv, []byte(query))
		where, at := audit.BlobOf(audit.BlobDestination, c.Inv, []byte("pages.example"))
		c.Proposal.Revision, c.Intent.Destination = "pages/1", at
		c.Blobs, c.Proposal.ArgsDigest, c.Intent.ArgsDigest = []audit.Entry{args, where}, capabilities.ArgsDigest(digest), capabilities.ArgsDigest(digest)
		c.Proposal.Capability, c.Proposal.Slot, c.Proposal.Person = name, 1, person
		if _, err := l.Intend(t.Context(), c.Entries(), c.Intent, c.Inv); err != nil {
			t.Fatal(err)
		}
		if n == 0 {
			inv = c.Inv
		}
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	return inv
}

// W14, D3: the power goes in the middle of a call. The next start finds it, once, and so does every later one until somebody
// has seen it; a look at the box itself that was cut off is nobody's concern.
func TestPowerCutLeavesAnUnknownOutcomeInTheInbox(t *testing.T) {
	disk := audittest.NewDisk()
	liveOn(t, t.TempDir(), disk, func(t *testing.T, h *house) {
		p := h.pair("Kitchen")
		h.close()
		inv := cutOff(t, disk, h.clock, h.person())
		h.start()
		for range 2 {
			got := h.inbox(p.slot)
			if len(got) != 1 || got[0].Inv != inv || !got[0].Cut || got[0].Text != "tall towers" || got[0].When == 0 || got[0].Seq == 0 || got[0].Why != capabilities.CodeInterrupted {
				t.Fatalf("the inbox holds %+v", got)
			}
			h.shows("1 unknown outcome", "see it on a phone", 1)
			h.restart()
		}
		// Lost with its disk, the list comes back from the log.
		h.close()
		if err := os.Remove(filepath.Join(h.opts.StateDir, "inbox.json")); err != nil {
			t.Fatal(err)
		}
		h.start()
		if got := h.inbox(p.slot); len(got) != 1 {
			t.Fatalf("without its file the inbox holds %+v", got)
		}
		if _, err := h.seen(p, inv); err != nil {
			t.Fatal(err)
		}
		h.shows("", "", 1)
		h.restart()
		if got := h.inbox(p.slot); len(got) != 0 {
			t.Errorf("what was seen is back: %+v", got)
		}
		if n := h.courier.count(); n != 0 {
			t.Errorf("%d calls were made again", n)
		}
	})
}

// Another start may have been set up otherwise: of a call that it cut off the inbox says what the log holds, and no more.
func TestLostCallIsNotDescribedByTodaysSettings(t *testing.T) {
	disk := audittest.NewDisk()
	liveOn(t, t.TempDir(), disk, func(t *testing.T, h *house) {
		p := h.pair("Kitchen")
		h.close()
		cutOff(t, disk, h.clock, h.person())
		h.search.Replan(func(p capabilities.Plan) capabilities.Plan {
			p.Title, p.Destination = "Search the practice pages for", "practice.example"
			return p
		})
		h.start()
		if got := h.inbox(p.slot); len(got) != 1 || got[0].Title != "" || got[0].Text != "tall towers" || got[0].Destination != "pages.example" || got[0].Sent {
			t.Errorf("of a call from before it says %+v", got)
		}
		h.close()
		if err := os.Remove(filepath.Join(h.opts.StateDir, "inbox.json")); err != nil {
			t.Fatal(err)
		}
		h.search.Change(func(s *capabilities.Spec) { s.Revision = "pages/2" })
		h.start()
		if got := h.inbox(p.slot); len(got) != 1 || got[0].Text != "" || got[0].Destination != "pages.example" {
			t.Errorf("another revision tells of it as %+v", got)
		}
	})
}

// A phone shows the code of the record's head, and the panel the same one, without half a minute in between.
func TestIdleScreenFollowsTheRecord(t *testing.T) {
	live(t, t.TempDir(), func(t *testing.T, h *house) {
		p := h.pair("Kitchen")
		h.hands.Wait(31 * time.Second)
		before := ask[*ipc.Status](h, h.gateway, &ipc.StatusRequest{}).HeadCode
		h.turn(p, ipc.ID{1})
		h.turn(p, ipc.ID{1}) // which ends the first, and that is recorded
		h.hands.Wait(2500 * time.Millisecond)
		now := ask[*ipc.Status](h, h.gateway, &ipc.StatusRequest{})
		if now.HeadCode == before || len(now.Root) != 32 {
			t.Fatalf("the head went from %s to %+v", before, now)
		}
		if !h.idle(now.HeadCode, "", "", 1) {
			t.Error("the panel shows an older head")
		}
	})
}

// Nothing leaves the inbox that is not on flash as seen.
func TestSeenNeedsTheAudit(t *testing.T) {
	disk := audittest.NewDisk()
	liveOn(t, t.TempDir(), disk, func(t *testing.T, h *house) {
		p := h.pair("Kitchen")
		h.courier.answer = interrupted
		k := h.propose(h.gateway, search(h.turn(p, ipc.ID{1}), query))
		h.want(h.approve(k), capabilities.Unknown, capabilities.CodeInterrupted)
		disk.Arm(audittest.Fault{At: 1, Err: errors.New("the card is gone"), Dead: true})
		if _, err := h.seen(p, k.pending.Inv); !refused(err, capabilities.CodeAuditUnavailable) {
			t.Errorf("without an audit: %v", err)
		}
		if got := h.inbox(p.slot); len(got) != 1 {
			t.Errorf("the inbox holds %+v", got)
		}
		disk.Arm(audittest.Fault{})
	})
}

// A call that read nothing but the box leaves nothing to be told.
func TestUnknownLookAtTheBoxItselfIsClosedAtOnce(t *testing.T) {
	live(t, t.TempDir(), func(t *testing.T, h *house) {
		p := h.pair("Kitchen")
		h.courier.answer = interrupted
		h.want(h.now(state(h.turn(p, ipc.ID{1}))), capabilities.Unknown, capabilities.CodeInterrupted)
		if got := h.inbox(p.slot); len(got) != 0 {
			t.Errorf("the inbox holds %+v", got)
		}
		if o := finals(h.records()); len(o) != 1 || o[0].By != audit.ByGuard {
			t.Errorf("recorded as %+v", o)
		}
	})
}

// The inbox is bounded: what no longer fits is counted, and the audit has it.
func TestInboxIsBounded(t *testing.T) {
	dir := t.TempDir()
	var items []string
	for n := range ipc.MaxUnknowns - 1 {
		inv := base64.StdEncoding.EncodeToString(bytes.Repeat([]byte{byte(n)}, 16))
		items = append(items, fmt.Sprintf(`{"inv":%q,"intent":0,"slot":1,"person":"p","name":"find.pages","version":1,"log":3,"when":0,"why":"timeout","cut":true}`, inv))
	}
	if err := os.Mkdir(filepath.Join(dir, "state"), 0o700); err != nil {
		t.Fatal(err)
	}
	file := fmt.Sprintf(`{"version":1,"items":[%s],"older":0}`, strings.Join(items, ","))
	if err := os.WriteFile(filepath.Join(dir, "state", "inbox.json"), []byte(file), 0o600); err != nil {
		t.Fatal(err)
	}
	liveOn(t, dir, audittest.NewDisk(), func(t *testing.T, h *house) {
		p := h.pair("Kitchen")
		h.courier.answer = interrupted
		var last card
		for range 3 {
			last = h.propose(h.gateway, search(h.turn(p, ipc.ID{1}), query))
			h.want(h.approve(last), capabilities.Unknown, capabilities.CodeInterrupted)
		}
		h.restart()
		all := ask[*ipc.Inbox](h, h.gateway, &ipc.InboxRequest{Slot: p.slot})
		if len(all.Items) != ipc.MaxUnknowns || all.Older != 2 || all.Items[0].Inv != last.pending.Inv {
			t.Fatalf("%d items, %d older", len(all.Items), all.Older)
		}
		var left *ipc.Inbox
		for _, u := range all.Items {
			var err error
			if left, err = h.seen(p, u.Inv); err != nil {
				t.Fatal(err)
			}
		}
		if len(left.Items) != 0 || left.Older != 0 {
			t.Errorf("left are %+v", left)
		}
		h.restart()
		if n := len(h.inbox(p.slot)); n != 0 {
			t.Errorf("after a restart %d are back", n)
		}
	})
}
