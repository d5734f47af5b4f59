package board

import (
	"fmt"

	"assent.home.arpa/appliance/config"
	"assent.home.arpa/device"
)

// Bus carries I2C transactions to wherever the display is: w is sent to the device at an address, then r is filled by it. An
// error means that something was not acknowledged.
type Bus interface {
	Tx(addr uint16, w, r []byte) error
	Close() error
}

// DisplayOver is the driver of the display that p names, over another way to it than a bus of this machine. open is called
// when the bus is first needed, and again after each failure, when the one before has been closed.
func DisplayOver(open func() (Bus, error), p config.Panel) (device.Display, error) {
	return newOLED(p, func() (wire, error) {
		b, err := open()
		if err != nil {
			return nil, err
		}
		return i2cWire{b}, nil
	})
}

// newOLED is a display whose bus is still to be opened.
func newOLED(p config.Panel, open func() (wire, error)) (*oled, error) {
	part, known := parts(p.Display)
	if !known {
		return nil, fmt.Errorf("board: panel.display is %q; set it to ssd1306 or sh1106", p.Display)
	}
	if p.Contrast < 1 || p.Contrast > 255 {
		return nil, fmt.Errorf("board: panel.contrast is %d; set it to 1 to 255", p.Contrast)
	}
	return &oled{bus: &link{open: open}, part: part, rotate: p.Rotate, contrast: byte(p.Contrast)}, nil
}
