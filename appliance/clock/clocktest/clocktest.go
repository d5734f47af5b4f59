// Package clocktest is a clock that a test moves by hand: it can suspend, jump and forget the date.
package clocktest

import (
	"sync"
	"time"

	"assent.home.arpa/appliance/clock"
)

// Clock is a clock.Clock that stands still until it is moved.
type Clock struct {
	mu    sync.Mutex
	boot  time.Duration
	mono  time.Duration
	wall  time.Time
	state clock.State
	waits map[chan struct{}]time.Duration
}

var _ clock.Clock = (*Clock)(nil)

// New returns a clock one hour after boot, with an unset wall clock in 1970.
func New() *Clock {
	return &Clock{boot: time.Hour, mono: time.Hour, wall: time.Unix(3600, 0).UTC(), waits: map[chan struct{}]time.Duration{}}
}

// Boot implements clock.Clock.
func (c *Clock) Boot() time.Duration { c.mu.Lock(); defer c.mu.Unlock(); return c.boot }

// Mono implements clock.Clock.
func (c *Clock) Mono() time.Duration { c.mu.Lock(); defer c.mu.Unlock(); return c.mono }

// Wall implements clock.Clock.
func (c *Clock) Wall() (time.Time, clock.State) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.wall, c.state
}

// Until implements clock.Clock.
func (c *Clock) Until(t time.Duration) (<-chan struct{}, func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	ch := make(chan struct{})
	if c.boot >= t {
		close(ch)
		return ch, func() {}
	}
	c.waits[ch] = t
	return ch, func() { c.mu.Lock(); defer c.mu.Unlock(); delete(c.waits, ch) }
}

// Waiting reports how many waits are outstanding, so that a test can tell that its subject has gone to sleep.
func (c *Clock) Waiting() int { c.mu.Lock(); defer c.mu.Unlock(); return len(c.waits) }

// Advance lets d pass on all three clocks.
func (c *Clock) Advance(d time.Duration) { c.move(d, d, d) }

// Suspend lets d pass while the box sleeps: CLOCK_MONOTONIC stands still.
func (c *Clock) Suspend(d time.Duration) { c.move(d, 0, d) }

// SetWall makes the wall clock jump, as a time source or a person does.
func (c *Clock) SetWall(t time.Time, s clock.State) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.wall, c.state = t, s
}

func (c *Clock) move(boot, mono, wall time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.boot += boot
	c.mono += mono
	c.wall = c.wall.Add(wall)
	for ch, t := range c.waits {
		if c.boot >= t {
			close(ch)
			delete(c.waits, ch)
		}
	}
}
