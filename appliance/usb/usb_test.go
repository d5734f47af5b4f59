package usb_test

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"assent.home.arpa/appliance/usb"
)

// device returns the descriptors of a device with that class and one configuration.
func device(class byte, interfaces ...[]byte) []byte {
	return slices.Concat([]byte{18, 1, 0, 2, class, 0, 0, 64, 0x81, 0x07, 0x67, 0x55, 0, 1, 1, 2, 3, 1}, configuration(interfaces...))
}

func configuration(interfaces ...[]byte) []byte {
	numbers := map[byte]bool{}
	for _, i := range interfaces {
		numbers[i[2]] = true
	}
	all := slices.Concat(interfaces...)
	total := 9 + len(all)
	return append([]byte{9, 2, byte(total), byte(total >> 8), byte(len(numbers)), 1, 0, 0x80, 50}, all...)
}

// iface is an interface descriptor and the two endpoints behind it.
func iface(number, setting, class, subclass, protocol byte) []byte {
	return []byte{9, 4, number, setting, 2, class, subclass, protocol, 0, 7, 5, 0x81, 2, 0, 2, 0, 7, 5, 2, 2, 0, 2, 0}
}

var (
	bulk     = iface(0, 0, 8, 6, 0x50)
	uas      = iface(0, 1, 8, 6, 0x62)
	keyboard = iface(1, 0, 3, 1, 1)
	network  = iface(1, 0, 2, 6, 0)
)

// D2: what could feed the box anything but a disk stays out.
func TestWhatIsLetIn(t *testing.T) {
	two := append(device(0, bulk), configuration(iface(0, 0, 3, 1, 1))...)
	two[17] = 2
	for _, c := range []struct {
		event string
		b     []byte
		want  usb.Sort
		bad   bool
	}{
		{"a stick", device(0, bulk), usb.Storage, false},
		{"a stick of two ways to speak", device(0, bulk, uas), usb.Storage, false},
		{"a hub", device(9, iface(0, 0, 9, 0, 1)), usb.Hub, false},
		{"a keyboard", device(0, iface(0, 0, 3, 1, 1)), usb.Other, false},
		{"a stick with a keyboard", device(0, bulk, keyboard), usb.Other, false},
		{"a stick with a network card", device(0xef, bulk, network), usb.Other, false},
		{"a stick whose other setting is a keyboard", device(0, bulk, iface(0, 1, 3, 1, 1)), usb.Other, false},
		{"a stick whose second configuration is a keyboard", two, usb.Other, false},
		{"a hub with storage of its own", device(9, iface(0, 0, 9, 0, 0), iface(1, 0, 8, 6, 0x50)), usb.Other, false},
		{"storage that calls itself a hub", device(9, bulk), usb.Other, false},
		{"a hub's interface on another device", device(0, iface(0, 0, 9, 0, 0)), usb.Other, false},
		{"a floppy drive", device(0, iface(0, 0, 8, 4, 0)), usb.Other, false},
		{"a disc drive", device(0, iface(0, 0, 8, 2, 0x50)), usb.Other, false},
		{"a camera", device(0, iface(0, 0, 6, 1, 1)), usb.Other, false},
		{"nothing", nil, usb.Other, true},
		{"only a device", device(0)[:18], usb.Other, true},
		{"no interface", device(0), usb.Other, true},
		{"cut short", device(0, bulk)[:30], usb.Other, true},
		{"bytes behind it", append(device(0, bulk), 0), usb.Other, true},
		{"a descriptor of no length", device(0, bulk, []byte{0, 4, 0, 0, 0, 3, 1, 1, 0}), usb.Other, true},
		{"a descriptor beyond its configuration", device(0, bulk, []byte{200, 4, 0, 0, 0, 8, 6, 0x50, 0}), usb.Other, true},
		{"a device within a configuration", device(0, bulk, []byte{18, 1, 0, 2, 0, 0, 0, 64, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1}), usb.Other, true},
		{"far too much", append(device(0, bulk), make([]byte, usb.MaxDescriptors)...), usb.Other, true},
	} {
		t.Run(c.event, func(t *testing.T) {
			got, err := usb.Classify(c.b)
			if got != c.want || errors.Is(err, usb.ErrDescriptors) != c.bad {
				t.Errorf("%s, %v", got, err)
			}
			dir := t.TempDir()
			for name, b := range map[string][]byte{"descriptors": c.b, "authorized": []byte("0")} {
				if err := os.WriteFile(filepath.Join(dir, name), b, 0o600); err != nil {
					t.Fatal(err)
				}
			}
			root, err := os.OpenRoot(dir)
			if err != nil {
				t.Fatal(err)
			}
			defer root.Close()
			_, _ = usb.AuthoriseIn(root)
			b, err := os.ReadFile(filepath.Join(dir, "authorized"))
			if want := c.want.Wanted(); err != nil || bytes.Equal(b, []byte("1")) != want {
				t.Errorf("authorized is %q, want it in: %t", b, want)
			}
		})
	}
}

func TestOnlyDevicesAreAuthorised(t *testing.T) {
	for _, dir := range []string{"", "/", "/sys", "/etc", "/sys/devices/../../etc", "/sys/devices/", "sys/devices/a"} {
		if _, err := usb.Authorise(dir); err == nil {
			t.Errorf("%q", dir)
		}
	}
}

// FuzzClassify: what is let in has no interface, in any setting, of another class.
func FuzzClassify(f *testing.F) {
	for _, b := range [][]byte{device(0, bulk), device(0, bulk, uas), device(9, iface(0, 0, 9, 0, 1)), device(0, bulk, keyboard)} {
		f.Add(b)
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		sort, err := usb.Classify(b)
		if err != nil && sort != usb.Other {
			t.Errorf("%s and %v", sort, err)
		}
		if !sort.Wanted() {
			return
		}
		for i := 18; i+9 <= len(b); i += int(b[i]) {
			if b[i+1] == 4 && b[i+5] != 8 && b[i+5] != 9 {
				t.Errorf("an interface of class %d is let in as %s", b[i+5], sort)
			}
		}
	})
}
