package guard_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"assent.home.arpa/appliance/audit"
	"assent.home.arpa/appliance/grant"
	"assent.home.arpa/appliance/ipc"
	"assent.home.arpa/capabilities"
	"assent.home.arpa/capabilities/executor/executortest"
	"assent.home.arpa/device"
)

// want checks how a proposal ended.
func (h *house) want(o *ipc.Outcome, status capabilities.Status, code capabilities.Code) {
	h.t.Helper()
	if o == nil || o.Status != status || o.Code != code {
		h.t.Fatalf("ended as %+v, want %v %q", o, status, code)
	}
}

// TestFromAskToResult is the whole way: pair, ask, propose, read at the box, hold, grant, result, evidence.
func TestFromAskToResult(t *testing.T) {
	live(t, t.TempDir(), func(t *testing.T, h *house) {
		p := h.pair("Kitchen")
		catalog := ask[*ipc.Catalog](h, h.gateway, &ipc.CatalogRequest{Slot: p.slot, Conversation: ipc.ID{1}})
		if len(catalog.Entries) != 2 || catalog.PerTurn["find_pages__v1"] != 3 || catalog.Results["find_pages__v1"].Bytes != 4096 {
			t.Fatalf("catalog %+v", catalog)
		}
		if c := ask[*ipc.Catalog](h, h.gateway, &ipc.CatalogRequest{Slot: 99}); len(c.Entries)+len(c.PerTurn)+len(c.Results) != 0 {
			t.Fatalf("a stranger is offered %+v", c)
		}
		a := h.turn(p, ipc.ID{1})
		o := h.now(state(a))
		h.want(o, capabilities.Done, "")

		k := h.propose(h.gateway, search(a, query))
		if h.courier.count() != 1 {
			t.Fatal("it was executed before the press")
		}
		if k.pending.Text != "tall towers" || k.pending.Destination != "pages.example" {
			t.Fatalf("pending %+v", k.pending)
		}
		o = h.approve(k)
		h.want(o, capabilities.Done, "")
		if string(o.Body) != `{"ok":true}` || o.Inv != k.pending.Inv || o.Retrieved == 0 {
			t.Fatalf("outcome %+v", o)
		}
		// The phone's card must not ask for a press that has counted.
		if now := <-k.told; !now.Decided || now.Inv != k.pending.Inv || k.pending.Decided {
			t.Fatalf("after the press the phone is told %+v", now)
		}
		sent := h.courier.grants[1]
		if string(sent.Request.Bytes) != string(k.pending.Request) {
			t.Fatal("sent is not what was shown")
		}
		// What was read shows on the next card.
		k = h.propose(h.gateway, search(a, `{"query":"more"}`))
		h.hands.Tap(device.Deny)
		h.want(h.outcome(k), capabilities.Denied, "")
		h.want(h.now(search(a, `{"query":"more "}`)), capabilities.Rejected, capabilities.CodeDeniedInTurn)
		b := h.turn(p, ipc.ID{2})
		o = h.now(search(b, query))
		h.want(o, capabilities.Rejected, capabilities.CodeCoolDown)
		if o.RetryIn == 0 || o.RetryIn > 30 {
			t.Errorf("told to wait %d s", o.RetryIn)
		}

		records := h.records()
		approvals := find[*audit.Approval](records)
		if len(approvals) != 2 || approvals[0].Outcome != audit.Approved || approvals[1].Outcome != audit.Denied || len(approvals[0].Presses) == 0 {
			t.Errorf("approvals %+v", approvals)
		}
		for i, a := range approvals {
			if n := len(a.Steps); n < 5 || a.Steps[0].State.String() != "next" || a.Steps[n-1].Cause.String() != a.Outcome.String() || a.LeftOut != 0 {
				t.Errorf("approval %d tells %+v", i, a.Steps)
			}
		}
		if e := find[*audit.EffectRecord](records); len(e) != 2 || e[1].Status != capabilities.Done {
			t.Errorf("effects %+v", e)
		}
		for _, pr := range find[*audit.Proposal](records) {
			if strings.Contains(pr.Person, "Kitchen") || pr.Person == "" {
				t.Errorf("the audit names a person %q", pr.Person)
			}
		}
	})
}

// TestBannerSurvivesARestart: what a conversation has read is not forgotten with the process.
func TestBannerSurvivesARestart(t *testing.T) {
	live(t, t.TempDir(), func(t *testing.T, h *house) {
		p := h.pair("Kitchen")
		h.want(h.approve(h.propose(h.gateway, search(h.turn(p, ipc.ID{1}), query))), capabilities.Done, "")
		h.restart()
		pages := map[ipc.ID]int{}
		for _, conversation := range []ipc.ID{{1}, {2}} {
			k := h.propose(h.gateway, search(h.turn(p, conversation), query))
			pages[conversation] = k.pending.Pages
			h.want(h.approve(k), capabilities.Done, "")
		}
		var tainted int
		for _, pr := range find[*audit.Proposal](h.records()) {
			tainted += len(pr.Taint)
		}
		if tainted != 1 || pages[ipc.ID{1}] <= pages[ipc.ID{2}] {
			t.Errorf("%d proposals carry a source; the cards have %v pages", tainted, pages)
		}
	})
}

func TestPanicStopsWhatNeedsAPressUntilSomebodyAtTheBoxReleasesIt(t *testing.T) {
	live(t, t.TempDir(), func(t *testing.T, h *house) {
		p, q := h.pair("Kitchen"), h.pair("Desk")
		a := h.turn(p, ipc.ID{1})
		// One call is under way and two wait when deny is held.
		h.courier.mu.Lock()
		h.courier.answer = func(grant.Claims) ipc.Message { return nil }
		h.courier.mu.Unlock()
		running := h.propose(h.gateway, search(a, query))
		h.read(running)
		h.hands.Hold(device.Approve, 2*time.Second)
		h.hands.Wait(4 * time.Second)
		front := h.propose(h.gateway, search(h.turn(p, ipc.ID{2}), query))
		queued := h.propose(h.gateway, search(h.turn(q, ipc.ID{1}), query))
		h.hands.Hold(device.Deny, 6*time.Second)
		h.want(h.outcome(front), capabilities.Denied, "") // the press itself was a no
		h.want(h.outcome(queued), capabilities.Denied, capabilities.CodeFrozen)
		h.courier.mu.Lock()
		if len(h.courier.aborted) != 1 || h.courier.aborted[0].Inv != running.pending.Inv {
			t.Errorf("aborted %+v", h.courier.aborted)
		}
		h.courier.answer = nil
		h.courier.mu.Unlock()
		// The courier says nothing, so the call is given up, and killed again in case its grant came after the first word.
		time.Sleep(3 * time.Second)
		h.want(h.outcome(running), capabilities.Unknown, capabilities.CodeInterrupted)
		h.courier.mu.Lock()
		if n := len(h.courier.aborted); n != 2 {
			t.Errorf("aborted %d times", n)
		}
		h.courier.mu.Unlock()
		if !h.noticed(ipc.NoticeFrozen) {
			t.Error("the gateway was not told")
		}

		for _, when := range []string{"now", "after a restart"} {
			if when != "now" {
				h.restart()
			}
			if s := ask[*ipc.Status](h, h.gateway, &ipc.StatusRequest{}); !s.Frozen {
				t.Fatalf("%s: not frozen", when)
			}
			b := h.turn(p, ipc.ID{3})
			h.want(h.now(search(b, query)), capabilities.Rejected, capabilities.CodeFrozen)
			h.want(h.now(state(b)), capabilities.Done, "")
		}
		// Both buttons bring up the release; both again, and then a tap, release it.
		h.hands.Wait(10 * time.Minute)
		h.hands.HoldBoth(3500 * time.Millisecond)
		h.hands.Wait(time.Second)
		h.hands.HoldBoth(4 * time.Second)
		h.hands.Wait(time.Second)
		h.hands.Tap(device.Approve)
		h.hands.Wait(3 * time.Second)
		if s := ask[*ipc.Status](h, h.gateway, &ipc.StatusRequest{}); s.Frozen {
			t.Fatal("it was not released")
		}
		h.want(h.approve(h.propose(h.gateway, search(h.turn(p, ipc.ID{4}), query))), capabilities.Done, "")
		freezes := find[*audit.Freeze](h.records())
		if len(freezes) != 2 || !freezes[0].On || freezes[1].On || freezes[0].Killed != 1 || freezes[0].By != audit.ByBox {
			t.Errorf("freeze records %+v", freezes)
		}
	})
}

// TestFreezeAtTheCouriersDoor: a panic after every other check still keeps the grant in, unless the call needed no press.
func TestFreezeAtTheCouriersDoor(t *testing.T) {
	live(t, t.TempDir(), func(t *testing.T, h *house) {
		a := h.turn(h.pair("Kitchen"), ipc.ID{1})
		h.late.Store(true)
		h.want(h.approve(h.propose(h.gateway, search(a, query))), capabilities.Failed, capabilities.CodeFrozen)
		if h.courier.count() != 0 {
			t.Fatal("the grant left")
		}
		h.want(h.now(state(a)), capabilities.Done, "")
	})
}

func TestWithdrawnWithItsGateway(t *testing.T) {
	live(t, t.TempDir(), func(t *testing.T, h *house) {
		p := h.pair("Kitchen")
		other := h.connect()
		k := h.propose(other, search(h.turn(p, ipc.ID{1}), query))
		other.Close()
		synctest.Wait()
		if o := <-k.done; o != nil {
			t.Fatalf("outcome %+v", o)
		}
		h.hands.Wait(5 * time.Second)
		h.hands.Tap(device.Approve)
		h.hands.Hold(device.Approve, 2*time.Second)
		if h.courier.count() != 0 {
			t.Fatal("a press carried out what was withdrawn")
		}
		// The phone may ask again at once.
		h.want(h.approve(h.propose(h.gateway, search(h.turn(p, ipc.ID{1}), query))), capabilities.Done, "")
		var withdrawn int
		for _, d := range find[*audit.Decision](h.records()) {
			if d.Status == capabilities.Withdrawn {
				withdrawn++
			}
		}
		if withdrawn != 1 {
			t.Errorf("%d withdrawals are in the audit", withdrawn)
		}
	})
}

func TestCourierThatDies(t *testing.T) {
	live(t, t.TempDir(), func(t *testing.T, h *house) {
		p := h.pair("Kitchen")
		a := h.turn(p, ipc.ID{1})
		h.courier.mu.Lock()
		h.courier.answer = func(grant.Claims) ipc.Message { go h.courier.conn.Close(); return nil }
		h.courier.mu.Unlock()
		h.want(h.now(state(a)), capabilities.Unknown, capabilities.CodeInterrupted)
		// It comes back, with a new challenge, and old grants are of no use.
		h.courier.mu.Lock()
		h.courier.answer = nil
		h.courier.mu.Unlock()
		h.hands.Wait(time.Second)
		h.want(h.now(state(a)), capabilities.Done, "")
		if g := h.courier.grants; g[0].Challenge == g[1].Challenge {
			t.Error("two connections had one challenge")
		}
		if !h.noticed(ipc.NoticeCourierLost) || !h.noticed(ipc.NoticeCourierBack) {
			t.Error("the gateway was not told")
		}
	})
}

func TestResultWithForeignClaimsIsDropped(t *testing.T) {
	live(t, t.TempDir(), func(t *testing.T, h *house) {
		a := h.turn(h.pair("Kitchen"), ipc.ID{1})
		h.courier.mu.Lock()
		h.courier.answer = func(c grant.Claims) ipc.Message {
			r := executortest.Done(c, []byte(`{"ok":true}`))
			r.Envelope.RequestDigest[3]++
			return r
		}
		h.courier.mu.Unlock()
		k := h.propose(h.gateway, search(a, query))
		o := h.approve(k)
		h.want(o, capabilities.Failed, capabilities.CodeBadResponse)
		if len(o.Body) != 0 {
			t.Error("its body was passed on")
		}
	})
}

// TestWithoutAnAuditPeopleCanChatAndNothingRuns: the log is held by another process, so it cannot be opened.
func TestWithoutAnAuditPeopleCanChatAndNothingRuns(t *testing.T) {
	dir := t.TempDir()
	live(t, dir, func(t *testing.T, h *house) {
		p := h.pair("Kitchen")
		h.close()
		// The disk lost a segment in the middle of nowhere: what is there is not a log.
		logs, err := filepath.Glob(filepath.Join(h.opts.StateDir, "audit", "*.cborseq"))
		if err != nil || len(logs) == 0 {
			t.Fatal("no log", err)
		}
		for _, l := range logs {
			if err := os.WriteFile(l, []byte("this is not a log"), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		h.start()
		a := h.turn(p, ipc.ID{1}) // the question is taken
		h.want(h.now(state(a)), capabilities.Rejected, capabilities.CodeAuditUnavailable)
		h.want(h.now(search(a, query)), capabilities.Rejected, capabilities.CodeAuditUnavailable)
		if h.courier.count() != 0 {
			t.Fatal("executed without an audit")
		}
		if s := ask[*ipc.Status](h, h.gateway, &ipc.StatusRequest{}); s.Audit {
			t.Error("the status says that the audit works")
		}
		r := ask[*ipc.PairReply](h, h.gateway, &ipc.Pair{Code: h.pairingCode(), Name: "Eve", Key: newPhone(t).point(t)})
		if r.OK || r.Code != capabilities.CodeAuditUnavailable {
			t.Errorf("a phone was paired without an audit: %+v", r)
		}
	})
}

func TestDisplayLossEndsTheCardAndIsTold(t *testing.T) {
	live(t, t.TempDir(), func(t *testing.T, h *house) {
		p := h.pair("Kitchen")
		k := h.propose(h.gateway, search(h.turn(p, ipc.ID{1}), query))
		h.panel.Fail(0)
		h.hands.Tap(device.Approve)
		h.hands.Wait(5 * time.Second)
		h.want(h.outcome(k), capabilities.Rejected, capabilities.CodeDisplayUnavailable)
		if s := ask[*ipc.Status](h, h.gateway, &ipc.StatusRequest{}); s.Display || !h.noticed(ipc.NoticeDisplayLost) {
			t.Error("nobody was told")
		}
		h.panel.Heal()
		h.hands.Wait(5 * time.Second)
		if s := ask[*ipc.Status](h, h.gateway, &ipc.StatusRequest{}); !s.Display {
			t.Error("the display is back, and the status does not say so")
		}
		if f := find[*audit.Fault](h.records()); len(f) == 0 || f[0].Class != audit.FaultDisplay {
			t.Errorf("fault records %+v", f)
		}
	})
}
