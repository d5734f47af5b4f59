package main

import (
	"encoding/binary"
	"fmt"
	"os"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Commands of the device mapper and the layout of what they take (linux/dm-ioctl.h).
const (
	dmCreate  = 3
	dmRemove  = 4
	dmResume  = 6
	dmLoad    = 9
	dmMessage = 14

	dmMagic   = 0xfd
	dmHeader  = 312 // struct dm_ioctl with its padding
	dmSpec    = 40  // struct dm_target_spec
	dmRequest = 4096
)

// recorded is a disk whose writes are recorded by the target log-writes.
type recorded struct {
	control *os.File
	name    string
}

// recording makes a disk that passes everything on to data and records it on log. It is /dev/dm-0, since there is no other.
func recording(data, log string, sectors int64) (*recorded, error) {
	control, err := os.OpenFile("/dev/mapper/control", os.O_RDWR, 0)
	if err != nil {
		return nil, err
	}
	d := &recorded{control, "recorded"}
	table := fmt.Appendf(nil, "%s %s\x00", data, log)
	spec := make([]byte, dmSpec)
	binary.NativeEndian.PutUint64(spec[8:], uint64(sectors))
	copy(spec[24:], "log-writes")
	for _, step := range []struct {
		command uintptr
		extra   []byte
	}{{dmCreate, nil}, {dmLoad, append(spec, table...)}, {dmResume, nil}} {
		if err := d.do(step.command, step.extra); err != nil {
			control.Close()
			return nil, fmt.Errorf("recording a disk: %w", err)
		}
	}
	return d, nil
}

// mark writes a mark into the record.
func (d *recorded) mark(text string) error {
	message := make([]byte, 8) // the sector that a message is for: any
	return d.do(dmMessage, append(message, "mark "+text+"\x00"...))
}

func (d *recorded) remove() error {
	defer d.control.Close()
	return d.do(dmRemove, nil)
}

// do sends one command. extra is what follows the header.
func (d *recorded) do(command uintptr, extra []byte) error {
	b := make([]byte, dmRequest)
	ne := binary.NativeEndian
	ne.PutUint32(b[0:], 4)          // version of the interface
	ne.PutUint32(b[12:], dmRequest) // size
	ne.PutUint32(b[16:], dmHeader)  // where extra is
	copy(b[48:], d.name)            // of 128 bytes
	if command == dmLoad {
		ne.PutUint32(b[20:], 1) // one target
	}
	copy(b[dmHeader:], extra)
	request := 3<<30 | dmHeader<<16 | dmMagic<<8 | command // _IOWR
	if _, _, errno := unix.Syscall(unix.SYS_IOCTL, d.control.Fd(), request, uintptr(unsafe.Pointer(&b[0]))); errno != 0 {
		return fmt.Errorf("device mapper: command %d: %w", command, errno)
	}
	return nil
}
