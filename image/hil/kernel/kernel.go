// Package kernel takes the image and a few modules out of the packages of the kernel that the box runs. What was taken out stays in
// the user's cache, named by its content.
package kernel

import (
	"bufio"
	"context"
	"crypto/sha256"
	_ "embed"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"assent.home.arpa/image/debs"
)

//go:embed kernel.lock
var locked string

// Locked is the lock of the kernel that the box runs.
func Locked() (debs.Lock, error) { return debs.ParseLock(strings.NewReader(locked)) }

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
func Get(ctx context.Context, dir string, l debs.Lock, names []string, progress func(string)) (Kernel, error) {
	home := filepath.Join(dir, "kernel-"+key(l, names))
	if k, err := read(home); err == nil || !errors.Is(err, fs.ErrNotExist) {
		return k, err
	}
	files, err := l.Fetch(ctx, filepath.Join(dir, "debs"), progress)
	if err != nil {
		return Kernel{}, err
	}
	progress("taking the kernel and its modules out of the packages")
	work, err := os.MkdirTemp(dir, ".work-")
	if err != nil {
		return Kernel{}, err
	}
	defer os.RemoveAll(work)
	if err := unpack(ctx, files, names, work); err != nil {
		return Kernel{}, err
	}
	if err := os.Rename(work, home); err != nil && !errors.Is(err, fs.ErrExist) { // somebody was faster
		return Kernel{}, err
	}
	return read(home)
}

// key names what Get makes of a lock and a list.
func key(l debs.Lock, names []string) string {
	sum := sha256.Sum256([]byte(l.String() + "\n" + strings.Join(names, "\n")))
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
