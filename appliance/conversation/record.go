package conversation

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"

	"assent.home.arpa/appliance/config"
	"assent.home.arpa/appliance/wire"
	"assent.home.arpa/capabilities"
	"assent.home.arpa/inference"
	"assent.home.arpa/inference/proposal"
	"assent.home.arpa/inference/runs"
)

// record keeps what the model was asked and what it returned, and names that record in s. A record that cannot be stored
// still has its digest; the turn goes on.
func (r *run) record(ctx context.Context, s *said, req inference.Request, step inference.Step) {
	r.seeds = append(r.seeds, req.Seed)
	now, _ := r.s.opts.Clock.Wall()
	inv := runs.Record(fmt.Sprintf("%s.%d", r.talk.turn, s.n), r.talk.turn, now, r.info, req, step, s.Parsed)
	link, err := inv.Link()
	if err != nil {
		r.s.log.Error("a model call cannot be recorded", "err", err)
		return
	}
	r.links = append(r.links, link)
	s.record, s.digest, s.calls = inv.ID, link.Digest, callIDs(s.Parsed)
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), storeWait)
	defer cancel()
	if _, err := r.s.opts.Runs.Append(ctx, inv); err != nil {
		r.s.log.Error("a model call could not be recorded", "err", err)
	}
}

// callIDs pairs the items of a step with the calls of its record.
func callIDs(p proposal.Parsed) []string {
	ids := make([]string, len(p.Items))
	calls := runs.ToolCalls(p)
	for i, item := range p.Items {
		if _, ok := item.(proposal.Candidate); ok {
			ids[i], calls = calls[0].ID, calls[1:]
		}
	}
	return ids
}

// recordCall keeps that a requested call was executed, or may have been. A request that ended before that is none.
func (r *run) recordCall(ctx context.Context, s said, i int, o wire.Outcome) {
	switch o.Status {
	case capabilities.Done.String(), capabilities.Failed.String(), capabilities.Unknown.String():
	default:
		return
	}
	if s.record == "" {
		return // its absence was logged
	}
	now, _ := r.s.opts.Clock.Wall()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), storeWait)
	defer cancel()
	err := r.s.opts.Runs.AppendEvent(ctx, runs.ToolCallEvent{
		Invocation: s.record, Call: s.calls[i], Audit: o.Invocation, Status: o.Status, Code: string(o.Code), At: now,
	})
	if err != nil {
		r.s.log.Error("an executed call could not be recorded", "inv", o.Invocation, "err", err)
	}
}

// summary is the turn's own record: hashes of what it can be reproduced from, and links to its model calls.
func (r *run) summary() runs.Run {
	run := runs.Run{
		ID: r.talk.turn, Invocations: append([]runs.Link{}, r.links...),
		Context: runs.ExecutionContext{
			ConfigHash: digest(struct {
				Prompt string       `json:"prompt"`
				System string       `json:"system"`
				Model  config.Model `json:"model"`
				Turn   config.Turn  `json:"turn"`
			}{PromptVersion, r.s.opts.System, r.s.opts.Model, r.s.opts.Turn}),
			EnvironmentHash: digest(r.info),
			SeedList:        append([]uint32{}, r.seeds...),
		},
	}
	if r.catalog != nil {
		run.Context.DataVersion = hex.EncodeToString(r.catalog.Registry[:])
	}
	return run
}

// digest is SHA-256 over v as JSON; struct fields keep their order.
func digest(v any) runs.Digest {
	b, err := json.Marshal(v)
	if err != nil {
		panic("conversation: internal error: " + err.Error()) // plain data only
	}
	return sha256.Sum256(b)
}
