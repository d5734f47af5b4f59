package config

import (
	"errors"
	"fmt"
	"strings"
)

// wiring says what of the wiring cannot work on any machine. What is on this one, package board finds out.
func (p Panel) wiring() []error {
	var errs []error
	if p.Approve == "" {
		errs = append(errs, errors.New("panel.approve must name the approve button's line"))
	}
	lines := []struct{ key, line string }{
		{"approve", p.Approve},
		{"deny", p.Deny},
		{"lamp", p.Lamp},
		{"buzzer", p.Buzzer},
		{"data", p.Data},
		{"reset", p.Reset},
	}
	for i, a := range lines {
		for _, b := range lines[:i] {
			if sameLine(a.line, b.line) {
				errs = append(errs, fmt.Errorf("panel.%s and panel.%s name one and the same line %q; each part needs its own", b.key, a.key, a.line))
			}
		}
	}
	switch {
	case p.Data == "" && p.Reset != "":
		errs = append(errs, errors.New("panel.reset is for a display on SPI, which needs panel.data, too; a display on I2C needs neither"))
	case p.Data == "" && busOf(p.Bus, "spi"):
		errs = append(errs, fmt.Errorf("panel.bus %q is for SPI; a display on it needs panel.data, the line that tells pictures from commands", p.Bus))
	case p.Data != "" && busOf(p.Bus, "i2c"):
		errs = append(errs, fmt.Errorf("panel.data is for a display on SPI, but panel.bus %q is for I2C; leave panel.data out, or set panel.bus to the SPI bus", p.Bus))
	}
	return errs
}

// sameLine reports whether two parts would hang on one line. A name without a place is that name anywhere.
func sameLine(a, b string) bool {
	nameA, placeA, _ := strings.Cut(a, "@")
	nameB, placeB, _ := strings.Cut(b, "@")
	return nameA != "" && nameA == nameB && (placeA == placeB || placeA == "" || placeB == "")
}

// busOf reports whether a bus's place says that it is of that kind: "fe804000.i2c", "i2c-1", "fe204000.spi/spi_master".
func busOf(place, kind string) bool {
	for element := range strings.SplitSeq(place, "/") {
		if strings.HasSuffix(element, "."+kind) || strings.HasPrefix(element, kind) {
			return true
		}
	}
	return false
}
