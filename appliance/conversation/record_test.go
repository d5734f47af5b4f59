package conversation_test

import (
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"assent.home.arpa/appliance/conversation"
	"assent.home.arpa/appliance/conversation/conversationtest"
	"assent.home.arpa/inference/runs"
)

// B1, B4, B5, B6, B7, B8, B9: each model call is recorded with what went in and what it asked for; what was executed is
// recorded apart; and the turn links both by reference and digest, and holds nothing but hashes besides.
func TestTurnIsRecorded(t *testing.T) {
	records, err := runs.Open(t.Context(), filepath.Join(t.TempDir(), "runs.db"), runs.DefaultRetention())
	if err != nil {
		t.Fatal(err)
	}
	defer records.Close()
	withID := `<tool_call>{"id":"mine","name":"system_health__v1","arguments":{"n": 1}}</tool_call>`
	bad := "<tool_call>nonsense</tool_call>"
	b := newBox(t, both(), say("Looking."+bad+withID+call("no_such__v1", `{}`)+health(2), "Fine.")...).
		with(func(o *conversation.Options) { o.Runs = records })
	phone := b.ask("How is the box?")

	turn := theEnd(t, phone).Turn
	run, err := b.store.Run(t.Context(), turn)
	if err != nil {
		t.Fatal(err)
	}
	links, err := records.List(t.Context(), turn)
	if err != nil || len(links) != 2 {
		t.Fatalf("%d records, %v", len(links), err)
	}
	if diff := cmp.Diff(links, run.Invocations); diff != "" {
		t.Errorf("the turn's links (-records +turn):\n%s", diff)
	}
	first, err := records.Get(t.Context(), links[0].Ref)
	if err != nil {
		t.Fatal(err)
	}
	if first.Run != turn || !first.Created.Equal(now) || first.Parameters.Seed != run.Context.SeedList[0] || first.Parameters.MaxTokens != b.opts.Model.StepTokens {
		t.Errorf("record %+v", first)
	}
	in := first.Inputs.Messages // system text, five examples of a question and an answer each, the question
	if len(in) != 12 || in[0] != (runs.Message{Role: "system", Content: "You are a test."}) || in[11] != (runs.Message{Role: "user", Content: "How is the box?"}) {
		t.Errorf("inputs %+v", in)
	}
	if len(first.Inputs.Tools) != 2 || first.Inputs.Tools[1].Name != "web_search__v1" {
		t.Errorf("tools %+v", first.Inputs.Tools)
	}
	calls := []runs.ToolCall{
		{ID: "mine", Name: "system_health__v1", Input: json.RawMessage(`{"n":1}`)},
		{ID: "call_3", Name: "no_such__v1", Input: json.RawMessage(`{}`)},
		{ID: "call_4", Name: "system_health__v1", Input: json.RawMessage(`{"n":2}`)},
	}
	if diff := cmp.Diff(calls, first.Outputs.ToolCalls); diff != "" || first.Outputs.Returned != 4 {
		t.Errorf("%d calls returned (-want +got):\n%s", first.Outputs.Returned, diff)
	}
	events, err := records.Events(t.Context(), links[0].Ref)
	if err != nil {
		t.Fatal(err)
	}
	var executed []string
	for _, e := range events {
		executed = append(executed, e.Call+" "+e.Status)
	}
	if diff := cmp.Diff([]string{"mine done", "call_4 done"}, executed); diff != "" {
		t.Errorf("events (-want +got):\n%s", diff)
	}
	for i, p := range b.guard.Proposals() {
		if p.RunDigest != links[0].Digest {
			t.Errorf("proposal %d names another model call", i+1)
		}
	}
	second, err := records.Get(t.Context(), links[1].Ref)
	if err != nil || len(second.Outputs.ToolCalls) != 0 || second.Inputs.Messages[len(second.Inputs.Messages)-1].Role != "tool" {
		t.Errorf("second record %+v, %v", second, err)
	}
}

// B9: the hash of the configuration changes with whatever changes how a model answers, and with nothing else.
func TestExecutionContext(t *testing.T) {
	of := func(change func(*conversation.Options)) runs.ExecutionContext {
		b := newBox(t, both(), say("Yes.")...).with(change)
		run, err := b.store.Run(t.Context(), theEnd(t, b.ask("?")).Turn)
		if err != nil {
			t.Fatal(err)
		}
		return run.Context
	}
	base := of(func(*conversation.Options) {})
	if again := of(func(o *conversation.Options) { o.Runs = &conversationtest.Runs{} }); again.ConfigHash != base.ConfigHash || again.EnvironmentHash != base.EnvironmentHash {
		t.Error("the same configuration has two hashes")
	}
	if base.DataVersion == "" || base.EnvironmentHash == (runs.Digest{}) || len(base.SeedList) != 1 {
		t.Errorf("context %+v", base)
	}
	for name, change := range map[string]func(*conversation.Options){
		"prompt":      func(o *conversation.Options) { o.System += " Be brief." },
		"temperature": func(o *conversation.Options) { o.Model.Temperature = 0.9 },
		"grammar":     func(o *conversation.Options) { o.Model.Grammar = !o.Model.Grammar },
		"tokens":      func(o *conversation.Options) { o.Model.StepTokens-- },
		"budget":      func(o *conversation.Options) { o.Turn.Proposals++ },
	} {
		if of(change).ConfigHash == base.ConfigHash {
			t.Errorf("another %s has the same hash", name)
		}
	}
}

func TestNoSuchRun(t *testing.T) {
	if _, err := newBox(t, nil).store.Run(t.Context(), "none"); !errors.Is(err, conversation.ErrNotFound) {
		t.Error(err)
	}
}

// C54: what the model is told before everything else is versioned. Whoever changes its words gives them another version,
// and a line here.
func TestPromptIsVersioned(t *testing.T) {
	versions := map[string]string{
		"system/2": "4fa2cee75fa21459f9708d2c4c6d7073147c370dd60c029008b827f42b2b459b",
	}
	b := newBox(t, both()).with(func(o *conversation.Options) { o.System = conversation.Prompt })
	b.ask("?")
	r := b.model.Requests()[0]
	words, err := json.Marshal([]any{r.System, r.Examples})
	if err != nil {
		t.Fatal(err)
	}
	if got := fmt.Sprintf("%x", sha256.Sum256(words)); versions[conversation.PromptVersion] != got {
		t.Errorf("%s has the digest %s", conversation.PromptVersion, got)
	}
}

// C29: examples name nothing that the catalog does not offer.
func TestExamplesAreOfTheCatalog(t *testing.T) {
	for name, c := range map[string]struct {
		offer []conversationtest.Capability
		want  map[string]bool
	}{
		"a guest":         {nil, map[string]bool{}},
		"something other": {[]conversationtest.Capability{{Name: "notes.list"}}, map[string]bool{}},
		"health alone":    {[]conversationtest.Capability{local()}, map[string]bool{"": true, "system_health__v1": true}},
		"both":            {both(), map[string]bool{"": true, "system_health__v1": true, "web_search__v1": true}},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBox(t, c.offer)
			b.ask("?")
			got := map[string]bool{}
			for _, e := range b.model.Requests()[0].Examples {
				got[e.Name] = true
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("examples (-want +got):\n%s", diff)
			}
		})
	}
}
