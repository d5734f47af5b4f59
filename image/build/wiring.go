package main

import (
	"context"
	"fmt"
	"path"
	"slices"
	"strconv"
	"strings"

	"assent.home.arpa/appliance/config"
)

// windows is the part of an address that is the same for the bus and for the processor: the windows by which a Pi's device trees
// translate addresses are 4 MiB or more.
const windows = 1<<22 - 1

// wired fails where a Raspberry Pi with that device tree would not find the panel that is wired by the documents: its lines, by name
// and pin, and its bus, switched on. get reads a node's property, strings with spaces between them.
func wired(ctx context.Context, get func(ctx context.Context, node, property string) (string, error)) error {
	names, err := get(ctx, "/", "compatible")
	if err != nil {
		return err
	}
	panel := config.On(strings.Join(strings.Fields(names), "\x00")).Panel
	if panel.Bus == "" {
		return fmt.Errorf("no panel is known for %s", names)
	}
	for _, line := range []struct {
		want string
		pin  int
	}{{panel.Approve, 17}, {panel.Deny, 27}, {panel.Lamp, 22}, {panel.Buzzer, 23}} {
		name, at, _ := strings.Cut(line.want, "@")
		lines, err := property(ctx, get, at, "gpio-line-names", "gpio", "rp1_gpio")
		if err != nil {
			return err
		}
		if is := slices.Index(strings.Fields(lines), name); is != line.pin {
			return fmt.Errorf("%q is line %d, not %d", line.want, is, line.pin)
		}
	}
	status, err := property(ctx, get, panel.Bus, "status", "i2c1", "rp1_i2c1")
	if err == nil && strings.TrimSpace(status) != "okay" {
		err = fmt.Errorf("bus %q is %s", panel.Bus, status)
	}
	return err
}

// cabled fails where a Raspberry Pi of that tree, which can pose as a disk on its USB-C port, would not: its USB controller must be
// the device there. Of the other Pis nothing is demanded.
func cabled(ctx context.Context, get func(ctx context.Context, node, property string) (string, error)) error {
	names, err := get(ctx, "/", "compatible")
	if err != nil || !slices.Contains(strings.Fields(names), "brcm,bcm2711") {
		return err
	}
	mode, err := property(ctx, get, "fe980000.usb", "dr_mode", "usb")
	if err == nil && strings.TrimSpace(mode) != "peripheral" {
		err = fmt.Errorf("its USB controller is %s", mode)
	}
	return err
}

// property reads a property of the node that has one of the labels, and demands that the kernel will call its device at.
func property(ctx context.Context, get func(ctx context.Context, node, property string) (string, error), at, name string, labels ...string) (string, error) {
	var node string
	var err error
	for _, label := range labels {
		if node, err = get(ctx, "/__symbols__", label); err == nil {
			break
		}
	}
	if err != nil {
		return "", err
	}
	node = strings.TrimSpace(node)
	kind, address, _ := strings.Cut(path.Base(node), "@")
	place, ofKind, _ := strings.Cut(at, ".")
	bus, err := strconv.ParseUint(address, 16, 64)
	if err != nil {
		return "", fmt.Errorf("%s: %w", node, err)
	}
	processor, err := strconv.ParseUint(place, 16, 64)
	if err != nil || kind != ofKind || bus&windows != processor&windows {
		return "", fmt.Errorf("%s is not at %q", node, at)
	}
	return get(ctx, node, name)
}
