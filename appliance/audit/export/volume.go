package export

import (
	"io"
	"io/fs"
	"os"

	"golang.org/x/sys/unix"
)

// Volume is where a copy goes, with names as in package fs. Opening a file reads what is on the medium, as far as that
// can be told from what is in memory.
type Volume interface {
	fs.FS
	// Free says how many bytes there is room for, and false where nobody knows.
	Free() (int64, bool)
	Mkdir(name string) error
	// Create makes a new file. Its content is durable once Close has returned nil.
	Create(name string) (io.WriteCloser, error)
	// Rename fails with fs.ErrExist where there is something of the new name.
	Rename(oldName, newName string) error
	// RemoveAll removes a directory with all that is in it. There may be none.
	RemoveAll(name string) error
	// Sync makes the names in a directory durable.
	Sync(dir string) error
}

// Directory returns the volume in a directory. The caller closes root when the copy is made.
func Directory(root *os.Root) Volume { return directory{FS: root.FS(), root: root} }

type directory struct {
	fs.FS
	root *os.Root
}

func (d directory) Free() (int64, bool) {
	f, err := d.root.Open(".")
	if err != nil {
		return 0, false
	}
	defer f.Close()
	var s unix.Statfs_t
	if err := unix.Fstatfs(int(f.Fd()), &s); err != nil {
		return 0, false
	}
	return int64(s.Bavail) * int64(s.Bsize), true
}

// Mkdir makes a directory that others may read: a copy is for handing over.
func (d directory) Mkdir(name string) error { return d.root.Mkdir(name, 0o755) }

func (d directory) Create(name string) (io.WriteCloser, error) {
	f, err := d.root.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	if err != nil {
		return nil, err
	}
	return durable{f}, nil
}

func (d directory) Rename(oldName, newName string) error {
	if _, err := d.root.Lstat(newName); err == nil {
		return &fs.PathError{Op: "rename", Path: newName, Err: fs.ErrExist}
	}
	return d.root.Rename(oldName, newName)
}

func (d directory) RemoveAll(name string) error { return d.root.RemoveAll(name) }

func (d directory) Sync(dir string) error {
	f, err := d.root.Open(dir)
	if err != nil {
		return err
	}
	defer f.Close()
	return f.Sync()
}

// durable syncs as it closes, and has the kernel forget the pages, so that reading back reads the medium.
type durable struct{ *os.File }

func (f durable) Close() error {
	err := f.Sync()
	if err == nil {
		// Advice only: where the cache keeps the pages, reading back checks less.
		_ = unix.Fadvise(int(f.Fd()), 0, 0, unix.FADV_DONTNEED)
	}
	if closed := f.File.Close(); err == nil {
		err = closed
	}
	return err
}
