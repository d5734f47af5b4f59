package engine

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"
)

// packages are what llama-server needs to run: itself and every library that it loads. Its package also depends on
// debconf and a downloader, for maintenance scripts that never run here.
func packages() []string {
	return []string{
		"llama.cpp-tools", "libllama0", "libggml0", "libc6", "libgcc-s1", "libstdc++6", "libgomp1", "libssl3t64", "libzstd1", "zlib1g",
	}
}

// Install unpacks Debian's engine into the folder that o names, under a key made of the packages' contents, and returns
// it. Where the same packages are there already, that engine is returned. The error is an *InstallError; ErrNotDebian is
// in it where the machine cannot be served this way.
func Install(ctx context.Context, o Options) (Engine, error) {
	o, err := o.filled()
	if err != nil {
		return Engine{}, err
	}
	if err := os.MkdirAll(o.Dir, 0o755); err != nil {
		return Engine{}, &InstallError{"making " + o.Dir, err}
	}
	unlock, err := lock(ctx, filepath.Join(o.Dir, ".lock"), o.Progress)
	if err != nil {
		return Engine{}, &InstallError{"waiting for another installation", err}
	}
	defer unlock()
	// Whoever held the lock may have done the work.
	if e, ok := cached(ctx, o.Dir); ok {
		return e, nil
	}

	work, err := os.MkdirTemp(o.Dir, ".work-*")
	if err != nil {
		return Engine{}, &InstallError{"making a work folder", err}
	}
	defer os.RemoveAll(work)
	a, err := newApt(ctx, work)
	if err != nil {
		return Engine{}, &InstallError{"looking at this machine's apt", err}
	}
	o.Progress("engine: reading the package list of Debian " + suite + " from this machine's mirror")
	if err := a.update(ctx); err != nil {
		return Engine{}, &InstallError{"reading Debian's package list", err}
	}
	o.Progress("engine: fetching llama.cpp and its libraries (12 MB)")
	debs, err := a.download(ctx, packages())
	if err != nil {
		return Engine{}, &InstallError{"fetching Debian's packages", err}
	}
	key, err := contentKey(debs)
	if err != nil {
		return Engine{}, &InstallError{"reading the packages", err}
	}
	o.Progress("engine: unpacking")
	root := filepath.Join(work, "root")
	if err := a.unpack(ctx, debs, root); err != nil {
		return Engine{}, &InstallError{"unpacking", err}
	}
	return publish(ctx, root, filepath.Join(o.Dir, key))
}

// publish proves that the unpacked engine runs, and only then gives it its final name.
func publish(ctx context.Context, root, final string) (Engine, error) {
	if _, err := examine(ctx, filepath.Join(root, program), Installed); err != nil {
		return Engine{}, &InstallError{"starting what was unpacked", err}
	}
	if err := os.RemoveAll(final); err != nil { // cached would have returned it if it worked
		return Engine{}, &InstallError{"replacing an older engine", err}
	}
	if err := os.Rename(root, final); err != nil {
		return Engine{}, &InstallError{"storing the engine", err}
	}
	e, err := examine(ctx, filepath.Join(final, program), Installed)
	if err != nil {
		return Engine{}, &InstallError{"starting the engine", err}
	}
	return e, nil
}

// contentKey is SHA-256 over the names and contents of the packages, in hex.
func contentKey(debs []string) (string, error) {
	slices.Sort(debs)
	sum := sha256.New()
	for _, deb := range debs {
		f, err := os.Open(deb)
		if err != nil {
			return "", err
		}
		one := sha256.New()
		_, err = io.Copy(one, f)
		f.Close()
		if err != nil {
			return "", err
		}
		fmt.Fprintf(sum, "%x %s\n", one.Sum(nil), filepath.Base(deb))
	}
	return hex.EncodeToString(sum.Sum(nil)), nil
}

// lock waits for the lock file at path. The file stays, so that no two processes lock different files of one name.
func lock(ctx context.Context, path string, progress func(string)) (unlock func(), err error) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR|unix.O_CLOEXEC, 0o644)
	if err != nil {
		return nil, err
	}
	if err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB); err == nil {
		return func() { f.Close() }, nil
	} else if !errors.Is(err, unix.EWOULDBLOCK) {
		f.Close()
		return nil, err
	}
	progress("engine: another installation is running; waiting for it")
	locked := make(chan error, 1)
	go func() { locked <- unix.Flock(int(f.Fd()), unix.LOCK_EX) }()
	select {
	case err := <-locked:
		if err != nil {
			f.Close()
			return nil, err
		}
		return func() { f.Close() }, nil
	case <-ctx.Done():
		// The goroutine ends when the other installation does; until then it owns the file.
		go func() { <-locked; f.Close() }()
		return nil, ctx.Err()
	}
}

// launcher returns the script that runs the unpacked engine from wherever its folder is. ggml looks for its processor
// variants beside the running program, which is the loader, so their folder is linked there (see unpack).
func launcher(libraries, loader string) string {
	return strings.Join([]string{
		"#!/bin/sh",
		`root=$(dirname "$(readlink -f "$0")")`,
		`lib=$root/` + libraries,
		`exec "$root/` + loader + `" --library-path "$lib:$lib/llama" "$root/usr/bin/` + program + `" "$@"`,
		"",
	}, "\n")
}
