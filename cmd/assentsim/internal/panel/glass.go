// Package panel is assentsim's drawn panel: a 128×64 display and two buttons that a person works in a browser page or in
// the terminal.
//
// The guard has no network, on a PC too, so the panel is cut in two. Glass lives in assentsim's first process, where the
// page is served; Device lives in the guard and reaches it over a unix socket that takes the place of the I2C bus and the
// GPIO lines: a draw is acknowledged, an edge carries the time at which the finger moved, and when the socket breaks the
// panel is as lost as an unplugged one. Nothing of this is in the box's own program.
package panel

import (
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"sync"
	"time"

	"assent.home.arpa/appliance/clock"
	"assent.home.arpa/device"
)

// Requests from the device, each answered by one byte: ack, or the level.
const (
	opDraw  = 'F' // then 1,024 bytes
	opDim   = 'D' // then 0 or 1
	opLamp  = 'S' // then a device.Signal
	opLevel = 'L' // then a device.Button; answered by up or down

	opEdge = 'E' // to the device: button, edge, seq uint32, mono int64, big-endian

	ack, up, down = 'A', 'u', 'd'
)

// View is what somebody in front of the panel sees.
type View struct {
	Frame  device.Frame
	Dim    bool
	Signal device.Signal
	// Lost says that no guard is connected, so the glass shows nothing that can be trusted.
	Lost bool
}

// Glass is the panel's front: what is drawn, and the buttons.
type Glass struct {
	clock clock.Clock

	mu      sync.Mutex
	view    View
	down    map[device.Button]bool
	seq     map[device.Button]uint32
	line    net.Conn // the guard's device, or nil
	watches map[chan struct{}]bool
}

// NewGlass returns a dark panel with nothing connected.
func NewGlass(c clock.Clock) *Glass {
	return &Glass{clock: c, view: View{Lost: true}, down: map[device.Button]bool{}, seq: map[device.Button]uint32{}, watches: map[chan struct{}]bool{}}
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
	g.line, g.view = c, View{}
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
		if err := g.write([]byte{answer}); err != nil {
			return
		}
	}
}

func (g *Glass) operate(op byte, r io.Reader) (byte, error) {
	if op == opDraw {
		var f device.Frame
		if _, err := io.ReadFull(r, f[:]); err != nil {
			return 0, err
		}
		g.update(func(v *View) { v.Frame = f })
		return ack, nil
	}
	var arg [1]byte
	if _, err := io.ReadFull(r, arg[:]); err != nil {
		return 0, err
	}
	switch op {
	case opDim:
		g.update(func(v *View) { v.Dim = arg[0] == 1 })
		return ack, nil
	case opLamp:
		g.update(func(v *View) { v.Signal = device.Signal(arg[0]) })
		return ack, nil
	case opLevel:
		g.mu.Lock()
		defer g.mu.Unlock()
		if g.down[device.Button(arg[0])] {
			return down, nil
		}
		return up, nil
	}
	return 0, fmt.Errorf("panel: unknown operation %q", op)
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
