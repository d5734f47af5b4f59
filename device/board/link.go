package board

import (
	"os"
	"sync"
)

// link is the bus with the display on it, across its failures. An adapter can go away and come back with another number; and
// as long as somebody has the old bus open, the kernel keeps its remains and cannot set up the new one (i2c_del_adapter in
// Linux waits for them). So after a failure the bus is let go, and looked for afresh when it is next needed.
type link struct {
	open func() (wire, error)

	mu     sync.Mutex // guards all below
	bus    wire
	closed bool
}

// wire is an open way to a display.
type wire interface {
	// send sends commands, or data for RAM.
	send(what content, data []byte) error
	// status reads the controller's status byte, if that is possible.
	status() (byte, error)
	Close() error
}

// content says what is sent.
type content byte

// The contents, by the control byte that announces each on I2C (SSD1306 section 8.1.5.2): all that follows is of that kind.
const (
	toCommand content = 0x00
	toRAM     content = 0x40
)

func (l *link) send(what content, data []byte) error {
	bus, err := l.get()
	if err != nil {
		return err
	}
	return bus.send(what, data)
}

func (l *link) status() (byte, error) {
	bus, err := l.get()
	if err != nil {
		return 0, err
	}
	return bus.status()
}

// get opens the bus if need be.
func (l *link) get() (wire, error) {
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
