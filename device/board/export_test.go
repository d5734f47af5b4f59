package board

import (
	"os"
	"time"
	"unsafe"

	"periph.io/x/conn/v3/i2c"
	"periph.io/x/conn/v3/spi"

	"assent.home.arpa/appliance/config"
	"assent.home.arpa/device"
	"assent.home.arpa/device/board/boardtest"
)

// DecodeEvents is decodeEvents.
var DecodeEvents = decodeEvents

// ErrEvent is errEvent.
var ErrEvent = errEvent

// Kernel is what a test puts in Linux's place.
type Kernel interface {
	Ioctl(f *os.File, req uint, arg unsafe.Pointer) error
	Mono() time.Duration
}

// OpenOn is Open on another machine.
func OpenOn(root string, k Kernel, bus func(n int) (i2c.BusCloser, error), p config.Panel) (*Board, error) {
	return host{root: root, ioctl: k.Ioctl, mono: k.Mono, bus: bus}.open(p)
}

// OpenRawOn is OpenRaw on another machine.
func OpenRawOn(root string, k Kernel, bus func(n int) (i2c.BusCloser, error), p config.Panel) (*Board, error) {
	return host{root: root, ioctl: k.Ioctl, mono: k.Mono, bus: bus, raw: true}.open(p)
}

// NewDisplay drives the display on a bus. It panics for a part that there is not.
func NewDisplay(bus i2c.BusCloser, name string, rotate bool, contrast byte) device.Display {
	part, known := parts(name)
	if !known {
		panic("board: internal error: no part " + name)
	}
	open := func() (wire, error) {
		if b, ok := bus.(*boardtest.OLED); ok {
			b.Open()
		}
		return i2cWire{bus}, nil
	}
	return &oled{bus: &link{open: open}, part: part, rotate: rotate, contrast: contrast}
}

// Debounce feeds raw edges, and settles what is pending at the times in between that settle lists.
func Debounce(raw []device.Event, settle ...time.Duration) []device.Event {
	d := debouncer{}
	var out []device.Event
	for _, ev := range raw {
		for len(settle) > 0 && settle[0] <= ev.Mono {
			out = append(out, d.settle(settle[0])...)
			settle = settle[1:]
		}
		out = append(out, d.take(ev)...)
	}
	for _, at := range settle {
		out = append(out, d.settle(at)...)
	}
	return out
}

// OpenSignals opens a lamp and a buzzer alone.
func OpenSignals(root string, k Kernel, lamp, buzzer string) (l device.Lamp, closeIt func() error, err error) {
	s, err := host{root: root, ioctl: k.Ioctl, mono: k.Mono}.openSignals(lamp, buzzer)
	if err != nil {
		return nil, nil, err
	}
	return s, s.close, nil
}

// OpenSPI is Open on another machine whose display is on SPI.
func OpenSPI(root string, k Kernel, port func(bus, cs int) (spi.PortCloser, error), p config.Panel) (*Board, error) {
	return host{root: root, ioctl: k.Ioctl, mono: k.Mono, spi: port}.open(p)
}
