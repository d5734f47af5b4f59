package conversation

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"log/slog"
	"sync"
	"time"

	"assent.home.arpa/appliance/clock"
	"assent.home.arpa/appliance/config"
	"assent.home.arpa/appliance/ipc"
	"assent.home.arpa/appliance/wire"
	"assent.home.arpa/inference"
	"assent.home.arpa/inference/runs"
)

const (
	maxLoaded = 64              // conversations in memory, of all phones, besides those that are being answered
	storeWait = 5 * time.Second // for one visit to a database; a medium that is slower is treated as broken
)

// Runs keeps the record of every model call. It is for people who qualify models; nothing is decided from it.
type Runs interface {
	Append(ctx context.Context, r runs.RunInvocation) (runs.Link, error)
	AppendEvent(ctx context.Context, e runs.ToolCallEvent) error
}

// Options is what a Service is made of. All fields are required but Log.
type Options struct {
	Provider inference.Provider
	Guard    Guard
	Runs     Runs
	Store    *Store
	Model    config.Model
	Turn     config.Turn
	Clock    clock.Clock
	System   string // the stable text before everything; a box uses Prompt
	Log      *slog.Logger
}

// Service runs the turns of all phones.
type Service struct {
	opts     Options
	log      *slog.Logger
	schedule *schedule

	mu    sync.Mutex
	talks map[ipc.ID]*talk
	uses  uint64
}

// New returns a Service that goes on with the conversations in its Store.
func New(o Options) *Service {
	s := &Service{opts: o, log: o.Log, schedule: newSchedule(), talks: map[ipc.ID]*talk{}}
	if s.log == nil {
		s.log = slog.New(slog.DiscardHandler)
	}
	return s
}

// Ask runs one turn to its end, which wire.TurnEnd tells. The error, ErrTurnRunning or ErrNotFound or one of the store,
// says that no turn was begun.
func (s *Service) Ask(ctx context.Context, t Turn, emit Emit) error {
	ctx, cancel := context.WithTimeout(ctx, s.opts.Turn.Timeout)
	defer cancel()
	c, err := s.open(ctx, t, cancel)
	if err != nil {
		return err
	}
	emit(wire.TypeTurn, wire.Turn{Conversation: c.id.String(), Turn: c.turn, Text: t.Text})
	r := &run{s: s, turn: t, talk: c, emit: emit, used: map[string]int{}, lost: map[string]bool{}}
	end := r.answer(ctx)
	if err := s.opts.Guard.EndAsk(t.Ask); err != nil {
		s.log.Warn("the guard could not be told that a turn ended", "err", err)
	}
	r.keep(ctx)
	end.Conversation, end.Turn = c.id.String(), c.turn
	s.close(c)
	s.log.Info("turn ended", "phone", t.Name, "reason", end.Reason, "code", end.Code, "proposals", r.proposals)
	emit(wire.TypeTurnEnd, end)
	return nil
}

// open finds or makes the conversation and marks it as being answered.
func (s *Service) open(ctx context.Context, t Turn, cancel func()) (*talk, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	c, err := s.find(ctx, t.Conversation)
	switch {
	case err != nil:
		return nil, err
	case c == nil:
		c = &talk{slot: t.Slot, id: t.Conversation}
	case c.slot != t.Slot:
		return nil, ErrNotFound
	case c.turn != "":
		return nil, ErrTurnRunning
	}
	var id [8]byte
	rand.Read(id[:]) // never fails: crypto/rand ends the program instead
	c.turn, c.cancel = hex.EncodeToString(id[:]), cancel
	s.uses++
	c.used = s.uses
	s.talks[c.id] = c
	s.unload()
	return c, nil
}

// find returns a conversation, whosever it is, or nil. The caller holds mu.
func (s *Service) find(ctx context.Context, id ipc.ID) (*talk, error) {
	if c := s.talks[id]; c != nil {
		return c, nil
	}
	ctx, cancel := context.WithTimeout(ctx, storeWait)
	defer cancel()
	return s.opts.Store.load(ctx, id)
}

// unload keeps the conversations in memory within their bound. Idle ones are in the store, unless that is broken.
func (s *Service) unload() {
	for len(s.talks) > maxLoaded {
		var oldest *talk
		for _, c := range s.talks {
			if c.turn == "" && (oldest == nil || c.used < oldest.used) {
				oldest = c
			}
		}
		if oldest == nil {
			return
		}
		delete(s.talks, oldest.id)
	}
}

func (s *Service) close(c *talk) {
	s.mu.Lock()
	defer s.mu.Unlock()
	c.turn, c.cancel, c.pending = "", nil, nil
}

// Cancel ends the running turn of a phone's conversation. It reports whether there was one.
func (s *Service) Cancel(slot uint32, conversation ipc.ID) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	c := s.talks[conversation]
	if c == nil || c.slot != slot || c.turn == "" {
		return false
	}
	c.cancel()
	return true
}

// Snapshot returns a phone's conversation as it is.
func (s *Service) Snapshot(slot uint32, conversation ipc.ID) (wire.Snapshot, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	c, err := s.find(context.Background(), conversation)
	if err != nil {
		s.log.Error("a conversation could not be read", "err", err)
	}
	if c == nil || c.slot != slot {
		return wire.Snapshot{}, false
	}
	return c.snapshot(), true
}

// keep trims the conversation and stores what the turn was made with. It must not fail because the turn was cancelled.
func (r *run) keep(ctx context.Context) {
	s := r.s
	s.mu.Lock()
	first := r.talk.trim()
	from := r.talk.from
	s.mu.Unlock()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), storeWait)
	defer cancel()
	gone, err := s.opts.Store.settle(ctx, r.talk.id, first, from, r.summary())
	if err != nil {
		s.log.Error("a turn could not be stored", "err", err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, id := range gone {
		if c := s.talks[id]; c != nil && c.turn == "" {
			delete(s.talks, id)
		}
	}
}

// append adds to the conversation, in memory and in the store. Without a store the conversation goes on in memory.
func (r *run) append(ctx context.Context, e entry) {
	e.turn = r.talk.turn
	r.s.mu.Lock()
	e.n = r.talk.next()
	r.talk.entries = append(r.talk.entries, e)
	r.s.mu.Unlock()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), storeWait)
	defer cancel()
	if err := r.s.opts.Store.append(ctx, r.talk.slot, r.talk.id, e); err != nil && !errors.Is(err, context.Canceled) {
		r.s.log.Error("what was said could not be stored", "err", err)
	}
}
