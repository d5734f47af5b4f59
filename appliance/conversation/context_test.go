package conversation_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"assent.home.arpa/appliance/conversation"
	"assent.home.arpa/appliance/conversation/conversationtest"
	"assent.home.arpa/appliance/wire"
	"assent.home.arpa/inference"
)

// room gives the model's context as many tokens as are asked for, besides what the stable text and an answer take.
func (b *box) room(tokens int) {
	b.t.Helper()
	script := b.model.Say
	b.model.Say = conversationtest.Script()
	b.askIn(99, talk(99), "?")
	stable := b.model.Requests()[0]
	stable.History = nil
	n, err := b.model.Count(b.t.Context(), stable)
	if err != nil {
		b.t.Fatal(err)
	}
	b.model = &conversationtest.Model{Say: script, Context: n + stable.MaxTokens + tokens}
	b.with(func(o *conversation.Options) { o.Provider = b.model })
}

// A38: whatever turns are long, no request is over the model's context; what is dropped is the oldest turns, as wholes,
// and what is left is as it was said.
func TestContextIsBounded(t *testing.T) {
	for name, lengths := range map[string][]int{
		"all alike":           {300, 300, 300, 300, 300, 300},
		"a long one in front": {1500, 10, 10, 10, 10},
		"a long one later":    {10, 400, 10, 1500, 10, 10},
		"long ones":           {1500, 1500, 1500, 1500},
		"growing":             {50, 100, 200, 400, 800, 1600},
	} {
		t.Run(name, func(t *testing.T) {
			k := local()
			k.Run = conversationtest.Answer(fmt.Sprintf(`{"log":%q}`, strings.Repeat("x", 200)))
			b := newBox(t, []conversationtest.Capability{k}).with(func(o *conversation.Options) { o.Model.StepTokens = 64 })
			b.room(600)
			b.model.Say = func(_ int, r inference.Request) conversationtest.Reply {
				if last := r.History[len(r.History)-1]; last.Kind == inference.User {
					return conversationtest.Reply{Text: health(1)}
				}
				return conversationtest.Reply{Text: "It is fine."}
			}
			var whole []inference.Message // everything that was said
			for i, n := range lengths {
				if end := theEnd(t, b.ask(fmt.Sprintf("%d %s", i, strings.Repeat("q", n)))); end.Reason != "complete" {
					t.Fatalf("turn %d ended with %+v", i, end)
				}
				requests := b.model.Requests()
				last := requests[len(requests)-1]
				whole = append(whole, last.History[len(last.History)-3:]...)
				check(t, b, last, whole)
				whole = append(whole, inference.Message{Kind: inference.Assistant, Text: "It is fine."})
			}
			if requests := b.model.Requests(); len(requests[len(requests)-1].History) == len(whole)-1 {
				t.Error("nothing had to be dropped")
			}
		})
	}
}

// check verifies that a request is the end of what was said, begins with a question, keeps outcomes as objects, and has
// room for the answer.
func check(t *testing.T, b *box, r inference.Request, whole []inference.Message) {
	n, err := b.model.Count(b.t.Context(), r)
	if err != nil || n+r.MaxTokens > b.model.Context {
		t.Fatalf("a prompt of %d tokens, and %d to come, in a context of %d (%v)", n, r.MaxTokens, b.model.Context, err)
	}
	if r.History[0].Kind != inference.User {
		t.Fatalf("the context begins with %s", r.History[0].Kind)
	}
	if r.System == "" || len(r.Catalog) != 1 {
		t.Fatal("the stable text is gone")
	}
	texts := func(list []inference.Message) (out []string) {
		for _, m := range list {
			out = append(out, m.Kind.String()+" "+m.Text)
		}
		return out
	}
	if diff := cmp.Diff(texts(whole[len(whole)-len(r.History):]), texts(r.History)); diff != "" {
		t.Fatalf("the context is not the end of what was said (-said +context):\n%s", diff)
	}
	for _, text := range told(r) {
		var o wire.Outcome
		if err := json.Unmarshal([]byte(text), &o); err != nil || o.Status != "done" || !json.Valid(o.Data) {
			t.Fatalf("an outcome lost its structure: %s", text)
		}
	}
}

// Dropping leaves room, so that the prefix cache is lost once in a while and not in every turn.
func TestContextIsTrimmedInStrides(t *testing.T) {
	b := newBox(t, both()).with(func(o *conversation.Options) { o.Model.StepTokens = 64 })
	b.room(600)
	lost := 0
	for i := range 24 {
		b.ask(fmt.Sprintf("%d %s", i, strings.Repeat("q", 250)))
	}
	steps := b.model.Steps()
	for i, s := range steps[1:] {
		if s.CachedTokens < steps[i].PromptTokens-1 {
			lost++
		}
	}
	if lost == 0 || lost > len(steps)/4 {
		t.Errorf("the prefix cache was lost in %d of %d turns", lost, len(steps))
	}
}

// One turn that is too long for the model ends with words for a person; the next goes on without it.
func TestOneTurnOverTheContext(t *testing.T) {
	b := newBox(t, both(), say("one", "three")...).with(func(o *conversation.Options) { o.Model.StepTokens = 64 })
	b.room(150)
	b.ask("short")
	if end := theEnd(t, b.ask(strings.Repeat("q", 4000))); end.Reason != "failed" || end.Code != "context_full" || end.Message == "" {
		t.Errorf("end %+v", end)
	}
	if end := theEnd(t, b.ask("short again")); end.Reason != "complete" {
		t.Errorf("end %+v", end)
	}
	requests := b.model.Requests()
	if last := requests[len(requests)-1]; len(last.History) != 1 || last.History[0].Text != "short again" {
		t.Errorf("the last request has %d messages", len(last.History))
	}
}

// What left the model's context may still be read on the phone, and a restart brings none of it back to the model.
func TestPhoneReadsMoreThanTheModel(t *testing.T) {
	b := newBox(t, both()).with(func(o *conversation.Options) { o.Model.StepTokens = 64 })
	b.room(320)
	for i := range 6 {
		b.ask(fmt.Sprintf("%d %s", i, strings.Repeat("q", 500)))
	}
	requests := b.model.Requests()
	kept := requests[len(requests)-1].History
	if snap, _ := b.Snapshot(1, talk(1)); len(snap.Items) != 12 || len(kept) >= 11 {
		t.Fatalf("the phone reads %d items, the model %d", len(snap.Items), len(kept))
	}
	first := kept[0].Text
	b.with(func(o *conversation.Options) { o.Store = openStore(t, b.path) })
	b.model.Context = 8192 // room for everything, if it were still there
	b.ask("after")
	requests = b.model.Requests()
	if got := requests[len(requests)-1].History; got[0].Text != first {
		t.Errorf("after a restart the context begins with %.8q and not %.8q", got[0].Text, first)
	}
}

// The bounds of what is kept hold however long a conversation goes on, and cut between turns.
func TestConversationIsBounded(t *testing.T) {
	b := newBox(t, both())
	b.model.Context = 20_000
	text := strings.Repeat("q", 30<<10)
	for range 20 { // 600 KiB
		b.ask(text)
	}
	for _, s := range []*box{b, b.with(func(o *conversation.Options) { o.Store = openStore(t, b.path) })} {
		snap, ok := s.Snapshot(1, talk(1))
		size := 0
		for _, i := range snap.Items {
			size += len(i.Text)
		}
		if !ok || size > 512<<10 || size < 480<<10 || snap.Items[0].Kind != "question" {
			t.Errorf("%d bytes are kept, beginning with a %s", size, snap.Items[0].Kind)
		}
	}
}
