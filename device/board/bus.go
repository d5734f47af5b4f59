package board

import (
	"errors"
	"fmt"
	"slices"
)

// openBus opens the I2C bus that sits at want, or the only one.
func (h host) openBus(want string) (wire, error) {
	n, err := h.findBus(want)
	if err != nil {
		return nil, err
	}
	bus, err := h.bus(n)
	if err != nil {
		return nil, fmt.Errorf("board: %w; see that the kernel module i2c-dev is loaded and that this user may read and write /dev/i2c-%d", err, n)
	}
	return i2cWire{bus}, nil
}

func (h host) findBus(want string) (int, error) {
	all, err := places(h.root, "sys/bus/i2c/devices", "i2c-")
	if err != nil {
		return 0, fmt.Errorf("board: i2c buses: %w", err)
	}
	fit := slices.DeleteFunc(slices.Clone(all), func(p place) bool { return !p.at(want) })
	switch {
	case len(all) == 0:
		return 0, errors.New("board: this machine has no i2c bus; the box's image has it on wherever that image starts, another system must be told (raspberry pi os: dtparam=i2c_arm=on) and restarted")
	case len(fit) == 0:
		return 0, fmt.Errorf("board: no i2c bus is at panel.bus %q; set panel.bus to one of %s", want, list(all))
	case len(fit) > 1:
		return 0, fmt.Errorf("board: %d i2c buses could be the display's; set panel.bus to one of %s", len(fit), list(fit))
	}
	return fit[0].number, nil
}

// address is where nearly all modules answer (SSD1306 section 8.1.5: SA0 low).
const address = 0x3c

// i2cWire is a display on an I2C bus, which acknowledges every byte.
type i2cWire struct{ bus Bus }

func (w i2cWire) send(what content, data []byte) error {
	if err := w.bus.Tx(address, append([]byte{byte(what)}, data...), nil); err != nil {
		return fmt.Errorf("display at address %#x: %w; check its four wires, and that this is its address", address, err)
	}
	return nil
}

func (w i2cWire) status() (byte, error) {
	var s [1]byte
	err := w.bus.Tx(address, nil, s[:])
	return s[0], err
}

func (w i2cWire) Close() error { return w.bus.Close() }
