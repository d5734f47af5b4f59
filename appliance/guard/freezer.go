package guard

import (
	"errors"
	"io/fs"
	"os"
	"sync/atomic"
)

// freezer remembers a panic over restarts. Where nobody can say whether there was one, there was.
type freezer struct {
	path string
	on   atomic.Bool
}

func openFreezer(path string) *freezer {
	f := &freezer{path: path}
	_, err := os.Lstat(path)
	f.on.Store(!errors.Is(err, fs.ErrNotExist))
	return f
}

func (f *freezer) frozen() bool { return f.on.Load() }

// hold freezes from now on.
func (f *freezer) hold() { f.on.Store(true) }

// keep makes a freeze survive a restart; an error means that it would not.
func (f *freezer) keep() error {
	return replace(f.path, []byte("frozen at the box; released only there\n"), 0o600)
}

// thaw ends a freeze. Where it cannot be made durable the freeze stays.
func (f *freezer) thaw() error {
	if err := remove(f.path); err != nil {
		return err
	}
	f.on.Store(false)
	return nil
}
