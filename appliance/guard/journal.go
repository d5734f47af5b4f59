package guard

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"assent.home.arpa/appliance/audit"
)

// journal is the audit as the executor sees it: it may be absent from the start, or get lost. While it is, everything that
// needs it fails, and the guard says so once.
type journal struct {
	log   *audit.Log // nil where it could not be opened
	state func(err error)

	mu  sync.Mutex
	err error
}

// openJournal never fails: a guard without an audit lets people chat. state is told of each change, the first included.
func openJournal(ctx context.Context, o audit.Options, state func(error)) *journal {
	j := &journal{state: state}
	log, err := audit.Open(ctx, o)
	if err != nil {
		j.err = fmt.Errorf("%w: %w", audit.ErrUnavailable, err)
		state(j.err)
		return j
	}
	j.log = log
	return j
}

// Err says why nothing can be recorded, or nil.
func (j *journal) Err() error {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.err
}

// noted remembers whether the audit works, which a full disk can change both ways.
func (j *journal) noted(err error) error {
	lost := err != nil && errors.Is(err, audit.ErrUnavailable)
	if err != nil && !lost {
		return err // this record was not taken; the next may be
	}
	j.mu.Lock()
	changed := (j.err != nil) != lost
	j.err = err
	j.mu.Unlock()
	if changed {
		j.state(err)
	}
	return err
}

// Append implements executor.Journal.
func (j *journal) Append(ctx context.Context, entries ...audit.Entry) error {
	if j.log == nil {
		return j.Err()
	}
	return j.noted(j.log.Append(ctx, entries...))
}

// Barrier returns when entries are on flash.
func (j *journal) Barrier(ctx context.Context, entries ...audit.Entry) error {
	if j.log == nil {
		return j.Err()
	}
	_, err := j.log.Barrier(ctx, entries...)
	return j.noted(err)
}

// Intend implements executor.Journal.
func (j *journal) Intend(ctx context.Context, entries []audit.Entry, intent audit.IntentRecord, inv [16]byte) (audit.Intent, error) {
	if j.log == nil {
		return audit.Intent{}, j.Err()
	}
	i, err := j.log.Intend(ctx, entries, intent, inv)
	return i, j.noted(err)
}

// Effect implements executor.Journal.
func (j *journal) Effect(ctx context.Context, i audit.Intent, effect audit.EffectRecord, entries ...audit.Entry) (audit.Seq, error) {
	if j.log == nil {
		return 0, j.Err()
	}
	seq, err := j.log.Effect(ctx, i, effect, entries...)
	return seq, j.noted(err)
}

// head returns where the audit ends, or false without one.
func (j *journal) head() (audit.Head, bool) {
	if j.log == nil {
		return audit.Head{}, false
	}
	return j.log.Head(), true
}

func (j *journal) close() error {
	if j.log == nil {
		return nil
	}
	return j.log.Close()
}
