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

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"assent.home.arpa/appliance/audit"
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
			Destination: "pages.example", Why: capabilities.CodeInterrupted,
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
	live(t, dir, func(t *testing.T, h *house) {
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
	})
}
