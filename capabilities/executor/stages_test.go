package executor_test

import (
	"context"
	"crypto/sha256"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"assent.home.arpa/appliance/audit"
	"assent.home.arpa/appliance/clock"
	"assent.home.arpa/appliance/grant"
	"assent.home.arpa/appliance/ipc"
	"assent.home.arpa/capabilities"
	"assent.home.arpa/capabilities/executor"
	"assent.home.arpa/capabilities/executor/executortest"
	"assent.home.arpa/capabilities/policy"
	"assent.home.arpa/confirm"
)

func TestAutomaticCallRunsWithoutThePanelAndIsRecorded(t *testing.T) {
	b := newBox(t)
	turn := b.turn(adult(), executor.NewConversation(nil))
	o := b.Invoke(t.Context(), proposal(turn, "box_state__v1", "{}"), func(ipc.Pending) { t.Error("announced as pending") })
	b.want(o, capabilities.StageExecute, capabilities.Done, "")
	if string(o.Body) != `{"ok":true}` || o.Name != "box.state" || o.Seq == 0 {
		t.Fatalf("outcome %+v", o)
	}
	if len(b.desk.requests()) != 0 || len(b.courier.Calls()) != 1 || b.courier.Calls()[0].Receipt != [32]byte{} {
		t.Fatal("an automatic call asked for a press, did not run, or has a receipt")
	}
	records := b.records()
	want := []audit.Kind{audit.KindProposal, audit.KindDecision, audit.KindIntent, audit.KindEffect, audit.KindObserve}
	if diff := cmp.Diff(want, kinds(records)); diff != "" {
		t.Fatal(diff)
	}
	d := find[*audit.Decision](records)[0]
	if d.Verdict != audit.Allow || d.Rule != string(policy.RuleAutomatic) || d.PolicyDigest != audit.Digest(policy.Digest()) {
		t.Fatalf("decision %+v", d)
	}
}

func TestPressedCallIsBoundToWhatWasShown(t *testing.T) {
	b := newBox(t)
	turn := b.turn(adult(), executor.NewConversation(nil))
	var pending []ipc.Pending
	o := b.Invoke(t.Context(), proposal(turn, "find_pages__v1", query), func(p ipc.Pending) { pending = append(pending, p) })
	b.want(o, capabilities.StageExecute, capabilities.Done, "")

	card := b.desk.requests()[0].Card
	if card.Title != "Search the pages for" || card.Text != "tall towers" || card.Destination != "pages.example" || card.Phone != "Kitchen" || card.Taint != "" {
		t.Fatalf("the card is %+v", card)
	}
	sent := b.courier.Calls()[0]
	if len(pending) != 2 || pending[0].Decided || !pending[1].Decided || pending[1].Inv != o.Inv {
		t.Fatalf("told the phone %+v", pending)
	}
	if pending[0].Inv != o.Inv || string(pending[0].Request) != string(sent.Request.Bytes) || pending[0].Text != "tall towers" || pending[0].Pages == 0 {
		t.Fatalf("told the phone %+v", pending)
	}
	records := b.records()
	want := []audit.Kind{audit.KindProposal, audit.KindDecision, audit.KindApproval, audit.KindIntent, audit.KindEffect, audit.KindObserve}
	if diff := cmp.Diff(want, kinds(records)); diff != "" {
		t.Fatal(diff)
	}
	approval, intent, effect := find[*audit.Approval](records)[0], find[*audit.IntentRecord](records)[0], find[*audit.EffectRecord](records)[0]
	if sent.Receipt != sha256.Sum256(approval.Receipt) || intent.ReceiptDigest != audit.Digest(sent.Receipt) {
		t.Fatal("grant, approval and intent name different receipts")
	}
	if d := audit.Digest(sent.Request.Digest()); intent.RequestDigest != d || effect.RequestDigest != d || approval.RequestDigest != d {
		t.Fatal("shown, promised and sent are not the same request")
	}
	if got := blobs(records, audit.BlobRequest); len(got) != 1 || string(got[0]) != string(sent.Request.Preimage()) {
		t.Fatal("the exact request is not in the audit")
	}
	if got := blobs(records, audit.BlobPages); len(got) != 1 || len(got[0]) != 1024*pending[0].Pages || len(approval.Pages) != 1 {
		t.Fatal("the picture of the panel is not in the audit")
	}
	if got := blobs(records, audit.BlobRaw); len(got) != 1 || string(got[0]) != query {
		t.Fatal("the model's bytes are not in the audit")
	}
	if b.count.Load() != 1 {
		t.Fatal("the approval was not counted")
	}
}

func TestResolveCorrectsNothingAndRecordsTheBytes(t *testing.T) {
	b := newBox(t)
	names := []string{"Search the web", "find_pages", "find_pages__v2", "find_serch__v1", "find_pages__v1\x00", "\xff\xfe"}
	for _, name := range names {
		turn := b.turn(adult(), executor.NewConversation(nil))
		b.want(b.invoke(turn, name, query), capabilities.StageResolve, capabilities.Rejected, capabilities.CodeUnknownCapability)
	}
	records := b.records()
	for i, p := range find[*audit.Proposal](records) {
		if string(p.Name) != names[i] || p.Capability != "" || p.RawDigest != sha256.Sum256([]byte(query)) {
			t.Errorf("%q is recorded as %q, %q", names[i], p.Name, p.Capability)
		}
	}
	if len(find[*audit.Decision](records)) != len(names) || len(b.courier.Calls())+len(b.desk.requests()) != 0 {
		t.Fatal("a rejection is not in the audit, or something was shown or executed")
	}
}

func TestDriftedCapabilityIsRefused(t *testing.T) {
	b := newBox(t)
	b.search.Change(func(s *capabilities.Spec) { s.Description += " It also shares them." })
	b.want(b.invoke(b.turn(adult(), executor.NewConversation(nil)), "find_pages__v1", query), capabilities.StageResolve, capabilities.Rejected, capabilities.CodeNotConfigured)
}

func TestValidateRefusesBeforeAnybodyIsAsked(t *testing.T) {
	long := strings.Repeat("x", 257)
	tests := []struct {
		event, args string
		code        capabilities.Code
	}{
		{"unknown argument", `{"query":"x","token":"9F3A"}`, capabilities.CodeUnknownArgument},
		{"missing argument", `{}`, capabilities.CodeMissingArgument},
		{"more text than may be shown", `{"query":"` + long + `"}`, capabilities.CodeArgumentTooLong},
		{"more bytes than may be decoded", `{"query":"` + strings.Repeat("y", 3000) + `"}`, capabilities.CodeArgumentTooLong},
		{"right-to-left override", `{"query":"abc\u202edef"}`, capabilities.CodeUndisplayable},
		{"zero width space", `{"query":"abc\u200bdef"}`, capabilities.CodeUndisplayable},
		{"tag character", `{"query":"abc\udb40\udc61"}`, capabilities.CodeUndisplayable},
	}
	for _, tt := range tests {
		t.Run(tt.event, func(t *testing.T) {
			b := newBox(t)
			turn := b.turn(adult(), executor.NewConversation(nil))
			o := b.Invoke(t.Context(), proposal(turn, "find_pages__v1", tt.args), func(ipc.Pending) { t.Error("announced as pending") })
			b.want(o, capabilities.StageValidate, capabilities.Rejected, tt.code)
			records := b.records()
			if got := blobs(records, audit.BlobRaw); len(got) != 1 || string(got[0]) != tt.args {
				t.Error("the audit does not keep the bytes")
			}
			if len(b.desk.requests())+len(b.courier.Calls()) != 0 {
				t.Error("it was shown or executed")
			}
		})
	}
}

func TestEverythingThatIsShownMustBeShowable(t *testing.T) {
	const bad = "x\u202ey"
	for what, change := range map[string]func(capabilities.Plan) capabilities.Plan{
		"title":       func(p capabilities.Plan) capabilities.Plan { p.Title = bad; return p },
		"note":        func(p capabilities.Plan) capabilities.Plan { p.Note = bad; return p },
		"destination": func(p capabilities.Plan) capabilities.Plan { p.Destination, p.Request.Host = bad, bad; return p },
	} {
		b := newBox(t)
		b.search.Replan(change)
		o := b.invoke(b.turn(adult(), executor.NewConversation(nil)), "find_pages__v1", query)
		if o.Code != capabilities.CodeUndisplayable {
			t.Errorf("%s: %s", what, o.Code)
		}
	}
	b := newBox(t)
	person := adult()
	person.Phone = bad
	b.want(b.invoke(b.turn(person, executor.NewConversation(nil)), "find_pages__v1", query), capabilities.StageValidate, capabilities.Rejected, capabilities.CodeUndisplayable)
}

// TestLyingAdapterIsCaught: what an adapter renders is held against what its spec promises.
func TestLyingAdapterIsCaught(t *testing.T) {
	request := capabilities.Request{Scheme: "http", Host: "evil.example", Port: 80, Address: capabilities.AddressPublic, Bytes: []byte("GET / HTTP/1.1\r\n\r\n")}
	b := newBox(t)
	b.local.Replan(func(p capabilities.Plan) capabilities.Plan { p.Request = &request; return p })
	b.want(b.invoke(b.turn(adult(), executor.NewConversation(nil)), "box_state__v1", "{}"), capabilities.StageValidate, capabilities.Rejected, capabilities.CodeInternal)
	for what, change := range map[string]func(*capabilities.Plan){
		"another host":   func(p *capabilities.Plan) { p.Request.Host = "www.evil.example" },
		"suffix trick":   func(p *capabilities.Plan) { p.Request.Host = "evilpages.example" },
		"no request":     func(p *capabilities.Plan) { p.Request = nil },
		"other scheme":   func(p *capabilities.Plan) { p.Request.Scheme = "file" },
		"no address":     func(p *capabilities.Plan) { p.Request.Address = 0 },
		"too large":      func(p *capabilities.Plan) { p.Request.Bytes = make([]byte, 40<<10) },
		"no title":       func(p *capabilities.Plan) { p.Title = "" },
		"no normal form": func(p *capabilities.Plan) { p.Args = nil },
	} {
		b := newBox(t)
		b.search.Replan(func(p capabilities.Plan) capabilities.Plan { change(&p); return p })
		if o := b.invoke(b.turn(adult(), executor.NewConversation(nil)), "find_pages__v1", query); o.Code != capabilities.CodeInternal || len(b.desk.requests()) != 0 {
			t.Errorf("%s: ended as %s, shown %d times", what, o.Code, len(b.desk.requests()))
		}
	}
}

func TestPolicyRefusals(t *testing.T) {
	guest := adult()
	guest.Role = policy.Guest
	tests := []struct {
		event   string
		person  executor.Person
		prepare func(*box)
		code    capabilities.Code
	}{
		{"a guest searches", guest, func(*box) {}, capabilities.CodeNotAllowed},
		{"nobody's role", executor.Person{Slot: 1, ID: "p", Phone: "K"}, func(*box) {}, capabilities.CodeNotAllowed},
		{"frozen", adult(), func(b *box) { b.frozen.Store(true) }, capabilities.CodeFrozen},
		{"no date for TLS", adult(), func(b *box) { b.clock.SetWall(time.Unix(0, 0), clock.Unset) }, capabilities.CodeClockUnset},
	}
	for _, tt := range tests {
		t.Run(tt.event, func(t *testing.T) {
			b := newBox(t)
			tt.prepare(b)
			b.want(b.invoke(b.turn(tt.person, executor.NewConversation(nil)), "find_pages__v1", query), capabilities.StagePolicy, capabilities.Rejected, tt.code)
			if len(b.desk.requests())+len(b.courier.Calls()) != 0 {
				t.Error("it was shown or executed")
			}
			if d := find[*audit.Decision](b.records()); len(d) != 1 || d[0].Code != tt.code || d[0].Rule == "" {
				t.Errorf("decisions %+v", d)
			}
		})
	}
}

func TestCapsBindAutomaticCallsToo(t *testing.T) {
	b := newBox(t)
	turn := b.turn(adult(), executor.NewConversation(nil))
	for range 3 {
		b.want(b.invoke(turn, "box_state__v1", "{}"), capabilities.StageExecute, capabilities.Done, "")
	}
	b.want(b.invoke(turn, "box_state__v1", "{}"), capabilities.StagePolicy, capabilities.Rejected, capabilities.CodeBudget)
	for range 2 {
		b.want(b.invoke(turn, "nothing__v1", "{}"), capabilities.StageResolve, capabilities.Rejected, capabilities.CodeUnknownCapability)
	}
	// Six proposals are the turn's; the seventh is refused whatever it is.
	b.want(b.invoke(turn, "find_pages__v1", query), capabilities.StagePolicy, capabilities.Rejected, capabilities.CodeBudget)
	if len(b.courier.Calls()) != 3 {
		t.Fatalf("%d calls", len(b.courier.Calls()))
	}
	// A new turn has its own.
	b.want(b.invoke(b.turn(adult(), executor.NewConversation(nil)), "box_state__v1", "{}"), capabilities.StageExecute, capabilities.Done, "")
}

func TestNothingRunsWithoutALiveAsk(t *testing.T) {
	b := newBox(t)
	ended := b.turn(adult(), executor.NewConversation(nil))
	ended.End()
	old := b.turn(adult(), executor.NewConversation(nil))
	b.clock.Advance(executor.TurnLife)
	for event, turn := range map[string]*executor.Turn{"none": nil, "ended": ended, "30 minutes old": old} {
		for _, name := range []string{"box_state__v1", "find_pages__v1", "nothing__v1"} {
			o := b.invoke(turn, name, "{}")
			if o.Code != capabilities.CodeNoAsk || o.Status != capabilities.Rejected {
				t.Errorf("%s, %s: %v %s", event, name, o.Status, o.Code)
			}
		}
	}
	records := b.records()
	if len(b.courier.Calls())+len(b.desk.requests()) != 0 {
		t.Fatal("it was shown or executed")
	}
	if n := len(find[*audit.Decision](records)); n != 9 {
		t.Fatalf("%d of 9 refusals are in the audit", n)
	}
}

// TestProposalsOfOneTurnRunOneAtATime: a gateway that submits in parallel gains nothing.
func TestProposalsOfOneTurnRunOneAtATime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBox(t)
		turn := b.turn(adult(), executor.NewConversation(nil))
		leave := make(chan struct{})
		b.courier.Answer(func(_ context.Context, c grant.Claims) (*ipc.Result, error) {
			<-leave
			return executortest.Done(c, []byte(`{"ok":true}`)), nil
		})
		done := make(chan ipc.Outcome, 2)
		for range 2 {
			go func() { done <- b.invoke(turn, "box_state__v1", "{}") }()
		}
		synctest.Wait()
		if n := len(b.courier.Calls()); n != 1 {
			t.Fatalf("%d calls of one turn run at once", n)
		}
		// Whoever gives up while it waits has been withdrawn.
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		b.want(b.Invoke(ctx, proposal(turn, "box_state__v1", "{}"), nil), capabilities.StagePolicy, capabilities.Withdrawn, "")
		close(leave)
		<-done
		<-done
		if n := len(b.courier.Calls()); n != 2 {
			t.Fatalf("%d calls", n)
		}
	})
}

// TestWhereAProposalCameFromChangesNothing: the banner is all that reading leaves behind (A31, W8).
func TestWhereAProposalCameFromChangesNothing(t *testing.T) {
	trace := func(read bool) (cards []string, out []capabilities.Code, rules []string) {
		b := newBox(t)
		c := executor.NewConversation(nil)
		if read {
			b.invoke(b.turn(adult(), c), "find_pages__v1", query)
		} else {
			b.invoke(b.turn(adult(), executor.NewConversation(nil)), "find_pages__v1", query)
		}
		turn := b.turn(adult(), c)
		for _, p := range [][2]string{{"find_pages__v1", `{"query":"x","token":"9F3A"}`}, {"find_pages__v1", `{"query":"next"}`}, {"box_state__v1", "{}"}, {"pihole_pause__v1", "{}"}} {
			o := b.invoke(turn, p[0], p[1])
			out = append(out, o.Code)
		}
		for _, r := range b.desk.requests()[1:] {
			cards = append(cards, r.Card.Taint)
		}
		for _, d := range find[*audit.Decision](b.records()) {
			rules = append(rules, d.Rule)
		}
		return cards, out, rules
	}
	cards, codes, rules := trace(true)
	cleanCards, cleanCodes, cleanRules := trace(false)
	if diff := cmp.Diff(cleanCodes, codes) + cmp.Diff(cleanRules, rules); diff != "" {
		t.Fatalf("reading changed a decision: %s", diff)
	}
	if len(cards) != 1 || cards[0] != "written after reading pages.example" || cleanCards[0] != "" {
		t.Fatalf("banners %q and %q", cards, cleanCards)
	}
}

func TestLocalResultsLeaveNoBanner(t *testing.T) {
	b := newBox(t)
	c := executor.NewConversation(nil)
	b.invoke(b.turn(adult(), c), "box_state__v1", "{}")
	if len(c.Sources()) != 0 {
		t.Fatalf("sources %q", c.Sources())
	}
}

func TestLogPolicyOmitKeepsDigestsAlone(t *testing.T) {
	b := newBox(t)
	b.search.Change(func(s *capabilities.Spec) { s.Log = capabilities.LogOmit })
	b = rebuilt(t, b, b.desk)
	b.want(b.invoke(b.turn(adult(), executor.NewConversation(nil)), "find_pages__v1", query), capabilities.StageExecute, capabilities.Done, "")
	b.desk.answer(confirm.Denied)
	b.want(b.invoke(b.turn(adult(), executor.NewConversation(nil)), "find_pages__v1", query), capabilities.StageConfirm, capabilities.Denied, "")
	for _, r := range b.records() {
		if blob, ok := r.Payload.(*audit.Blob); ok {
			t.Errorf("a %s is kept", blob.Purpose)
		}
	}
}
