package fat

import (
	"fmt"
	"io"
	"io/fs"
	"math"
)

// File is a new file. It has no name before Close.
type File struct {
	v           *Volume
	name        string
	first, last uint32
	size        int64
	done        bool
}

// Create begins a file. The directory that is to hold it must exist, and the name must not.
func (v *Volume) Create(name string) (*File, error) {
	if _, _, err := v.vacant("create", name); err != nil {
		return nil, err
	}
	return &File{v: v, name: name}, nil
}

// Write appends to the file.
func (f *File) Write(b []byte) (n int, err error) {
	if f.done {
		return 0, fs.ErrClosed
	}
	if f.size+int64(len(b)) > math.MaxUint32 {
		return 0, fmt.Errorf("%w: FAT holds no larger file", ErrFull)
	}
	g := &f.v.g
	in := f.size % g.cluster
	var clusters []uint32
	if in > 0 {
		clusters = append(clusters, f.last)
	}
	for int64(len(clusters))*g.cluster < in+int64(len(b)) {
		next, err := f.v.allocate(f.last)
		if err != nil {
			return 0, err
		}
		if f.last = next; f.first == 0 {
			f.first = next
		}
		clusters = append(clusters, next)
	}
	for len(b) > 0 { // clusters that lie one behind the other are written at once
		run := 1
		for run < len(clusters) && clusters[run] == clusters[run-1]+1 {
			run++
		}
		part := b[:min(int64(len(b)), int64(run)*g.cluster-in)]
		if _, err := f.v.pages.medium.WriteAt(part, f.v.pages.base+g.at(clusters[0])+in); err != nil {
			return n, err
		}
		n, f.size, b = n+len(part), f.size+int64(len(part)), b[len(part):]
		clusters, in = clusters[run:], 0
	}
	return n, nil
}

// Close puts the file on the medium and gives it its name, in this order.
func (f *File) Close() error {
	if f.done {
		return fs.ErrClosed
	}
	f.done = true
	d, base, err := f.v.vacant("create", f.name)
	if err != nil {
		return err
	}
	if err := f.v.soil(); err != nil {
		return err
	}
	if err := f.v.commit(); err != nil {
		return err
	}
	return f.v.add(d, base, attrArchive, f.first, uint32(f.size))
}

// Discard gives up a file that was not closed.
func (f *File) Discard() error {
	if f.done || f.first == 0 {
		return nil
	}
	f.done = true
	return f.v.release(f.first)
}

// cursor remembers where in a chain the last read was, since files are read from their beginning to their end.
type cursor struct {
	first, at uint32
	index     int64
}

// ReadAt reads from a file, as it is on the medium.
func (v *Volume) ReadAt(name string, p []byte, off int64) (n int, err error) {
	dir, base, err := split(name)
	if err != nil {
		return 0, err
	}
	d, err := v.lookup(dir)
	if err != nil {
		return 0, err
	}
	e, err := v.find(d, base)
	switch {
	case err != nil:
		return 0, err
	case e == nil:
		return 0, &fs.PathError{Op: "read", Path: name, Err: fs.ErrNotExist}
	case e.isDir() || off < 0:
		return 0, &fs.PathError{Op: "read", Path: name, Err: fs.ErrInvalid}
	}
	for len(p) > 0 && off < int64(e.size) {
		in := off % v.g.cluster
		want := min(int64(len(p)), int64(e.size)-off)
		first, run, err := v.run(e.first, off/v.g.cluster, (in+want+v.g.cluster-1)/v.g.cluster)
		if err != nil {
			return n, err
		}
		part := p[:min(want, run*v.g.cluster-in)]
		if _, err := v.pages.medium.ReadAt(part, v.pages.base+v.g.at(first)+in); err != nil {
			return n, err
		}
		n, off, p = n+len(part), off+int64(len(part)), p[len(part):]
	}
	if len(p) > 0 {
		return n, io.EOF
	}
	return n, nil
}

// run returns the cluster with that index in a chain, and how many of the clusters wanted lie one behind the other from there.
func (v *Volume) run(chain uint32, index, want int64) (first uint32, n int64, err error) {
	if first, err = v.seek(chain, index); err != nil {
		return 0, 0, err
	}
	for n, last := int64(1), first; ; n++ {
		if n == want {
			return first, n, nil
		}
		next, err := v.seek(chain, index+n)
		if err != nil {
			return 0, 0, err
		}
		if next != last+1 {
			return first, n, nil
		}
		last = next
	}
}

// seek returns the cluster with that index in a chain.
func (v *Volume) seek(first uint32, index int64) (uint32, error) {
	c := &v.reading
	if c.first != first || c.index > index || !v.g.valid(c.at) {
		*c = cursor{first: first, at: first}
	}
	start := c.index
	err := v.chain(c.at, index-start+1, func(n uint32) (bool, error) {
		c.at = n
		c.index = start
		start++
		return c.index < index, nil
	})
	if err == nil && c.index != index {
		err = fmt.Errorf("%w: a file is shorter than it says", ErrDamaged)
	}
	return c.at, err
}
