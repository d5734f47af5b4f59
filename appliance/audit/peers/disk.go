package main

import (
	"strings"

	"assent.home.arpa/appliance/audit"
	"assent.home.arpa/appliance/audit/audittest"
)

// tapped is a disk that remembers the last bytes that were written to a segment.
type tapped struct {
	audit.Disk
	last   []byte
	offset int64
}

func (d *tapped) Open(name string) (audit.File, error) {
	f, err := d.Disk.Open(name)
	if err != nil || !strings.HasSuffix(name, ".cborseq") {
		return f, err
	}
	return &tappedFile{f, d}, nil
}

type tappedFile struct {
	audit.File
	disk *tapped
}

func (f *tappedFile) WriteAt(b []byte, off int64) (int, error) {
	f.disk.last, f.disk.offset = append(f.disk.last[:0], b...), off
	return f.File.WriteAt(b, off)
}

// free is a disk that costs nothing once it is told so: what is then written is gone.
type free struct {
	audit.Disk
	now bool
}

func newFree() *free { return &free{Disk: audittest.NewDisk()} }

func (d *free) Open(name string) (audit.File, error) {
	f, err := d.Disk.Open(name)
	return freeFile{f, d}, err
}

func (d *free) Create(name string) (audit.File, error) {
	f, err := d.Disk.Create(name)
	return freeFile{f, d}, err
}

type freeFile struct {
	audit.File
	disk *free
}

func (f freeFile) WriteAt(b []byte, off int64) (int, error) {
	if f.disk.now {
		return len(b), nil
	}
	return f.File.WriteAt(b, off)
}

func (f freeFile) Sync() error {
	if f.disk.now {
		return nil
	}
	return f.File.Sync()
}

// hasty is a directory in which nothing is ever synced, to make long logs in.
type hasty struct{ audit.Disk }

func (d hasty) Sync() error { return nil }

func (d hasty) Open(name string) (audit.File, error) {
	f, err := d.Disk.Open(name)
	return hastyFile{f}, err
}

func (d hasty) Create(name string) (audit.File, error) {
	f, err := d.Disk.Create(name)
	return hastyFile{f}, err
}

type hastyFile struct{ audit.File }

func (hastyFile) Sync() error { return nil }
