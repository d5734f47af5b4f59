package audit

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"slices"
	"syscall"

	"golang.org/x/sys/unix"
)

// Disk is the directory that a log lives in, as far as the log needs it. OpenDir is the real one; package audittest has
// one that breaks on demand. All methods are called from one goroutine.
type Disk interface {
	// Lock takes the directory for this process until unlock. It fails with ErrLocked where another has it.
	Lock() (unlock func() error, err error)
	// List returns the names of all files, sorted.
	List() ([]string, error)
	// Open opens an existing file to read and write.
	Open(name string) (File, error)
	// Create makes a new file, which must not exist. Its name is durable after Sync.
	Create(name string) (File, error)
	// Rename replaces newName, atomically. It is durable after Sync.
	Rename(oldName, newName string) error
	Remove(name string) error
	// Dirs returns the names of all directories, sorted.
	Dirs() ([]string, error)
	// Move moves a file into the directory dir, which it makes where there is none. It is durable after Sync, and until
	// then the file is here or there.
	Move(name, dir string) error
	// Sync makes names durable: fsync(2) of the directory.
	Sync() error
	Close() error
}

// File is one file of a Disk.
type File interface {
	io.ReaderAt
	io.WriterAt
	io.Closer
	Size() (int64, error)
	// Sync makes content and size durable: fdatasync(2). After a failure nobody can say what is on flash, and a second
	// call may succeed without having written anything, so it is never repeated.
	Sync() error
}

// lockFile is what flock(2) is taken on.
const lockFile = "LOCK"

// OpenDir returns the Disk in a directory, which it creates for this user alone.
func OpenDir(dir string) (Disk, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("audit: %w", err)
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, fmt.Errorf("audit: %w", err)
	}
	return osDisk{root}, nil
}

type osDisk struct{ root *os.Root }

func (d osDisk) Lock() (func() error, error) {
	f, err := d.root.OpenFile(lockFile, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, err
	}
	if err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		f.Close()
		if errors.Is(err, unix.EWOULDBLOCK) {
			return nil, ErrLocked
		}
		return nil, err
	}
	return f.Close, nil
}

func (d osDisk) List() ([]string, error) { return d.names(fs.FileMode.IsRegular) }
func (d osDisk) Dirs() ([]string, error) { return d.names(fs.FileMode.IsDir) }

func (d osDisk) names(of func(fs.FileMode) bool) ([]string, error) {
	entries, err := fs.ReadDir(d.root.FS(), ".")
	if err != nil {
		return nil, err
	}
	var names []string
	for _, e := range entries {
		if of(e.Type()) {
			names = append(names, e.Name())
		}
	}
	slices.Sort(names)
	return names, nil
}

func (d osDisk) Open(name string) (File, error) {
	f, err := d.root.OpenFile(name, os.O_RDWR, 0)
	if err != nil {
		return nil, err
	}
	return osFile{f}, nil
}

func (d osDisk) Create(name string) (File, error) {
	f, err := d.root.OpenFile(name, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return nil, err
	}
	return osFile{f}, nil
}

func (d osDisk) Rename(oldName, newName string) error { return d.root.Rename(oldName, newName) }
func (d osDisk) Remove(name string) error             { return d.root.Remove(name) }

func (d osDisk) Move(name, dir string) error {
	if err := d.root.Mkdir(dir, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	if err := d.root.Rename(name, dir+"/"+name); err != nil {
		return err
	}
	// The new name first: Sync, which makes the old one go, comes later.
	return d.sync(dir)
}

func (d osDisk) Sync() error { return d.sync(".") }

func (d osDisk) sync(dir string) error {
	f, err := d.root.Open(dir)
	if err != nil {
		return err
	}
	defer f.Close()
	return f.Sync()
}

func (d osDisk) Close() error { return d.root.Close() }

type osFile struct{ *os.File }

func (f osFile) Size() (int64, error) {
	info, err := f.Stat()
	if err != nil {
		return 0, err
	}
	return info.Size(), nil
}

func (f osFile) Sync() error {
	for {
		err := unix.Fdatasync(int(f.Fd()))
		if !errors.Is(err, unix.EINTR) {
			return err
		}
	}
}

// full reports whether err means that there is no room, rather than that something broke.
func full(err error) bool {
	return errors.Is(err, ErrFull) || errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT)
}

// writeFile writes a new file and makes content and name durable.
func writeFile(d Disk, name string, content []byte) error {
	f, err := d.Create(name)
	if err != nil {
		return err
	}
	if _, err := f.WriteAt(content, 0); err != nil {
		f.Close()
		return err
	}
	if err := f.Sync(); err != nil {
		f.Close()
		return err
	}
	if err := f.Close(); err != nil {
		return err
	}
	return d.Sync()
}

// readFile reads a file of at most limit bytes; it fails with fs.ErrNotExist where there is none.
func readFile(d Disk, name string, limit int64) ([]byte, error) {
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
		return nil, fmt.Errorf("%w: %s is %d bytes, at most %d are expected", ErrCorrupt, name, n, limit)
	}
	return io.ReadAll(io.NewSectionReader(f, 0, n))
}
