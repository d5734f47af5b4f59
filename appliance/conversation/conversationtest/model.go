package conversationtest

import (
	"context"
	"strings"
	"sync"
	"time"

	"assent.home.arpa/inference"
	"assent.home.arpa/inference/dialect"
)

// Reply is what the model does in one step.
type Reply struct {
	Text  string
	Stop  inference.Stop // zero: StopEnd
	Die   bool           // the engine is killed after Text
	Hang  bool           // after Text nothing comes until the step is given up
	Err   error          // nothing is generated at all
	Pause time.Duration  // before each piece
}

// Script replies with each reply once, and with plain prose from then on.
func Script(replies ...Reply) func(n int, r inference.Request) Reply {
	return func(n int, _ inference.Request) Reply {
		if n > len(replies) {
			return Reply{Text: "That is all."}
		}
		return replies[n-1]
	}
}

// Model is an inference.Provider. A token of it is about four bytes.
type Model struct {
	Context int
	// Say decides the model's n-th step, from 1.
	Say func(n int, r inference.Request) Reply

	mu       sync.Mutex
	requests []inference.Request
	steps    []inference.Step
	prompt   string // of the last step: what its prefix cache holds
	running  bool
	overlaps int
}

var _ inference.Provider = (*Model)(nil)

// pieceSize is the bytes of one streamed piece; small and odd, so that marks arrive in parts.
const pieceSize = 5

func family() dialect.Dialect {
	d, err := dialect.Named("chatml-hermes")
	if err != nil {
		panic(err)
	}
	return d
}

// Info implements inference.Provider.
func (m *Model) Info(context.Context) (inference.Info, error) {
	return inference.Info{Model: "test", Dialect: family().Name, Context: m.Context, Scripted: true}, nil
}

func render(r inference.Request) (string, error) {
	pieces, err := family().Render(r)
	var b strings.Builder
	for _, p := range pieces {
		b.WriteString(p.Text)
	}
	return b.String(), err
}

func tokens(text string) int { return (len(text) + 3) / 4 }

// Count implements inference.Provider.
func (m *Model) Count(_ context.Context, r inference.Request) (int, error) {
	text, err := render(r)
	return tokens(text), err
}

// Step implements inference.Provider.
func (m *Model) Step(ctx context.Context, r inference.Request, text func(string)) (inference.Step, error) {
	prompt, err := render(r)
	if err != nil {
		return inference.Step{}, err
	}
	if n := tokens(prompt); n+r.MaxTokens > m.Context {
		return inference.Step{}, &inference.OverflowError{Prompt: n, Context: m.Context}
	}
	m.mu.Lock()
	if m.running {
		m.overlaps++
	}
	m.running = true
	m.requests = append(m.requests, r)
	n := len(m.requests)
	cached := commonPrefix(m.prompt, prompt)
	m.prompt = prompt
	m.mu.Unlock()

	s, err := speak(ctx, m.Say(n, r), text)
	s.PromptTokens, s.CachedTokens = tokens(prompt), cached/4

	m.mu.Lock()
	defer m.mu.Unlock()
	m.running = false
	m.steps = append(m.steps, s)
	return s, err
}

// speak streams a reply.
func speak(ctx context.Context, reply Reply, text func(string)) (inference.Step, error) {
	if reply.Err != nil {
		return inference.Step{}, reply.Err
	}
	s := inference.Step{Stop: inference.StopAborted}
	for rest := reply.Text; rest != ""; {
		if reply.Pause > 0 {
			select {
			case <-time.After(reply.Pause):
			case <-ctx.Done():
				return s, ctx.Err()
			}
		}
		piece := rest[:min(pieceSize, len(rest))]
		rest = rest[len(piece):]
		s.Text += piece
		s.GeneratedTokens++
		s.Tokens = append(s.Tokens, int32(len(s.Text))<<8|int32(piece[0]))
		text(piece)
		if ctx.Err() != nil {
			return s, ctx.Err()
		}
	}
	switch {
	case reply.Hang:
		<-ctx.Done()
		return s, ctx.Err()
	case reply.Die:
		return s, inference.ErrInterrupted
	}
	s.Stop = reply.Stop
	if s.Stop == 0 {
		s.Stop = inference.StopEnd
	}
	return s, nil
}

func commonPrefix(a, b string) int {
	n := 0
	for n < len(a) && n < len(b) && a[n] == b[n] {
		n++
	}
	return n
}

// Requests returns what the model was asked, in order.
func (m *Model) Requests() []inference.Request {
	m.mu.Lock()
	defer m.mu.Unlock()
	return append([]inference.Request{}, m.requests...)
}

// Steps returns what the model said, in order.
func (m *Model) Steps() []inference.Step {
	m.mu.Lock()
	defer m.mu.Unlock()
	return append([]inference.Step{}, m.steps...)
}

// Overlaps returns how often a step was begun while another ran.
func (m *Model) Overlaps() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.overlaps
}
