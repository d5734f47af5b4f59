// Package device states what the box's own display, buttons and lamp are, as small interfaces.
//
// Three kinds of thing implement them: device/board (the real parts, over periph), the drawn panel of assentsim, and
// devicetest (fakes that bounce, stick and lose their bus). Nothing here knows what is drawn or what a press means; that
// is confirm's business.
//
// # Contract
//
// Display and Buttons belong to one goroutine each. A Display returns from Draw only when the part has acknowledged all
// that was sent, so an error means "nobody can say what the glass shows" and disarms the press. An acknowledgement says that
// the part was there for every byte, not that it had the byte right: I2C has no checksum, and a bit that noise turned is
// acknowledged like any other. So what counts as shown is drawn whole, and what noise did to it lasts until the next
// picture. Button events carry the time of the edge itself on CLOCK_MONOTONIC, the only clock that the kernel stamps GPIO events with
// (linux/gpio.h, struct gpio_v2_line_event), never the time at which a program got round to reading it.
package device

import (
	"errors"
	"fmt"
	"time"
)

// Width and Height are the panel's size in pixels (SSD1306 datasheet section 8.7: 128×64, 8 pages of 8 rows).
const (
	Width  = 128
	Height = 64
)

// ErrBus says that the part did not acknowledge, so what it shows is unknown.
var ErrBus = errors.New("device: bus did not acknowledge")

// ErrNoButton says that the kit has no such button.
var ErrNoButton = errors.New("device: no such button")

// Frame is one full picture in the layout of SSD1306 display RAM (datasheet section 8.7): byte [page*128+column], bit 0
// the topmost of the page's eight rows, 1 = lit.
type Frame [Width * Height / 8]byte

// At reports whether the pixel is lit. Points outside the panel are dark.
func (f *Frame) At(x, y int) bool {
	if x < 0 || x >= Width || y < 0 || y >= Height {
		return false
	}
	return f[y/8*Width+x]>>(y%8)&1 == 1
}

// Set lights or darkens a pixel. Points outside the panel are ignored.
func (f *Frame) Set(x, y int, lit bool) {
	if x < 0 || x >= Width || y < 0 || y >= Height {
		return
	}
	if lit {
		f[y/8*Width+x] |= 1 << (y % 8)
	} else {
		f[y/8*Width+x] &^= 1 << (y % 8)
	}
}

// Invert flips every pixel.
func (f *Frame) Invert() {
	for i := range f {
		f[i] = ^f[i]
	}
}

// Button names one of the two buttons. The zero value is no button.
type Button uint8

// The buttons. Do not renumber: the numbers are in the audit.
const (
	Approve Button = 1
	Deny    Button = 2
)

func (b Button) String() string {
	switch b {
	case Approve:
		return "approve"
	case Deny:
		return "deny"
	}
	return fmt.Sprintf("button(%d)", uint8(b))
}

// Edge is a change of a button's line, after debouncing. The zero value is no edge.
type Edge uint8

// The edges. Do not renumber: the numbers are in the audit.
const (
	Press   Edge = 1
	Release Edge = 2
)

func (e Edge) String() string {
	switch e {
	case Press:
		return "press"
	case Release:
		return "release"
	}
	return fmt.Sprintf("edge(%d)", uint8(e))
}

// Event is one debounced edge. Its CBOR form (integer keys) is part of the device contract.
type Event struct {
	// Mono is the time of the edge on CLOCK_MONOTONIC, in nanoseconds.
	Mono time.Duration `cbor:"1,keyasint"`
	Edge Edge          `cbor:"2,keyasint"`
	// Seq counts the edges of this button since its line was opened, from 1; a gap means that edges were lost.
	Seq    uint32 `cbor:"3,keyasint"`
	Button Button `cbor:"4,keyasint"`
}

// Display is a monochrome panel of Width×Height pixels.
type Display interface {
	// Draw shows a new picture: it sends all of f, and with it everything that decides how the part shows it, whatever was
	// sent before. It returns when the part has acknowledged every byte. Any error wraps ErrBus.
	Draw(f *Frame) error
	// Update shows f where it is the last picture with something small changed, such as a bar that fills: it may send the
	// difference only, so that what was wrong on the glass elsewhere stays wrong until the next Draw. It returns as Draw does.
	Update(f *Frame) error
	// ReadsBack reports whether an acknowledgement means that the part really took the bytes (I2C yes, SPI and HDMI no).
	// Displays that do not are armed by challenge.
	ReadsBack() bool
	// Dim lowers or restores the brightness.
	Dim(dim bool) error
}

// Buttons delivers the edges of the box's buttons.
type Buttons interface {
	// Events is the stream of edges, in order of time. It is closed when the lines are lost; Err then says why.
	Events() <-chan Event
	// Down reads the debounced level now. It fails with ErrNoButton where the kit lacks the button.
	Down(b Button) (bool, error)
	// Has reports whether the kit has this button.
	Has(b Button) bool
	// Err is the reason for which Events was closed, or nil.
	Err() error
}

// Signal is what the lamp (and a buzzer, if there is one) tells somebody across the room.
type Signal uint8

// The signals.
const (
	Quiet   Signal = 0 // nothing waits
	Waiting Signal = 1 // a request waits to be read
	Holding Signal = 2 // a hold is under way
	Alarm   Signal = 3 // panic, or the display was lost
	Still   Signal = 4 // a request waits to be read, and is not to be heard
)

// Lamp shows a Signal. Kits without a lamp use NoLamp.
type Lamp interface {
	Show(s Signal) error
}

// NoLamp is the lamp of a kit that has none.
type NoLamp struct{}

// Show does nothing.
func (NoLamp) Show(Signal) error { return nil }
