// Package conversation runs turns: it asks the model, takes its proposals one at a time to the guard, and appends what
// became of them before the model goes on.
//
// It decides nothing. Whether a proposal is a capability, has the right arguments or may run is the guard's verdict; what
// a call's bytes mean is inference/proposal's. What it does own is the order of things (proposals singly, in the order in
// which they were written), the turn's budget, the bound on the context, and that model and phone are given one and the
// same object for every outcome.
//
// # One turn
//
//	question → step → [proposals → outcomes → step]… → end
//
// A step is one run of the model. Steps of all phones share one engine and take it in turn, phone by phone. A turn ends
// when a step proposes nothing, when its budget is spent and the model has had one more step to say so, when it is
// cancelled, or when the model or the time fails; outcomes that were obtained stay in the conversation in every case.
//
// Everything that the model returns as a call gets exactly one outcome, whether it could be read or not, and counts
// towards the turn's budget. A call that the guard never gets to see (it could not be read, the budget is spent, the turn
// was stopped) is reported to the guard as a claim, so that the audit has it all the same.
//
// The catalog is fixed for a turn. What goes missing from it meanwhile is told to the model as data; what is new waits for
// the next turn.
//
// # What is kept
//
// Conversations belong to one phone and are kept, with the model's own token ids, in a database beside the gateway. When
// the model's context is full the oldest turns leave it first, as wholes; the phone may read them for a while longer. Each
// model call is recorded by inference/runs, and each turn by the hashes that it can be reproduced from. The audit holds
// none of this.
package conversation

import (
	"context"
	"errors"

	"assent.home.arpa/appliance/ipc"
	"assent.home.arpa/appliance/wire"
)

// Errors of Ask.
var (
	// ErrTurnRunning says that this conversation is still being answered.
	ErrTurnRunning = errors.New("conversation: a question is being answered already")
	// ErrNotFound says that there is no such conversation for this phone, whoever else may have one of that name.
	ErrNotFound = errors.New("conversation: not found")
)

// ErrNotSubmitted is what a Guard's Propose wraps when it is certain that the guard was not asked. After any other error
// but an *ipc.Error nobody knows whether the call was executed.
var ErrNotSubmitted = errors.New("conversation: the guard could not be asked")

// Guard is what a turn needs of the guard. An *ipc.Error is the guard's refusal, with words for a person.
type Guard interface {
	Catalog(ctx context.Context, slot uint32, conversation ipc.ID) (*ipc.Catalog, error)
	// Propose waits until the proposal has ended, however long somebody at the box takes. pending is called when it
	// waits there, before Propose returns.
	Propose(ctx context.Context, p ipc.Propose, pending func(*ipc.Pending)) (*ipc.Outcome, error)
	Claim(c ipc.Claim) error
	EndAsk(ask ipc.ID) error
}

// Emit passes one frame to the phone that owns the conversation. It never blocks.
type Emit func(t wire.Type, data any)

// Turn is one question, opened by a signed ask.
type Turn struct {
	Slot         uint32
	Conversation ipc.ID
	Ask          ipc.ID
	Text         string
	Name         string // the phone's name, for the operator's log
}
