package board

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"time"

	"periph.io/x/conn/v3/physic"
	"periph.io/x/conn/v3/spi"
)

// spiClock is the fastest that both controllers take (SH1106 version 2.3, serial interface: 250 ns a bit; SSD1306 100 ns).
const spiClock = 4 * physic.MegaHertz

// resetPulse is how long the reset line is low, and how long a controller is left alone after it (SSD1306 section 8.9 and
// SH1106 "reset timing" ask for a few microseconds).
const resetPulse = 100 * time.Microsecond

// errOneWay says that nothing comes back on SPI.
var errOneWay = errors.New("the display's bus has no way back")

// spiWire is a display on an SPI bus. A line of its own tells data from commands. Nobody acknowledges anything.
type spiWire struct {
	host  host
	port  spi.PortCloser
	conn  spi.Conn
	data  *os.File
	reset *os.File // nil: the module resets itself
}

// openSPI opens the SPI bus that sits at want, or the only one, takes the lines of the display on it and resets it.
func (h host) openSPI(at, data, reset string) (wire, error) {
	dev, err := h.findSPI(at)
	if err != nil {
		return nil, err
	}
	w := &spiWire{host: h}
	if w.data, err = h.openOutput(want("panel.data", data)); err == nil {
		w.reset, err = h.openOutput(want("panel.reset", reset)) // it is low from here on
	}
	if err == nil {
		w.port, err = h.spi(dev.number, dev.unit)
	}
	if err == nil {
		w.conn, err = w.port.Connect(spiClock, spi.Mode0, 8)
	}
	if err == nil {
		time.Sleep(resetPulse)
		err = h.drive(w.reset, true)
		time.Sleep(resetPulse)
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("board: display on spi: %w", err), w.Close())
	}
	return w, nil
}

func (h host) findSPI(want string) (place, error) {
	all, err := places(h.root, "sys/class/spidev", "spidev")
	if err != nil {
		return place{}, fmt.Errorf("board: spi buses: %w", err)
	}
	fit := slices.DeleteFunc(slices.Clone(all), func(p place) bool { return !p.at(want) })
	switch {
	case len(all) == 0:
		return place{}, errors.New("board: this machine has no spi bus; the box's image has none, so take a display on i2c; another system must be told (raspberry pi os: dtparam=spi=on) and restarted")
	case len(fit) == 0:
		return place{}, fmt.Errorf("board: no spi bus is at panel.bus %q; set panel.bus to one of %s", want, list(all))
	case len(fit) > 1:
		return place{}, fmt.Errorf("board: %d spi buses could be the display's; set panel.bus to one of %s", len(fit), list(fit))
	}
	return fit[0], nil
}

func (w *spiWire) send(what content, data []byte) error {
	if err := w.host.drive(w.data, what == toRAM); err != nil {
		return err
	}
	return w.conn.Tx(data, nil)
}

func (w *spiWire) status() (byte, error) { return 0, errOneWay }

// Close lets go of the bus and of the lines.
func (w *spiWire) Close() error {
	var errs []error
	if w.port != nil {
		errs = append(errs, w.port.Close())
	}
	for _, line := range []*os.File{w.data, w.reset} {
		if line != nil {
			errs = append(errs, line.Close())
		}
	}
	return errors.Join(errs...)
}
