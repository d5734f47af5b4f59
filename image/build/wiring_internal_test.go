package main

import (
	"context"
	"errors"
	"maps"
	"strings"
	"testing"
)

// readTree reads a device tree of which these are the properties, by "node property".
func readTree(tree map[string]string) func(ctx context.Context, node, property string) (string, error) {
	return func(_ context.Context, node, property string) (string, error) {
		value, there := tree[node+" "+property]
		if !there {
			return "", errors.New("no " + node + " " + property)
		}
		return value, nil
	}
}

// A tree in which the panel would stay dark does not become an image.
func TestEveryPiFindsItsPanel(t *testing.T) {
	names := "ID_SDA ID_SCL SDA1 SCL1 GPIO_GCLK GPIO5 GPIO6 SPI_CE1_N SPI_CE0_N SPI_MISO SPI_MOSI SPI_SCLK GPIO12 GPIO13 TXD1 RXD1 " +
		"GPIO16 GPIO17 GPIO18 GPIO19 GPIO20 GPIO21 GPIO22 GPIO23 GPIO24 GPIO25 GPIO26 GPIO27 HDMI_HPD_N"
	whole := map[string]string{
		"/ compatible":                       "raspberrypi,4-model-b brcm,bcm2711\n",
		"/__symbols__ gpio":                  "/soc/gpio@7e200000\n",
		"/__symbols__ i2c1":                  "/soc/i2c@7e804000\n",
		"/soc/gpio@7e200000 gpio-line-names": names + "\n",
		"/soc/i2c@7e804000 status":           "okay\n",
	}
	for _, tc := range []struct{ name, key, value, want string }{
		{name: "as it is"},
		{"a Pi that is not known", "/ compatible", "raspberrypi,9", "no panel is known for raspberrypi,9"},
		{"lines without names", "/soc/gpio@7e200000 gpio-line-names", "", "is line -1, not 17"},
		{"lines that moved", "/soc/gpio@7e200000 gpio-line-names", "NEW " + names, "is line 18, not 17"},
		{"a bus that is off", "/soc/i2c@7e804000 status", "disabled", "is disabled"},
		{"a chip elsewhere", "/__symbols__ gpio", "/soc/gpio@7e300000", "is not at"},
		{"a chip of another name", "/__symbols__ gpio", "/soc/pins@7e200000", "is not at"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			tree := maps.Clone(whole)
			if tc.key != "" {
				tree[tc.key] = tc.value
			}
			err := wired(t.Context(), readTree(tree))
			if (err == nil) != (tc.want == "") || err != nil && !strings.Contains(err.Error(), tc.want) {
				t.Errorf("got %v, want %q", err, tc.want)
			}
		})
	}
}

// A Pi 4 whose port is no device's would promise a cable that never works.
func TestEveryPi4CanBeADisk(t *testing.T) {
	for _, tc := range []struct{ name, compatible, node, mode, want string }{
		{"as it is", "raspberrypi,4-model-b brcm,bcm2711", "/soc/usb@7e980000", "peripheral\n", ""},
		{"a Pi 5, which has none", "raspberrypi,5-model-b brcm,bcm2712", "", "", ""},
		{"a host", "raspberrypi,400 brcm,bcm2711", "/soc/usb@7e980000", "host", "its USB controller is host"},
		{"no controller", "raspberrypi,4-model-b brcm,bcm2711", "", "", "no /__symbols__ usb"},
		{"another controller", "raspberrypi,4-model-b brcm,bcm2711", "/scb/usb@7e9c0000", "peripheral", "is not at"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			tree := map[string]string{"/ compatible": tc.compatible}
			if tc.node != "" {
				tree["/__symbols__ usb"], tree[tc.node+" dr_mode"] = tc.node+"\n", tc.mode
			}
			err := cabled(t.Context(), readTree(tree))
			if (err == nil) != (tc.want == "") || err != nil && !strings.Contains(err.Error(), tc.want) {
				t.Errorf("got %v, want %q", err, tc.want)
			}
		})
	}
}
