package conversation

import (
	"context"
	"sync"
)

// schedule lets one step run at a time, and whoever has waited through the most steps of others goes next: a phone that
// asks without pause takes turns with one that asks once.
type schedule struct {
	mu      sync.Mutex
	busy    bool
	served  map[uint32]uint64 // slot → when it last ran
	count   uint64
	waiting []waiter
}

type waiter struct {
	slot uint32
	turn chan struct{}
}

func newSchedule() *schedule { return &schedule{served: map[uint32]uint64{}} }

// acquire waits for the engine. release must be called once.
func (s *schedule) acquire(ctx context.Context, slot uint32) (release func(), err error) {
	s.mu.Lock()
	if !s.busy {
		s.begin(slot)
		s.mu.Unlock()
		return s.release, nil
	}
	w := waiter{slot: slot, turn: make(chan struct{})}
	s.waiting = append(s.waiting, w)
	s.mu.Unlock()
	select {
	case <-w.turn:
		return s.release, nil
	case <-ctx.Done():
	}
	s.mu.Lock()
	for i, other := range s.waiting {
		if other.turn == w.turn {
			s.waiting = append(s.waiting[:i], s.waiting[i+1:]...)
			s.mu.Unlock()
			return nil, ctx.Err()
		}
	}
	s.mu.Unlock()
	s.release() // its turn had come already
	return nil, ctx.Err()
}

func (s *schedule) begin(slot uint32) {
	s.busy = true
	s.count++
	s.served[slot] = s.count
}

func (s *schedule) release() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.busy = false
	if len(s.waiting) == 0 {
		return
	}
	next := 0
	for i, w := range s.waiting {
		if s.served[w.slot] < s.served[s.waiting[next].slot] {
			next = i
		}
	}
	w := s.waiting[next]
	s.waiting = append(s.waiting[:next], s.waiting[next+1:]...)
	s.begin(w.slot)
	close(w.turn)
}
