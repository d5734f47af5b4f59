// Package rootlist knows what must not be in the box's root: another way to approve than the button (acceptance row D2), and a way in.
//
// The list of a root is one path a line, relative to the root, as the build writes it beside the image. Rules are about names, so they
// hold for a list as well as for a tree; what a file does is tried elsewhere, in the booted box. What a name does not tell, and only
// a tree does, is whose rights a program has: Rights judges that.
package rootlist

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"path"
	"regexp"
	"strings"
)

// maxPaths bounds a list; a root has some two thousand files.
const maxPaths = 100_000

// rule is one kind of thing that must not be there.
type rule struct {
	what string
	bare *regexp.Regexp // matches the last element of a path, without .ko and what follows it
}

// fileRules are about any file of the root but modules.
func fileRules() []rule {
	names := func(what, pattern string) rule { return rule{what, regexp.MustCompile(`^(?:` + pattern + `)$`)} }
	return []rule{
		names("is a shell", `sh|bash|dash|zsh|ksh|fish|busybox|toybox|rbash`),
		names("is a login", `login|su|sudo|doas|pkexec|run0|sulogin|systemd-sulogin-shell|runuser|newgrp|agetty|getty|mgetty|systemd-logind|sshd|dropbear|telnetd`),
		names("is an interpreter", `python[0-9.]*|perl[0-9.]*|ruby|lua[0-9.]*|node|tclsh[0-9.]*|awk|mawk|gawk|original-awk|gdb|strace`),
		names("is a bus that anybody could join", `dbus-daemon|dbus-broker|dbus-broker-launch`),
		names("loads drivers by hand, or takes them away", `insmod|rmmod`),
		names("changes what the box starts", `fw_setenv|fw_printenv|bootctl|efibootmgr|kexec`),
		names("is a unit that hands out a console", `.*getty.*\.(?:service|target)|debug-shell\.service|rescue\.service|autovt@\.service`),
		names("is a generator that takes orders from the kernel's command line", `systemd-(?:run|debug|getty|gpt-auto|ssh|import|factory-reset|system-update)-generator`),
	}
}

// moduleRules are about the kernel's modules. Their names are written with underscores, as the kernel has them.
func moduleRules() []rule {
	names := func(what, pattern string) rule { return rule{what, regexp.MustCompile(`^(?:` + pattern + `)$`)} }
	return []rule{
		names("could pose as a GPIO line", `gpio_sim|gpio_aggregator|gpio_mockup|gpio_virtuser|gpio_virtio|gpio_mpsse|gpio_viperboard|gpio_latch|gpio_shared_proxy`),
		names("could pose as a bus", `i2c_stub|i2c_gpio|i2c_tiny_usb|i2c_slave.*|i2c_diolan_u2c|i2c_viperboard|i2c_cp2615|i2c_robotfuzz_osif|i2c_dln2|i2c_virtio|spi_gpio|spi_bitbang|spi_ch341|spi_loopback_test|spi_slave.*`),
		names("could pose as a USB device", `usbip.*|vhci_hcd|dummy_hcd|raw_gadget|gadgetfs|g_.*|usb_f_(?:hid|fs|acm|ecm|eem|ncm|rndis|serial|obex|midi.*|uac.*|uvc|printer|phonet|ss_lb|tcm|subset|ecm_subset)|u_serial|u_ether|usbtest|usbmon`),
		names("could pose as an input, or turn one into events", `uinput|uhid|hid|hid_.*|usbhid|i2c_hid.*|evdev|joydev|mousedev|gpio_keys.*|adc_keys|virtio_input|serio.*|atkbd|psmouse|wacom.*|.*_keypad|rmi_.*|sparse_keymap|matrix_keymap|hyperv_keyboard|bthid|hidp`),
		names("is a radio that inputs use", `bluetooth|btusb|hci_uart|btbcm|rc_core|ir_.*|lirc.*`),
		names("could make a device of a test's choice", `null_blk|scsi_debug|brd|dm_flakey|dm_log_writes|dm_snapshot|loop|nbd|ublk_drv|zram|udmabuf|uio.*|vfio.*|kvm|vhost.*`),
		names("could run what is not a program", `binfmt_misc|binfmt_.*`),
	}
}

// Problem is one path that must not be there.
type Problem struct {
	Path string
	Why  string
}

func (p Problem) String() string { return p.Path + " " + p.Why }

// ErrList says that a list cannot be read.
var ErrList = errors.New("rootlist: damaged list")

// Check reads a list and returns what must not be on it.
func Check(list io.Reader) ([]Problem, error) {
	files, modules := fileRules(), moduleRules()
	var found []Problem
	n := 0
	for lines := bufio.NewScanner(list); ; n++ {
		if !lines.Scan() {
			if err := lines.Err(); err != nil {
				return nil, fmt.Errorf("%w: %v", ErrList, err)
			}
			break
		}
		name := strings.TrimPrefix(lines.Text(), "/")
		if name == "" || n == maxPaths {
			return nil, fmt.Errorf("%w: line %d", ErrList, n+1)
		}
		if why := judge(name, files, modules); why != "" {
			found = append(found, Problem{name, why})
		}
	}
	if n == 0 {
		return nil, fmt.Errorf("%w: it is empty", ErrList)
	}
	return found, nil
}

// judge says why a path must not be there, or nothing.
func judge(name string, files, modules []rule) string {
	base := path.Base(name)
	if bare, _, isModule := strings.Cut(base, ".ko"); isModule && strings.Contains(name, "lib/modules/") {
		return first(modules, strings.ReplaceAll(bare, "-", "_"))
	}
	// A link to /dev/null there forbids the unit of its name.
	if path.Dir(name) == "etc/systemd/system" {
		return ""
	}
	return first(files, base)
}

func first(rules []rule, name string) string {
	for _, r := range rules {
		if r.bare.MatchString(name) {
			return r.what
		}
	}
	return ""
}
