package conversation_test

import (
	"crypto/sha256"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"assent.home.arpa/appliance/conversation"
	"assent.home.arpa/appliance/conversation/conversationtest"
	"assent.home.arpa/appliance/ipc"
	"assent.home.arpa/capabilities"
	"assent.home.arpa/inference"
	"assent.home.arpa/inference/proposal"
)

func capped(proposals int) func(*conversation.Options) {
	return func(o *conversation.Options) { o.Turn.Proposals = proposals }
}

// A16, A17, A18, B4, B6, B7: six valid calls of a local capability that needs no press, and a cap of four.
func TestSixCallsUnderACapOfFour(t *testing.T) {
	b := newBox(t, both(), say(health(1)+health(2)+health(3)+health(4)+health(5)+health(6), "Enough.")...).with(capped(4))
	phone := b.ask("?")
	if diff := cmp.Diff([]string{done, done, done, done, budget, budget}, shorts(phone.Outcomes())); diff != "" {
		t.Errorf("outcomes (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{`system_health__v1{"n":1}`, `system_health__v1{"n":2}`, `system_health__v1{"n":3}`, `system_health__v1{"n":4}`}, b.guard.Executed()); diff != "" {
		t.Errorf("executed (-want +got):\n%s", diff)
	}
	if n := len(b.guard.Proposals()); n != 4 {
		t.Errorf("%d proposals reached the guard", n)
	}
	if diff := cmp.Diff([]string{"2 budget_exhausted", "2 budget_exhausted"}, claimCodes(b.guard.Claims())); diff != "" {
		t.Errorf("claims (-want +got):\n%s", diff)
	}
	if got := b.guard.Claims()[1]; got.Digest != sha256.Sum256([]byte(health(6))) || !strings.Contains(string(got.Detail), "budget") {
		t.Errorf("the last claim is about %x, %q", got.Digest, got.Detail)
	}
	if diff := cmp.Diff(phone.OutcomeJSON(), told(b.model.Requests()[1])); diff != "" {
		t.Errorf("the model was told otherwise (-phone +model):\n%s", diff)
	}
	for _, o := range phone.Outcomes() {
		if o.Capability != "system.health" || o.Version != 1 {
			t.Errorf("an outcome is about %q v%d", o.Capability, o.Version)
		}
	}

	record, events := b.runs.Invocations()[0], b.runs.Events()
	if len(record.Outputs.ToolCalls) != 6 || record.Outputs.Returned != 6 {
		t.Errorf("the record lists %d calls and counts %d", len(record.Outputs.ToolCalls), record.Outputs.Returned)
	}
	if len(events) != 4 {
		t.Fatalf("%d events", len(events))
	}
	for i, e := range events {
		if e.Call != record.Outputs.ToolCalls[i].ID || e.Invocation != record.ID || e.Status != "done" || e.Audit != phone.Outcomes()[i].Invocation {
			t.Errorf("event %d: %+v", i, e)
		}
	}
}

// A15: a capability's own cap refuses that capability, and no other.
func TestCapOfOneCapability(t *testing.T) {
	twice := local()
	twice.PerTurn = 2
	other := conversationtest.Capability{Name: "notes.list", Run: conversationtest.Answer(`{}`)}
	notes := call("notes_list__v1", `{}`)
	b := newBox(t, []conversationtest.Capability{twice, other}, say(health(1)+health(2), health(3)+notes, notes, "Enough.")...)
	phone := b.ask("?")
	if diff := cmp.Diff([]string{done, done, budget, done, done}, shorts(phone.Outcomes())); diff != "" {
		t.Errorf("outcomes (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"2 budget_exhausted"}, claimCodes(b.guard.Claims())); diff != "" {
		t.Errorf("claims (-want +got):\n%s", diff)
	}
	if end := theEnd(t, phone); end.Reason != "complete" || end.Code != noCode || phone.Prose() != "Enough." {
		t.Errorf("end %+v after %q", end, phone.Prose())
	}
	if phone := b.ask("again"); len(phone.Outcomes()) != 0 {
		t.Errorf("outcomes of the last turn came again: %v", phone.Outcomes())
	}
}

// The caps are a turn's: the next one starts anew.
func TestCapsAreATurns(t *testing.T) {
	b := newBox(t, both(), say(health(1)+health(2), "a", health(3), "b")...).with(capped(1))
	if diff := cmp.Diff([]string{done, budget}, shorts(b.ask("?").Outcomes())); diff != "" {
		t.Errorf("first turn (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{done}, shorts(b.ask("?").Outcomes())); diff != "" {
		t.Errorf("second turn (-want +got):\n%s", diff)
	}
}

// A7, A16: calls that cannot be read count as well, and so do refused ones; otherwise a model could fail for ever.
func TestEverythingReturnedCounts(t *testing.T) {
	bad := "<tool_call>nonsense</tool_call>"
	b := newBox(t, both(), say(bad, call("no_such__v1", `{}`), bad+health(1)+bad, health(2), "never")...).with(capped(3))
	phone := b.ask("?")
	want := []string{
		"parse rejected malformed_call", "resolve rejected unknown_capability", "parse rejected malformed_call",
		budget, budget, // the third step's others
		budget, // the fourth step's, which is the last
	}
	if diff := cmp.Diff(want, shorts(phone.Outcomes())); diff != "" {
		t.Errorf("outcomes (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"1 malformed_call", "1 malformed_call", "2 budget_exhausted", "2 budget_exhausted", "2 budget_exhausted"}, claimCodes(b.guard.Claims())); diff != "" {
		t.Errorf("claims (-want +got):\n%s", diff)
	}
	if len(b.guard.Executed()) != 0 {
		t.Errorf("executed %v", b.guard.Executed())
	}
	if end := theEnd(t, phone); end.Reason != "complete" || end.Code != capabilities.CodeBudget || strings.Contains(phone.Prose(), "never") {
		t.Errorf("end %+v after %q", end, phone.Prose())
	}
}

// A model that calls and calls is stopped by the bound of steps where no other stops it.
func TestStepsAreBounded(t *testing.T) {
	b := newBox(t, both()).with(func(o *conversation.Options) { o.Turn.Steps, o.Turn.Proposals = 3, 30 })
	b.model.Say = func(n int, _ inference.Request) conversationtest.Reply {
		return conversationtest.Reply{Text: health(n)}
	}
	phone := b.ask("?")
	if end := theEnd(t, phone); end.Reason != "length" || end.Code != capabilities.CodeBudget || len(b.model.Requests()) != 3 {
		t.Errorf("end %+v after %d steps", end, len(b.model.Requests()))
	}
}

// A17: however many calls a step holds, none is dropped silently and the work for them is bounded.
func TestVeryManyCalls(t *testing.T) {
	b := newBox(t, both(), say(strings.Repeat(health(1), proposal.MaxItems+40), "Enough.")...)
	b.model.Context = 1 << 16
	phone := b.ask("?")
	outcomes := phone.Outcomes()
	if len(outcomes) != proposal.MaxItems+1 || len(b.guard.Executed()) != b.opts.Turn.Proposals {
		t.Fatalf("%d outcomes, %d executed", len(outcomes), len(b.guard.Executed()))
	}
	if last := outcomes[len(outcomes)-1]; short(last) != budget || !strings.HasPrefix(last.Message, fmt.Sprint(40)) {
		t.Errorf("the rest was answered with %+v", last)
	}
	if n := len(b.guard.Claims()); n != proposal.MaxItems-b.opts.Turn.Proposals+1 {
		t.Errorf("%d claims", n)
	}
	for _, c := range b.guard.Claims() {
		if c.Class != ipc.ClaimBudget || len(c.Detail) > ipc.MaxClaimDetail {
			t.Errorf("claim %+v", c)
		}
	}
}
