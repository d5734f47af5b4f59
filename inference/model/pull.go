package model

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"
)

// slack is kept free beyond a model's own size: a disk that is full to the last byte breaks other things than this pull.
const slack = 64 << 20

// Pull makes sure that the model is on this machine, whole, and returns its file. One that is there and right is not
// fetched again. Parts that were fetched before an interruption are kept. Two pulls of one model wait for each other.
//
// Errors: *UnknownError; ErrUnreachable if no source answered; *DigestError if one gave the wrong bytes; *DiskFullError;
// *FileError if the bytes are the ones that were published but no model.
func (s *Store) Pull(ctx context.Context, id string) (File, error) {
	m, err := s.Lookup(id)
	if err != nil {
		return File{}, err
	}
	if err := os.MkdirAll(s.Dir, 0o755); err != nil {
		return File{}, fmt.Errorf("no folder for models: %w", err)
	}
	unlock, err := lock(ctx, filepath.Join(s.Dir, m.ID+".lock"))
	if err != nil {
		return File{}, err
	}
	defer unlock()

	if path, ok := s.stored(m); ok {
		f, err := s.Check(ctx, m.ID)
		var damaged *FileError
		if !errors.As(err, &damaged) {
			return f, err
		}
		if err := os.Remove(path); err != nil {
			return File{}, fmt.Errorf("removing the damaged %s: %w", path, err)
		}
	}
	partial := filepath.Join(s.Dir, m.ID+".partial")
	if err := s.room(m, partial); err != nil {
		return File{}, err
	}
	if err := s.fetch(ctx, m, partial); err != nil {
		return File{}, s.explain(err)
	}
	return s.adopt(ctx, m, partial)
}

// fetch fills partial from the first source that works.
func (s *Store) fetch(ctx context.Context, m Model, partial string) error {
	var failed []error
	if len(m.Parts) > 0 {
		err := s.fetchParts(ctx, m, partial)
		if err == nil || !errors.Is(err, ErrUnreachable) {
			return err
		}
		failed = append(failed, err)
	}
	if m.URL != "" {
		err := s.fetchURL(ctx, m, partial)
		if err == nil || !errors.Is(err, ErrUnreachable) {
			return err
		}
		failed = append(failed, err)
	}
	return errors.Join(failed...)
}

// adopt checks a complete download and moves it to its final name, durably.
func (s *Store) adopt(ctx context.Context, m Model, partial string) (File, error) {
	digest, err := digestFile(ctx, partial)
	if err != nil {
		return File{}, err
	}
	if m.SHA256 != "" && digest != m.SHA256 {
		if err := os.Remove(partial); err != nil {
			return File{}, err
		}
		return File{}, &DigestError{m.Title, m.SHA256, digest}
	}
	if _, err := inspect(partial); err != nil {
		if err := os.Remove(partial); err != nil {
			return File{}, err
		}
		return File{}, err
	}
	path := s.path(digest)
	if err := os.Rename(partial, path); err != nil {
		return File{}, fmt.Errorf("storing the model: %w", err)
	}
	if m.SHA256 == "" {
		if err := os.WriteFile(s.pinPath(m), []byte(digest+"\n"), 0o644); err != nil {
			return File{}, s.explain(fmt.Errorf("pinning the model: %w", err))
		}
	}
	if err := syncDir(s.Dir); err != nil {
		return File{}, err
	}
	f, err := inspect(path)
	f.Model, f.SHA256 = m, digest
	return f, err
}

// room refuses a pull that cannot fit, before anything is fetched.
func (s *Store) room(m Model, partial string) error {
	if m.Size == 0 {
		return nil
	}
	var fs unix.Statfs_t
	if err := unix.Statfs(s.Dir, &fs); err != nil {
		return nil //nolint:nilerr // not every file system tells; a full one shows while writing
	}
	need := m.Size - fileSize(partial) + slack
	for _, p := range m.Parts {
		need = max(need, m.Size-fileSize(partial)+slack+p.Size) // one wheel lies beside the file
	}
	if free := int64(fs.Bavail) * fs.Bsize; free < need {
		return &DiskFullError{s.Dir, need, free}
	}
	return nil
}

func (s *Store) explain(err error) error {
	if errors.Is(err, unix.ENOSPC) || errors.Is(err, unix.EDQUOT) {
		return &DiskFullError{Dir: s.Dir}
	}
	return err
}

func (s *Store) report(done, total int64) {
	if s.Progress != nil {
		s.Progress(Progress{done, total})
	}
}

// lock waits for the lock file at path and holds it until unlock. The file stays: removing it would let a third process
// lock a new one while a second holds the old.
func lock(ctx context.Context, path string) (unlock func(), err error) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR|unix.O_CLOEXEC, 0o644)
	if err != nil {
		return nil, fmt.Errorf("locking the model: %w", err)
	}
	for {
		err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB)
		if err == nil {
			return func() { f.Close() }, nil
		}
		if !errors.Is(err, unix.EWOULDBLOCK) && !errors.Is(err, unix.EINTR) {
			f.Close()
			return nil, fmt.Errorf("locking the model: %w", err)
		}
		select {
		case <-ctx.Done():
			f.Close()
			return nil, fmt.Errorf("waiting for another pull of the same model: %w", ctx.Err())
		case <-time.After(200 * time.Millisecond):
		}
	}
}

// syncDir makes the names in dir durable.
func syncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	defer d.Close()
	if err := d.Sync(); err != nil {
		return fmt.Errorf("syncing %s: %w", dir, err)
	}
	return nil
}
