package flash

import (
	"errors"
	"fmt"
	"io"
	"os"
	"unsafe"

	"golang.org/x/sys/unix"

	"assent.home.arpa/image/card"
)

// OpenDisk opens a disk for writing, past the page cache and for this process alone: the kernel refuses one that is in use. The
// error is a *RefusedError where the disk is not the one that d says, or cannot be one of a box.
func OpenDisk(d Disk) (Target, error) {
	f, err := os.OpenFile(d.Path, os.O_RDWR|unix.O_EXCL|unix.O_DIRECT|unix.O_NOFOLLOW, 0)
	if errors.Is(err, unix.EBUSY) {
		return nil, &RefusedError{d.Name, "it is in use"}
	}
	if errors.Is(err, unix.EACCES) || errors.Is(err, unix.EPERM) {
		return nil, fmt.Errorf("%w; only root may write to disks: run it with sudo", err)
	}
	if err != nil {
		return nil, err
	}
	t, err := newDisk(f, d)
	if err != nil {
		f.Close()
		return nil, err
	}
	return t, nil
}

func newDisk(f *os.File, d Disk) (Target, error) {
	var st unix.Stat_t
	if err := unix.Fstat(int(f.Fd()), &st); err != nil {
		return nil, err
	}
	if number := fmt.Sprintf("%d:%d", unix.Major(st.Rdev), unix.Minor(st.Rdev)); st.Mode&unix.S_IFMT != unix.S_IFBLK || number != d.Number {
		return nil, changed(d)
	}
	if same, err := sameMedium(f, d); err != nil {
		return nil, err
	} else if !same {
		return nil, changed(d)
	}
	if n, err := unix.IoctlGetInt(int(f.Fd()), unix.BLKSSZGET); err != nil {
		return nil, err
	} else if n != card.SectorBytes {
		return nil, &RefusedError{d.Name, fmt.Sprintf("it has sectors of %d bytes; cards have %d", n, card.SectorBytes)}
	}
	size, err := f.Seek(0, io.SeekEnd)
	if err != nil {
		return nil, err
	}
	if size != d.Size {
		return nil, changed(d)
	}
	return disk{newSectors(f), f, size}, nil
}

// diskSequence is BLKGETDISKSEQ of the kernel's include/uapi/linux/fs.h, _IOR(0x12, 128, __u64), since Linux 5.15.
const diskSequence = 0x80081280

// sameMedium reports whether an open disk has the sequence number that d had. A kernel too old to say has none for d either.
func sameMedium(f *os.File, d Disk) (bool, error) {
	if d.Sequence == 0 {
		return true, nil
	}
	var now uint64
	if _, _, errno := unix.Syscall(unix.SYS_IOCTL, f.Fd(), diskSequence, uintptr(unsafe.Pointer(&now))); errno != 0 {
		return false, fmt.Errorf("%s: asking which disk it is: %w", d.Name, errno)
	}
	return now == uint64(d.Sequence), nil
}

type disk struct {
	*sectors
	f    *os.File
	size int64
}

func (d disk) Size() int64  { return d.size }
func (d disk) Close() error { return d.f.Close() }

func (d disk) Sync() error {
	if err := d.f.Sync(); err != nil {
		return err
	}
	// Nothing of it should be in the page cache; whatever is, is not to be read back.
	return unix.IoctlSetInt(int(d.f.Fd()), unix.BLKFLSBUF, 0)
}
