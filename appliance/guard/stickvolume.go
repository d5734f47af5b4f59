package guard

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"slices"
	"strings"
	"syscall"
	"time"

	"assent.home.arpa/appliance/audit/export"
	"assent.home.arpa/appliance/ipc"
)

// opTimeout is how long a stick may take for one operation. Bad ones pause for seconds while they move things about.
const opTimeout = 60 * time.Second

// stickError says what an exporter could not do.
type stickError struct{ problem ipc.StickProblem }

func (e *stickError) Error() string { return fmt.Sprintf("guard: stick: problem %d", e.problem) }

func (e *stickError) Is(target error) bool {
	switch e.problem {
	case ipc.StickFull:
		return target == syscall.ENOSPC
	case ipc.StickExists:
		return target == fs.ErrExist
	case ipc.StickMissing:
		return target == fs.ErrNotExist
	}
	return false
}

// stickVolume is a stick as a copy is written to it. It knows the digest of each chunk of each file that it wrote, and what is
// read back is compared with it before anything looks at it: bytes that somebody else put on a stick go nowhere.
type stickVolume struct {
	ctx   context.Context
	call  func(context.Context, *ipc.StickOp) (*ipc.StickReply, error)
	next  uint32
	files map[string]*stickFile
	dirs  map[string]bool
}

// stickFile is one file that was written.
type stickFile struct {
	size   int64
	chunks [][sha256.Size]byte // all but the last of ipc.MaxStickChunk bytes
}

func newStickVolume(ctx context.Context, call func(context.Context, *ipc.StickOp) (*ipc.StickReply, error)) *stickVolume {
	return &stickVolume{ctx: ctx, call: call, files: map[string]*stickFile{}, dirs: map[string]bool{}}
}

func (v *stickVolume) do(op *ipc.StickOp) (*ipc.StickReply, error) {
	ctx, cancel := context.WithTimeout(v.ctx, opTimeout)
	defer cancel()
	r, err := v.call(ctx, op)
	if err != nil {
		return nil, err
	}
	if r.Problem != 0 {
		return nil, &stickError{r.Problem}
	}
	return r, nil
}

// Free implements export.Volume.
func (v *stickVolume) Free() (int64, bool) {
	r, err := v.do(&ipc.StickOp{Verb: ipc.StickFree})
	if err != nil || r.Size < 0 {
		return 0, false
	}
	return r.Size, true
}

// Mkdir implements export.Volume.
func (v *stickVolume) Mkdir(name string) error {
	_, err := v.do(&ipc.StickOp{Verb: ipc.StickMkdir, Name: name})
	if err == nil {
		v.dirs[name] = true
	}
	return err
}

// Create implements export.Volume.
func (v *stickVolume) Create(name string) (io.WriteCloser, error) {
	v.next++
	if _, err := v.do(&ipc.StickOp{Verb: ipc.StickCreate, Name: name, Handle: v.next}); err != nil {
		return nil, err
	}
	return &stickWriter{v: v, name: name, handle: v.next, file: &stickFile{}}, nil
}

// Rename implements export.Volume.
func (v *stickVolume) Rename(from, to string) error {
	_, err := v.do(&ipc.StickOp{Verb: ipc.StickRename, Name: from, To: to})
	return err
}

// RemoveAll implements export.Volume.
func (v *stickVolume) RemoveAll(name string) error {
	below := func(n string) bool { return n == name || strings.HasPrefix(n, name+"/") }
	for n := range v.files {
		if below(n) {
			delete(v.files, n)
		}
	}
	for n := range v.dirs {
		if below(n) {
			delete(v.dirs, n)
		}
	}
	_, err := v.do(&ipc.StickOp{Verb: ipc.StickRemove, Name: name})
	return err
}

// Sync implements export.Volume.
func (v *stickVolume) Sync(string) error {
	_, err := v.do(&ipc.StickOp{Verb: ipc.StickSync})
	return err
}

// end has the exporter put everything on the medium and let go of it.
func (v *stickVolume) end() error {
	_, err := v.do(&ipc.StickOp{Verb: ipc.StickEnd})
	return err
}

// Open implements fs.FS. Of what it did not write it says only whether it is there.
func (v *stickVolume) Open(name string) (fs.File, error) {
	if f := v.files[name]; f != nil {
		return &stickReader{v: v, name: name, file: f}, nil
	}
	if v.dirs[name] {
		return &stickDir{v: v, name: name}, nil
	}
	r, err := v.do(&ipc.StickOp{Verb: ipc.StickStat, Name: name})
	if err == nil && !r.Yes {
		err = fs.ErrNotExist
	}
	if err != nil {
		return nil, &fs.PathError{Op: "open", Path: name, Err: err}
	}
	return &stickDir{v: v, name: name}, nil
}

// stickWriter sends a file in chunks.
type stickWriter struct {
	v      *stickVolume
	name   string
	handle uint32
	file   *stickFile
	buf    []byte
}

func (w *stickWriter) Write(b []byte) (n int, err error) {
	for len(b) > 0 {
		take := min(len(b), ipc.MaxStickChunk-len(w.buf))
		w.buf = append(w.buf, b[:take]...)
		if len(w.buf) == ipc.MaxStickChunk {
			if err := w.flush(); err != nil {
				return n, err
			}
		}
		n, b = n+take, b[take:]
	}
	return n, nil
}

func (w *stickWriter) flush() error {
	if len(w.buf) == 0 {
		return nil
	}
	w.file.chunks = append(w.file.chunks, sha256.Sum256(w.buf))
	w.file.size += int64(len(w.buf))
	_, err := w.v.do(&ipc.StickOp{Verb: ipc.StickWrite, Handle: w.handle, Data: w.buf})
	w.buf = w.buf[:0]
	return err
}

func (w *stickWriter) Close() error {
	if err := w.flush(); err != nil {
		return err
	}
	if _, err := w.v.do(&ipc.StickOp{Verb: ipc.StickClose, Handle: w.handle}); err != nil {
		return err
	}
	w.v.files[w.name] = w.file
	return nil
}

// stickReader reads a file back.
type stickReader struct {
	v    *stickVolume
	name string
	file *stickFile
	next int    // chunk
	rest []byte // of the chunk before it
}

func (r *stickReader) Read(p []byte) (int, error) {
	if len(r.rest) == 0 {
		if r.next == len(r.file.chunks) {
			return 0, io.EOF
		}
		off := int64(r.next) * ipc.MaxStickChunk
		size := min(ipc.MaxStickChunk, r.file.size-off)
		a, err := r.v.do(&ipc.StickOp{Verb: ipc.StickRead, Name: r.name, Offset: off, Size: uint32(size)})
		if err != nil {
			return 0, err
		}
		if int64(len(a.Data)) != size || sha256.Sum256(a.Data) != r.file.chunks[r.next] {
			return 0, fmt.Errorf("%w: %s", export.ErrReadBack, path.Base(r.name))
		}
		r.next, r.rest = r.next+1, a.Data
	}
	n := copy(p, r.rest)
	r.rest = r.rest[n:]
	return n, nil
}

func (r *stickReader) Close() error { return nil }

func (r *stickReader) Stat() (fs.FileInfo, error) {
	return stickInfo{path.Base(r.name), r.file.size, 0o644}, nil
}

// stickDir is a directory, or something of which only the name is known.
type stickDir struct {
	v    *stickVolume
	name string
	done bool
}

func (d *stickDir) Read([]byte) (int, error) { return 0, errors.ErrUnsupported }
func (d *stickDir) Close() error             { return nil }

func (d *stickDir) Stat() (fs.FileInfo, error) {
	return stickInfo{path.Base(d.name), 0, fs.ModeDir | 0o755}, nil
}

// ReadDir lists what was written there.
func (d *stickDir) ReadDir(n int) (list []fs.DirEntry, err error) {
	if d.done {
		if n > 0 {
			return nil, io.EOF
		}
		return nil, nil
	}
	d.done = true // all at once, whatever n says: there are few
	for name, f := range d.v.files {
		if path.Dir(name) == d.name {
			list = append(list, fs.FileInfoToDirEntry(stickInfo{path.Base(name), f.size, 0o644}))
		}
	}
	for name := range d.v.dirs {
		if path.Dir(name) == d.name {
			list = append(list, fs.FileInfoToDirEntry(stickInfo{path.Base(name), 0, fs.ModeDir | 0o755}))
		}
	}
	slices.SortFunc(list, func(a, b fs.DirEntry) int { return strings.Compare(a.Name(), b.Name()) })
	return list, nil
}

type stickInfo struct {
	name string
	size int64
	mode fs.FileMode
}

func (i stickInfo) Name() string       { return i.name }
func (i stickInfo) Size() int64        { return i.size }
func (i stickInfo) Mode() fs.FileMode  { return i.mode }
func (i stickInfo) ModTime() time.Time { return time.Time{} }
func (i stickInfo) IsDir() bool        { return i.mode.IsDir() }
func (i stickInfo) Sys() any           { return nil }
