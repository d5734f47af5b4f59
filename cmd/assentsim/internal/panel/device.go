package panel

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"net"
	"sync"
	"time"

	"assent.home.arpa/appliance/config"
	"assent.home.arpa/device"
	"assent.home.arpa/device/board"
)

// answerTimeout bounds the wait for an acknowledgement, as a bus driver would.
const answerTimeout = 2 * time.Second

// Device is the guard's end of a drawn panel: a device.Display, device.Buttons and device.Lamp. The display is the box's own
// driver; only the bus below it is a socket.
type Device struct {
	device.Display

	line    net.Conn
	events  chan device.Event
	answers chan answer

	mu sync.Mutex // one request at a time

	errMu sync.Mutex
	err   error
}

var (
	_ device.Display = (*Device)(nil)
	_ device.Buttons = (*Device)(nil)
	_ device.Lamp    = (*Device)(nil)
)

// answer is what the glass says to a request: its one byte, and what was read.
type answer struct {
	op   byte
	data []byte
}

// Dial connects to the Glass that serves the socket, with the display that p names.
func Dial(socket string, p config.Panel) (*Device, error) {
	line, err := net.Dial("unix", socket)
	if err != nil {
		return nil, fmt.Errorf("panel: %w", err)
	}
	d := &Device{line: line, events: make(chan device.Event, 64), answers: make(chan answer, 1)}
	// Where the socket breaks it stays broken, as supervision starts the guard anew: there is nothing to open again.
	d.Display, err = board.DisplayOver(func() (board.Bus, error) { return bus{d}, nil }, p)
	if err != nil {
		line.Close()
		return nil, err
	}
	go d.read()
	return d, nil
}

func (d *Device) read() {
	defer close(d.events)
	defer close(d.answers)
	r := bufio.NewReader(d.line)
	for {
		op, err := r.ReadByte()
		if err != nil {
			d.lost(err)
			return
		}
		if op != opEdge {
			a := answer{op: op}
			if op == gave {
				if a.data, err = readShort(r); err != nil {
					d.lost(err)
					return
				}
			}
			select {
			case d.answers <- a:
			default: // nobody asked
			}
			continue
		}
		var b [14]byte
		if _, err := io.ReadFull(r, b[:]); err != nil {
			d.lost(err)
			return
		}
		ev := device.Event{
			Button: device.Button(b[0]), Edge: device.Edge(b[1]),
			Seq: binary.BigEndian.Uint32(b[2:]), Mono: time.Duration(binary.BigEndian.Uint64(b[6:])),
		}
		select {
		case d.events <- ev:
		default:
			d.lost(errors.New("panel: edges were not taken in time"))
			d.line.Close()
			return
		}
	}
}

func (d *Device) lost(err error) {
	d.errMu.Lock()
	defer d.errMu.Unlock()
	if d.err == nil {
		d.err = err
	}
}

func (d *Device) request(b ...byte) (answer, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if err := d.line.SetWriteDeadline(time.Now().Add(answerTimeout)); err != nil {
		return answer{}, fmt.Errorf("%w: %v", device.ErrBus, err)
	}
	if _, err := d.line.Write(b); err != nil {
		return answer{}, fmt.Errorf("%w: %v", device.ErrBus, err)
	}
	timeout := time.NewTimer(answerTimeout)
	defer timeout.Stop()
	select {
	case a, ok := <-d.answers:
		if !ok {
			return answer{}, fmt.Errorf("%w: the panel is gone", device.ErrBus)
		}
		return a, nil
	case <-timeout.C:
		d.line.Close() // a late answer must not be taken for the next one's
		return answer{}, fmt.Errorf("%w: no answer", device.ErrBus)
	}
}

// bus is the socket as the I2C bus that the display hangs on.
type bus struct{ d *Device }

// Tx implements board.Bus.
func (b bus) Tx(addr uint16, w, r []byte) error {
	if addr > math.MaxUint8 || len(w) > math.MaxUint8 || len(r) > math.MaxUint8 {
		return fmt.Errorf("panel: internal error: a transaction with %#x of %d and %d bytes", addr, len(w), len(r))
	}
	a, err := b.d.request(append([]byte{opTransfer, byte(addr), byte(len(r)), byte(len(w))}, w...)...)
	switch {
	case err != nil:
		return err
	case a.op != gave || len(a.data) != len(r):
		return fmt.Errorf("panel: the display did not acknowledge (%q)", a.op)
	}
	copy(r, a.data)
	return nil
}

// Close implements board.Bus. The socket carries the buttons too, so it stays.
func (bus) Close() error { return nil }

// Show implements device.Lamp.
func (d *Device) Show(s device.Signal) error {
	a, err := d.request(opLamp, byte(s))
	if err == nil && a.op != ack {
		err = fmt.Errorf("%w: answered %q", device.ErrBus, a.op)
	}
	return err
}

// Events implements device.Buttons.
func (d *Device) Events() <-chan device.Event { return d.events }

// Has implements device.Buttons: the drawn panel has both.
func (d *Device) Has(b device.Button) bool { return b == device.Approve || b == device.Deny }

// Down implements device.Buttons.
func (d *Device) Down(b device.Button) (bool, error) {
	if !d.Has(b) {
		return false, device.ErrNoButton
	}
	a, err := d.request(opLevel, byte(b))
	if err != nil {
		return false, err
	}
	return a.op == down, nil
}

// Err implements device.Buttons.
func (d *Device) Err() error {
	d.errMu.Lock()
	defer d.errMu.Unlock()
	return d.err
}

// Close unplugs the panel.
func (d *Device) Close() error { return d.line.Close() }
