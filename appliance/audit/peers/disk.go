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

// free is a disk that costs nothing: what is written to a segment is gone.
type free struct{ audit.Disk }

func newFree() free { return free{audittest.NewDisk()} }

func (d free) Open(name string) (audit.File, error) {
	f, err := d.Disk.Open(name)
	if err != nil || !strings.HasSuffix(name, ".cborseq") {
		return f, err
	}
	return freeFile{f}, nil
}

func (d free) Create(name string) (audit.File, error) {
	f, err := d.Disk.Create(name)
	if err != nil || !strings.HasPrefix(name, "spare") {
		return f, err
	}
	return freeFile{f}, nil
}

type freeFile struct{ audit.File }

func (freeFile) WriteAt(b []byte, _ int64) (int, error) { return len(b), nil }
func (freeFile) Sync() error                            { return nil }

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
