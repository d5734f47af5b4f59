package debs

import (
	"context"
	"crypto/sha256"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
)

// Fetch returns the files of the packages of a lock, in its order: from the store, which is a folder, or from the machine's mirror.
// progress is told what is going on.
func (l Lock) Fetch(ctx context.Context, store string, progress func(string)) ([]string, error) {
	if err := os.MkdirAll(store, 0o755); err != nil {
		return nil, err
	}
	var files []string
	var missing Lock
	var size int64
	for _, p := range l {
		file := filepath.Join(store, p.file())
		files = append(files, file)
		if check(file, p) != nil {
			missing = append(missing, p)
			size += p.Size
		}
	}
	if len(missing) == 0 {
		return files, nil
	}
	progress(fmt.Sprintf("fetching %d packages (%d MB)", len(missing), (size+1<<20-1)>>20))
	archive, err := mirror(ctx)
	if err != nil {
		return nil, err
	}
	part, err := os.MkdirTemp(store, ".part-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(part)
	for some := range slices.Chunk(missing, atOnce) {
		if err := download(ctx, archive, some, part); err != nil {
			return nil, fmt.Errorf("%w; if the mirror has newer ones by now, write a new lock", err)
		}
		for _, p := range some {
			file := filepath.Join(part, p.file())
			if err := check(file, p); err != nil {
				return nil, err
			}
			if err := os.Rename(file, filepath.Join(store, p.file())); err != nil {
				return nil, err
			}
		}
	}
	return files, nil
}

// atOnce is how many packages one downloader is told to fetch: a line of arguments is bounded.
const atOnce = 64

// file is a package's name in the store.
func (p Package) file() string { return fmt.Sprintf("%x.deb", p.Sum) }

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
