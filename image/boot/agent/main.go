// Command agent is what the boot test puts beside the box's image: it makes the panel out of simulated lines and a display on a
// simulated USB port, moves the contacts when the host says so, tells it what is on the glass, and runs the box's own programs for
// it. It is no part of the image; the test variant of the initial file system starts it before systemd.
package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"assent.home.arpa/device"
	"assent.home.arpa/device/board/boardtest"
	"assent.home.arpa/image/boot/control"
	"assent.home.arpa/image/hil/hiltest"
)

// Lines of the simulated chip; line 0 has no name.
const (
	approveLine = 1
	denyLine    = 2
)

// look is how often the glass is looked at.
const look = 30 * time.Millisecond

func main() {
	if err := run(); err != nil {
		fmt.Println("agent:", err)
		os.Exit(1)
	}
}

func run() error {
	if bare, err := portNamed(control.BareName); err != nil {
		return err
	} else if bare != "" {
		if err := strip(); err != nil {
			return err
		}
	}
	a := &agent{}
	if err := a.furnish(); err != nil {
		return err
	}
	port, err := port()
	if err != nil {
		return err
	}
	defer port.Close()
	a.out = json.NewEncoder(port)
	fmt.Println("agent: the panel is there")
	go a.watch()
	for { // the host may hang up and call again
		if err := control.Requests(port, func(r control.Request) { go a.answer(r) }); err != nil {
			return err
		}
		time.Sleep(look)
	}
}

// agent is the test's hand in the box.
type agent struct {
	bank    *hiltest.Bank
	display *boardtest.OLED
	adapter *hiltest.Adapter

	mu  sync.Mutex // guards out
	out *json.Encoder
}

// furnish makes the panel.
func (a *agent) furnish() error {
	// The image's kernel has what the panel's kind of chip needs to be made, but nothing has mounted it yet.
	const configfs = "/sys/kernel/config"
	if err := unix.Mount("config", configfs, "configfs", 0, ""); err != nil && !errors.Is(err, unix.EBUSY) {
		return fmt.Errorf("mounting configfs: %w", err)
	}
	// Ports of the box's own are closed to what is plugged in, as its command line says; the kernel was loaded without it here.
	if err := os.WriteFile("/sys/module/usbcore/parameters/authorized_default", []byte("0"), 0); err != nil {
		return err
	}
	if err := os.WriteFile("/sys/devices/platform/vhci_hcd.0/usb1/authorized_default", []byte("1"), 0); err != nil {
		return err
	}
	var err error
	if a.bank, err = hiltest.NewBank("panel", "", "assent-approve", "assent-deny"); err != nil {
		return err
	}
	a.display = boardtest.NewSSD1306()
	a.adapter = hiltest.NewAdapter(0, a.display)
	return a.adapter.Plug()
}

// port opens the serial port to the host.
func port() (*os.File, error) {
	for end := time.Now().Add(20 * time.Second); time.Now().Before(end); time.Sleep(look) {
		device, err := portNamed(control.PortName)
		if err != nil {
			return nil, err
		}
		if device != "" {
			return os.OpenFile(device, os.O_RDWR, 0)
		}
	}
	return nil, errors.New("there is no port to a host")
}

// portNamed returns the device of a serial port, or nothing if there is none of that name.
func portNamed(name string) (string, error) {
	names, err := filepath.Glob("/sys/class/virtio-ports/*/name")
	if err != nil {
		return "", err
	}
	for _, file := range names {
		if b, err := os.ReadFile(file); err == nil && strings.TrimSpace(string(b)) == name {
			return filepath.Join("/dev", filepath.Base(filepath.Dir(file))), nil
		}
	}
	return "", nil
}

// strip has systemd, which starts next, find none of Assent's units: what is left is the bare system below them. The packet filter
// stays, without which there is no network here.
func strip() error {
	const units, masked = "/usr/lib/systemd/system/assent*", "/run/systemd/system"
	found, err := filepath.Glob(units)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(masked, 0o755); err != nil {
		return err
	}
	for _, unit := range found {
		if filepath.Base(unit) == "assent-firewall.service" {
			continue
		}
		if err := os.Symlink("/dev/null", filepath.Join(masked, filepath.Base(unit))); err != nil {
			return err
		}
	}
	return nil
}

func (a *agent) say(answer control.Answer) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if err := a.out.Encode(answer); err != nil {
		fmt.Println("agent: the host does not hear:", err)
	}
}

// watch tells the host of each change of the glass, and now and then that nothing changed, so that a new host hears something.
func (a *agent) watch() {
	var last device.Frame
	was, quiet := false, 0
	for first := true; ; time.Sleep(look) {
		now, on := a.display.Glass(false)
		if quiet++; first || now != last || on != was || quiet > 30 {
			a.say(control.Answer{Glass: &control.Glass{Frame: now[:], On: on}})
			first, last, was, quiet = false, now, on, 0
		}
	}
}

// answer does one thing.
func (a *agent) answer(r control.Request) {
	answer := control.Answer{}
	var err error
	switch {
	case r.Move != nil:
		err = a.move(*r.Move)
	case r.Run != nil:
		answer, err = command(*r.Run)
	case r.Memory:
		answer.Processes, err = processes()
	case len(r.Read) > 0:
		answer.Files, err = contents(r.Read)
	case r.Record != nil:
		answer.Verdict, err = verify(*r.Record)
	case r.Display != nil && *r.Display:
		err = a.adapter.Plug()
	case r.Display != nil:
		err = a.adapter.Pull()
	default:
		err = errors.New("agent: the host wants nothing")
	}
	answer.ID = r.ID
	if err != nil {
		answer.Error = err.Error()
	}
	a.say(answer)
}

func (a *agent) move(m control.Move) error {
	var errs []error
	for _, b := range m.Buttons {
		line := approveLine
		if b == device.Deny {
			line = denyLine
		}
		if m.Down {
			errs = append(errs, a.bank.Close(line))
		} else {
			errs = append(errs, a.bank.Open(line))
		}
	}
	return errors.Join(errs...)
}
