package board

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"sync"

	"periph.io/x/conn/v3/i2c"
)

// link is the bus with the display on it, across its failures. An adapter can go away and come back with another number; and
// as long as somebody has the old bus open, the kernel keeps its remains and cannot set up the new one (i2c_del_adapter in
// Linux waits for them). So after a failure the bus is let go, and looked for afresh when it is next needed.
type link struct {
	open func() (i2c.BusCloser, error)

	mu     sync.Mutex // guards all below
	bus    i2c.BusCloser
	closed bool
}

// Tx sends to and reads from a device on the bus, which it opens if need be.
func (l *link) Tx(addr uint16, w, r []byte) error {
	bus, err := l.get()
	if err != nil {
		return err
	}
	return bus.Tx(addr, w, r)
}

func (l *link) get() (i2c.BusCloser, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return nil, os.ErrClosed
	}
	if l.bus == nil {
		bus, err := l.open()
		if err != nil {
			return nil, err
		}
		l.bus = bus
	}
	return l.bus, nil
}

// drop lets the bus go until it is next needed. An error of closing says nothing: the bus is in doubt already.
func (l *link) drop() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.bus != nil {
		_ = l.bus.Close()
		l.bus = nil
	}
}

// close lets the bus go for good.
func (l *link) close() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.closed = true
	if l.bus == nil {
		return nil
	}
	bus := l.bus
	l.bus = nil
	return bus.Close()
}

// openBus opens the I2C bus that sits at want, or the only one.
func (h host) openBus(want string) (i2c.BusCloser, error) {
	n, err := h.findBus(want)
	if err != nil {
		return nil, err
	}
	bus, err := h.bus(n)
	if err != nil {
		return nil, fmt.Errorf("board: %w; see that the kernel module i2c-dev is loaded and that this user may read and write /dev/i2c-%d", err, n)
	}
	return bus, nil
}

func (h host) findBus(want string) (int, error) {
	all, err := places(h.root, "sys/bus/i2c/devices", "i2c-")
	if err != nil {
		return 0, fmt.Errorf("board: i2c buses: %w", err)
	}
	fit := slices.DeleteFunc(slices.Clone(all), func(p place) bool { return !p.at(want) })
	switch {
	case len(all) == 0:
		return 0, errors.New("board: this machine has no i2c bus; enable it in the device tree (raspberry pi: dtparam=i2c_arm=on) and restart")
	case len(fit) == 0:
		return 0, fmt.Errorf("board: no i2c bus is at panel.bus %q; set panel.bus to one of %s", want, list(all))
	case len(fit) > 1:
		return 0, fmt.Errorf("board: %d i2c buses could be the display's; set panel.bus to one of %s", len(fit), list(fit))
	}
	return fit[0].number, nil
}
