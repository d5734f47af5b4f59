package main

import (
	"encoding/binary"
	"fmt"
	"os"
	"runtime"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// asBare are the flags with which device/board asks for a button, written down a second time (linux/gpio.h): active low, input,
// both edges, pull-up. debounceAttr is the number of the debounce period among the attributes.
const (
	asBare       = 1<<1 | 1<<2 | 1<<4 | 1<<5 | 1<<8
	debounceAttr = 3
)

// bareLine waits for edges with as little as Linux allows: poll and read, on a thread of its own.
type bareLine struct {
	lines int
	edges chan time.Duration // when the loop had each (CLOCK_MONOTONIC)
	errs  chan error
}

// openBare takes a line as the box takes a button's, pulled up, active low, both edges; but the kernel debounces.
func openBare(chip string, offset uint32) (*bareLine, error) {
	f, err := os.OpenFile(chip, os.O_RDWR, 0)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	req := unix.GPIOV2LineRequest{Num_lines: 1, Event_buffer_size: 256}
	req.Offsets[0] = offset
	copy(req.Consumer[:], "bare")
	req.Config.Flags = asBare
	req.Config.Num_attrs = 1
	var period [8]byte // a union: 32 bits at its start
	binary.NativeEndian.PutUint32(period[:], uint32(settling.Microseconds()))
	req.Config.Attrs[0] = unix.GPIOV2LineConfigAttribute{
		Attr: unix.GPIOV2LineAttribute{Id: debounceAttr, Flags: binary.NativeEndian.Uint64(period[:])},
		Mask: 1,
	}
	if _, _, errno := unix.Syscall(unix.SYS_IOCTL, f.Fd(), unix.GPIO_V2_GET_LINE_IOCTL, uintptr(unsafe.Pointer(&req))); errno != 0 {
		return nil, fmt.Errorf("bare line: %w", errno)
	}
	b := &bareLine{lines: int(req.Fd), edges: make(chan time.Duration, 1), errs: make(chan error, 1)}
	go b.run()
	return b, nil
}

func (b *bareLine) run() {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	for {
		edge, err := b.edge()
		if err != nil {
			b.errs <- err
			return
		}
		b.edges <- edge
	}
}

// edge waits for one edge (struct gpio_v2_line_event).
func (b *bareLine) edge() (time.Duration, error) {
	for {
		_, err := unix.Poll([]unix.PollFd{{Fd: int32(b.lines), Events: unix.POLLIN}}, -1)
		if err == unix.EINTR {
			continue
		}
		if err != nil {
			return 0, err
		}
		var event [48]byte
		if _, err := unix.Read(b.lines, event[:]); err != nil {
			return 0, err
		}
		var now unix.Timespec
		if err := unix.ClockGettime(unix.CLOCK_MONOTONIC, &now); err != nil {
			return 0, err
		}
		return time.Duration(now.Nano()), nil
	}
}

// next returns the next edge.
func (b *bareLine) next() (time.Duration, error) {
	select {
	case edge := <-b.edges:
		return edge, nil
	case err := <-b.errs:
		return 0, err
	case <-time.After(patience):
		return 0, fmt.Errorf("bare line: no edge within %v", patience)
	}
}

func (b *bareLine) close() { unix.Close(b.lines) }
