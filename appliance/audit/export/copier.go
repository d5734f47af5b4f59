package export

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"hash"
	"io"
	"io/fs"
	"path"
	"slices"
	"strings"

	"assent.home.arpa/appliance/audit"
)

// copier writes the files of one copy, and remembers what it wrote.
type copier struct {
	ctx   context.Context
	dst   Volume
	dir   string
	o     Options
	files []file
	bytes int64
}

// file is one file of the copy that was written whole.
type file struct {
	name   string // in the copy
	digest audit.Digest
	size   int64
}

// create makes a file of the copy, which counts once it is closed.
func (c *copier) create(name string) (io.WriteCloser, error) {
	if err := c.ctx.Err(); err != nil {
		return nil, err
	}
	f, err := c.dst.Create(path.Join(c.dir, name))
	if err != nil {
		return nil, fmt.Errorf("export: %w", err)
	}
	return &hashing{c: c, name: name, f: f, hash: sha256.New()}, nil
}

type hashing struct {
	c    *copier
	name string
	f    io.WriteCloser
	hash hash.Hash
	size int64
}

func (h *hashing) Write(b []byte) (int, error) {
	n, err := h.f.Write(b)
	h.hash.Write(b[:n])
	h.size += int64(n)
	if err != nil {
		return n, fmt.Errorf("export: writing %s: %w", h.name, err)
	}
	return n, nil
}

func (h *hashing) Close() error {
	if err := h.f.Close(); err != nil {
		return fmt.Errorf("export: writing %s: %w", h.name, err)
	}
	h.c.files = append(h.c.files, file{h.name, audit.Digest(h.hash.Sum(nil)), h.size})
	h.c.bytes += h.size
	return nil
}

func (c *copier) copy(name string, r io.Reader) (int64, error) {
	f, err := c.create(name)
	if err != nil {
		return 0, err
	}
	n, err := io.Copy(f, r)
	return n, errors.Join(err, f.Close())
}

func (c *copier) put(name string, b []byte) (int64, error) { return c.copy(name, bytes.NewReader(b)) }

// drop removes what was written of a directory and makes it anew.
func (c *copier) drop(dir string) error {
	if err := c.dst.RemoveAll(path.Join(c.dir, dir)); err != nil {
		return fmt.Errorf("export: %w", err)
	}
	c.files = slices.DeleteFunc(c.files, func(f file) bool {
		gone := strings.HasPrefix(f.name, dir+"/")
		if gone {
			c.bytes -= f.size
		}
		return gone
	})
	if err := c.dst.Mkdir(path.Join(c.dir, dir)); err != nil {
		return fmt.Errorf("export: %w", err)
	}
	return nil
}

// finish writes the sums and reads everything back.
func (c *copier) finish() (audit.Digest, error) {
	slices.SortFunc(c.files, func(a, b file) int { return strings.Compare(a.name, b.name) })
	var sums strings.Builder
	for _, f := range c.files {
		fmt.Fprintf(&sums, "%s  %s\n", f.digest, f.name)
	}
	if _, err := c.put("SHA256SUMS", []byte(sums.String())); err != nil {
		return audit.Digest{}, err
	}
	if err := c.readBack(); err != nil {
		return audit.Digest{}, err
	}
	for _, dir := range []string{"log", "view/data", "view", ""} {
		if err := c.dst.Sync(path.Join(c.dir, dir)); err != nil {
			return audit.Digest{}, fmt.Errorf("export: %w", err)
		}
	}
	return sha256.Sum256([]byte(sums.String())), nil
}

// maxSameName bounds how many names are tried.
const maxSameName = 99

// name gives the copy its name, or that with a number where something has it: whatever that is, nobody here has read it back.
func (c *copier) name(name string) (string, error) {
	for n, free := 1, name; n <= maxSameName; n, free = n+1, fmt.Sprintf("%s-%d", name, n+1) {
		err := c.dst.Rename(c.dir, free)
		if errors.Is(err, fs.ErrExist) {
			continue
		}
		if err == nil {
			err = c.dst.Sync(".")
		}
		if err != nil {
			return "", fmt.Errorf("export: %w", err)
		}
		return free, nil
	}
	return "", fmt.Errorf("%w (%s)", ErrExists, name)
}

func (c *copier) readBack() error {
	var done int64
	for _, f := range c.files {
		if err := c.ctx.Err(); err != nil {
			return err
		}
		r, err := c.dst.Open(path.Join(c.dir, f.name))
		if err != nil {
			return fmt.Errorf("%w: %w", ErrReadBack, err)
		}
		h := sha256.New()
		_, err = io.Copy(h, r)
		if err := errors.Join(err, r.Close()); err != nil {
			return fmt.Errorf("%w: %w", ErrReadBack, err)
		}
		if audit.Digest(h.Sum(nil)) != f.digest {
			return fmt.Errorf("%w: %s", ErrReadBack, f.name)
		}
		done += f.size
		c.o.Progress(StepRead, done, c.bytes)
	}
	return nil
}
