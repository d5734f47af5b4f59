// Package panel is assentsim's drawn panel: a 128×64 display and two buttons that a person works in a browser page or in
// the terminal.
//
// The guard has no network, on a PC too, so the panel is cut in two. Glass lives in assentsim's first process, where the
// page is served; Device lives in the guard and reaches it over a unix socket that takes the place of the I2C bus and the
// GPIO lines. What crosses it is what crosses the bus of a box: the guard runs the real driver, and Glass is the display's
// controller with its RAM, so that a picture comes on the glass piece by piece, dims and stands on its head as it would
// there. An edge carries the time at which the finger moved, and when the socket breaks the panel is as lost as an unplugged
// one. Nothing of this is in the box's own program.
package panel

import (
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"sync"
	"time"

	"assent.home.arpa/appliance/clock"
	"assent.home.arpa/appliance/config"
	"assent.home.arpa/device"
	"assent.home.arpa/device/board/boardtest"
)

// Requests from the device, each answered by one byte.
const (
	opTransfer = 'T' // then address, bytes to read, bytes to write, these; answered by gave or nak
	opLamp     = 'S' // then a device.Signal; answered by ack
	opLevel    = 'L' // then a device.Button; answered by up or down

	opEdge = 'E' // to the device: button, edge, seq uint32, mono int64, big-endian

	ack, nak, up, down = 'A', 'N', 'u', 'd'

	gave = 'G' // then a count of bytes, and these
)

// View is what somebody in front of the panel sees.
type View struct {
	// Frame is what is lit: nothing while the display is off.
	Frame device.Frame
	// Contrast is the display's brightness, 0 to 255.
	Contrast byte
	Signal   device.Signal
	// Lost says that no guard is connected, so the glass shows nothing that can be trusted.
	Lost bool
}

// Glass is the panel's front: what is drawn, and the buttons.
type Glass struct {
	clock   clock.Clock
	display *boardtest.OLED
	rotate  bool

	mu      sync.Mutex
	view    View
	down    map[device.Button]bool
	seq     map[device.Button]uint32
	line    net.Conn // the guard's device, or nil
	watches map[chan struct{}]bool
}

// NewGlass returns a panel with the display that p names, just switched on, and nothing connected.
func NewGlass(c clock.Clock, p config.Panel) *Glass {
	display := boardtest.NewSSD1306()
	if p.Display == "sh1106" {
		display = boardtest.NewSH1106()
	}
	return &Glass{
		clock: c, display: display, rotate: p.Rotate,
		view: View{Lost: true}, down: map[device.Button]bool{}, seq: map[device.Button]uint32{}, watches: map[chan struct{}]bool{},
	}
}

// Serve connects guards to the panel, one at a time, until l is closed.
func (g *Glass) Serve(l net.Listener) error {
	for {
		c, err := l.Accept()
		if err != nil {
			return err
		}
		g.attach(c)
	}
}

func (g *Glass) attach(c net.Conn) {
	defer c.Close()
	g.mu.Lock()
	g.line, g.view.Lost, g.view.Signal = c, false, device.Quiet
	clear(g.seq)
	g.changed()
	g.mu.Unlock()
	defer func() {
		g.mu.Lock()
		g.line, g.view.Lost = nil, true
		g.changed()
		g.mu.Unlock()
	}()
	op := make([]byte, 1)
	for {
		if _, err := io.ReadFull(c, op); err != nil {
			return
		}
		answer, err := g.operate(op[0], c)
		if err != nil {
			return
		}
		if err := g.write(answer); err != nil {
			return
		}
	}
}

func (g *Glass) operate(op byte, r io.Reader) ([]byte, error) {
	if op == opTransfer {
		return g.transfer(r)
	}
	var arg [1]byte
	if _, err := io.ReadFull(r, arg[:]); err != nil {
		return nil, err
	}
	switch op {
	case opLamp:
		g.update(func(v *View) { v.Signal = device.Signal(arg[0]) })
		return []byte{ack}, nil
	case opLevel:
		g.mu.Lock()
		defer g.mu.Unlock()
		if g.down[device.Button(arg[0])] {
			return []byte{down}, nil
		}
		return []byte{up}, nil
	}
	return nil, fmt.Errorf("panel: unknown operation %q", op)
}

// transfer is one transaction on the bus.
func (g *Glass) transfer(r io.Reader) ([]byte, error) {
	var head [2]byte
	if _, err := io.ReadFull(r, head[:]); err != nil {
		return nil, err
	}
	out, err := readShort(r)
	if err != nil {
		return nil, err
	}
	in := make([]byte, head[1])
	if err := g.display.Tx(uint16(head[0]), out, in); err != nil {
		return []byte{nak}, nil
	}
	g.update(func(v *View) {
		v.Frame, _ = g.display.Glass(g.rotate)
		v.Contrast = g.display.Contrast()
	})
	return append([]byte{gave, head[1]}, in...), nil
}

// readShort reads a count of up to 255 bytes, and these.
func readShort(r io.Reader) ([]byte, error) {
	var n [1]byte
	if _, err := io.ReadFull(r, n[:]); err != nil {
		return nil, err
	}
	b := make([]byte, n[0])
	_, err := io.ReadFull(r, b)
	return b, err
}

func (g *Glass) update(f func(*View)) {
	g.mu.Lock()
	defer g.mu.Unlock()
	f(&g.view)
	g.changed()
}

// write sends to the device; the lock keeps an edge from landing inside an answer.
func (g *Glass) write(b []byte) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.writeLocked(b)
}

func (g *Glass) writeLocked(b []byte) error {
	if g.line == nil {
		return io.ErrClosedPipe
	}
	if err := g.line.SetWriteDeadline(time.Now().Add(time.Second)); err != nil {
		return err
	}
	_, err := g.line.Write(b)
	return err
}

// Move presses or releases a button. Moving it to where it is already does nothing.
func (g *Glass) Move(b device.Button, e device.Edge) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if (b != device.Approve && b != device.Deny) || g.down[b] == (e == device.Press) {
		return
	}
	g.down[b] = e == device.Press
	g.seq[b]++
	msg := []byte{opEdge, byte(b), byte(e)}
	msg = binary.BigEndian.AppendUint32(msg, g.seq[b])
	msg = binary.BigEndian.AppendUint64(msg, uint64(g.clock.Mono()))
	if err := g.writeLocked(msg); err != nil && g.line != nil {
		g.line.Close() // a device that does not read has lost an edge: it must start over
	}
	g.changed()
}

// ReleaseAll lets go of both buttons.
func (g *Glass) ReleaseAll() {
	g.Move(device.Approve, device.Release)
	g.Move(device.Deny, device.Release)
}

// Hold keeps buttons down for d, as a finger would.
func (g *Glass) Hold(d time.Duration, buttons ...device.Button) {
	for _, b := range buttons {
		g.Move(b, device.Press)
	}
	time.Sleep(d)
	for _, b := range buttons {
		g.Move(b, device.Release)
	}
}

// Tap presses a button briefly.
func (g *Glass) Tap(b device.Button) { g.Hold(80*time.Millisecond, b) }

// View returns what the panel shows now.
func (g *Glass) View() View {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.view
}

// Watch returns a channel that receives after each change (several changes may be folded into one), and a way to stop.
func (g *Glass) Watch() (<-chan struct{}, func()) {
	ch := make(chan struct{}, 1)
	g.mu.Lock()
	defer g.mu.Unlock()
	g.watches[ch] = true
	return ch, func() {
		g.mu.Lock()
		defer g.mu.Unlock()
		delete(g.watches, ch)
	}
}

func (g *Glass) changed() {
	for ch := range g.watches {
		select {
		case ch <- struct{}{}:
		default:
		}
	}
}
