package executor

import (
	"context"
	"errors"

	"assent.home.arpa/appliance/audit"
	"assent.home.arpa/appliance/ipc"
	"assent.home.arpa/capabilities"
	"assent.home.arpa/capabilities/policy"
	"assent.home.arpa/confirm"
	"assent.home.arpa/confirm/screen"
)

// confirm has the panel show the call where policy asked for a press, and waits for what somebody at the box makes of it.
// What could not be carried out anyway is refused before anybody is bothered.
func (e *Executor) confirm(ctx context.Context, c *call, pending func(ipc.Pending)) *ending {
	if e.cfg.Journal.Err() != nil {
		return rejected(capabilities.StageConfirm, capabilities.CodeAuditUnavailable)
	}
	if _, ok := e.cfg.Courier.Challenge(); !ok {
		return rejected(capabilities.StageConfirm, capabilities.CodeCourierUnavailable)
	}
	if !c.verdict.NeedsPress {
		return nil
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	if !e.enqueue(c, cancel) {
		return rejected(capabilities.StageConfirm, capabilities.CodeBusy)
	}
	defer e.dequeue(c)
	// What waits at the panel is on flash before anybody sees it: if the power goes now, the log says what was asked.
	if err := e.cfg.Journal.Barrier(ctx, append(c.proposalEntries(e), c.entry(c.allowed()))...); err != nil {
		return rejected(capabilities.StageConfirm, capabilities.CodeAuditUnavailable)
	}
	c.noted = true
	shown := c.pendingMessage()
	pending(shown)

	person := c.Turn.person
	c.queued, c.asked = e.cfg.Clock.Boot(), true
	decision, err := e.cfg.Desk.Ask(ctx, confirm.Request{
		Inv: c.inv, Slot: person.Slot, Person: person.ID, Phone: person.Phone,
		Capability: c.spec.Name, Version: c.spec.Version, Revision: c.spec.Revision,
		SchemaDigest: c.capability.SchemaDigest, Registry: e.cfg.Registry.Revision(),
		ArgsDigest: c.args, RequestDigest: c.request, Card: c.drawn.card,
		Still: e.still(person.ID),
	})
	c.decision = decision
	if decision.Fronted != 0 {
		e.cardLeft(person.ID)
	}
	taken := e.dequeue(c)
	if err != nil && ctx.Err() != nil {
		c.decision.Outcome, err = confirm.Withdrawn, nil
	}
	// The panel has the last word: what it decided nobody took back, however soon after it somebody tried.
	if c.decision.Outcome == confirm.Withdrawn {
		c.withdrawn = taken
		if c.withdrawn.by == 0 {
			c.withdrawn.by = audit.ByGateway
		}
	}
	if err != nil {
		c.asked = false
		return deskEnding(err)
	}
	end := e.decided(c)
	if end == nil {
		shown.Decided = true
		pending(shown)
	}
	return end
}

func deskEnding(err error) *ending {
	var bad *screen.UndisplayableError
	switch {
	case errors.As(err, &bad):
		end := undisplayable(err)
		end.stage = capabilities.StageConfirm
		return end
	case errors.Is(err, confirm.ErrClosed):
		return rejected(capabilities.StageConfirm, capabilities.CodeDisplayUnavailable)
	}
	return rejected(capabilities.StageConfirm, capabilities.CodeInternal)
}

// decided draws the consequences of a decision for the turn and the person.
func (e *Executor) decided(c *call) *ending {
	end := &ending{stage: capabilities.StageConfirm}
	name, person, now := c.spec.Name, c.Turn.person.ID, e.cfg.Clock.Boot()
	refused := func(p policy.Patience) policy.Patience { return p.Refused(now) }
	wasted := func(p policy.Patience) policy.Patience { return p.Wasted(now) }
	switch c.decision.Outcome {
	case confirm.Approved:
		e.setPatience(person, policy.Patience.Approved)
		e.cfg.Approved()
		return nil
	case confirm.Denied:
		end.status = capabilities.Denied
	case confirm.Panicked:
		end.status, end.code = capabilities.Denied, capabilities.CodeFrozen
	case confirm.Expired:
		end.status = capabilities.Expired
		e.setPatience(person, wasted)
	case confirm.ExpiredUnseen:
		end.status = capabilities.ExpiredUnseen
		e.setPatience(person, refused)
	case confirm.Withdrawn:
		end.status = capabilities.Withdrawn
		switch {
		case c.withdrawn.denied:
			end.status = capabilities.Denied
		case c.decision.Fronted != 0: // it called people to the box
			e.setPatience(person, wasted)
		}
	case confirm.DisplayLost:
		end.status, end.code = capabilities.Rejected, capabilities.CodeDisplayUnavailable
	case confirm.Busy:
		end.status, end.code = capabilities.Rejected, capabilities.CodeBusy
	default:
		c.asked = false // not an outcome that there is a record for
		end.status, end.code = capabilities.Rejected, capabilities.CodeInternal
	}
	if end.status == capabilities.Denied {
		c.Turn.deny(name)
		e.setPatience(person, refused)
	}
	return end
}

// enqueue notes that the phone has a pending decision; it may have one.
func (e *Executor) enqueue(c *call, cancel context.CancelFunc) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	slot := c.Turn.person.Slot
	if e.slots[slot] {
		return false
	}
	e.slots[slot] = true
	e.pending[c.inv] = &wait{slot: slot, cancel: cancel}
	return true
}

// dequeue forgets the pending decision and returns who took it back, if somebody did. It may be called twice.
func (e *Executor) dequeue(c *call) wait {
	e.mu.Lock()
	defer e.mu.Unlock()
	w := e.pending[c.inv]
	if w == nil {
		return wait{}
	}
	delete(e.pending, c.inv)
	delete(e.slots, w.slot)
	return *w
}

// pendingMessage is what the requesting phone may be told: what the panel shows, and the details behind it.
func (c *call) pendingMessage() ipc.Pending {
	p := ipc.Pending{
		Inv: c.inv, Name: c.spec.Name, Version: c.spec.Version, Revision: c.spec.Revision,
		Title: c.plan.Title, Text: c.plan.Text, Destination: c.plan.Destination, Pages: c.drawn.pages, ArgsDigest: c.args,
	}
	if c.plan.Request != nil {
		p.Request = c.plan.Request.Bytes
	}
	return p
}
