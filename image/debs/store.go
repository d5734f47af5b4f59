package debs

import (
	"context"
	"crypto/sha256"
	"fmt"
	"io"
	"os"
	"path/filepath"
)

// Fetch returns the files of the packages of a lock, in its order: from the store, which is a folder, or from the machine's mirror.
// progress is told what is going on.
func (l Lock) Fetch(ctx context.Context, store string, progress func(string)) ([]string, error) {
	if err := os.MkdirAll(store, 0o755); err != nil {
		return nil, err
	}
	var files []string
	for _, p := range l {
		file := filepath.Join(store, fmt.Sprintf("%x.deb", p.Sum))
		files = append(files, file)
		if check(file, p) == nil {
			continue
		}
		progress(fmt.Sprintf("fetching %s (%d MB)", filepath.Base(p.Path), p.Size>>20))
		archive, err := mirror(ctx)
		if err != nil {
			return nil, err
		}
		part := fmt.Sprintf("%s.%d", file, os.Getpid())
		defer os.Remove(part)
		if err := download(ctx, archive, p, part); err != nil {
			return nil, fmt.Errorf("%w; if the mirror has a newer one by now, write a new lock", err)
		}
		if err := check(part, p); err != nil {
			return nil, err
		}
		if err := os.Rename(part, file); err != nil {
			return nil, err
		}
	}
	return files, nil
}

// check reads a file and compares it with the lock.
func check(file string, p Package) error {
	f, err := os.Open(file)
	if err != nil {
		return err
	}
	defer f.Close()
	sum := sha256.New()
	n, err := io.Copy(sum, io.LimitReader(f, p.Size+1))
	switch {
	case err != nil:
		return err
	case n != p.Size || [sha256.Size]byte(sum.Sum(nil)) != p.Sum:
		return fmt.Errorf("debs: %s is not what the lock names", filepath.Base(p.Path))
	}
	return nil
}
