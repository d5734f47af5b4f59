package conversation

import (
	"context"
	"errors"

	"assent.home.arpa/appliance/ipc"
	"assent.home.arpa/appliance/wire"
	"assent.home.arpa/capabilities"
	"assent.home.arpa/inference"
	"assent.home.arpa/inference/dialect"
	"assent.home.arpa/inference/runs"
)

// run is one turn under way. One goroutine owns it.
type run struct {
	s    *Service
	turn Turn
	talk *talk
	emit Emit

	catalog   *ipc.Catalog
	lost      map[string]bool // wire names of the catalog that are gone, and were said to be
	info      inference.Info
	dialect   dialect.Dialect
	proposals int            // of this turn, whatever became of them
	used      map[string]int // wire name → proposals of this turn
	spent     bool           // the turn's cap was passed: one more step to say so
	total     wire.TurnEnd
	links     []runs.Link
	seeds     []uint32
}

// Reasons for which a turn ends, as the phone is told.
const (
	complete  = "complete"
	cancelled = "cancelled"
	length    = "length"
	failed    = "failed"
)

// Codes of turns that ended for reasons of their own.
const (
	codeGuard    capabilities.Code = "guard_unavailable"
	codeModel    capabilities.Code = "model_unavailable"
	codeNoModel  capabilities.Code = "no_model"
	codeOverflow capabilities.Code = "context_full"
)

// errStalled says that the model runs and says nothing.
var errStalled = errors.New("conversation: the model has said nothing for too long")

// guardError marks what the guard is to blame for.
type guardError struct{ error }

func (e guardError) Unwrap() error { return e.error }

func (r *run) answer(ctx context.Context) wire.TurnEnd {
	if err := r.prepare(ctx); err != nil {
		return r.fail(ctx, err)
	}
	for n := 1; n <= r.s.opts.Turn.Steps; n++ {
		last := r.spent
		if n > 1 {
			r.tellLost(ctx)
		}
		said, err := r.step(ctx, n)
		for i := range said.Items {
			r.take(ctx, said, i)
		}
		r.takeMore(ctx, said)
		switch {
		case err != nil:
			return r.fail(ctx, err)
		case ctx.Err() != nil:
			return r.stopped(ctx)
		case said.Count() == 0 && said.stop == inference.StopLength:
			return r.end(length, "", "the answer was cut off at its bound of tokens")
		case said.Count() == 0:
			return r.end(complete, "", "")
		case last:
			return r.end(complete, capabilities.CodeBudget, "the turn's budget of calls is spent")
		}
	}
	return r.end(length, capabilities.CodeBudget, "the turn's budget of model steps is spent")
}

func (r *run) prepare(ctx context.Context) error {
	r.append(ctx, entry{message: inference.Message{Kind: inference.User, Text: r.turn.Text}})
	catalog, err := r.s.opts.Guard.Catalog(ctx, r.turn.Slot, r.turn.Conversation)
	if err != nil {
		return guardError{err}
	}
	r.catalog = catalog
	if r.info, err = r.s.opts.Provider.Info(ctx); err != nil {
		return err
	}
	r.dialect, err = dialect.Named(r.info.Dialect)
	return err
}

// tellLost tells model and phone which capabilities went away while the turn runs. The catalog itself stays as it is: the
// model has it in front of it, and a new one would be a tool that enters a running turn.
func (r *run) tellLost(ctx context.Context) {
	now, err := r.s.opts.Guard.Catalog(ctx, r.turn.Slot, r.turn.Conversation)
	if err != nil {
		return // what is proposed next will say so
	}
	there := map[string]bool{}
	for _, e := range now.Entries {
		there[e.Name] = true
	}
	for _, e := range r.catalog.Entries {
		if !there[e.Name] && !r.lost[e.Name] {
			r.lost[e.Name] = true
			r.settle(ctx, e.Name, gone())
		}
	}
}

func (r *run) end(reason string, code capabilities.Code, message string) wire.TurnEnd {
	r.total.Reason, r.total.Code, r.total.Message = reason, code, message
	return r.total
}

// stopped ends the turn because ctx has ended.
func (r *run) stopped(ctx context.Context) wire.TurnEnd {
	if errors.Is(ctx.Err(), context.DeadlineExceeded) {
		return r.end(failed, capabilities.CodeTimeout, "the turn took too long and was ended")
	}
	return r.end(cancelled, "", "")
}

// fail ends the turn because of err, and reports it to the guard when it was the model's fault.
func (r *run) fail(ctx context.Context, err error) wire.TurnEnd {
	var overflow *inference.OverflowError
	var guard guardError
	var refused *ipc.Error
	end := wire.TurnEnd{}
	switch {
	case errors.Is(ctx.Err(), context.Canceled):
		return r.stopped(ctx)
	case errors.As(err, &guard) && errors.As(err, &refused):
		return r.end(failed, refused.Code, refused.Message)
	case errors.As(err, &guard):
		return r.end(failed, codeGuard, "the part of the box that guards requests is not answering; try again in a moment")
	case ctx.Err() != nil:
		end = r.stopped(ctx)
	case errors.Is(err, errStalled):
		end = r.end(failed, capabilities.CodeTimeout, "the model has said nothing for too long; ask again")
	case errors.Is(err, inference.ErrInterrupted):
		end = r.end(failed, capabilities.CodeInterrupted, "the model stopped in the middle of its answer; ask again")
	case errors.As(err, &overflow):
		end = r.end(failed, codeOverflow, "this question and its results are too long for the model; start a new conversation")
	case errors.Is(err, inference.ErrAbsent):
		end = r.end(failed, codeNoModel, "there is no model on this box yet; write one to its card with assent flash --model FILE. If one is there it is just starting: ask again in a minute")
	default:
		end = r.end(failed, codeModel, "the model is not answering; it may still be starting. Try again in a moment")
	}
	r.claim(ipc.Claim{Class: ipc.ClaimProvider, Code: end.Code, Detail: []byte(err.Error())})
	return end
}

func (r *run) claim(c ipc.Claim) {
	c.Ask, c.Slot = r.turn.Ask, r.turn.Slot
	c.Detail = c.Detail[:min(len(c.Detail), ipc.MaxClaimDetail)]
	if err := r.s.opts.Guard.Claim(c); err != nil {
		r.s.log.Warn("the guard could not be told of a claim", "class", c.Class, "err", err)
	}
}
