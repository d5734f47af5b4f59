package conversation

import (
	"context"
	"errors"
	"time"

	"assent.home.arpa/appliance/wire"
	"assent.home.arpa/capabilities"
	"assent.home.arpa/inference"
	"assent.home.arpa/inference/proposal"
)

// How long the model may be silent: a slow box reads some 30 tokens of a prompt a second and then says a few a second. One
// that is silent for longer hangs, and would keep every other phone waiting.
const (
	silence        = time.Minute
	perPromptToken = 100 * time.Millisecond
)

// said is what one step of the model came to.
type said struct {
	proposal.Parsed
	n      int // the step's number in the turn, from 1
	stop   inference.Stop
	digest [32]byte // of the record of the model call; zero where there is none
	record string   // its id
	calls  []string // item → id of the call in that record, empty where it could not be read
}

// step runs the model once and records what it was asked and what it returned. With an error, what had arrived is in said.
func (r *run) step(ctx context.Context, n int) (said, error) {
	release, err := r.s.schedule.acquire(ctx, r.turn.Slot)
	if err != nil {
		return said{}, err
	}
	req, step, err := r.generate(ctx, n)
	release()
	if err != nil && step.Text == "" {
		return said{}, err
	}
	out := said{Parsed: proposal.Parse(r.dialect.Markers, step.Text, step.Stop), n: n, stop: step.Stop}
	r.append(ctx, entry{
		message: inference.Message{Kind: inference.Assistant, Text: step.Text, Tokens: step.Tokens}, prose: out.Prose,
	})
	r.total.Tokens += step.GeneratedTokens
	r.total.DecodeMillis += step.DecodeMillis
	r.total.PromptMillis += step.PromptMillis
	r.total.Prompt, r.total.Cached = step.PromptTokens, step.CachedTokens
	r.record(ctx, &out, req, step)
	return out, err
}

// generate builds the request, makes it fit, and streams the prose.
func (r *run) generate(ctx context.Context, n int) (inference.Request, inference.Step, error) {
	req, prompt, err := r.request(ctx, n)
	if err != nil {
		return req, inference.Step{}, err
	}
	prose := proposal.NewStreamer(r.dialect.Markers)
	say := func(text string) {
		if text != "" {
			r.emit(wire.TypeText, wire.Text{Conversation: r.talk.id.String(), Turn: r.talk.turn, Text: text})
		}
	}
	stall, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	watch := time.AfterFunc(silence+time.Duration(prompt)*perPromptToken, func() { cancel(errStalled) })
	defer watch.Stop()
	step, err := r.s.opts.Provider.Step(stall, req, func(delta string) {
		watch.Reset(silence)
		say(prose.Write(delta))
	})
	if err != nil && errors.Is(context.Cause(stall), errStalled) {
		err = errStalled
	}
	say(prose.Close(step.Stop))
	return req, step, err
}

// request puts the stable text first and drops the oldest turns until the rest fits. It drops to three quarters, so that
// the engine's prefix cache is lost once in a while and not in every turn. It returns the prompt's tokens as well.
func (r *run) request(ctx context.Context, n int) (inference.Request, int, error) {
	model := r.s.opts.Model
	req := inference.Request{
		System: r.s.opts.System, MaxTokens: model.StepTokens, Temperature: model.Temperature, Grammar: model.Grammar,
		Seed: r.seed(n), Examples: examples(r.catalog), Catalog: make([]capabilities.Entry, len(r.catalog.Entries)),
	}
	for i, e := range r.catalog.Entries {
		req.Catalog[i] = capabilities.Entry{Name: e.Name, Version: e.Version, Description: e.Description, Parameters: e.Parameters}
	}
	room := r.info.Context - req.MaxTokens
	target := room
	for {
		r.s.mu.Lock()
		req.History = r.talk.history()
		r.s.mu.Unlock()
		prompt, err := r.s.opts.Provider.Count(ctx, req)
		if err != nil || prompt <= target {
			return req, prompt, err
		}
		target = room * 3 / 4
		r.s.mu.Lock()
		dropped := r.talk.forgetTurn()
		r.s.mu.Unlock()
		switch {
		case dropped:
		case prompt <= room:
			return req, prompt, nil
		default:
			return req, prompt, &inference.OverflowError{Prompt: prompt, Context: r.info.Context}
		}
	}
}

// seed differs from step to step and from turn to turn, and is in the record of the model call.
func (r *run) seed(n int) uint32 {
	return uint32(r.turn.Ask[0])<<24 | uint32(r.turn.Ask[1])<<16 | uint32(r.turn.Ask[2])<<8 | uint32(n)
}
