package intake

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"

	"golang.org/x/sys/unix"
)

// Dir is a directory, as far as taking something in needs it. OpenDir is the real one.
type Dir interface {
	// Open opens a file to read. It fails with fs.ErrNotExist where there is none.
	Open(name string) (File, error)
	// Create makes a new file, which must not exist. Its name is durable after Sync.
	Create(name string) (File, error)
	// Rename replaces newName, atomically. It is durable after Sync.
	Rename(oldName, newName string) error
	// Remove fails with fs.ErrNotExist where there is none.
	Remove(name string) error
	// Sync makes names durable.
	Sync() error
}

// File is one file of a Dir, or a partition.
type File interface {
	io.ReaderAt
	io.WriterAt
	io.Closer
	Size() (int64, error)
	// Sync makes the content durable, and makes reading read the medium again, as far as the kernel lets it.
	Sync() error
}

// OpenDir returns the Dir at a path, which it makes where there is none. Files in it are for every user to read.
func OpenDir(path string) (Dir, io.Closer, error) {
	if err := os.MkdirAll(path, 0o755); err != nil {
		return nil, nil, err
	}
	root, err := os.OpenRoot(path)
	if err != nil {
		return nil, nil, err
	}
	return osDir{root}, root, nil
}

type osDir struct{ root *os.Root }

// Open neither follows a link out of the directory nor waits for a pipe's other end.
func (d osDir) Open(name string) (File, error) {
	f, err := d.root.OpenFile(name, os.O_RDONLY|unix.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	info, err := f.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = errors.New("not a regular file")
	}
	if err != nil {
		f.Close()
		return nil, err
	}
	return osFile{f}, nil
}

func (d osDir) Create(name string) (File, error) {
	f, err := d.root.OpenFile(name, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o644)
	if err != nil {
		return nil, err
	}
	return osFile{f}, nil
}

func (d osDir) Rename(oldName, newName string) error { return d.root.Rename(oldName, newName) }
func (d osDir) Remove(name string) error             { return d.root.Remove(name) }

func (d osDir) Sync() error {
	f, err := d.root.Open(".")
	if err != nil {
		return err
	}
	defer f.Close()
	return f.Sync()
}

// OpenPartition opens a block device.
func OpenPartition(path string) (File, error) {
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		return nil, err
	}
	return osFile{f}, nil
}

type osFile struct{ *os.File }

func (f osFile) Size() (int64, error) {
	n, err := f.Seek(0, io.SeekEnd) // for block devices as well
	if err != nil {
		return 0, err
	}
	return n, nil
}

func (f osFile) Sync() error {
	if err := f.File.Sync(); err != nil {
		return err
	}
	// Advice only: where the cache keeps the pages, reading back checks less.
	_ = unix.Fadvise(int(f.Fd()), 0, 0, unix.FADV_DONTNEED)
	return nil
}

// temp is a file that is to take another's place and is not finished.
const temp = "intake.tmp"

// replace puts a file in place, whole or not at all, and durable when it returns nil. fill writes its content.
func replace(d Dir, name string, fill func(File) error) error {
	if err := discard(d); err != nil {
		return err
	}
	f, err := d.Create(temp)
	if err != nil {
		return err
	}
	err = fill(f)
	if err == nil {
		err = f.Sync()
	}
	if closed := f.Close(); err == nil {
		err = closed
	}
	if err == nil {
		err = d.Rename(temp, name)
	}
	if err != nil {
		return errors.Join(err, discard(d))
	}
	return d.Sync()
}

// discard removes what an earlier attempt left behind.
func discard(d Dir) error {
	if err := d.Remove(temp); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// readFile reads a file of at most limit bytes.
func readFile(d Dir, name string, limit int64) ([]byte, error) {
	f, err := d.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	n, err := f.Size()
	if err != nil {
		return nil, err
	}
	if n > limit {
		return nil, fmt.Errorf("%s has %d bytes, at most %d are expected", name, n, limit)
	}
	return io.ReadAll(io.NewSectionReader(f, 0, n))
}
