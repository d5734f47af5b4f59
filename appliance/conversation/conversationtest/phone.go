package conversationtest

import (
	"encoding/json"
	"strings"
	"sync"

	"assent.home.arpa/appliance/wire"
)

// Frame is one frame that a phone was sent.
type Frame struct {
	Type wire.Type
	Data any
}

// Phone collects what it is sent.
type Phone struct {
	mu     sync.Mutex
	frames []Frame
}

// Emit is a conversation.Emit.
func (p *Phone) Emit(t wire.Type, data any) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.frames = append(p.frames, Frame{t, data})
}

// Frames returns everything so far.
func (p *Phone) Frames() []Frame {
	p.mu.Lock()
	defer p.mu.Unlock()
	return append([]Frame{}, p.frames...)
}

func all[T any](p *Phone) []T {
	var out []T
	for _, f := range p.Frames() {
		if v, ok := f.Data.(T); ok {
			out = append(out, v)
		}
	}
	return out
}

// Outcomes returns the outcomes so far.
func (p *Phone) Outcomes() []wire.Outcome {
	var out []wire.Outcome
	for _, r := range all[wire.Result](p) {
		out = append(out, r.Outcome)
	}
	return out
}

// OutcomeJSON returns the outcomes as the bytes that go over the air.
func (p *Phone) OutcomeJSON() []string {
	var out []string
	for _, o := range p.Outcomes() {
		b, err := json.Marshal(o)
		if err != nil {
			panic(err)
		}
		out = append(out, string(b))
	}
	return out
}

// Pending returns the cards so far.
func (p *Phone) Pending() []wire.Pending { return all[wire.Pending](p) }

// Ends returns the ends of turns so far.
func (p *Phone) Ends() []wire.TurnEnd { return all[wire.TurnEnd](p) }

// Prose returns all prose so far.
func (p *Phone) Prose() string {
	var b strings.Builder
	for _, t := range all[wire.Text](p) {
		b.WriteString(t.Text)
	}
	return b.String()
}
