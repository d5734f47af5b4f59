// Package board drives the box's real parts: a 128×64 OLED on an I2C or SPI bus, and push buttons, a lamp and a buzzer on GPIO
// lines. It is the only
// package that imports periph.
//
// # Finding the parts
//
// Numbers of buses and chips change with the kernel, so nothing here is configured by number. The bus is the one whose
// place in the device tree the configuration names (any run of whole path elements: "fe804000.i2c"), or the only one
// there is. A button is a line with a certain name; should two chips have a line of that name, the chip's place follows
// an at sign ("GPIO17@fe200000.gpio"). What is ambiguous is refused: a chip that turns up later cannot take a button over.
//
// # What is promised
//
// The display is written in pieces, but Draw returns nil only after the part has acknowledged them all. Each Draw sends the
// whole picture and all that decides how the part shows it, since a bit that noise turned on the way is acknowledged too; Update
// sends what changed. After any failure the next of either looks for the bus and starts the part afresh. Button edges carry the kernel's own time stamps and
// counts (linux/gpio.h, line request v2), never the time of reading.
package board

import (
	"errors"
	"os"
	"time"
	"unsafe"

	"periph.io/x/conn/v3/i2c"
	"periph.io/x/conn/v3/spi"
	"periph.io/x/host/v3/sysfs"

	"assent.home.arpa/appliance/clock"
	"assent.home.arpa/appliance/config"
	"assent.home.arpa/device"
)

// ErrInUse says that another program has a button's line, so that it may be deciding something with it right now.
var ErrInUse = errors.New("in use")

// Board is the opened parts.
type Board struct {
	Display device.Display
	Buttons device.Buttons
	Lamp    device.Lamp

	oled *oled
	keys *buttons
	sigs *signals
}

// Open finds and opens the parts that p names. A display that does not answer is no error here: it may come back, and
// until then Draw says so. The error tells of everything that is missing, with what to do about it.
func Open(p config.Panel) (*Board, error) { return system().open(p) }

// OpenRaw is Open for a test of the contacts: nobody debounces the buttons, so that Events has every edge.
func OpenRaw(p config.Panel) (*Board, error) {
	h := system()
	h.raw = true
	return h.open(p)
}

// system is this machine.
func system() host {
	return host{
		root: "/", ioctl: ioctl, mono: clock.System().Mono,
		// Not through periph's registry: that would open every bus and every pin of the machine.
		bus: func(n int) (i2c.BusCloser, error) { return sysfs.NewI2C(n) },
		spi: func(bus, cs int) (spi.PortCloser, error) { return sysfs.NewSPI(bus, cs) },
	}
}

// Close darkens the display, so that no request stays readable after nobody is there to take the press, and lets go of
// the parts. Buttons.Events is closed.
func (b *Board) Close() error {
	return errors.Join(b.keys.close(), b.sigs.close(), b.oled.off(), b.oled.bus.close())
}

// host is what a board needs of Linux.
type host struct {
	root  string // of /sys and /dev
	ioctl func(f *os.File, req uint, arg unsafe.Pointer) error
	mono  func() time.Duration // CLOCK_MONOTONIC
	bus   func(n int) (i2c.BusCloser, error)
	spi   func(bus, cs int) (spi.PortCloser, error)
	raw   bool // nobody debounces the buttons
}

func (h host) open(p config.Panel) (*Board, error) {
	open := func() (wire, error) { return h.openBus(p.Bus) }
	if p.Data != "" {
		open = func() (wire, error) { return h.openSPI(p.Bus, p.Data, p.Reset) }
	}
	o, err := newOLED(p, open)
	if err != nil {
		return nil, err
	}
	bus, busErr := open()
	keys, keysErr := h.openButtons(p.Approve, p.Deny)
	sigs, sigsErr := h.openSignals(p.Lamp, p.Buzzer)
	if err := errors.Join(busErr, keysErr, sigsErr); err != nil {
		if bus != nil {
			err = errors.Join(err, bus.Close())
		}
		if keys != nil {
			err = errors.Join(err, keys.close())
		}
		if sigs != nil {
			err = errors.Join(err, sigs.close())
		}
		return nil, err
	}
	o.bus.bus, o.deaf = bus, p.Data != ""
	return &Board{Display: o, Buttons: keys, Lamp: sigs, oled: o, keys: keys, sigs: sigs}, nil
}
