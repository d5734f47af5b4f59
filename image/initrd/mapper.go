//go:build linux

package main

import (
	"encoding/binary"
	"fmt"
	"os"
	"unsafe"

	"golang.org/x/sys/unix"

	"assent.home.arpa/image/verity"
)

// Device mapper's interface (include/uapi/linux/dm-ioctl.h), version 4.
const (
	requestBytes = 312
	bufferBytes  = 4096
	specBytes    = 40
	nameAt       = 48
	uuidAt       = 176
	readOnly     = 1

	ioctlCreate = 3
	ioctlResume = 6
	ioctlLoad   = 9
)

// mapped is the name of the mapping: it is the only one, so its device is dm-0.
const mapped = "root"

// mapRoot has the kernel check the root's partition against its hash, and returns the device with the checked blocks.
func mapRoot(root verity.RootHash, data, hash string) (string, error) {
	f, err := os.Open(hash)
	if err != nil {
		return "", err
	}
	defer f.Close()
	head := make([]byte, verity.SuperblockBytes)
	if _, err := f.ReadAt(head, 0); err != nil {
		return "", err
	}
	super, err := verity.Parse(head)
	if err != nil {
		return "", err
	}
	control, err := os.OpenFile("/dev/mapper/control", os.O_RDWR, 0)
	if err != nil {
		return "", err
	}
	defer control.Close()
	for _, step := range []struct {
		name    string
		nr      uintptr
		request []byte
	}{
		{"create", ioctlCreate, request("CRYPT-VERITY-"+root.String()[:32]+"-"+mapped, 0, nil)},
		{"load", ioctlLoad, request("", readOnly, target(super.Sectors(), super.Table(data, hash, root)))},
		{"resume", ioctlResume, request("", 0, nil)},
	} {
		if err := ask(control, step.nr, step.request); err != nil {
			return "", fmt.Errorf("dm-verity, %s: %w", step.name, err)
		}
	}
	return "/dev/dm-0", nil
}

// request is one struct dm_ioctl with what follows it.
func request(uuid string, flags uint32, spec []byte) []byte {
	b := make([]byte, bufferBytes)
	le := binary.LittleEndian
	le.PutUint32(b[0:], 4) // version
	le.PutUint32(b[12:], bufferBytes)
	le.PutUint32(b[16:], requestBytes) // where the targets begin
	le.PutUint32(b[28:], flags)
	copy(b[nameAt:], mapped)
	copy(b[uuidAt:], uuid)
	if spec != nil {
		le.PutUint32(b[20:], 1) // targets
		copy(b[requestBytes:], spec)
	}
	return b
}

// target is one struct dm_target_spec with its table.
func target(sectors uint64, table string) []byte {
	b := make([]byte, specBytes)
	binary.LittleEndian.PutUint64(b[8:], sectors)
	copy(b[24:], "verity")
	return append(append(b, table...), 0)
}

// ask makes one call. The number is _IOWR(0xfd, nr, struct dm_ioctl).
func ask(control *os.File, nr uintptr, b []byte) error {
	const direction, kind = 3 << 30, 0xfd << 8
	_, _, errno := unix.Syscall(unix.SYS_IOCTL, control.Fd(), direction|requestBytes<<16|kind|nr, uintptr(unsafe.Pointer(&b[0])))
	if errno != 0 {
		return errno
	}
	return nil
}
