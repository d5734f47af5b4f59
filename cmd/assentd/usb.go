package main

import (
	"context"
	"errors"
	"fmt"
	"os/user"
	"strconv"

	"assent.home.arpa/appliance/box"
	"assent.home.arpa/appliance/cable"
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

// gadgetSetUp describes to the kernel the disk that the box can be over a cable, and gives the exporter its two files.
func gadgetSetUp(_ context.Context, e env) error {
	if len(e.args) != 0 {
		return usageError("gadget-setup takes nothing but -config")
	}
	exporter, err := user.Lookup("assent-export")
	if err != nil {
		return errors.New("the system has no user assent-export: this program runs on the box's image")
	}
	uid, err := strconv.Atoi(exporter.Uid)
	if err != nil {
		return fmt.Errorf("user assent-export has uid %q", exporter.Uid)
	}
	gid, err := strconv.Atoi(exporter.Gid)
	if err != nil {
		return fmt.Errorf("user assent-export has gid %q", exporter.Gid)
	}
	return unclearWithout(cable.SetUp(cable.Gadgets, cable.Controllers, uid, gid))
}

// cableRole exports over the cable, for as long as the box is on.
func cableRole(ctx context.Context, e env) error {
	if len(e.args) != 0 {
		return usageError("cable takes nothing but -config")
	}
	peers, err := systemUsers()
	if err != nil {
		return err
	}
	return unclearWithout(box.Cable(ctx, e.config, peers, e.log))
}

// unclearWithout tells a board without a controller from one whose controller fails.
func unclearWithout(err error) error {
	if errors.Is(err, cable.ErrNoController) {
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
