package sticktest

import (
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"sync"
	"syscall"
)

// ErrPulled is what everything fails with once a stick is out.
var ErrPulled = errors.New("sticktest: the stick was pulled out")

const sector = 512

// Stick is a medium in memory with a cache of its own, as sticks have: of what was not synced any sectors are lost when it is
// pulled out.
type Stick struct {
	mu      sync.Mutex
	durable []byte
	cached  map[int64][]byte // sectors since the last sync, by number
	writes  int
	syncs   []int // which of the writes were syncs
	pullAt  int   // 0: never

	// Refuse makes it read-only.
	Refuse bool
	// Rot changes a byte of each write that is larger than a table's or a directory's, as worn-out flash does.
	Rot bool
}

// NewStick returns a stick with that content.
func NewStick(content []byte) *Stick {
	return &Stick{durable: slices.Clone(content), cached: map[int64][]byte{}}
}

// PullAt pulls it out at that write or sync, the first being 1.
func (s *Stick) PullAt(write int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.pullAt = write
}

// Writes counts the writes and syncs so far.
func (s *Stick) Writes() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.writes
}

// Syncs says which of the writes so far were syncs.
func (s *Stick) Syncs() []int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.syncs)
}

func (s *Stick) checkLocked(p []byte, off int64) error {
	switch {
	case s.pullAt > 0 && s.writes >= s.pullAt:
		return ErrPulled
	case off < 0 || off+int64(len(p)) > int64(len(s.durable)):
		return fmt.Errorf("sticktest: %d bytes at %d are beyond its %d: %w", len(p), off, len(s.durable), io.ErrUnexpectedEOF)
	}
	return nil
}

// ReadAt implements fat.Medium.
func (s *Stick) ReadAt(p []byte, off int64) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.checkLocked(p, off); err != nil {
		return 0, err
	}
	s.eachLocked(p, off, func(part, now []byte, _ int64) { copy(part, now) })
	return len(p), nil
}

// eachLocked goes through the sectors of a range: part is of p, now is what the stick has there.
func (s *Stick) eachLocked(p []byte, off int64, do func(part, now []byte, at int64)) {
	for len(p) > 0 {
		n, in := off/sector, off%sector
		part := p[:min(int64(len(p)), sector-in)]
		now := s.durable[n*sector : min((n+1)*sector, int64(len(s.durable)))]
		if c := s.cached[n]; c != nil {
			now = c
		}
		do(part, now[in:in+int64(len(part))], off)
		p, off = p[len(part):], off+int64(len(part))
	}
}

// WriteAt implements fat.Medium.
func (s *Stick) WriteAt(p []byte, off int64) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.Refuse {
		return 0, syscall.EROFS
	}
	s.writes++
	if err := s.checkLocked(p, off); err != nil {
		return 0, err
	}
	if p = slices.Clone(p); s.Rot && len(p) > 16<<10 {
		p[len(p)/2] ^= 1
	}
	s.eachLocked(p, off, func(part, now []byte, at int64) {
		n := at / sector
		if s.cached[n] == nil {
			s.cached[n] = slices.Clone(s.durable[n*sector : min((n+1)*sector, int64(len(s.durable)))])
		}
		copy(s.cached[n][at%sector:], part)
	})
	return len(p), nil
}

// Sync implements fat.Medium.
func (s *Stick) Sync() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.writes++
	s.syncs = append(s.syncs, s.writes)
	if err := s.checkLocked(nil, 0); err != nil {
		return err
	}
	for n, b := range s.cached {
		copy(s.durable[n*sector:], b)
	}
	clear(s.cached)
	return nil
}

// After returns what is on the stick. Of the sectors that were not synced those are there that keep is true for.
func (s *Stick) After(keep func(sector int64) bool) []byte {
	s.mu.Lock()
	defer s.mu.Unlock()
	b := slices.Clone(s.durable)
	for _, n := range slices.Sorted(maps.Keys(s.cached)) {
		if keep(n) {
			copy(b[n*sector:], s.cached[n])
		}
	}
	return b
}

// Content is what a reader sees.
func (s *Stick) Content() []byte { return s.After(func(int64) bool { return true }) }

// Size is the medium's, in bytes.
func (s *Stick) Size() int64 { return int64(len(s.durable)) }

// Close gives it back.
func (s *Stick) Close() error { return nil }
