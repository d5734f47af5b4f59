package sticktest

import (
	"errors"
	"io"
	"io/fs"
	"os"

	"github.com/diskfs/go-diskfs/backend"
)

// memory is a volume in memory, for go-diskfs.
type memory struct {
	b   []byte
	off int64
}

var _ backend.WritableFile = (*memory)(nil)

func (m *memory) ReadAt(p []byte, off int64) (int, error) {
	if off < 0 || off >= int64(len(m.b)) {
		return 0, io.EOF
	}
	n := copy(p, m.b[off:])
	if n < len(p) {
		return n, io.EOF
	}
	return n, nil
}

func (m *memory) WriteAt(p []byte, off int64) (int, error) {
	if off < 0 || off+int64(len(p)) > int64(len(m.b)) {
		return 0, io.ErrShortWrite
	}
	return copy(m.b[off:], p), nil
}

func (m *memory) Read(p []byte) (int, error) {
	n, err := m.ReadAt(p, m.off)
	m.off += int64(n)
	return n, err
}

func (m *memory) Seek(off int64, whence int) (int64, error) {
	switch whence {
	case io.SeekCurrent:
		off += m.off
	case io.SeekEnd:
		off += int64(len(m.b))
	}
	m.off = off
	return off, nil
}

func (m *memory) Close() error                            { return nil }
func (m *memory) Path() string                            { return "" }
func (m *memory) Stat() (fs.FileInfo, error)              { return nil, errors.ErrUnsupported }
func (m *memory) Sys() (*os.File, error)                  { return nil, backend.ErrNotSuitable }
func (m *memory) Writable() (backend.WritableFile, error) { return m, nil }
