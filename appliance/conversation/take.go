package conversation

import (
	"context"
	"crypto/sha256"
	"errors"
	"time"

	"assent.home.arpa/appliance/ipc"
	"assent.home.arpa/appliance/wire"
	"assent.home.arpa/capabilities"
	"assent.home.arpa/inference"
	"assent.home.arpa/inference/proposal"
)

// stopWait is how long the guard may take to say how the proposal of a stopped turn ended. What waits at the box ends at
// once; what is being executed goes on.
const stopWait = 30 * time.Second

// take deals with one item of a step: exactly one outcome comes of it. Every item counts, whatever it is; automatic and
// local capabilities are counted like all others.
func (r *run) take(ctx context.Context, s said, i int) {
	r.proposals++
	over := r.proposals > r.s.opts.Turn.Proposals
	r.spent = r.spent || over
	switch item := s.Items[i].(type) {
	case proposal.Failure:
		if over {
			r.refuse(ctx, s.n, "", overBudget(turnSpent), item.Raw)
			return
		}
		r.refuse(ctx, s.n, "", unparsed(item), item.Raw)
	case proposal.Candidate:
		r.used[item.Name]++
		limit, capped := r.catalog.PerTurn[item.Name]
		switch {
		case over:
			r.refuse(ctx, s.n, item.Name, overBudget(turnSpent), item.Raw)
		case capped && r.used[item.Name] > limit:
			r.refuse(ctx, s.n, item.Name, overBudget(toolSpent), item.Raw)
		case ctx.Err() != nil:
			r.refuse(ctx, s.n, item.Name, tooLate(), item.Raw)
		default:
			r.settle(ctx, item.Name, r.propose(ctx, s, i, item))
		}
	}
}

// takeMore refuses, in one outcome, the calls that nobody looked at because there were too many.
func (r *run) takeMore(ctx context.Context, s said) {
	if s.More > 0 {
		r.proposals += s.More
		r.spent = true
		r.refuse(ctx, s.n, "", overMany(s.More), nil)
	}
}

// refuse is for what never reaches the guard's stages. The guard hears of it as the gateway's claim, which says what was
// wrong in our words; of what the model wrote it has the digest.
func (r *run) refuse(ctx context.Context, step int, name string, o wire.Outcome, raw []byte) {
	class := ipc.ClaimBudget
	if o.Stage == capabilities.StageParse.String() {
		class = ipc.ClaimParseFailure
	}
	r.claim(ipc.Claim{Class: class, Code: o.Code, Detail: []byte(o.Message), Digest: sha256.Sum256(raw), Step: uint16(step)})
	r.settle(ctx, name, o)
}

// propose submits a candidate and waits for how it ended. Once it is submitted a cancelled turn does not stop waiting: it
// tells the guard, whose answer is the truth.
func (r *run) propose(ctx context.Context, s said, i int, c proposal.Candidate) wire.Outcome {
	call, giveUp := context.WithCancel(context.WithoutCancel(ctx))
	defer giveUp()
	defer context.AfterFunc(ctx, func() {
		if err := r.s.opts.Guard.EndAsk(r.turn.Ask); err != nil {
			r.s.log.Warn("a proposal could not be withdrawn", "err", err)
		}
		time.AfterFunc(stopWait, giveUp)
	})()
	p := ipc.Propose{
		Ask: r.turn.Ask, Name: []byte(c.Name), Arguments: c.Arguments,
		Step: uint16(s.n), Index: uint16(r.proposals), RunDigest: s.digest,
	}
	var shown *ipc.Pending
	o, err := r.s.opts.Guard.Propose(call, p, func(p *ipc.Pending) {
		shown = p
		r.showPending(p)
	})
	r.setPending(nil)
	var out wire.Outcome
	var refused *ipc.Error
	switch {
	case errors.As(err, &refused):
		out = turnedAway(refused.Code, refused.Message)
	case errors.Is(err, ErrNotSubmitted):
		out = turnedAway(codeGuard, "the part of the box that guards requests is not answering, so nothing was done")
	case err != nil:
		out = lostTrack()
		if shown != nil { // so that the phone can take the card away
			out.Invocation = shown.Inv.String()
		}
	default:
		if out, err = r.outcome(c.Name, o); err != nil {
			r.claim(ipc.Claim{Class: ipc.ClaimResult, Code: out.Code, Digest: sha256.Sum256(o.Body), Step: uint16(s.n)})
		}
	}
	r.recordCall(ctx, s, i, out)
	return out
}

// showPending tells the phone to look at the box, and that somebody there has let it go ahead. The model is not told.
func (r *run) showPending(p *ipc.Pending) {
	w := wire.Pending{
		Conversation: r.talk.id.String(), Turn: r.talk.turn, Invocation: p.Inv.String(),
		Capability: p.Name, Version: p.Version, Revision: p.Revision,
		Title: p.Title, Text: p.Text, Destination: p.Destination, Pages: p.Pages, Request: string(p.Request),
		ArgsDigest: capabilities.ArgsDigest(p.ArgsDigest).String(), Decided: p.Decided,
	}
	r.setPending(&w)
	r.emit(wire.TypePending, w)
}

func (r *run) setPending(w *wire.Pending) {
	r.s.mu.Lock()
	defer r.s.mu.Unlock()
	r.talk.pending = w
}

// settle appends an outcome to the conversation and shows it: the same object to both. Where nobody else has said which
// capability it is about, the catalog's entry of exactly that name does.
func (r *run) settle(ctx context.Context, name string, o wire.Outcome) {
	if _, ok := r.catalog.Results[name]; ok && o.Capability == "" {
		o.Capability, o.Version, _ = capabilities.ParseWireName(name)
	}
	r.append(ctx, entry{message: inference.Message{Kind: inference.Outcome, Text: data(o), Call: name}, outcome: &o})
	r.emit(wire.TypeResult, wire.Result{Conversation: r.talk.id.String(), Turn: r.talk.turn, Outcome: o})
}
