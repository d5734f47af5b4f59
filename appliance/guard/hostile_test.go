package guard_test

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"assent.home.arpa/appliance/audit"
	"assent.home.arpa/appliance/ipc"
	"assent.home.arpa/appliance/wire"
	"assent.home.arpa/capabilities"
	"assent.home.arpa/device"
)

// TestHostileGatewayCannotOpenATurn: an ask counts only with the phone's own signature over exactly it, once (W15).
func TestHostileGatewayCannotOpenATurn(t *testing.T) {
	live(t, t.TempDir(), func(t *testing.T, h *house) {
		p, q := h.pair("Kitchen"), h.pair("Desk")
		good := p.ask(t, ipc.ID{1})
		h.turn(q, ipc.ID{9})
		stranger := newPhone(t)
		attempts := map[string]*ipc.Ask{
			"no signature":         {Slot: p.slot, Conversation: ipc.ID{1}, Counter: 5, TextDigest: good.TextDigest},
			"a forged signature":   stranger.askAs(t, p.slot, ipc.ID{1}, 5),
			"a slot nobody has":    stranger.askAs(t, 77, ipc.ID{1}, 5),
			"slot 0":               stranger.askAs(t, 0, ipc.ID{1}, 5),
			"another's signature":  q.askAs(t, p.slot, ipc.ID{1}, 5),
			"a changed counter":    {Slot: p.slot, Conversation: ipc.ID{1}, Counter: good.Counter + 1, TextDigest: good.TextDigest, Sig: good.Sig},
			"a changed text":       {Slot: p.slot, Conversation: ipc.ID{1}, Counter: good.Counter, TextDigest: wire.TextDigest("other"), Sig: good.Sig},
			"another conversation": {Slot: p.slot, Conversation: ipc.ID{2}, Counter: good.Counter, TextDigest: good.TextDigest, Sig: good.Sig},
			"another slot":         {Slot: q.slot, Conversation: ipc.ID{1}, Counter: good.Counter, TextDigest: good.TextDigest, Sig: good.Sig},
			"a signature over authentication": {
				Slot: p.slot, Conversation: ipc.ID{1}, Counter: good.Counter, TextDigest: good.TextDigest, Sig: p.sign(t, wire.AuthBytes(p.slot, [32]byte{})),
			},
			"a longer signature": {Slot: p.slot, Conversation: ipc.ID{1}, Counter: good.Counter, TextDigest: good.TextDigest, Sig: append(append([]byte{}, good.Sig...), 0)},
		}
		for event, m := range attempts {
			if r := ask[*ipc.AskReply](h, h.gateway, m); r.Ask != (ipc.ID{}) || r.Code == "" || r.Message == "" {
				t.Errorf("%s: %+v", event, r)
			}
		}
		if r := ask[*ipc.AskReply](h, h.gateway, good); r.Ask == (ipc.ID{}) {
			t.Fatalf("the phone's own ask was refused: %+v", r)
		}
		for event, m := range map[string]*ipc.Ask{"the same again": good, "an old counter": p.askAs(t, p.slot, ipc.ID{1}, 1), "counter 0": p.askAs(t, p.slot, ipc.ID{1}, 0)} {
			if r := ask[*ipc.AskReply](h, h.gateway, m); r.Ask != (ipc.ID{}) || r.Code != "replayed_ask" {
				t.Errorf("%s: %+v", event, r)
			}
		}
		h.restart()
		if r := ask[*ipc.AskReply](h, h.gateway, good); r.Ask != (ipc.ID{}) {
			t.Error("after a restart an old ask opened a turn")
		}
		var refused int
		for _, c := range reports(h.records()) {
			if c.Code == "bad_signature" || c.Code == "replayed_ask" {
				refused++
			}
		}
		if refused != len(attempts)+4 {
			t.Errorf("%d of %d refusals are in the audit", refused, len(attempts)+4)
		}
	})
}

func TestHostileGatewayCannotProposeWithoutItsPerson(t *testing.T) {
	live(t, t.TempDir(), func(t *testing.T, h *house) {
		p := h.pair("Kitchen")
		for event, a := range map[string]ipc.ID{"no ask": {}, "a made-up ask": {1, 2, 3}} {
			for _, m := range []*ipc.Propose{state(a), search(a, query)} {
				if o := h.now(m); o.Status != capabilities.Rejected || o.Code != capabilities.CodeNoAsk {
					t.Errorf("%s: %+v", event, o)
				}
			}
		}
		first := h.turn(p, ipc.ID{1})
		second := h.turn(p, ipc.ID{1})
		h.want(h.now(state(first)), capabilities.Rejected, capabilities.CodeNoAsk) // the next ask ended it
		h.want(h.now(state(second)), capabilities.Done, "")
		if err := h.gateway.Tell(&ipc.EndAsk{Ask: second}); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		h.want(h.now(state(second)), capabilities.Rejected, capabilities.CodeNoAsk)
		third := h.turn(p, ipc.ID{1})
		h.clock.Suspend(30 * time.Minute)
		h.want(h.now(state(third)), capabilities.Rejected, capabilities.CodeNoAsk)
		if h.courier.count() != 1 {
			t.Errorf("%d calls", h.courier.count())
		}
	})
}

// TestNextAskWithdrawsWhatIsPending: a turn that is over leaves nothing at the box.
func TestNextAskWithdrawsWhatIsPending(t *testing.T) {
	live(t, t.TempDir(), func(t *testing.T, h *house) {
		p := h.pair("Kitchen")
		k := h.propose(h.gateway, search(h.turn(p, ipc.ID{1}), query))
		h.turn(p, ipc.ID{1})
		h.want(h.outcome(k), capabilities.Withdrawn, "")
	})
}

func TestWithdrawBelongsToThePhoneThatAsked(t *testing.T) {
	live(t, t.TempDir(), func(t *testing.T, h *house) {
		p, q := h.pair("Kitchen"), h.pair("Desk")
		k := h.propose(h.gateway, search(h.turn(p, ipc.ID{1}), query))
		for _, w := range []*ipc.Withdraw{{Inv: k.pending.Inv, Slot: q.slot, Deny: true}, {Inv: k.pending.Inv}, {Inv: k.pending.Inv, Slot: 99}, {Slot: p.slot}} {
			if err := h.gateway.Tell(w); err != nil {
				t.Fatal(err)
			}
			synctest.Wait()
			select {
			case o := <-k.done:
				t.Fatalf("%+v ended it: %+v", w, o)
			default:
			}
		}
		if err := h.gateway.Tell(&ipc.Withdraw{Inv: k.pending.Inv, Slot: p.slot, Deny: true}); err != nil {
			t.Fatal(err)
		}
		h.want(h.outcome(k), capabilities.Denied, "")
		if h.courier.count() != 0 {
			t.Error("it was executed")
		}
	})
}

// TestNothingOnTheSocketApproves: whatever a gateway sends, only the button lets the call go.
func TestNothingOnTheSocketApproves(t *testing.T) {
	live(t, t.TempDir(), func(t *testing.T, h *house) {
		p := h.pair("Kitchen")
		a := h.turn(p, ipc.ID{1})
		k := h.propose(h.gateway, search(a, query))
		inv := k.pending.Inv
		forged := []ipc.Message{
			&ipc.Outcome{Inv: inv, Stage: capabilities.StageExecute, Status: capabilities.Done, Body: []byte(`{}`)},
			&ipc.Pending{Inv: inv}, &ipc.Result{Inv: inv, Status: capabilities.Done}, &ipc.Execute{Grant: []byte("approve")},
			&ipc.Challenge{Nonce: [32]byte{1}}, &ipc.PairReply{OK: true, Slot: p.slot}, &ipc.AuthReply{OK: true}, &ipc.Notice{Class: ipc.NoticeUnfrozen},
			&ipc.Status{}, &ipc.Job{}, &ipc.Abort{Inv: inv}, &ipc.AskReply{Ask: a}, &ipc.Error{Code: "approve"},
		}
		for _, m := range forged {
			conn, err := h.doors.dial(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			c := ipc.NewConn(conn)
			for id, m := range []ipc.Message{&ipc.Hello{Build: "evil"}, m} {
				if err := c.Send(uint64(id+1), m); err != nil {
					t.Fatal(err)
				}
				_, answer, err := c.Receive()
				if err != nil {
					t.Fatalf("%T: %v", m, err)
				}
				if _, refused := answer.(*ipc.Error); id == 1 && !refused {
					t.Errorf("%T was answered with %T", m, answer)
				}
			}
			conn.Close()
			synctest.Wait()
		}
		h.gateway.Tell(&ipc.Claim{Class: ipc.ClaimProtocol, Slot: p.slot, Code: "unknown_type", Detail: []byte("approve")})
		h.hands.Wait(10 * time.Second)
		select {
		case o := <-k.done:
			t.Fatalf("it ended: %+v", o)
		default:
		}
		if h.courier.count() != 0 {
			t.Fatal("it was executed without a press")
		}
		h.hands.Tap(device.Deny)
		h.want(h.outcome(k), capabilities.Denied, "")
		records := h.records()
		if n := len(find[*audit.Fault](records)); n != len(forged) {
			t.Errorf("%d of %d forgeries are in the audit", n, len(forged))
		}
		claims := reports(records)
		if len(claims) != 1 || claims[0].From != audit.ByGateway || string(claims[0].Text) != "approve" || claims[0].Code != "unknown_type" {
			t.Errorf("claims %+v", claims)
		}
	})
}

func TestNothingBeforeHello(t *testing.T) {
	live(t, t.TempDir(), func(t *testing.T, h *house) {
		conn, err := h.doors.dial(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		c := ipc.NewClient(ipc.NewConn(conn), func(ipc.Message) {})
		defer c.Close()
		if a, err := c.Call(t.Context(), &ipc.StatusRequest{}, nil); err == nil {
			t.Fatalf("answered %T", a)
		}
	})
}

// TestFloodsCollapse: a gateway that reports without end fills neither disk nor log.
func TestFloodsCollapse(t *testing.T) {
	live(t, t.TempDir(), func(t *testing.T, h *house) {
		const n = 200
		for range n {
			if err := h.gateway.Tell(&ipc.Claim{Class: ipc.ClaimParseFailure, Code: capabilities.CodeMalformed}); err != nil {
				t.Fatal(err)
			}
			synctest.Wait()
			h.now(state(ipc.ID{1}))
		}
		h.hands.Wait(time.Minute)
		records := h.records()
		written, kept := 0, uint64(0)
		for _, r := range records {
			switch p := r.Payload.(type) {
			case *audit.Claim, *audit.Proposal:
				written++
			case *audit.Suppressed:
				kept += p.Count
			}
		}
		if written > 64 || uint64(written)+kept != 2*n {
			t.Errorf("%d written and %d counted of %d", written, kept, 2*n)
		}
	})
}

// TestStrangersAreCountedOnceAnHour: somebody who is not paired cannot write to the audit, nor use up what others may.
func TestStrangersAreCountedOnceAnHour(t *testing.T) {
	live(t, t.TempDir(), func(t *testing.T, h *house) {
		p := h.pair("Kitchen")
		for range 150 { // two and a half hours, one a minute
			for _, slot := range []uint32{0, 99} {
				if err := h.gateway.Tell(&ipc.Claim{Class: ipc.ClaimProtocol, Slot: slot, Code: "unknown_type"}); err != nil {
					t.Fatal(err)
				}
			}
			h.hands.Wait(time.Minute)
		}
		if err := h.gateway.Tell(&ipc.Claim{Class: ipc.ClaimProtocol, Slot: p.slot, Code: "unknown_type"}); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		records := h.records()
		if c := reports(records); len(c) != 1 || c[0].Slot != p.slot {
			t.Errorf("%d claims", len(c))
		}
		counts := find[*audit.Suppressed](records)
		var total uint64
		for _, s := range counts {
			total += s.Count
		}
		if len(counts) != 3 || total != 300 {
			t.Errorf("%d counts of %d claims", len(counts), total)
		}
	})
}

// TestClaimsAreBoundedAndMarked: the guard writes nothing of a claim that could pass for its own words.
func TestClaimsAreBoundedAndMarked(t *testing.T) {
	live(t, t.TempDir(), func(t *testing.T, h *house) {
		p := h.pair("Kitchen")
		a := h.turn(p, ipc.ID{1})
		for _, c := range []*ipc.Claim{
			{Class: ipc.ClaimParseFailure, Ask: a, Slot: 99, Code: capabilities.CodeMalformed, Detail: make([]byte, 4096), Step: 1},
			{Class: ipc.ClaimProvider, Slot: p.slot, Code: "Bad\x1b[31m"},
			{Class: 9, Code: "x"},
		} {
			if err := h.gateway.Tell(c); err != nil {
				t.Fatal(err)
			}
			synctest.Wait()
		}
		records := h.records()
		claims := reports(records)
		if len(claims) != 2 || claims[0].Slot != p.slot || len(claims[0].Text) != audit.MaxClaimText || claims[1].Code != "" {
			t.Errorf("claims %+v", claims)
		}
		if f := find[*audit.Fault](records); len(f) != 1 || f[0].Class != audit.FaultProtocol {
			t.Errorf("faults %+v", f)
		}
	})
}

// TestGarbageEndsTheConnectionAndNothingElse: bytes that are no message.
func TestGarbageEndsTheConnectionAndNothingElse(t *testing.T) {
	live(t, t.TempDir(), func(t *testing.T, h *house) {
		for _, b := range [][]byte{{0, 0, 0, 0}, {0xff, 0xff, 0xff, 0xff}, {0, 0, 0, 1, 0xf6}, {0, 0, 0, 4, 0x84, 1, 10, 1}} {
			conn, err := h.doors.dial(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			if _, err := conn.Write(b); err != nil {
				t.Fatal(err)
			}
			if n, err := conn.Read(make([]byte, 1)); err == nil {
				t.Errorf("%x was answered with %d bytes", b, n)
			}
			synctest.Wait()
		}
		ask[*ipc.Status](h, h.gateway, &ipc.StatusRequest{})
	})
}

// TestCounterThatCannotBeStoredLetsPeopleChatOnly: after a restart such an ask could be replayed, so nothing is done under it.
func TestCounterThatCannotBeStoredLetsPeopleChatOnly(t *testing.T) {
	live(t, t.TempDir(), func(t *testing.T, h *house) {
		p := h.pair("Kitchen")
		// A directory in the file's place makes replacing it fail, as a full disk does, whoever the test runs as.
		file := filepath.Join(h.opts.StateDir, "phones.json")
		kept, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if err := errors.Join(os.Remove(file), os.Mkdir(file, 0o700)); err != nil {
			t.Fatal(err)
		}
		a := h.turn(p, ipc.ID{1})
		h.want(h.now(state(a)), capabilities.Rejected, capabilities.CodeAuditUnavailable)
		if err := errors.Join(os.Remove(file), os.WriteFile(file, kept, 0o600)); err != nil {
			t.Fatal(err)
		}
		h.want(h.now(state(h.turn(p, ipc.ID{1}))), capabilities.Done, "")
	})
}
