package model

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
)

// Store is the models of one machine.
type Store struct {
	Dir    string  // where files are; see Dir
	Models []Model // what there is; see Known

	Pip      []string       // the command that runs pip; empty: python3 -m pip
	HTTP     *http.Client   // for https sources; nil: a client without the environment's surprises
	Progress func(Progress) // told while bytes arrive, from the calling goroutine; may be nil
}

// Progress says how far a pull is. Total is 0 where it is not known.
type Progress struct {
	Done, Total int64 // bytes
}

// File is a model's file on this machine.
type File struct {
	Path   string
	Model  Model  // zero where the file is not in the manifest
	Header Header // as the file names itself
	SHA256 string // set by Check and Pull, which read the whole file
}

// Dir returns the folder for models: assent/models in the user's cache ($XDG_CACHE_HOME, or ~/.cache).
func Dir() (string, error) {
	cache, err := os.UserCacheDir()
	if err != nil {
		return "", fmt.Errorf("no folder for models: %w; set XDG_CACHE_HOME", err)
	}
	return filepath.Join(cache, "assent", "models"), nil
}

// Open returns the store of this user, with the models of the manifest.
func Open() (*Store, error) {
	dir, err := Dir()
	if err != nil {
		return nil, err
	}
	return &Store{Dir: dir, Models: Known()}, nil
}

// Lookup finds a model by its id; the empty id is the default. The error is an *UnknownError.
func (s *Store) Lookup(id string) (Model, error) {
	var ids []string
	for _, m := range s.Models {
		if m.ID == id || (id == "" && m.Default) {
			return m, nil
		}
		ids = append(ids, m.ID)
	}
	return Model{}, &UnknownError{id, ids}
}

// Resolve finds the file of a model by id, by the path of a .gguf file, or, if ref is empty, the default's. It looks at
// the header and the length alone. Errors: *UnknownError, *NotPulledError, *FileError.
func (s *Store) Resolve(ref string) (File, error) {
	if strings.ContainsRune(ref, filepath.Separator) || strings.HasSuffix(ref, ".gguf") {
		f, err := inspect(ref)
		if err != nil {
			return File{}, err
		}
		if digest, ok := storedDigest(ref); ok {
			f.Model = s.byDigest(digest)
		}
		return f, nil
	}
	m, err := s.Lookup(ref)
	if err != nil {
		return File{}, err
	}
	path, ok := s.stored(m)
	if !ok {
		return File{}, &NotPulledError{m.ID}
	}
	f, err := inspect(path)
	if err != nil {
		return File{}, err
	}
	if size := fileSize(path); m.Size > 0 && size != m.Size {
		return File{}, &FileError{path, WrongChecksum, fmt.Sprintf("%d bytes instead of %d", size, m.Size)}
	}
	f.Model = m
	return f, nil
}

// Check reads the whole of the file that ref names (see Resolve). File.Model is zero if the file is sound as far as its
// header tells, but not one that the manifest names. Errors are those of Resolve.
func (s *Store) Check(ctx context.Context, ref string) (File, error) {
	f, err := s.Resolve(ref)
	if err != nil {
		return File{}, err
	}
	digest, err := digestFile(ctx, f.Path)
	if err != nil {
		return File{}, err
	}
	want := f.Model.SHA256
	if pinned, ok := storedDigest(f.Path); ok && want == "" {
		want = pinned
	}
	if want != "" && want != digest {
		return File{}, &FileError{f.Path, WrongChecksum, "sha256 " + digest}
	}
	f.SHA256 = digest
	if f.Model.ID == "" {
		f.Model = s.byDigest(digest)
	}
	return f, nil
}

func (s *Store) byDigest(digest string) Model {
	for _, m := range s.Models {
		if m.SHA256 == digest {
			return m
		}
	}
	return Model{}
}

// stored returns where m's file is, or would be, and whether something is there. Models without a checksum in the manifest
// have one in a pin file, written by the first pull.
func (s *Store) stored(m Model) (string, bool) {
	digest := m.SHA256
	if digest == "" {
		pin, err := os.ReadFile(s.pinPath(m))
		if err != nil || !isDigest(strings.TrimSpace(string(pin))) {
			return "", false
		}
		digest = strings.TrimSpace(string(pin))
	}
	path := s.path(digest)
	_, err := os.Stat(path)
	return path, err == nil
}

func (s *Store) path(digest string) string { return filepath.Join(s.Dir, "sha256-"+digest+".gguf") }
func (s *Store) pinPath(m Model) string    { return filepath.Join(s.Dir, m.ID+".sha256") }

// storedDigest reads the checksum out of the name of a stored file.
func storedDigest(path string) (string, bool) {
	hexes, ok := strings.CutPrefix(strings.TrimSuffix(filepath.Base(path), ".gguf"), "sha256-")
	return hexes, ok && isDigest(hexes)
}

// inspect reads a file's header and compares its length. The error is a *FileError.
func inspect(path string) (File, error) {
	f, err := os.Open(path)
	if err != nil {
		return File{}, &FileError{path, Missing, reason(err)}
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return File{}, &FileError{path, Missing, reason(err)}
	}
	if !info.Mode().IsRegular() {
		return File{}, &FileError{path, Missing, "not a regular file"}
	}
	h, err := ReadHeader(f)
	switch {
	case errors.Is(err, io.ErrUnexpectedEOF):
		return File{}, &FileError{path, Truncated, "it ends inside its header"}
	case err != nil:
		return File{}, &FileError{path, NotGGUF, err.Error()}
	case info.Size() < h.MinSize:
		return File{}, &FileError{path, Truncated, fmt.Sprintf("%d bytes instead of at least %d", info.Size(), h.MinSize)}
	}
	return File{Path: path, Header: h}, nil
}

// reason drops the path from a file error, since the caller names it.
func reason(err error) string {
	var pathErr *os.PathError
	if errors.As(err, &pathErr) {
		return pathErr.Err.Error()
	}
	return err.Error()
}

func fileSize(path string) int64 {
	info, err := os.Stat(path)
	if err != nil {
		return 0
	}
	return info.Size()
}

func digestFile(ctx context.Context, path string) (string, error) {
	f, err := os.Open(path)
	if err != nil {
		return "", &FileError{path, Missing, reason(err)}
	}
	defer f.Close()
	h := sha256.New()
	if _, err := copyContext(ctx, h, f); err != nil {
		return "", fmt.Errorf("reading %s: %w", path, err)
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}

// copyContext is io.Copy that stops when ctx ends.
func copyContext(ctx context.Context, dst io.Writer, src io.Reader) (int64, error) {
	return io.Copy(dst, readerFunc(func(p []byte) (int, error) {
		if err := ctx.Err(); err != nil {
			return 0, err
		}
		return src.Read(p)
	}))
}

type readerFunc func([]byte) (int, error)

func (f readerFunc) Read(p []byte) (int, error) { return f(p) }
