package conversation_test

import (
	"context"
	"encoding/json"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"assent.home.arpa/appliance/clock"
	"assent.home.arpa/appliance/clock/clocktest"
	"assent.home.arpa/appliance/config"
	"assent.home.arpa/appliance/conversation"
	"assent.home.arpa/appliance/conversation/conversationtest"
	"assent.home.arpa/appliance/ipc"
	"assent.home.arpa/appliance/wire"
	"assent.home.arpa/capabilities"
	"assent.home.arpa/inference"
)

// box is a conversation service between a scripted model and a guard.
type box struct {
	*conversation.Service
	t     *testing.T
	path  string // of the store
	model *conversationtest.Model
	guard *conversationtest.Guard
	store *conversation.Store
	runs  *conversationtest.Runs
	opts  conversation.Options
}

// now is what the box's clock says.
var now = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// newBox makes a box that can do what is listed. The model ends every turn with prose once its script is over.
func newBox(t *testing.T, list []conversationtest.Capability, script ...conversationtest.Reply) *box {
	t.Helper()
	path := filepath.Join(t.TempDir(), "conversations.db")
	b := &box{
		t: t, path: path, guard: conversationtest.NewGuard(list...), store: openStore(t, path), runs: &conversationtest.Runs{},
		model: &conversationtest.Model{Context: 8192, Say: conversationtest.Script(script...)},
	}
	standing := clocktest.New()
	standing.SetWall(now, clock.Synced)
	defaults := config.Default()
	b.opts = conversation.Options{
		Provider: b.model, Guard: b.guard, Runs: b.runs, Store: b.store,
		Model: defaults.Model, Turn: defaults.Turn, Clock: standing, System: "You are a test.",
	}
	b.Service = conversation.New(b.opts)
	return b
}

func openStore(t *testing.T, path string) *conversation.Store {
	t.Helper()
	s, err := conversation.OpenStore(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}

// with changes the options.
func (b *box) with(change func(*conversation.Options)) *box {
	change(&b.opts)
	b.Service = conversation.New(b.opts)
	return b
}

// talk is a conversation's id.
func talk(n byte) ipc.ID { return ipc.ID{0xc0, n} }

// ask runs one turn of phone 1 in its first conversation.
func (b *box) ask(text string) *conversationtest.Phone {
	b.t.Helper()
	return b.askIn(1, talk(1), text)
}

func (b *box) askIn(slot uint32, id ipc.ID, text string) *conversationtest.Phone {
	b.t.Helper()
	phone := &conversationtest.Phone{}
	if err := b.Ask(b.t.Context(), conversation.Turn{Slot: slot, Conversation: id, Ask: b.guard.Open(), Text: text}, phone.Emit); err != nil {
		b.t.Fatal(err)
	}
	return phone
}

// begin starts a turn that end waits for.
func (b *box) begin(ctx context.Context, slot uint32, id ipc.ID, text string) (phone *conversationtest.Phone, end func()) {
	phone = &conversationtest.Phone{}
	done := make(chan error, 1)
	go func() {
		done <- b.Ask(ctx, conversation.Turn{Slot: slot, Conversation: id, Ask: b.guard.Open(), Text: text}, phone.Emit)
	}()
	return phone, func() {
		b.t.Helper()
		if err := <-done; err != nil {
			b.t.Fatal(err)
		}
	}
}

// call writes a call as the model does.
func call(name, arguments string) string {
	return fmt.Sprintf(`<tool_call>{"name":%q,"arguments":%s}</tool_call>`, name, arguments)
}

// health is a call of the n-th flavour; the argument tells them apart.
func health(n int) string { return call("system_health__v1", fmt.Sprintf(`{"n":%d}`, n)) }

func say(texts ...string) []conversationtest.Reply {
	var out []conversationtest.Reply
	for _, s := range texts {
		out = append(out, conversationtest.Reply{Text: s})
	}
	return out
}

// local is a capability that needs no press, search one that does.
func local() conversationtest.Capability {
	return conversationtest.Capability{Name: "system.health", Run: conversationtest.Answer(`{"load":1}`)}
}

func search() conversationtest.Capability {
	return conversationtest.Capability{
		Name: "web.search", Press: true,
		Run: conversationtest.Answer(`{"citations":[{"url":"https://tea.example/","content":"Tea is a drink.","retrieved_at":"2026-03-01T12:00:00Z"}]}`),
	}
}

func both() []conversationtest.Capability { return []conversationtest.Capability{local(), search()} }

// short is an outcome in a few words.
func short(o wire.Outcome) string {
	return strings.Trim(fmt.Sprintf("%s %s %s", o.Stage, o.Status, o.Code), " ")
}

func shorts(list []wire.Outcome) []string {
	out := make([]string, len(list))
	for i, o := range list {
		out[i] = short(o)
	}
	return out
}

// told returns the outcomes in what the model was given, as the texts that it was given.
func told(r inference.Request) []string {
	var out []string
	for _, m := range r.History {
		if m.Kind == inference.Outcome {
			out = append(out, m.Text)
		}
	}
	return out
}

func decode(t *testing.T, texts []string) []wire.Outcome {
	t.Helper()
	var out []wire.Outcome
	for _, s := range texts {
		var o wire.Outcome
		if err := json.Unmarshal([]byte(s), &o); err != nil {
			t.Fatalf("%q: %v", s, err)
		}
		out = append(out, o)
	}
	return out
}

func theEnd(t *testing.T, p *conversationtest.Phone) wire.TurnEnd {
	t.Helper()
	frames := p.Frames()
	if ends := p.Ends(); len(ends) != 1 || frames[len(frames)-1].Type != wire.TypeTurnEnd {
		t.Fatalf("%d ends of turn, and the last frame is %s", len(ends), frames[len(frames)-1].Type)
	}
	return p.Ends()[0]
}

func claimCodes(list []ipc.Claim) []string {
	out := []string{}
	for _, c := range list {
		out = append(out, fmt.Sprintf("%d %s", c.Class, c.Code))
	}
	return out
}

const (
	done   = "record done"
	budget = "budget rejected budget_exhausted"
)

var noCode capabilities.Code
