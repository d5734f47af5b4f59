package board

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"assent.home.arpa/device"
)

// Flags of enum gpio_v2_line_flag (linux/gpio.h). Without a clock flag, events carry CLOCK_MONOTONIC.
const (
	flagUsed        = 1 << 0
	flagActiveLow   = 1 << 1
	flagInput       = 1 << 2
	flagEdgeRising  = 1 << 4
	flagEdgeFalling = 1 << 5
	flagPullUp      = 1 << 8
)

// asButton asks for a contact to ground: pulled up, active when low, every change reported. Active is pressed, so a rising
// edge (inactive to active) is a press.
const asButton = flagInput | flagActiveLow | flagPullUp | flagEdgeRising | flagEdgeFalling

// consumer is what other programs see as the line's user.
const consumer = "assent"

// backlog is how many edges the kernel keeps for us. When it is full the oldest are dropped, and counts show a gap.
const backlog = 256

// maxLines bounds what a chip may claim to have.
const maxLines = 4096

// eventSize is sizeof(struct gpio_v2_line_event).
const eventSize = 48

var errEvent = errors.New("board: gpio event makes no sense")

// ioctl calls the kernel. The descriptor stays open for the time of the call, whoever closes f meanwhile.
func ioctl(f *os.File, req uint, arg unsafe.Pointer) error {
	conn, err := f.SyscallConn()
	if err != nil {
		return err
	}
	var errno unix.Errno
	err = conn.Control(func(fd uintptr) {
		_, _, errno = unix.Syscall(unix.SYS_IOCTL, fd, uintptr(req), uintptr(arg))
	})
	switch {
	case err != nil:
		return err
	case errno != 0:
		return errno
	}
	return nil
}

// chipLines returns how many lines a chip has.
func (h host) chipLines(chip *os.File) (uint32, error) {
	var info unix.GPIOChipInfo
	if err := h.ioctl(chip, unix.GPIO_GET_CHIPINFO_IOCTL, unsafe.Pointer(&info)); err != nil {
		return 0, err
	}
	return min(info.Lines, maxLines), nil
}

// lineInfo describes one line of a chip.
func (h host) lineInfo(chip *os.File, offset uint32) (unix.GPIOV2LineInfo, error) {
	info := unix.GPIOV2LineInfo{Offset: offset}
	err := h.ioctl(chip, unix.GPIO_V2_GET_LINEINFO_IOCTL, unsafe.Pointer(&info))
	return info, err
}

// requestLines takes lines of one chip as buttons. The kernel is not asked to debounce; debouncer says why.
func (h host) requestLines(chip *os.File, offsets []uint32) (*os.File, error) {
	req := unix.GPIOV2LineRequest{Num_lines: uint32(len(offsets)), Event_buffer_size: backlog}
	copy(req.Offsets[:], offsets)
	copy(req.Consumer[:], consumer)
	req.Config.Flags = asButton
	if err := h.ioctl(chip, unix.GPIO_V2_GET_LINE_IOCTL, unsafe.Pointer(&req)); err != nil {
		return nil, err
	}
	// Not blocking, so that the runtime waits for edges, and closing the file ends a read.
	if err := unix.SetNonblock(int(req.Fd), true); err != nil {
		return nil, errors.Join(err, unix.Close(int(req.Fd)))
	}
	return os.NewFile(uintptr(req.Fd), chip.Name()+" lines"), nil
}

// lineActive reports whether the i-th line of a request is active.
func (h host) lineActive(lines *os.File, i int) (bool, error) {
	v := unix.GPIOV2LineValues{Mask: 1 << i}
	if err := h.ioctl(lines, unix.GPIO_V2_LINE_GET_VALUES_IOCTL, unsafe.Pointer(&v)); err != nil {
		return false, err
	}
	return v.Bits&v.Mask != 0, nil
}

// text is a field of characters that ends at its first zero byte.
func text(field [32]byte) string {
	s, _, _ := bytes.Cut(field[:], []byte{0})
	return string(s)
}

// decodeEvents reads struct gpio_v2_line_event one after the other, in the machine's own byte order. The i-th offset is the
// line of the i-th button.
func decodeEvents(b []byte, offsets []uint32, names []device.Button) ([]device.Event, error) {
	if len(b)%eventSize != 0 {
		return nil, fmt.Errorf("%w: %d bytes are no whole number of events", errEvent, len(b))
	}
	events := make([]device.Event, 0, len(b)/eventSize)
	for ; len(b) > 0; b = b[eventSize:] {
		stamp := binary.NativeEndian.Uint64(b[0:])
		id := binary.NativeEndian.Uint32(b[8:])
		offset := binary.NativeEndian.Uint32(b[12:])
		ev := device.Event{Mono: time.Duration(stamp), Seq: binary.NativeEndian.Uint32(b[20:])}
		if ev.Mono < 0 {
			return nil, fmt.Errorf("%w: time %d", errEvent, stamp)
		}
		switch id {
		case unix.GPIO_V2_LINE_EVENT_RISING_EDGE:
			ev.Edge = device.Press
		case unix.GPIO_V2_LINE_EVENT_FALLING_EDGE:
			ev.Edge = device.Release
		default:
			return nil, fmt.Errorf("%w: edge %d", errEvent, id)
		}
		for i, o := range offsets {
			if o == offset {
				ev.Button = names[i]
			}
		}
		if ev.Button == 0 {
			return nil, fmt.Errorf("%w: line %d", errEvent, offset)
		}
		events = append(events, ev)
	}
	return events, nil
}
