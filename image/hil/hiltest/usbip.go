// Package hiltest holds hardware that a real kernel takes for real: an I2C adapter on USB with a display behind it, and GPIO
// chips whose lines fingers can move.
//
// The adapter is a USB device that is attached to the kernel's virtual host controller (vhci_hcd) over a socket, as USB/IP
// does (Documentation/usb/usbip_protocol.rst); the kernel's own driver for it makes a real /dev/i2c-N. The lines are gpio-sim's
// (Documentation/admin-guide/gpio/gpio-sim.rst). All of it needs root and those modules, and none of it is in the product.
package hiltest

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// Commands of USB/IP.
const (
	cmdSubmit = 1
	cmdUnlink = 2
	retSubmit = 3
	retUnlink = 4
)

// headerSize is the size of every message's fixed part.
const headerSize = 48

// maxTransfer bounds a control transfer: its length has 16 bits (USB 2.0 section 9.3).
const maxTransfer = 1<<16 - 1

// stall is how a device refuses a request: -EPIPE.
const stall = -32

// errUSBIP says that the host controller says something that makes no sense.
var errUSBIP = errors.New("hiltest: damaged usb/ip message")

// setup is a control request (USB 2.0 table 9-2).
type setup struct {
	kind, request        byte
	value, index, length uint16
}

// usbDevice answers control requests: with bytes, or with ok false if it refuses. out is what the host sends along.
type usbDevice interface {
	control(s setup, out []byte) (in []byte, ok bool)
}

// serve answers the requests of a host controller until the connection ends.
func serve(conn io.ReadWriter, d usbDevice) error {
	for {
		var h [headerSize]byte
		if _, err := io.ReadFull(conn, h[:]); err != nil {
			return err
		}
		reply, err := answer(conn, h, d)
		if err != nil {
			return err
		}
		if _, err := conn.Write(reply); err != nil {
			return err
		}
	}
}

// answer reads the rest of one message and returns the reply.
func answer(conn io.Reader, h [headerSize]byte, d usbDevice) ([]byte, error) {
	be := binary.BigEndian
	reply := make([]byte, headerSize)
	copy(reply[4:8], h[4:8]) // the number that the reply belongs to
	if be.Uint32(h[0:]) == cmdUnlink {
		// Whatever was to be cancelled has been answered already: requests are served one after the other.
		be.PutUint32(reply[0:], retUnlink)
		return reply, nil
	}
	length := be.Uint32(h[24:])
	if be.Uint32(h[0:]) != cmdSubmit || length > maxTransfer || be.Uint32(h[16:]) != 0 {
		return nil, fmt.Errorf("%w: command %d, endpoint %d, %d bytes", errUSBIP, be.Uint32(h[0:]), be.Uint32(h[16:]), length)
	}
	toDevice := be.Uint32(h[12:]) == 0
	var out []byte
	if toDevice {
		out = make([]byte, length)
		if _, err := io.ReadFull(conn, out); err != nil {
			return nil, err
		}
	}
	le := binary.LittleEndian
	in, ok := d.control(setup{
		kind: h[40], request: h[41], value: le.Uint16(h[42:]), index: le.Uint16(h[44:]), length: le.Uint16(h[46:]),
	}, out)
	be.PutUint32(reply[0:], retSubmit)
	switch {
	case !ok:
		status := int32(stall)
		be.PutUint32(reply[20:], uint32(status))
	case toDevice:
		be.PutUint32(reply[24:], length)
	default:
		in = in[:min(len(in), int(length))]
		be.PutUint32(reply[24:], uint32(len(in)))
		reply = append(reply, in...)
	}
	return reply, nil
}

// controller is where vhci_hcd has its controls.
const controller = "/sys/devices/platform/vhci_hcd.0"

// fullSpeed is enum usb_device_speed (linux/usb/ch9.h).
const fullSpeed = 2

// plug is a device in a port of the virtual host controller.
type plug struct {
	socket *os.File
	done   chan struct{}
}

// attach puts a device into a port, counted from 0.
func attach(port int, d usbDevice) (*plug, error) {
	ends, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, fmt.Errorf("hiltest: %w", err)
	}
	// The kernel takes its own reference to the socket behind the number.
	defer unix.Close(ends[0])
	p := &plug{socket: os.NewFile(uintptr(ends[1]), "usb port"), done: make(chan struct{})}
	go func() {
		defer close(p.done)
		_ = serve(p.socket, d) // ends when the plug is pulled, here or there
	}()
	const bus = 1
	line := fmt.Sprintf("%d %d %d %d", port, ends[0], bus<<16|(port+1), fullSpeed)
	if err := os.WriteFile(filepath.Join(controller, "attach"), []byte(line), 0); err != nil {
		p.pull()
		return nil, fmt.Errorf("hiltest: usb port %d: %w", port, err)
	}
	return p, nil
}

// pull takes the device out.
func (p *plug) pull() {
	// Closing alone would wait for the read that serve is in.
	_ = unix.Shutdown(int(p.socket.Fd()), unix.SHUT_RDWR)
	<-p.done
	p.socket.Close()
}
