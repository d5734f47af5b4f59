package gateway_test

import (
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"net"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/gorilla/websocket"

	"assent.home.arpa/appliance/clock"
	"assent.home.arpa/appliance/config"
	"assent.home.arpa/appliance/gateway"
	"assent.home.arpa/appliance/ipc"
	"assent.home.arpa/appliance/wire"
	"assent.home.arpa/inference"
)

// recital is a model that says one text a step.
type recital struct {
	mu       sync.Mutex
	steps    []string
	requests []inference.Request
}

func (m *recital) Info(context.Context) (inference.Info, error) {
	return inference.Info{Model: "recital", Dialect: "chatml-hermes", Context: 4096}, nil
}

func (m *recital) Count(context.Context, inference.Request) (int, error) { return 100, nil }

func (m *recital) Step(_ context.Context, r inference.Request, text func(string)) (inference.Step, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.requests = append(m.requests, r)
	say := "That is all."
	if n := len(m.requests); n <= len(m.steps) {
		say = m.steps[n-1]
	}
	text(say)
	return inference.Step{Text: say, Stop: inference.StopEnd, GeneratedTokens: 1}, nil
}

// A28, A27: through the real conversation, phone and model are given the same object, and what waits is not told to the
// model.
func TestModelAndPhoneAreGivenTheSame(t *testing.T) {
	model := &recital{steps: []string{
		"I will look.\n<tool_call>\n{\"name\":\"web_search__v1\",\"arguments\":{\"query\":\"eiffel tower\"}}\n</tool_call>",
		"It is 330 metres tall.",
	}}
	guard := newFakeGuard(t)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	b := &box{guard: guard, addr: l.Addr().String(), dialer: websocket.DefaultDialer, done: make(chan error, 1)}
	var ctx context.Context
	ctx, b.cancel = context.WithCancel(context.Background())
	ready := make(chan struct{})
	dir := t.TempDir()
	go func() {
		b.done <- gateway.Run(ctx, gateway.Options{
			Config: config.Default(), Listener: l, Guard: guard.path, Provider: model, StateDir: dir, Clock: clock.System(),
			Log: slog.New(slog.NewTextHandler(io.Discard, nil)), Ready: func() { close(ready) },
		})
	}()
	select {
	case <-ready:
	case err := <-b.done:
		t.Fatal(err)
	}
	p := newHandset(t, b, 1)
	p.connect(talkA)
	p.ask(talkA, "How tall is the Eiffel tower?")
	var prose strings.Builder
	var result frame
	for ended := false; !ended; {
		f := p.next()
		switch f.Type {
		case wire.TypeText:
			prose.WriteString(decode[wire.Text](t, f).Text)
		case wire.TypePending:
			model.mu.Lock()
			if len(model.requests) != 1 {
				t.Errorf("the model was run %d times before anybody decided", len(model.requests))
			}
			model.mu.Unlock()
			guard.press <- []byte(`{"citations":[{"title":"Eiffel Tower","url":"https://en.wikipedia.org/wiki/Eiffel_Tower","content":"330 metres","retrieved_at":"2026-11-03T12:00:00Z"}]}`)
		case wire.TypeResult:
			result = f
		case wire.TypeTurnEnd:
			ended = true
			if end := decode[wire.TurnEnd](t, f); end.Reason != "complete" {
				t.Errorf("the turn ended with %+v", end)
			}
		}
	}
	if got := prose.String(); strings.Contains(got, "tool_call") || !strings.Contains(got, "330 metres") {
		t.Errorf("prose %q", got)
	}
	var phone struct{ Outcome json.RawMessage }
	if err := json.Unmarshal(result.Data, &phone); err != nil {
		t.Fatal(err)
	}
	if len(model.requests) != 2 {
		t.Fatalf("the model was run %d times", len(model.requests))
	}
	history := model.requests[1].History
	if diff := cmp.Diff(string(phone.Outcome), history[len(history)-1].Text); diff != "" {
		t.Errorf("phone and model were told different things (-phone +model)\n%s", diff)
	}
	if p := await[*ipc.Propose](t, guard, 1); string(p[0].Arguments) != `{"query":"eiffel tower"}` || string(p[0].Name) != "web_search__v1" {
		t.Errorf("proposed %+v", p[0])
	}
	if err := b.stop(); err != nil {
		t.Errorf("Run: %v", err)
	}
}
