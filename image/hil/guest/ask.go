package main

import (
	"context"
	"errors"
	"time"

	"assent.home.arpa/capabilities"
	"assent.home.arpa/confirm"
	"assent.home.arpa/confirm/screen"
	"assent.home.arpa/device"
)

// fullHold is a hold that a person who counts to one and a half makes.
const fullHold = 1800 * time.Millisecond

// reaction is how long a person looks at a picture that has come to rest before doing anything about it.
const reaction = 200 * time.Millisecond

// request is the n-th of a row of requests by different persons on different phones.
func request(n byte) confirm.Request {
	return confirm.Request{
		Inv: capabilities.InvocationID{n}, Slot: uint32(n), Person: string(rune('a' + n)), Phone: "KITCHEN",
		Capability: "web.search", Version: 1, Revision: "mediawiki/1", SchemaDigest: [32]byte{2}, Registry: "r1",
		ArgsDigest: capabilities.ArgsDigest{n, 3}, RequestDigest: [32]byte{n, 4},
		Card: screen.Card{Title: "Search Wikipedia for", Text: "late show", Destination: "wikipedia.org", Note: "GET", Phone: "KITCHEN"},
	}
}

func binding(r confirm.Request) confirm.Binding {
	return confirm.Binding{
		Inv: r.Inv, ArgsDigest: r.ArgsDigest, RequestDigest: r.RequestDigest, Capability: r.Capability, Version: r.Version,
		Revision: r.Revision, SchemaDigest: r.SchemaDigest, Registry: r.Registry, Slot: r.Slot,
	}
}

// pending is a request under way.
type pending struct {
	room   *room
	req    confirm.Request
	pages  []screen.Page
	cancel func()
	done   chan struct{}
	dec    confirm.Decision
	err    error
}

// ask asks for the n-th request. If the panel is idle it has taken the request when ask returns, so that requests come in the
// order in which they are asked for.
func (r *room) ask(n byte) *pending { return r.askFor(request(n)) }

func (r *room) askFor(req confirm.Request) *pending {
	pages, err := screen.Pages(req.Card)
	r.must(err)
	ctx, cancel := context.WithCancel(context.Background())
	r.cancels = append(r.cancels, cancel)
	p := &pending{room: r, req: req, pages: pages, cancel: cancel, done: make(chan struct{})}
	go func() {
		defer close(p.done)
		p.dec, p.err = r.desk.Ask(ctx, p.req)
	}()
	r.until("the request", func() bool { return r.now() != confirm.StateIdle || p.decided() })
	return p
}

func (p *pending) decided() bool {
	select {
	case <-p.done:
		return true
	default:
		return false
	}
}

// wait waits until the request has ended.
func (p *pending) wait(limit time.Duration) confirm.Decision {
	r := p.room
	select {
	case <-p.done:
	case <-time.After(limit):
		r.photograph("instead")
		r.fatal("request %d is undecided", p.req.Inv[0])
	}
	r.must(p.err)
	return p.dec
}

// want demands how the request ends, now or soon.
func (p *pending) want(o confirm.Outcome) confirm.Decision {
	d := p.wait(patience)
	if d.Outcome != o {
		p.room.fatal("request %d ended as %v, not %v", p.req.Inv[0], d.Outcome, o)
	}
	return d
}

// undecided demands that the request still waits.
func (p *pending) undecided() {
	if p.decided() {
		p.room.fatal("request %d ended as %v", p.req.Inv[0], p.dec.Outcome)
	}
}

// giveUp withdraws a request that must be undecided.
func (p *pending) giveUp() {
	p.undecided()
	p.cancel()
	p.conclude(patience)
}

// conclude waits for the end of the case's own request and notes it, with the receipts that it yields: each is tried twice.
func (p *pending) conclude(limit time.Duration) confirm.Decision {
	r := p.room
	d := p.wait(limit)
	r.outcome = d.Outcome.String()
	for range 2 {
		_, err := r.desk.Redeem(d.Receipt, binding(p.req))
		switch {
		case err == nil:
			r.receipts++
		case !errors.Is(err, confirm.ErrReceiptUnknown) && !errors.Is(err, confirm.ErrReceiptRevoked):
			r.problem("the receipt is refused: %v", err)
		}
	}
	return d
}

// reach waits until the request is announced and somebody has seen it.
func (p *pending) reach() {
	r := p.room
	r.in(confirm.StateWaiting)
	r.until("the announcement", func() bool { return r.glass() != screen.DrawNext() && r.adapter.Still(reaction) })
}

// onGlass is how long a page must stay.
func onGlass(page screen.Page) time.Duration {
	return 700*time.Millisecond + time.Duration(page.CodePoints)*15*time.Millisecond
}

// see waits until page i is on the glass.
func (p *pending) see(i int) {
	r := p.room
	r.until("a page", func() bool { return r.shows(p.pages[i]) && r.adapter.Still(reaction) })
}

// turn waits for page i and, if it is not the last, reads it and turns it.
func (p *pending) turn(i int) {
	r := p.room
	p.see(i)
	if i < len(p.pages)-1 {
		time.Sleep(onGlass(p.pages[i]) + 150*time.Millisecond)
		r.tap(device.Approve)
	}
}

// open opens the announced request and turns to its last page.
func (p *pending) open() {
	p.reach()
	p.room.tap(device.Approve)
	for i := range p.pages {
		p.turn(i)
	}
}

// read opens the announced request and reads it to the end, so that a hold may begin.
func (p *pending) read() {
	p.open()
	p.room.in(confirm.StateArmed)
}
