package flash

import (
	"io"
	"os"
	"unsafe"

	"assent.home.arpa/image/card"
)

// Target is what is written to: a disk, or a file that stands for one.
type Target interface {
	io.ReaderAt
	io.WriterAt
	io.Closer
	Size() int64
	// Sync makes what was written durable, and makes reading read the medium.
	Sync() error
}

// OpenFile opens a regular file as if it were a disk of its size.
func OpenFile(path string) (Target, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, &RefusedError{path, "it is not a file"}
	}
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		return nil, err
	}
	return file{f, info.Size() / card.SectorBytes * card.SectorBytes}, nil
}

type file struct {
	*os.File
	size int64
}

func (f file) Size() int64 { return f.size }

// sectors makes whole, aligned sectors of every access, which is what O_DIRECT (open(2)) asks for.
type sectors struct {
	raw interface {
		io.ReaderAt
		io.WriterAt
	}
	bounce []byte // aligned in memory
}

// pageBytes is what memory is aligned to; no disk asks for more.
const pageBytes = 4096

// aligned returns n bytes that begin at a page.
func aligned(n int) []byte {
	b := make([]byte, n+pageBytes)
	off := int(-uintptr(unsafe.Pointer(unsafe.SliceData(b))) % pageBytes)
	return b[off : off+n : off+n]
}

func newSectors(raw interface {
	io.ReaderAt
	io.WriterAt
},
) *sectors {
	return &sectors{raw: raw, bounce: aligned(mib)}
}

// direct reports whether p and off may be used as they are.
func direct(p []byte, off int64) bool {
	return off%card.SectorBytes == 0 && len(p)%card.SectorBytes == 0 && uintptr(unsafe.Pointer(unsafe.SliceData(p)))%pageBytes == 0
}

// each calls do for the bounce buffer over each run of sectors that p covers, with p's part of it.
func (s *sectors) each(p []byte, off int64, do func(run []byte, at int64, from int, part []byte) error) (int, error) {
	done := 0
	for done < len(p) {
		at := (off + int64(done)) / card.SectorBytes * card.SectorBytes
		from := int(off + int64(done) - at)
		n := min(len(p)-done, len(s.bounce)-from)
		run := s.bounce[:(from+n+card.SectorBytes-1)/card.SectorBytes*card.SectorBytes]
		if err := do(run, at, from, p[done:done+n]); err != nil {
			return done, err
		}
		done += n
	}
	return done, nil
}

func (s *sectors) ReadAt(p []byte, off int64) (int, error) {
	if direct(p, off) {
		return s.raw.ReadAt(p, off)
	}
	return s.each(p, off, func(run []byte, at int64, from int, part []byte) error {
		if _, err := s.raw.ReadAt(run, at); err != nil {
			return err
		}
		copy(part, run[from:])
		return nil
	})
}

func (s *sectors) WriteAt(p []byte, off int64) (int, error) {
	if direct(p, off) {
		return s.raw.WriteAt(p, off)
	}
	return s.each(p, off, func(run []byte, at int64, from int, part []byte) error {
		if from != 0 || len(part) != len(run) {
			if _, err := s.raw.ReadAt(run, at); err != nil {
				return err
			}
		}
		copy(run[from:], part)
		_, err := s.raw.WriteAt(run, at)
		return err
	})
}
