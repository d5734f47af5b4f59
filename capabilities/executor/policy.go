package executor

import (
	"context"

	"assent.home.arpa/appliance/clock"
	"assent.home.arpa/capabilities"
	"assent.home.arpa/capabilities/policy"
)

// policy gathers the facts and has the pure rules decide.
func (e *Executor) policy(_ context.Context, c *call) *ending {
	now := e.cfg.Clock.Boot()
	_, wall := e.cfg.Clock.Wall()
	c.verdict = policy.Decide(c.spec, policy.Facts{
		Live:         c.Turn.Live(now),
		Role:         c.Turn.person.Role,
		Proposals:    c.number,
		MaxProposals: e.cfg.Proposals,
		Calls:        c.Turn.countCall(c.spec.Name),
		Frozen:       e.cfg.Frozen(),
		DeniedInTurn: c.Turn.wasDenied(c.spec.Name),
		CoolDown:     e.Patience(c.Turn.person.ID).Left(now),
		TLS:          usesTLS(c.plan.Request),
		ClockUnset:   wall == clock.Unset,
	})
	if c.verdict.Allow {
		return nil
	}
	return &ending{
		stage: capabilities.StagePolicy, status: capabilities.Rejected,
		code: c.verdict.Code, rule: c.verdict.Rule, retryIn: c.verdict.RetryIn,
	}
}

func usesTLS(r *capabilities.Request) bool { return r != nil && r.Scheme == "https" }
