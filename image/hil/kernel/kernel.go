package kernel

import (
	"bufio"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// Kernel is what was taken out of the packages.
type Kernel struct {
	Image   string   // path of the bootable image
	Modules []string // paths of the modules, each after those that it depends on
}

// Files of an unpacked kernel, beside the modules.
const (
	imageFile = "vmlinuz"
	orderFile = "order" // names of the modules, in the order in which they are loaded
)

// Get returns the kernel of a lock with the named modules and all that they depend on, from the cache in dir or from the
// machine's mirror. A module that is built into the image is not listed. progress is told what is going on.
func Get(ctx context.Context, dir string, l Lock, modules []string, progress func(string)) (Kernel, error) {
	home := filepath.Join(dir, "kernel-"+key(l, modules))
	if k, err := read(home); err == nil || !errors.Is(err, fs.ErrNotExist) {
		return k, err
	}
	debs, err := fetch(ctx, dir, l, progress)
	if err != nil {
		return Kernel{}, err
	}
	progress("taking the kernel and its modules out of the packages")
	work, err := os.MkdirTemp(dir, ".work-")
	if err != nil {
		return Kernel{}, err
	}
	defer os.RemoveAll(work)
	if err := unpack(ctx, debs, modules, work); err != nil {
		return Kernel{}, err
	}
	if err := os.Rename(work, home); err != nil && !errors.Is(err, fs.ErrExist) { // somebody was faster
		return Kernel{}, err
	}
	return read(home)
}

// key names what Get makes of a lock and a list.
func key(l Lock, modules []string) string {
	sum := sha256.Sum256([]byte(l.String() + "\n" + strings.Join(modules, "\n")))
	return fmt.Sprintf("%x", sum[:8])
}

func read(home string) (Kernel, error) {
	f, err := os.Open(filepath.Join(home, orderFile))
	if err != nil {
		return Kernel{}, err
	}
	defer f.Close()
	k := Kernel{Image: filepath.Join(home, imageFile)}
	names := bufio.NewScanner(f)
	for names.Scan() {
		k.Modules = append(k.Modules, filepath.Join(home, names.Text()))
	}
	return k, names.Err()
}

// fetch returns the files of the packages.
func fetch(ctx context.Context, dir string, l Lock, progress func(string)) ([]string, error) {
	store := filepath.Join(dir, "debs")
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
			return nil, fmt.Errorf("%w; if the mirror has a newer kernel by now, write a new lock: go run ./image/hil -lock", err)
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
		return fmt.Errorf("kernel: %s is not what the lock names", filepath.Base(p.Path))
	}
	return nil
}
