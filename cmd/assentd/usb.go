package main

import (
	"context"
	"errors"

	"assent.home.arpa/appliance/box"
	"assent.home.arpa/appliance/usb"
)

// stickRole exports to one stick, for as long as it is in.
func stickRole(ctx context.Context, e env) error {
	if len(e.args) != 1 {
		return usageError("stick takes one block device")
	}
	peers, err := systemUsers()
	if err != nil {
		return err
	}
	err = box.Stick(ctx, e.config, e.args[0], peers, e.log)
	if errors.Is(err, box.ErrInUse) {
		return unclearError(err.Error())
	}
	return err
}

// usbAuthorise lets the kernel use a new USB device, if that is storage or a hub. udev runs it for each.
func usbAuthorise(_ context.Context, e env) error {
	if len(e.args) != 1 {
		return usageError("usb-authorise takes one device's directory below /sys/devices")
	}
	sort, err := usb.Authorise(e.args[0])
	if err != nil {
		return err
	}
	e.log.Info("usb device", "sort", sort.String(), "authorised", sort.Wanted())
	return nil
}
