// Package engine finds, installs and starts llama-server, the program that runs a language model.
//
// Assent uses llama.cpp as Debian packages it. Where the machine has no suitable one, Install takes Debian's own packages
// from the mirror that the machine's apt already uses, checked by apt against Debian's keyring, and unpacks them into the
// user's cache; nothing of the system changes, and no package script runs. The unpacked engine brings its own C library and
// runs by its own dynamic loader, since the host's may be older than the engine needs.
//
// Command starts it for one model on one unix socket: no TCP port, no web page, no network access of its own.
package engine

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
)

// Engine is a llama-server that was started once to see that it is suitable.
type Engine struct {
	Path    string // the executable, absolute
	Version string // as it says itself, as in "0.7.0 (build 11669, commit Debian)"
	Origin  Origin
}

// Origin says where an engine was found. The zero value is invalid.
type Origin uint8

// The origins.
const (
	Explicit  Origin = 1 // the caller named it
	Cached    Origin = 2 // unpacked earlier into the user's cache
	OnPath    Origin = 3 // installed on the machine
	Installed Origin = 4 // unpacked just now
)

func (o Origin) String() string {
	switch o {
	case Explicit:
		return "explicit"
	case Cached:
		return "cached"
	case OnPath:
		return "path"
	case Installed:
		return "installed"
	}
	return fmt.Sprintf("origin(%d)", uint8(o))
}

// Options say where to look.
type Options struct {
	Path      string            // an executable to use and no other, or empty
	Dir       string            // where unpacked engines are; empty: Dir()
	NoInstall bool              // report what is missing instead of fetching it
	Progress  func(line string) // told what is going on, a line at a time; may be nil
}

// Dir returns the folder for unpacked engines: assent/engine in the user's cache ($XDG_CACHE_HOME, or ~/.cache).
func Dir() (string, error) {
	cache, err := os.UserCacheDir()
	if err != nil {
		return "", fmt.Errorf("no folder for the engine: %w; set XDG_CACHE_HOME", err)
	}
	return filepath.Join(cache, "assent", "engine"), nil
}

// Find returns the engine that o.Path names; else one that was unpacked earlier; else the llama-server on PATH; else it
// installs one. An engine that is not suitable is passed over, and why is part of the error if no other is found.
//
// Errors: *UnsuitableError if o.Path is; *NotFoundError; *InstallError.
func Find(ctx context.Context, o Options) (Engine, error) {
	o, err := o.filled()
	if err != nil {
		return Engine{}, err
	}
	if o.Path != "" {
		return examine(ctx, o.Path, Explicit)
	}
	if e, ok := cached(ctx, o.Dir); ok {
		return e, nil
	}
	var passed *UnsuitableError
	if path, err := exec.LookPath(program); err == nil {
		e, err := examine(ctx, path, OnPath)
		if err == nil {
			return e, nil
		}
		if !errors.As(err, &passed) {
			return Engine{}, err
		}
		o.Progress("engine: " + passed.Error())
	}
	if o.NoInstall {
		return Engine{}, &NotFoundError{Passed: passed}
	}
	return Install(ctx, o)
}

// program is the name of the executable, on PATH and at the top of an unpacked engine.
const program = "llama-server"

func (o Options) filled() (Options, error) {
	if o.Progress == nil {
		o.Progress = func(string) {}
	}
	if o.Dir == "" {
		dir, err := Dir()
		if err != nil {
			return o, err
		}
		o.Dir = dir
	}
	dir, err := filepath.Abs(o.Dir)
	o.Dir = dir
	return o, err
}

// cached returns the newest unpacked engine that is suitable. Folders whose name begins with a dot are unfinished.
func cached(ctx context.Context, dir string) (Engine, bool) {
	found, err := filepath.Glob(filepath.Join(dir, "[^.]*", program))
	if err != nil {
		return Engine{}, false
	}
	slices.SortFunc(found, func(a, b string) int { return modified(b).Compare(modified(a)) })
	for _, path := range found {
		if e, err := examine(ctx, path, Cached); err == nil {
			return e, true
		}
	}
	return Engine{}, false
}
