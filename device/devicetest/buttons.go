package devicetest

import (
	"fmt"
	"sync"
	"time"

	"assent.home.arpa/appliance/clock"
	"assent.home.arpa/device"
)

// backlog is how many edges wait before the oldest unread ones make newer ones be lost, as in the kernel's line buffer.
const backlog = 1024

// Buttons are two buttons, or one. Press and Release move a contact; whether an edge comes of it depends on the faults.
type Buttons struct {
	clock  clock.Clock
	events chan device.Event

	mu    sync.Mutex // guards all below
	lines map[device.Button]*contact
	err   error
	cut   bool
}

type contact struct {
	down  bool
	seq   uint32
	stuck bool
	lose  int
}

var _ device.Buttons = (*Buttons)(nil)

// NewButtons returns both buttons, up.
func NewButtons(c clock.Clock) *Buttons {
	return newButtons(c, device.Approve, device.Deny)
}

// NewOneButton returns the kit that has only the approve button.
func NewOneButton(c clock.Clock) *Buttons { return newButtons(c, device.Approve) }

func newButtons(c clock.Clock, has ...device.Button) *Buttons {
	b := &Buttons{clock: c, events: make(chan device.Event, backlog), lines: map[device.Button]*contact{}}
	for _, button := range has {
		b.lines[button] = &contact{}
	}
	return b
}

// Events implements device.Buttons.
func (b *Buttons) Events() <-chan device.Event { return b.events }

// Down implements device.Buttons.
func (b *Buttons) Down(button device.Button) (bool, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	c := b.lines[button]
	switch {
	case c == nil:
		return false, fmt.Errorf("devicetest: %v: %w", button, device.ErrNoButton)
	case b.cut:
		return false, b.err
	}
	return c.down, nil
}

// Has implements device.Buttons.
func (b *Buttons) Has(button device.Button) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.lines[button] != nil
}

// Err implements device.Buttons.
func (b *Buttons) Err() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.err
}

// Press closes the contact now.
func (b *Buttons) Press(button device.Button) { b.move(button, true, b.clock.Mono()) }

// Release opens the contact now.
func (b *Buttons) Release(button device.Button) { b.move(button, false, b.clock.Mono()) }

// PressAt closes the contact with an edge that carries another time: one that a program reads late.
func (b *Buttons) PressAt(button device.Button, mono time.Duration) { b.move(button, true, mono) }

// ReleaseAt opens the contact with an edge that carries another time.
func (b *Buttons) ReleaseAt(button device.Button, mono time.Duration) { b.move(button, false, mono) }

// HeldSinceBoot puts the contact down without an edge: it was down before the line was opened.
func (b *Buttons) HeldSinceBoot(button device.Button) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if c := b.lines[button]; c != nil {
		c.down = true
	}
}

// Bounce moves the contact to and fro, beginning with a press, at the given times after from. An even number of times leaves
// it up.
func (b *Buttons) Bounce(button device.Button, from time.Duration, after ...time.Duration) {
	for i, d := range after {
		b.move(button, i%2 == 0, from+d)
	}
}

// Ring makes n pairs of edges, a press and a release every period, ending now: a line that floats.
func (b *Buttons) Ring(button device.Button, n int, period time.Duration) {
	start := b.clock.Mono() - time.Duration(n)*period
	for i := range n {
		at := start + time.Duration(i)*period
		b.move(button, true, at)
		b.move(button, false, at+period/2)
	}
}

// Stick keeps the contact as it is, whatever fingers do, until Unstick.
func (b *Buttons) Stick(button device.Button) { b.setStuck(button, true) }

// Unstick ends Stick.
func (b *Buttons) Unstick(button device.Button) { b.setStuck(button, false) }

// Lose swallows the next n edges of the button: they count in Seq and never arrive.
func (b *Buttons) Lose(button device.Button, n int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if c := b.lines[button]; c != nil {
		c.lose = n
	}
}

// Unplug cuts the lines: Events is closed, and Err and Down say err.
func (b *Buttons) Unplug(err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if !b.cut {
		b.cut, b.err = true, err
		close(b.events)
	}
}

func (b *Buttons) setStuck(button device.Button, stuck bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if c := b.lines[button]; c != nil {
		c.stuck = stuck
	}
}

func (b *Buttons) move(button device.Button, down bool, mono time.Duration) {
	b.mu.Lock()
	defer b.mu.Unlock()
	c := b.lines[button]
	if c == nil || b.cut || c.stuck || c.down == down {
		return
	}
	c.down = down
	c.seq++
	if c.lose > 0 {
		c.lose--
		return
	}
	ev := device.Event{Mono: mono, Edge: device.Release, Seq: c.seq, Button: button}
	if down {
		ev.Edge = device.Press
	}
	select {
	case b.events <- ev:
	default: // lost, and Seq will say so
	}
}
