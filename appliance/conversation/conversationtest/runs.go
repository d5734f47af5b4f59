package conversationtest

import (
	"context"
	"errors"
	"sync"

	"assent.home.arpa/appliance/conversation"
	"assent.home.arpa/inference/runs"
)

// ErrDiskFull is what a full disk answers.
var ErrDiskFull = errors.New("conversationtest: no space left on device")

// Runs keeps records of model calls in memory.
type Runs struct {
	mu          sync.Mutex
	full        bool
	invocations []runs.RunInvocation
	events      []runs.ToolCallEvent
}

var _ conversation.Runs = (*Runs)(nil)

// Fill fills the disk.
func (r *Runs) Fill() { r.mu.Lock(); defer r.mu.Unlock(); r.full = true }

// Append implements conversation.Runs.
func (r *Runs) Append(_ context.Context, inv runs.RunInvocation) (runs.Link, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, other := range r.invocations {
		if other.ID == inv.ID {
			return runs.Link{}, runs.ErrExists
		}
	}
	if r.full {
		return runs.Link{}, ErrDiskFull
	}
	r.invocations = append(r.invocations, inv)
	return inv.Link()
}

// AppendEvent implements conversation.Runs.
func (r *Runs) AppendEvent(_ context.Context, e runs.ToolCallEvent) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.full {
		return ErrDiskFull
	}
	for _, inv := range r.invocations {
		if inv.ID == e.Invocation {
			r.events = append(r.events, e)
			return nil
		}
	}
	return runs.ErrNotFound
}

// Invocations returns the records, in order.
func (r *Runs) Invocations() []runs.RunInvocation {
	r.mu.Lock()
	defer r.mu.Unlock()
	return append([]runs.RunInvocation{}, r.invocations...)
}

// Events returns the events, in order.
func (r *Runs) Events() []runs.ToolCallEvent {
	r.mu.Lock()
	defer r.mu.Unlock()
	return append([]runs.ToolCallEvent{}, r.events...)
}
