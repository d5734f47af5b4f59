package intake

import (
	"errors"
	"fmt"
	"os"
	"unsafe"

	"golang.org/x/sys/unix"
)

// resizeFS is EXT4_IOC_RESIZE_FS of the kernel's fs/ext4/ext4.h: _IOW('f', 16, __u64), the new size in blocks. It is what
// resize2fs does to a mounted file system, and goes through its journal.
const resizeFS = 1<<30 | 8<<16 | 'f'<<8 | 16

// Mounted is an ext4 file system, by a path in it.
type Mounted string

// Partition returns the device of the partition that the file system is on. Its label would not do: a stick may have the same.
func (m Mounted) Partition() (string, error) {
	var st unix.Stat_t
	if err := unix.Stat(string(m), &st); err != nil {
		return "", fmt.Errorf("%s: %w", m, err)
	}
	return fmt.Sprintf("/dev/block/%d:%d", unix.Major(st.Dev), unix.Minor(st.Dev)), nil
}

// Grow makes the file system reach to a place in its partition, in bytes, at or beyond its present end.
func (m Mounted) Grow(to int64) error {
	f, err := os.Open(string(m))
	if err != nil {
		return fmt.Errorf("growing the file system: %w", err)
	}
	defer f.Close()
	var st unix.Statfs_t
	if err := unix.Fstatfs(int(f.Fd()), &st); err != nil {
		return fmt.Errorf("growing the file system: %w", err)
	}
	if st.Type != unix.EXT4_SUPER_MAGIC {
		return errors.New("growing the file system: it is not ext4")
	}
	blocks := uint64(to / st.Bsize)
	if _, _, errno := unix.Syscall(unix.SYS_IOCTL, f.Fd(), resizeFS, uintptr(unsafe.Pointer(&blocks))); errno != 0 {
		return fmt.Errorf("growing the file system: %w", errno)
	}
	return nil
}
