package panel

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
	"time"

	"assent.home.arpa/device"
)

// answerTimeout bounds the wait for an acknowledgement, as a bus driver would.
const answerTimeout = 2 * time.Second

// Device is the guard's end of a drawn panel: a device.Display, device.Buttons and device.Lamp.
type Device struct {
	line    net.Conn
	events  chan device.Event
	answers chan byte

	mu sync.Mutex // one request at a time

	errMu sync.Mutex
	err   error
}

var (
	_ device.Display = (*Device)(nil)
	_ device.Buttons = (*Device)(nil)
	_ device.Lamp    = (*Device)(nil)
)

// Dial connects to the Glass that serves the socket.
func Dial(socket string) (*Device, error) {
	line, err := net.Dial("unix", socket)
	if err != nil {
		return nil, fmt.Errorf("panel: %w", err)
	}
	d := &Device{line: line, events: make(chan device.Event, 64), answers: make(chan byte, 1)}
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
			select {
			case d.answers <- op:
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

func (d *Device) request(b ...byte) (byte, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if err := d.line.SetWriteDeadline(time.Now().Add(answerTimeout)); err != nil {
		return 0, fmt.Errorf("%w: %v", device.ErrBus, err)
	}
	if _, err := d.line.Write(b); err != nil {
		return 0, fmt.Errorf("%w: %v", device.ErrBus, err)
	}
	timeout := time.NewTimer(answerTimeout)
	defer timeout.Stop()
	select {
	case a, ok := <-d.answers:
		if !ok {
			return 0, fmt.Errorf("%w: the panel is gone", device.ErrBus)
		}
		return a, nil
	case <-timeout.C:
		d.line.Close() // a late answer must not be taken for the next one's
		return 0, fmt.Errorf("%w: no answer", device.ErrBus)
	}
}

func (d *Device) acknowledged(b ...byte) error {
	a, err := d.request(b...)
	if err == nil && a != ack {
		err = fmt.Errorf("%w: answered %q", device.ErrBus, a)
	}
	return err
}

// Draw implements device.Display.
func (d *Device) Draw(f *device.Frame) error {
	return d.acknowledged(append([]byte{opDraw}, f[:]...)...)
}

// ReadsBack implements device.Display: an acknowledgement comes from the glass itself.
func (d *Device) ReadsBack() bool { return true }

// Dim implements device.Display.
func (d *Device) Dim(dim bool) error {
	var b byte
	if dim {
		b = 1
	}
	return d.acknowledged(opDim, b)
}

// Show implements device.Lamp.
func (d *Device) Show(s device.Signal) error { return d.acknowledged(opLamp, byte(s)) }

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
	return a == down, nil
}

// Err implements device.Buttons.
func (d *Device) Err() error {
	d.errMu.Lock()
	defer d.errMu.Unlock()
	return d.err
}

// Close unplugs the panel.
func (d *Device) Close() error { return d.line.Close() }
