package hiltest

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"assent.home.arpa/device/board/boardtest"
)

// Requests of i2c-tiny-usb, and what it answers to the last one (drivers/i2c/busses/i2c-tiny-usb.c in Linux).
const (
	requestFunctions = 1
	requestDelay     = 2
	requestStatus    = 3
	requestIO        = 4 // and 5, 6, 7: it begins and ends a transaction

	statusIdle = 0
	statusAck  = 1
	statusNAK  = 2
)

// readMessage is I2C_M_RD (linux/i2c.h).
const readMessage = 1

// functions are I2C_FUNC_I2C and the SMBus emulation that comes with it (linux/i2c.h), in the device's byte order.
var functions = [4]byte{0x01, 0x00, 0xff, 0x0e}

// Standard requests and descriptors (USB 2.0 tables 9-4 and 9-5).
const (
	getStatus     = 0
	getDescriptor = 6

	deviceDescriptor        = 1
	configurationDescriptor = 2
	stringDescriptor        = 3
)

// descriptors says what the kernel asks about a device before it looks for a driver: vendor 0403, product c631, the numbers
// of i2c-tiny-usb; one interface of its own kind without endpoints (USB 2.0 section 9.6).
func descriptor(kind, number byte) ([]byte, bool) {
	switch {
	case kind == deviceDescriptor:
		return []byte{18, 1, 0x10, 0x01, 0xff, 0, 0, 64, 0x03, 0x04, 0x31, 0xc6, 0x05, 0x02, 1, 2, 0, 1}, true
	case kind == configurationDescriptor:
		return []byte{9, 2, 18, 0, 1, 1, 0, 0x80, 50, 9, 4, 0, 0, 0, 0xff, 0, 0, 0}, true
	case kind == stringDescriptor && number == 0:
		return []byte{4, 3, 0x09, 0x04}, true // English
	case kind == stringDescriptor && number <= 2:
		text := []byte{0, 3}
		for _, c := range [...]string{"assent", "i2c-tiny-usb"}[number-1] {
			text = append(text, byte(c), 0)
		}
		text[0] = byte(len(text))
		return text, true
	}
	return nil, false
}

// Adapter is an I2C bus on USB with one display on it.
type Adapter struct {
	Display *boardtest.OLED

	port int
	plug *plug

	mu      sync.Mutex // guards all below
	status  byte
	latest  time.Time // the last message
	delay   time.Duration
	hung    chan struct{} // closed when it answers again; nil while it does
	refused error
}

// NewAdapter returns an adapter that is not plugged in.
func NewAdapter(port int, display *boardtest.OLED) *Adapter {
	return &Adapter{Display: display, port: port}
}

// Plug puts the adapter into its port and waits until the kernel has made a bus of it.
func (a *Adapter) Plug() error {
	p, err := attach(a.port, a)
	if err != nil {
		return err
	}
	a.plug = p
	return eventually(20*time.Second, func() error {
		_, err := a.bus()
		return err
	})
}

// Pull takes the adapter out of its port and waits until its bus is gone.
func (a *Adapter) Pull() error {
	if a.plug == nil {
		return nil
	}
	a.plug.pull()
	a.plug = nil
	return eventually(20*time.Second, func() error {
		if bus, err := a.bus(); err == nil {
			return fmt.Errorf("hiltest: %s is still there", bus)
		}
		return nil
	})
}

// Place is where the adapter's bus sits below /sys/devices: the port, whatever number the bus got.
func (a *Adapter) Place() string { return fmt.Sprintf("vhci_hcd.0/usb1/1-%d", a.port+1) }

// bus finds the adapter's device file.
func (a *Adapter) bus() (string, error) {
	found, err := filepath.Glob(filepath.Join("/sys/devices/platform", a.Place(), "*", "i2c-*"))
	if err != nil {
		return "", err
	}
	if len(found) != 1 {
		return "", fmt.Errorf("hiltest: usb port %d has %d i2c buses", a.port, len(found))
	}
	file := filepath.Join("/dev", filepath.Base(found[0]))
	_, err = os.Stat(file)
	return file, err
}

// Slow makes each message on the bus take d longer.
func (a *Adapter) Slow(d time.Duration) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.delay = d
}

// Hang makes the adapter answer nothing, until Resume.
func (a *Adapter) Hang() {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.hung == nil {
		a.hung = make(chan struct{})
	}
}

// Resume ends Hang.
func (a *Adapter) Resume() {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.hung != nil {
		close(a.hung)
		a.hung = nil
	}
}

// Still reports whether nothing was sent for d, so that whatever was being drawn is on the glass.
func (a *Adapter) Still(d time.Duration) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return time.Since(a.latest) >= d
}

// Refused is the first thing that the driver sent and the display's data sheet does not have, or nil.
func (a *Adapter) Refused() error {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.refused
}

// control implements usbDevice.
func (a *Adapter) control(s setup, out []byte) ([]byte, bool) {
	const vendorMask, vendor = 0x60, 0x40 // USB 2.0 table 9-2, bits 6..5 of bmRequestType
	if s.kind&vendorMask != vendor {
		return standard(s)
	}
	a.mu.Lock()
	delay, hung := a.delay, a.hung
	a.mu.Unlock()
	if hung != nil {
		<-hung
	}
	switch s.request {
	case requestFunctions:
		return functions[:], true
	case requestDelay:
		return nil, true
	case requestStatus:
		a.mu.Lock()
		defer a.mu.Unlock()
		return []byte{a.status}, true
	case requestIO, requestIO + 1, requestIO + 2, requestIO + 3:
		time.Sleep(delay)
		return a.message(s, out), true
	}
	return nil, false
}

func standard(s setup) ([]byte, bool) {
	switch s.request {
	case getStatus:
		return []byte{0, 0}, true
	case getDescriptor:
		return descriptor(byte(s.value>>8), byte(s.value))
	}
	return nil, s.kind&0x80 == 0 // settings are taken as they come
}

// message passes one message of a transaction on to the display. index is the address, value the flags.
func (a *Adapter) message(s setup, out []byte) (in []byte) {
	if s.value&readMessage != 0 {
		in = make([]byte, s.length)
	}
	err := a.Display.Tx(s.index, out, in)
	a.mu.Lock()
	defer a.mu.Unlock()
	a.status, a.latest = statusAck, time.Now()
	if err != nil {
		a.status = statusNAK
		if !errors.Is(err, boardtest.ErrNAK) && a.refused == nil {
			a.refused = err
		}
	}
	return in
}

// eventually tries until it succeeds, or returns the last error.
func eventually(limit time.Duration, try func() error) error {
	for end := time.Now().Add(limit); ; time.Sleep(10 * time.Millisecond) {
		err := try()
		if err == nil || time.Now().After(end) {
			return err
		}
	}
}

// contents reads a file of sysfs or configfs.
func contents(path ...string) (string, error) {
	b, err := os.ReadFile(filepath.Join(path...))
	return strings.TrimSpace(string(b)), err
}
