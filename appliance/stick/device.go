package stick

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"

	"assent.home.arpa/appliance/ipc"
)

// Device is a block device, or an image of one in a file.
type Device struct {
	f      *os.File
	direct *os.File // reads past the page cache; nil where the kernel cannot
	window []byte   // aligned, as such reads need it
	size   int64
}

// align is what reads past the page cache are aligned to: no device has larger sectors.
const align = 4096

// OpenDevice opens a medium for itself alone. It fails with an *Error.
func OpenDevice(path string) (_ *Device, err error) {
	// O_EXCL: not while anything is mounted from it (open(2)). O_NONBLOCK: a pipe must not keep us waiting.
	f, err := os.OpenFile(path, os.O_RDWR|syscall.O_EXCL|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, problem(err)
	}
	d := &Device{f: f}
	defer func() {
		if err != nil {
			d.Close()
		}
	}()
	info, err := f.Stat()
	if err != nil {
		return nil, problem(err)
	}
	switch mode := info.Mode(); {
	case mode.IsRegular():
		d.size = info.Size()
	case mode&fs.ModeDevice != 0 && mode&fs.ModeCharDevice == 0:
		if d.size, err = blockSize(f); err != nil {
			return nil, problem(err)
		}
		var readOnly int32
		if _, _, e := unix.Syscall(unix.SYS_IOCTL, f.Fd(), unix.BLKROGET, uintptr(unsafe.Pointer(&readOnly))); e == 0 && readOnly != 0 {
			return nil, &Error{Problem: ipc.StickReadOnly}
		}
	default:
		return nil, &Error{ipc.StickUnreadable, fmt.Errorf("%s is no block device", path)}
	}
	d.openDirect()
	return d, nil
}

// openDirect opens the medium a second time, for reading what is on it and not what is remembered of it.
func (d *Device) openDirect() {
	window, err := unix.Mmap(-1, 0, ipc.MaxStickChunk+2*align, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANON)
	if err != nil {
		return
	}
	d.window = window
	direct, err := os.OpenFile(fmt.Sprintf("/proc/self/fd/%d", d.f.Fd()), os.O_RDONLY|syscall.O_DIRECT, 0)
	if err != nil {
		return // a file system that has no such reads: ReadAt drops the cache instead
	}
	if _, err := direct.ReadAt(window[:min(align, d.size/512*512)], 0); err != nil {
		direct.Close()
		return
	}
	d.direct = direct
}

// blockSize asks the kernel for the size of a block device in bytes.
func blockSize(f *os.File) (int64, error) {
	var size uint64
	if _, _, e := unix.Syscall(unix.SYS_IOCTL, f.Fd(), unix.BLKGETSIZE64, uintptr(unsafe.Pointer(&size))); e != 0 {
		return 0, e
	}
	if size > 1<<46 {
		return 0, errors.New("a medium of that size does not exist")
	}
	return int64(size), nil
}

// Size is the medium's, in bytes.
func (d *Device) Size() int64 { return d.size }

// ReadAt implements fat.Medium: it reads past the page cache where the kernel can.
func (d *Device) ReadAt(p []byte, off int64) (int, error) {
	if d.direct == nil {
		// Advice only: what was not written back stays, and what is not dropped is read from memory.
		_ = unix.Fadvise(int(d.f.Fd()), off, int64(len(p)), unix.FADV_DONTNEED)
		return d.f.ReadAt(p, off)
	}
	n := 0
	for n < len(p) {
		at := off + int64(n)
		from := at / align * align
		to := min((at+int64(len(p)-n)+align-1)/align*align, from+int64(len(d.window)), (d.size+511)/512*512)
		if to <= at {
			return n, fmt.Errorf("stick: read beyond the medium's end at %d", at)
		}
		got, err := d.direct.ReadAt(d.window[:to-from], from)
		part := copy(p[n:], d.window[min(int64(got), at-from):got])
		if n += part; part == 0 {
			return n, errors.Join(err, errors.New("stick: short read"))
		}
	}
	return n, nil
}

// WriteAt implements fat.Medium.
func (d *Device) WriteAt(p []byte, off int64) (int, error) {
	if off < 0 || off+int64(len(p)) > d.size { // a file would grow
		return 0, fmt.Errorf("stick: write beyond the medium's end at %d", off)
	}
	return d.f.WriteAt(p, off)
}

// Sync implements fat.Medium.
func (d *Device) Sync() error { return d.f.Sync() }

// Close gives the medium back.
func (d *Device) Close() error {
	var err error
	if d.direct != nil {
		err = d.direct.Close()
	}
	if d.window != nil {
		err = errors.Join(err, unix.Munmap(d.window))
	}
	d.window, d.direct = nil, nil
	return errors.Join(err, d.f.Close())
}
