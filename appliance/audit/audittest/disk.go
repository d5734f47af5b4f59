package audittest

import (
	"bytes"
	"io"
	"io/fs"
	"maps"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing/fstest"

	"assent.home.arpa/appliance/audit"
)

// sector is what flash writes whole or not at all.
const sector = 512

// Disk is a directory in memory that behaves as one on flash: what was not synced may be lost, sector by sector, when the
// power goes; names may be lost back to any earlier state; and an operation can be made to fail.
type Disk struct {
	mu      sync.Mutex
	names   map[string]*inode
	durable map[string]*inode
	changes []change // of names, since the last Sync
	locked  *bool
	ops     int
	fault   Fault
	watch   func(*Disk)
}

// change is one operation on names: what each of them leads to afterwards, nil where it is gone.
type change map[string]*inode

func (c change) apply(names map[string]*inode) {
	for name, f := range c {
		if f == nil {
			delete(names, name)
		} else {
			names[name] = f
		}
	}
}

var _ audit.Disk = (*Disk)(nil)

// inode is a file, kept as the sectors that are not all zeros: most of a segment is.
type inode struct {
	now     content
	durable content
	dirty   map[int]bool // sectors in which the two may differ
}

type content struct {
	size    int
	sectors map[int][]byte // never changed in place
}

func (c content) clone() content { return content{size: c.size, sectors: maps.Clone(c.sectors)} }

func (c content) bytes() []byte {
	b := make([]byte, c.size)
	for s, data := range c.sectors {
		copy(b[min(s*sector, c.size):], data)
	}
	return b
}

func (c *content) set(s int, data []byte) {
	if data == nil {
		delete(c.sectors, s)
		return
	}
	c.sectors[s] = data
}

func newInode(b []byte) *inode {
	f := &inode{now: content{sectors: map[int][]byte{}}, durable: content{sectors: map[int][]byte{}}, dirty: map[int]bool{}}
	f.write(b, 0)
	f.sync()
	return f
}

func (f *inode) write(b []byte, off int) {
	f.now.size = max(f.now.size, off+len(b))
	var zero [sector]byte
	for len(b) > 0 {
		s, within := off/sector, off%sector
		n := min(sector-within, len(b))
		var data []byte
		if old := f.now.sectors[s]; !bytes.Equal(b[:n], zero[:n]) || (n < sector && old != nil) {
			data = make([]byte, sector)
			copy(data, old)
			copy(data[within:], b[:n])
		}
		if data != nil || f.now.sectors[s] != nil || f.durable.sectors[s] != nil {
			f.now.set(s, data)
			f.dirty[s] = true
		}
		b, off = b[n:], off+n
	}
}

func (f *inode) sync() {
	f.durable.size = f.now.size
	for s := range f.dirty {
		f.durable.set(s, f.now.sectors[s])
	}
	clear(f.dirty)
}

// crash returns what a power cut may leave of the file.
func (f *inode) crash(choose func(n int) int) *inode {
	after := &inode{now: f.durable.clone(), dirty: map[int]bool{}}
	if f.now.size != f.durable.size && choose(2) == 1 {
		after.now.size = f.now.size
	}
	for _, s := range slices.Sorted(maps.Keys(f.dirty)) {
		if s*sector < after.now.size && choose(2) == 1 {
			after.now.set(s, f.now.sectors[s])
		}
	}
	after.durable = after.now.clone()
	return after
}

// Fault makes an operation fail. Operations that change something (write, sync, create, rename, remove) are counted from 1.
type Fault struct {
	At    int   // the operation that fails; 0 for none
	Err   error // what it fails with
	Short bool  // a write leaves its first half behind
	Dead  bool  // everything after it fails as well: the power is gone
	Full  bool  // from At on no file can be made and none can grow: ENOSPC
}

// NewDisk returns an empty directory.
func NewDisk() *Disk {
	return &Disk{names: map[string]*inode{}, durable: map[string]*inode{}, locked: new(bool)}
}

// Arm sets the fault and starts counting anew.
func (d *Disk) Arm(f Fault) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.fault, d.ops = f, 0
}

// Ops is how many operations there were since Arm.
func (d *Disk) Ops() int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.ops
}

// Crash returns the disk as a power cut now may leave it. choose(n) picks one of n outcomes, wherever there is a choice.
func (d *Disk) Crash(choose func(n int) int) *Disk {
	d.mu.Lock()
	defer d.mu.Unlock()
	after := NewDisk()
	seen := map[*inode]*inode{}
	names := maps.Clone(d.durable)
	for _, c := range d.changes[:choose(len(d.changes)+1)] {
		c.apply(names)
	}
	for _, name := range slices.Sorted(maps.Keys(names)) {
		f := names[name]
		if seen[f] == nil {
			seen[f] = f.crash(choose)
		}
		after.names[name] = seen[f]
	}
	after.durable = maps.Clone(after.names)
	return after
}

// Copy returns the same directory with nothing left to lose, unlocked.
func (d *Disk) Copy() *Disk {
	d.mu.Lock()
	defer d.mu.Unlock()
	after := NewDisk()
	for name, f := range d.names {
		after.names[name] = &inode{now: f.now.clone(), durable: f.now.clone(), dirty: map[int]bool{}}
	}
	after.durable = maps.Clone(after.names)
	return after
}

// FS is what is on the disk now, to verify.
func (d *Disk) FS() fs.FS {
	d.mu.Lock()
	defer d.mu.Unlock()
	files := fstest.MapFS{}
	for name, f := range d.names {
		files[name] = &fstest.MapFile{Data: f.now.bytes(), Mode: 0o600}
	}
	return files
}

// Content is a copy of a file's bytes now; nil where there is none.
func (d *Disk) Content(name string) []byte {
	d.mu.Lock()
	defer d.mu.Unlock()
	if f := d.names[name]; f != nil {
		return f.now.bytes()
	}
	return nil
}

// Put sets a file's bytes.
func (d *Disk) Put(name string, content []byte) {
	d.mu.Lock()
	defer d.mu.Unlock()
	f := newInode(content)
	d.names[name], d.durable[name] = f, f
}

// Watch has f see the disk before each operation from now on, as a copy in which what is not durable still is not. f is
// called from whoever uses the disk, and must not use it itself; nil ends it.
func (d *Disk) Watch(f func(moment *Disk)) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.watch = f
}

// op counts an operation and says whether it fails.
func (d *Disk) op() error {
	if d.watch != nil {
		d.watch(d.snapshot())
	}
	d.ops++
	if d.fault.At == d.ops || (d.fault.Dead && d.fault.At > 0 && d.ops > d.fault.At) {
		return d.fault.Err
	}
	return nil
}

// full reports whether there is no room for anything new.
func (d *Disk) full() bool { return d.fault.Full && d.ops >= d.fault.At }

// Lock implements audit.Disk.
func (d *Disk) Lock() (func() error, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if *d.locked {
		return nil, audit.ErrLocked
	}
	*d.locked = true
	return func() error {
		d.mu.Lock()
		defer d.mu.Unlock()
		*d.locked = false
		return nil
	}, nil
}

// List implements audit.Disk.
func (d *Disk) List() ([]string, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return slices.DeleteFunc(slices.Sorted(maps.Keys(d.names)), func(n string) bool { return strings.Contains(n, "/") }), nil
}

// Dirs implements audit.Disk. A directory is there with its first file.
func (d *Disk) Dirs() ([]string, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	dirs := map[string]struct{}{}
	for name := range d.names {
		if dir, _, ok := strings.Cut(name, "/"); ok {
			dirs[dir] = struct{}{}
		}
	}
	return slices.Sorted(maps.Keys(dirs)), nil
}

// Open implements audit.Disk.
func (d *Disk) Open(name string) (audit.File, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	f := d.names[name]
	if f == nil {
		return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrNotExist}
	}
	return &file{d: d, inode: f}, nil
}

// Create implements audit.Disk.
func (d *Disk) Create(name string) (audit.File, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if err := d.op(); err != nil {
		return nil, err
	}
	if d.names[name] != nil {
		return nil, &fs.PathError{Op: "create", Path: name, Err: fs.ErrExist}
	}
	if d.full() {
		return nil, &fs.PathError{Op: "create", Path: name, Err: syscall.ENOSPC}
	}
	f := newInode(nil)
	d.change(change{name: f})
	return &file{d: d, inode: f}, nil
}

// Rename implements audit.Disk.
func (d *Disk) Rename(oldName, newName string) error { return d.rename(oldName, newName) }

// Move implements audit.Disk.
func (d *Disk) Move(name, dir string) error { return d.rename(name, dir+"/"+name) }

func (d *Disk) rename(oldName, newName string) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if err := d.op(); err != nil {
		return err
	}
	f := d.names[oldName]
	if f == nil {
		return &fs.PathError{Op: "rename", Path: oldName, Err: fs.ErrNotExist}
	}
	d.change(change{oldName: nil, newName: f})
	return nil
}

// Remove implements audit.Disk.
func (d *Disk) Remove(name string) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.names[name] == nil {
		return &fs.PathError{Op: "remove", Path: name, Err: fs.ErrNotExist}
	}
	if err := d.op(); err != nil {
		return err
	}
	d.change(change{name: nil})
	return nil
}

// Sync implements audit.Disk.
func (d *Disk) Sync() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if err := d.op(); err != nil {
		return err
	}
	d.durable, d.changes = maps.Clone(d.names), nil
	return nil
}

// Close implements audit.Disk.
func (d *Disk) Close() error { return nil }

func (d *Disk) change(c change) {
	c.apply(d.names)
	d.changes = append(d.changes, c)
}

// file is an open inode; it outlives its name.
type file struct {
	d *Disk
	*inode
}

func (f *file) ReadAt(b []byte, off int64) (int, error) {
	f.d.mu.Lock()
	defer f.d.mu.Unlock()
	n := max(0, min(len(b), f.now.size-int(off)))
	clear(b[:n])
	for at := 0; at < n; {
		s, within := (int(off)+at)/sector, (int(off)+at)%sector
		if data := f.now.sectors[s]; data != nil {
			copy(b[at:n], data[within:])
		}
		at += sector - within
	}
	if n < len(b) {
		return n, io.EOF
	}
	return n, nil
}

func (f *file) WriteAt(b []byte, off int64) (int, error) {
	f.d.mu.Lock()
	defer f.d.mu.Unlock()
	err := f.d.op()
	if err != nil {
		if !f.d.fault.Short || f.d.ops != f.d.fault.At {
			return 0, err
		}
		b = b[:len(b)/2]
	}
	if f.d.full() && int(off)+len(b) > f.now.size {
		return 0, syscall.ENOSPC
	}
	f.write(b, int(off))
	return len(b), err
}

func (f *file) Size() (int64, error) {
	f.d.mu.Lock()
	defer f.d.mu.Unlock()
	return int64(f.now.size), nil
}

func (f *file) Sync() error {
	f.d.mu.Lock()
	defer f.d.mu.Unlock()
	if err := f.d.op(); err != nil {
		return err
	}
	f.sync()
	return nil
}

func (f *file) Close() error { return nil }
