package confirm

import (
	"context"
	"fmt"

	"assent.home.arpa/capabilities"
	"assent.home.arpa/confirm/screen"
)

// asking is one Ask that waits.
type asking struct {
	card     *card
	withdraw chan struct{} // closed by Withdraw
	closed   bool          // guarded by Desk.mu
}

// Ask shows r when its turn comes and returns how it ended. Ending ctx withdraws it; if a hold completed first, the decision says
// so. One decision a phone may be pending: another is Busy at once. It fails with ErrRequest, with a
// *screen.UndisplayableError (also where nobody could read so much in the longest window), or with ErrClosed.
func (d *Desk) Ask(ctx context.Context, r Request) (Decision, error) {
	if err := r.validate(); err != nil {
		return Decision{}, err
	}
	pages, err := screen.Pages(r.Card)
	if err != nil {
		return Decision{}, err
	}
	if len(pages) > maxPages || d.cfg.Timings.needed(pages) > d.cfg.Timings.Longest {
		return Decision{}, fmt.Errorf("text: %w", &screen.UndisplayableError{Offset: len(r.Card.Text), Reason: screen.TooLong})
	}
	reply := make(chan Decision, 1)
	a := &asking{
		card:     &card{req: r, pages: pages, digest: screen.Digest(pages), reply: reply},
		withdraw: make(chan struct{}),
	}
	ok, err := d.register(a)
	if err != nil {
		return Decision{}, err
	}
	never := Decision{Outcome: Busy, Pages: pages, ScreenDigest: a.card.digest}
	if !ok {
		return never, nil
	}
	defer d.unregister(a)

	never.Outcome = Withdrawn
	select {
	case d.commands <- submit{a.card}:
	case <-ctx.Done():
		return never, nil
	case <-a.withdraw:
		return never, nil
	case <-d.closed:
		return Decision{}, ErrClosed
	}
	select {
	case d := <-reply:
		return d, nil
	case <-ctx.Done():
	case <-a.withdraw:
	case <-d.closed:
	}
	// Withdrawing can only end what has not been decided: the panel has the last word, and it answers either way.
	d.send(withdraw{r.Inv})
	select {
	case d := <-reply:
		return d, nil
	case <-d.closed:
	}
	select {
	case d := <-reply: // decided as the panel ended
		return d, nil
	default:
		return Decision{}, ErrClosed
	}
}

// Withdraw takes back the pending decision of inv, if there is one. It can end a decision and nothing else.
func (d *Desk) Withdraw(inv capabilities.InvocationID) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if a := d.waiting[inv]; a != nil && !a.closed {
		a.closed = true
		close(a.withdraw)
	}
}

// register reports whether a may be pending.
func (d *Desk) register(a *asking) (bool, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	r := &a.card.req
	if d.waiting[r.Inv] != nil {
		return false, fmt.Errorf("%w: invocation is pending already", ErrRequest)
	}
	if d.slots[r.Slot] || len(d.waiting) >= maxQueued {
		return false, nil
	}
	d.waiting[r.Inv], d.slots[r.Slot] = a, true
	return true, nil
}

func (d *Desk) unregister(a *asking) {
	d.mu.Lock()
	defer d.mu.Unlock()
	delete(d.waiting, a.card.req.Inv)
	delete(d.slots, a.card.req.Slot)
}

// AskAdmin shows an administrative prompt at once, or says why not: it needs a gesture at the box, and never replaces a card.
// One that is offered waits for its gesture instead, unless there was one within the minute that opened no prompt; a second
// one is Busy. Whoever offers is answered when the prompt ended, when ctx did, and whenever all that is pending ends: by a
// panic, a freeze, or with the display. It may be offered again at once then, and waits until it can be shown.
// Ending ctx withdraws a prompt. AskAdmin fails with ErrRequest, with the error of a text that cannot be drawn, or with ErrClosed.
func (d *Desk) AskAdmin(ctx context.Context, r AdminRequest) (AdminDecision, error) {
	if r.Kind < AdminPair || r.Kind > AdminPrune || r.Kind == AdminUnfreeze || r.Offer && r.Kind == AdminPair || r.Afresh && !r.Offer {
		return AdminDecision{}, fmt.Errorf("%w: administrative kind %d", ErrRequest, r.Kind)
	}
	reply := make(chan AdminDecision, 1)
	p, err := newPrompt(r, d.cfg.Large, reply)
	if err != nil {
		return AdminDecision{}, err
	}
	select {
	case d.commands <- ask{p}:
	case <-ctx.Done():
		return AdminDecision{Outcome: AdminWithdrawn}, nil
	case <-d.closed:
		return AdminDecision{}, ErrClosed
	}
	select {
	case o := <-reply:
		return o, nil
	case <-ctx.Done():
	case <-d.closed:
	}
	d.send(unask{p})
	select {
	case o := <-reply:
		return o, nil
	case <-d.closed:
	}
	select {
	case o := <-reply:
		return o, nil
	default:
		return AdminDecision{}, ErrClosed
	}
}
