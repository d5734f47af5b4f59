package gateway

import (
	"context"
	"fmt"
	"sync"
	"time"

	"assent.home.arpa/appliance/ipc"
)

// offenceEvery is how often the audit hears of one phone, or of all strangers together.
const offenceEvery = 10 * time.Second

// offences counts the messages that do not exist, by slot; strangers share slot 0. Whoever can reach the box can send as
// many as connections allow, and neither the guard nor the log may have to deal with each.
type offences struct {
	mu   sync.Mutex
	open map[uint32]*tally // of whom somebody is about to report
}

// tally is what has not been reported yet.
type tally struct {
	count  int
	digest [32]byte // of the first
}

// add counts an offence. It is true where the caller has to see to it that report runs.
func (o *offences) add(slot uint32, digest [32]byte) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	t, reported := o.open[slot]
	if !reported {
		t = &tally{}
		o.open[slot] = t
	}
	if t.count == 0 {
		t.digest = digest
	}
	t.count++
	return !reported
}

// take returns what is to be reported, and forgets the slot where that is nothing.
func (o *offences) take(slot uint32) tally {
	o.mu.Lock()
	defer o.mu.Unlock()
	t := *o.open[slot]
	if t.count == 0 {
		delete(o.open, slot)
	} else {
		o.open[slot] = &tally{}
	}
	return t
}

// offence notes a message that does not exist.
func (s *server) offence(ctx context.Context, slot uint32, digest [32]byte) {
	if s.offences.add(slot, digest) {
		s.start(func() { s.reportOffences(ctx, slot) }) // else the gateway ends
	}
}

// reportOffences tells the guard of a slot's first offence at once, and of those that follow in one claim for each
// offenceEvery, until there are none or ctx ends.
func (s *server) reportOffences(ctx context.Context, slot uint32) {
	for {
		t := s.offences.take(slot)
		if t.count == 0 {
			return
		}
		s.log.Warn("messages that do not exist", "slot", slot, "count", t.count)
		claim := ipc.Claim{
			Class: ipc.ClaimProtocol, Code: codeUnknownType, Slot: slot, Digest: t.digest,
			Detail: fmt.Appendf(nil, "messages of an unknown type: %d; the digest is of the first", t.count),
		}
		if err := s.guard.Claim(claim); err != nil {
			s.log.Warn("claim not delivered", "err", err)
		}
		select {
		case <-time.After(offenceEvery):
		case <-ctx.Done():
			return
		}
	}
}
