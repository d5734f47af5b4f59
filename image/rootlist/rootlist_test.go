package rootlist_test

import (
	"errors"
	"strings"
	"testing"

	"assent.home.arpa/image/rootlist"
)

// modules is where a root has its drivers.
const modules = "usr/lib/modules/7.2.12+deb14-arm64/kernel/drivers/"

func TestWhatMustNotBeThere(t *testing.T) {
	for _, path := range []string{
		modules + "gpio/gpio-sim.ko", modules + "gpio/gpio-aggregator.ko.xz", modules + "gpio/gpio-virtuser.ko.zst",
		modules + "input/misc/uinput.ko", modules + "input/evdev.ko", modules + "input/keyboard/gpio_keys.ko",
		modules + "hid/hid.ko", modules + "hid/hid-generic.ko", modules + "hid/usbhid/usbhid.ko", modules + "hid/uhid.ko",
		modules + "usb/usbip/vhci-hcd.ko", modules + "usb/usbip/usbip-core.ko", modules + "usb/usbip/usbip-host.ko",
		modules + "usb/gadget/udc/dummy_hcd.ko", modules + "usb/gadget/function/usb_f_hid.ko", modules + "usb/gadget/legacy/g_hid.ko",
		modules + "usb/mon/usbmon.ko", modules + "i2c/busses/i2c-tiny-usb.ko", modules + "i2c/i2c-stub.ko", modules + "i2c/busses/i2c-gpio.ko",
		modules + "block/loop.ko", "usr/lib/modules/7.2/kernel/fs/binfmt_misc.ko", modules + "virtio/virtio_input.ko",
		"usr/bin/sh", "usr/bin/dash", "bin/bash", "usr/bin/busybox", "usr/bin/su", "usr/sbin/insmod", "usr/sbin/rmmod", "usr/bin/fw_setenv", "usr/sbin/sulogin", "usr/sbin/agetty",
		"usr/bin/login", "usr/sbin/sshd", "usr/bin/python3.14", "usr/bin/perl", "usr/bin/run0", "usr/bin/dbus-daemon",
		"usr/lib/systemd/system/getty@.service", "usr/lib/systemd/system/serial-getty@.service", "usr/lib/systemd/system/debug-shell.service",
		"usr/lib/systemd/system-generators/systemd-run-generator", "usr/lib/systemd/system/rescue.service",
		"etc/systemd/system/getty.target.wants/getty@tty1.service",
	} {
		got, err := rootlist.Check(strings.NewReader("usr/bin/assentd\n" + path + "\n"))
		if err != nil {
			t.Fatal(err)
		}
		if len(got) != 1 || got[0].Path != path {
			t.Errorf("%s is not found: %v", path, got)
		}
	}
}

func TestWhatBelongsThere(t *testing.T) {
	const list = `usr/bin/assentd
usr/bin/llama-server
usr/bin/systemctl
usr/lib/systemd/systemd
usr/lib/systemd/system/emergency.service
usr/lib/systemd/system-generators/systemd-fstab-generator
etc/systemd/system/getty@.service
etc/systemd/system/debug-shell.service
` + modules + `i2c/i2c-dev.ko
` + modules + `i2c/busses/i2c-bcm2835.ko
` + modules + `usb/storage/usb-storage.ko
` + modules + `usb/gadget/function/usb_f_mass_storage.ko
` + modules + `gpio/gpio-brcmstb.ko
` + modules + `md/dm-verity.ko
`
	got, err := rootlist.Check(strings.NewReader(list))
	if err != nil || len(got) != 0 {
		t.Errorf("%v, %v", got, err)
	}
}

func TestListsThatCannotBeRead(t *testing.T) {
	for name, text := range map[string]string{
		"empty": "", "an empty line": "usr/bin/assentd\n\nusr/bin/x\n", "a line without end": strings.Repeat("x", 1<<20),
		"too many": strings.Repeat("x\n", 100_001),
	} {
		if got, err := rootlist.Check(strings.NewReader(text)); !errors.Is(err, rootlist.ErrList) {
			t.Errorf("%s: %v, %v", name, got, err)
		}
	}
}
