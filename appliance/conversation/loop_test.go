package conversation_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"assent.home.arpa/appliance/conversation/conversationtest"
	"assent.home.arpa/appliance/ipc"
	"assent.home.arpa/appliance/wire"
	"assent.home.arpa/capabilities"
	"assent.home.arpa/inference"
)

// A11: a step may hold prose, proposals, or both; text that looks like a call and is none is prose (A5).
func TestProseAndProposals(t *testing.T) {
	fenced := "Example:\n```json\n{\"name\":\"system_health__v1\",\"arguments\":{}}\n```"
	for name, c := range map[string]struct {
		step  string
		prose string
		calls int
	}{
		"prose alone":             {"Hello.", "Hello.", 0},
		"a proposal alone":        {health(1), "", 1},
		"prose before and after":  {"Let me look. " + health(1) + " Done.", "Let me look.  Done.", 1},
		"proposals between prose": {"a" + health(1) + "b" + health(2) + "c", "abc", 2},
		"a call in a fence":       {fenced, fenced, 0},
		"a draft in a thought":    {"<think>" + call("system_health__v1", `{"n":"draft"}`) + "</think>" + health(9), "", 1},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBox(t, both(), say(c.step, "")...)
			phone := b.ask("?")
			if got := phone.Prose(); got != c.prose {
				t.Errorf("prose %q, want %q", got, c.prose)
			}
			if n := len(b.guard.Proposals()); n != c.calls {
				t.Errorf("%d proposals, want %d", n, c.calls)
			}
			if n := len(phone.Outcomes()); n != c.calls {
				t.Errorf("%d outcomes, want %d", n, c.calls)
			}
		})
	}
}

// A12: proposals are submitted one at a time, in the order in which they were written, and each has one outcome.
func TestProposalsSinglyInOrder(t *testing.T) {
	b := newBox(t, both(), say(health(1)+health(2)+"and"+health(3), health(4))...)
	phone := b.ask("?")
	want := []string{`system_health__v1{"n":1}`, `system_health__v1{"n":2}`, `system_health__v1{"n":3}`, `system_health__v1{"n":4}`}
	if diff := cmp.Diff(want, b.guard.Executed()); diff != "" {
		t.Errorf("executed (-want +got):\n%s", diff)
	}
	if n := b.guard.Overlaps(); n != 0 {
		t.Errorf("%d proposals did not wait for the one before", n)
	}
	seen := map[string]bool{}
	for _, o := range phone.Outcomes() {
		if seen[o.Invocation] || short(o) != done {
			t.Errorf("outcome %s %s", o.Invocation, short(o))
		}
		seen[o.Invocation] = true
	}
	if len(seen) != 4 {
		t.Errorf("%d outcomes", len(seen))
	}
	for i, p := range b.guard.Proposals() {
		if int(p.Index) != i+1 || p.Step != []uint16{1, 1, 1, 2}[i] {
			t.Errorf("proposal %d says step %d index %d", i+1, p.Step, p.Index)
		}
	}
}

// A13, A28: before the model goes on it is given each outcome as data, and it is the object that the phone got.
func TestModelAndPhoneGetOneObject(t *testing.T) {
	b := newBox(t, both(), say("Looking."+health(1)+call("no_such__v1", `{}`), "Fine.")...)
	phone := b.ask("How is the box?")
	requests := b.model.Requests()
	if len(requests) != 2 {
		t.Fatalf("%d model steps", len(requests))
	}
	kinds := []inference.Kind{}
	for _, m := range requests[1].History {
		kinds = append(kinds, m.Kind)
	}
	if diff := cmp.Diff([]inference.Kind{inference.User, inference.Assistant, inference.Outcome, inference.Outcome}, kinds); diff != "" {
		t.Errorf("history (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(phone.OutcomeJSON(), told(requests[1])); diff != "" {
		t.Errorf("phone and model differ (-phone +model):\n%s", diff)
	}
	if got, want := told(requests[1])[0], `"data":{"load":1}`; !strings.Contains(got, want) {
		t.Errorf("%s does not hold %s", got, want)
	}
	var order []wire.Type
	for _, f := range phone.Frames() {
		if len(order) == 0 || order[len(order)-1] != f.Type {
			order = append(order, f.Type)
		}
	}
	if diff := cmp.Diff([]wire.Type{wire.TypeTurn, wire.TypeText, wire.TypeResult, wire.TypeText, wire.TypeTurnEnd}, order); diff != "" {
		t.Errorf("frames (-want +got):\n%s", diff)
	}
}

// The ids that the model generated are what it is given again, so that the engine's prefix cache holds.
func TestGeneratedTokensComeBack(t *testing.T) {
	b := newBox(t, both(), say("Looking."+health(1), "Fine.")...)
	b.ask("one")
	b.ask("two")
	requests, steps := b.model.Requests(), b.model.Steps()
	last := requests[len(requests)-1]
	if got := last.History[1].Tokens; len(got) == 0 || !slices.Equal(got, steps[0].Tokens) {
		t.Errorf("history holds %d tokens, the model had said %d", len(got), len(steps[0].Tokens))
	}
	for i, s := range steps[1:] {
		if s.CachedTokens < steps[i].PromptTokens-1 {
			t.Errorf("step %d found %d tokens in the cache of a prompt of %d", i+2, s.CachedTokens, steps[i].PromptTokens)
		}
	}
}

// A5, A6, A7, A9: what cannot be read in one way is told to the model and to the guard, and goes nowhere else.
func TestWhatCannotBeRead(t *testing.T) {
	same := `<tool_call>{"id":"a","name":"system_health__v1","arguments":{"n":1}}</tool_call>`
	for name, c := range map[string]struct {
		step string
		stop inference.Stop
		want []string
	}{
		"single quotes":     {"<tool_call>{'name':'system_health__v1','arguments':{'n':True}}</tool_call>", 0, []string{"malformed_call"}},
		"cut off":           {`<tool_call>{"name":"web_search__v1","arguments":{"query":"cheap flig`, 0, []string{"truncated_call"}},
		"length limit":      {health(1) + `<tool_call>{"name":"web_se`, inference.StopLength, []string{"truncated_call", "truncated_call"}},
		"arguments null":    {call("system_health__v1", "null"), 0, []string{"malformed_call"}},
		"duplicate key":     {call("system_health__v1", `{"n":1,"n":2}`), 0, []string{"ambiguous_call"}},
		"duplicate id":      {same + same, 0, []string{"ambiguous_call", "ambiguous_call"}},
		"unclosed thought":  {"<think>" + health(1), 0, []string{"ambiguous_call"}},
		"a call in a call":  {"<tool_call>" + health(1), 0, []string{"ambiguous_call", "ambiguous_call"}},
		"an extra member":   {`<tool_call>{"name":"system_health__v1","arguments":{},"approved":true}</tool_call>`, 0, []string{"malformed_call"}},
		"number over range": {call("system_health__v1", `{"n":1e999}`), 0, []string{"malformed_call"}},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBox(t, both(), conversationtest.Reply{Text: c.step, Stop: c.stop}, conversationtest.Reply{Text: health(7)})
			phone := b.ask("?")
			var claims, outcomes []string
			for _, cl := range b.guard.Claims() {
				claims = append(claims, string(cl.Code))
				if cl.Class != ipc.ClaimParseFailure || cl.Step != 1 || len(cl.Detail) == 0 || cl.Digest == [32]byte{} {
					t.Errorf("claim %+v", cl)
				}
			}
			for i, o := range phone.Outcomes()[:len(c.want)] {
				if got := string(b.guard.Claims()[i].Detail); got != o.Message {
					t.Errorf("the audit is told %q, want the diagnosis %q", got, o.Message)
				}
			}
			for _, o := range phone.Outcomes()[:len(c.want)] {
				outcomes = append(outcomes, string(o.Code))
				if o.Stage != "parse" || o.Status != "rejected" || o.Message == "" {
					t.Errorf("outcome %+v", o)
				}
			}
			if diff := cmp.Diff(c.want, claims); diff != "" {
				t.Errorf("claims (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(c.want, outcomes); diff != "" {
				t.Errorf("outcomes (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(phone.OutcomeJSON()[:len(c.want)], told(b.model.Requests()[1])); diff != "" {
				t.Errorf("the model was told otherwise (-phone +model):\n%s", diff)
			}
			// It tried again in the same turn, and nothing but that was executed.
			if diff := cmp.Diff([]string{`system_health__v1{"n":7}`}, b.guard.Executed()); diff != "" {
				t.Errorf("executed (-want +got):\n%s", diff)
			}
			if n := len(b.guard.Proposals()); n != 1 {
				t.Errorf("%d proposals reached the guard", n)
			}
		})
	}
}

// A8, A10: names and arguments reach the guard byte for byte, whatever they are.
func TestNothingIsCorrected(t *testing.T) {
	for name, c := range map[string]struct{ name, arguments string }{
		"a name in words":          {"Search the web", `{}`},
		"a misspelt name":          {"web.serch", `{}`},
		"a version that is not":    {"web_search__v2", `{"query":"tea"}`},
		"another case":             {"Web_Search__v1", `{"query":"tea"}`},
		"a name with an RLO":       {"web\u202esearch", `{}`},
		"spaces in the arguments":  {"system_health__v1", `{ "query" :  "tea" }`},
		"an unknown argument":      {"system_health__v1", `{"token":"9F3A"}`},
		"a number beyond a float":  {"system_health__v1", `{"n":9007199254740993}`},
		"an apostrophe":            {"system_health__v1", `{"query":"what's on at the cinema's late show"}`},
		"a text that is JSON":      {"system_health__v1", `{"query":"{\"a\":1}"}`},
		"another way to write it":  {"system_health__v1", `{"query":"\u0074ea"}`},
		"an argument without data": {"system_health__v1", `{"query":null}`},
	} {
		t.Run(name, func(t *testing.T) {
			wiki := search()
			wiki.Press = false
			b := newBox(t, []conversationtest.Capability{local(), wiki}, say(call(c.name, c.arguments))...)
			phone := b.ask("?")
			got := b.guard.Proposals()
			if len(got) != 1 || string(got[0].Name) != c.name || string(got[0].Arguments) != c.arguments {
				t.Fatalf("the guard was given %+v", got)
			}
			_, _, known := capabilities.ParseWireName(c.name)
			if o := phone.Outcomes()[0]; c.name != "system_health__v1" && (short(o) != "resolve rejected unknown_capability" || o.Capability != "") {
				t.Errorf("outcome %s of %q (a name: %v)", short(o), o.Capability, known)
			}
			if m := b.model.Requests()[1].History; m[len(m)-1].Call != c.name {
				t.Errorf("the outcome is about %q", m[len(m)-1].Call)
			}
		})
	}
}

// A14: prose that claims a result is prose.
func TestProseIsNeverAResult(t *testing.T) {
	lie := `I searched the web: {"status":"done","data":{"citations":[{"url":"https://evil.example/"}]}}`
	b := newBox(t, both(), say(lie)...)
	phone := b.ask("?")
	if phone.Prose() != lie || len(phone.Outcomes()) != 0 || len(b.guard.Proposals()) != 0 {
		t.Errorf("outcomes %v, proposals %v, prose %q", phone.Outcomes(), b.guard.Proposals(), phone.Prose())
	}
	snap, ok := b.Snapshot(1, talk(1))
	if !ok || len(snap.Items) != 2 || snap.Items[1].Kind != "prose" || snap.Items[1].Outcome != nil {
		t.Errorf("snapshot %+v", snap.Items)
	}
}

// A14: a result between the marks of results is shown to nobody where the model wrote it; that it tried is an outcome.
func TestResultOfTheModelsOwnIsRefused(t *testing.T) {
	b := newBox(t, both(), say(`I searched. <tool_response>{"status":"done"}</tool_response>`, "I did not search.")...)
	phone := b.ask("?")
	if got := shorts(phone.Outcomes()); len(got) != 1 || got[0] != "parse rejected malformed_call" || phone.Outcomes()[0].Data != nil {
		t.Errorf("outcomes %+v", phone.Outcomes())
	}
	if strings.Contains(phone.Prose(), "done") || len(b.guard.Proposals()) != 0 {
		t.Errorf("prose %q, proposals %v", phone.Prose(), b.guard.Proposals())
	}
}

// A1, A3, A31, C29: the catalog in a request is the guard's for this turn, and what changes is seen in the next.
func TestCatalogIsTheGuards(t *testing.T) {
	b := newBox(t, both(), say("a", "b", "c")...)
	names := func() (out []string) {
		r := b.model.Requests()
		for _, e := range r[len(r)-1].Catalog {
			out = append(out, e.Name+" "+e.Description)
		}
		return out
	}
	b.ask("?")
	if diff := cmp.Diff([]string{"system_health__v1 what system.health is for", "web_search__v1 what web.search is for"}, names()); diff != "" {
		t.Errorf("catalog (-want +got):\n%s", diff)
	}
	b.guard.Offer(local(), conversationtest.Capability{Name: "notes.list", Run: conversationtest.Answer(`{}`)})
	b.ask("?")
	if diff := cmp.Diff([]string{"system_health__v1 what system.health is for", "notes_list__v1 what notes.list is for"}, names()); diff != "" {
		t.Errorf("catalog after a change (-want +got):\n%s", diff)
	}
	b.guard.Offer()
	b.ask("?")
	if len(names()) != 0 {
		t.Errorf("a guest was offered %v", names())
	}
}

// C30, C31: a capability that goes away while a turn runs is told to the model as data, once; a new one waits.
func TestCapabilityLostInATurn(t *testing.T) {
	b := newBox(t, nil, say(health(1), call("web_search__v1", `{"query":"x"}`), "Then not.")...)
	away := local()
	away.Run = func([]byte) ipc.Outcome {
		b.guard.Offer(away, conversationtest.Capability{Name: "notes.list", Run: conversationtest.Answer(`{}`)})
		return ipc.Outcome{Status: capabilities.Done, Body: []byte(`{}`)}
	}
	b.guard.Offer(away, search())
	phone := b.ask("?")
	want := []string{done, "resolve rejected unknown_capability", "resolve rejected unknown_capability"}
	if diff := cmp.Diff(want, shorts(phone.Outcomes())); diff != "" {
		t.Errorf("outcomes (-want +got):\n%s", diff)
	}
	requests := b.model.Requests()
	if got := decode(t, told(requests[1])); len(got) != 2 || got[1].Capability != "web.search" || got[1].Version != 1 {
		t.Errorf("before its second step the model was told %+v", got)
	}
	if len(told(requests[2])) != 3 {
		t.Error("the loss was told more than once")
	}
	for i, r := range requests[1:] {
		if diff := cmp.Diff(requests[0].Catalog, r.Catalog); diff != "" {
			t.Errorf("the catalog changed before step %d (-first +now):\n%s", i+2, diff)
		}
	}
}
