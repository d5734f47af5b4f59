package config

import (
	"fmt"
	"strings"
)

// On returns the configuration of a new box on the machine with that device tree: Default, and on a Raspberry Pi that the image
// starts on, the panel as it is wired to the header by the documents. compatible is the property of the tree's root: names, each
// ended by a zero byte, the most exact first (Devicetree Specification 0.4, section 2.3.1). A machine that is not known has Default.
func On(compatible string) Config {
	c := Default()
	for name := range strings.SplitSeq(compatible, "\x00") {
		if h, known := headerOf(name); known {
			c.Panel.Bus = h.bus
			c.Panel.Approve = "GPIO17@" + h.gpio
			c.Panel.Deny = "GPIO27@" + h.gpio
			c.Panel.Lamp = "GPIO22@" + h.gpio
			c.Panel.Buzzer = "GPIO23@" + h.gpio
			return c
		}
	}
	return c
}

// Check judges a file's content as each Pi that the image starts on will, since what it leaves out is not the same on all of them.
func Check(b []byte) error {
	c, err := Parse(b)
	if err != nil {
		return err
	}
	if err := c.OnBox(); err != nil {
		return err
	}
	for _, name := range pis() {
		if _, err := On(name).With(b); err != nil {
			return fmt.Errorf("on a %s, where what the file leaves out is as the documents wire it: %w", strings.TrimPrefix(name, "raspberrypi,"), err)
		}
	}
	return nil
}

// pis are the Pis that the image starts on, as their device trees call them.
func pis() []string {
	return []string{
		"raspberrypi,3-model-b", "raspberrypi,3-model-b-plus", "raspberrypi,model-zero-2-w",
		"raspberrypi,4-model-b", "raspberrypi,400", "raspberrypi,5-model-b",
	}
}

// header is where the kernel has what is behind a Pi's 40 pins. A device's place is its address as the processor sees it and the
// name of its node, so both follow from the kernel's own device trees, which the image ships.
type header struct {
	gpio string // the chip of GPIO0 to GPIO27
	bus  string // I2C1, on pins 3 and 5
}

// headerOf returns the header of a Pi.
func headerOf(name string) (_ header, known bool) {
	switch name {
	case "raspberrypi,3-model-b", "raspberrypi,3-model-b-plus", "raspberrypi,model-zero-2-w":
		return header{gpio: "3f200000.gpio", bus: "3f804000.i2c"}, true
	case "raspberrypi,4-model-b", "raspberrypi,400":
		return header{gpio: "fe200000.gpio", bus: "fe804000.i2c"}, true
	case "raspberrypi,5-model-b":
		return header{gpio: "1f000d0000.pinctrl", bus: "1f00074000.i2c"}, true
	}
	return header{}, false
}
