package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"assent.home.arpa/image/debs"
)

// build is one build of the image. Its folder has the same name in the tools' tree wherever it is: /build.
type build struct {
	tools tools
	store string // of packages
	dir   string // on this machine
	say   func(string)

	lock     debs.Lock      // of the root
	packages []debs.Control // in the lock's order
	kernel   string         // its release
	roothash string
}

// path returns where something of the build's folder is on this machine.
func (b *build) path(elem ...string) string {
	return filepath.Join(append([]string{b.dir}, elem...)...)
}

// run runs a tool.
func (b *build) run(ctx context.Context, args ...string) (string, error) {
	return b.tools.run(ctx, b.dir, nil, args...)
}

// clean removes the build's folder.
func (b *build) clean() {
	if b.dir != "" {
		_ = os.RemoveAll(b.dir)
	}
}

// all makes everything that is delivered, in the build's folder.
func (b *build) all(ctx context.Context) error {
	var err error
	if b.dir, err = os.MkdirTemp("", "assent-image-"); err != nil {
		return err
	}
	if err := os.Chmod(b.dir, 0o755); err != nil {
		return err
	}
	for _, step := range []struct {
		what string
		do   func(context.Context) error
	}{
		{"unpacking the root", b.unpackRoot},
		{"building the programs", b.programs},
		{"fitting out the root", b.fitOut},
		{"building the initial file systems", b.initrds},
		{"making the partitions", b.partitions},
		{"making the boot partition", b.bootPartition},
	} {
		b.say(step.what)
		if err := step.do(ctx); err != nil {
			return fmt.Errorf("%s: %w", step.what, err)
		}
	}
	return nil
}

// programs builds the box's own program, and the two variants of the first process.
func (b *build) programs(ctx context.Context) error {
	for _, p := range []struct{ out, from, tags string }{
		{b.path("root", "usr/bin/assentd"), "./cmd/assentd", ""},
		{b.path("init"), "./image/initrd", ""},
		{b.path("init-test"), "./image/initrd", "testlayer"},
	} {
		cmd := exec.CommandContext(ctx, "go", "build", "-trimpath", "-buildvcs=false", "-ldflags=-s -w -buildid=", "-tags="+p.tags, "-o", p.out, p.from)
		cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOOS=linux", "GOARCH=arm64", "GOARM64=v8.0", "GOFLAGS=")
		cmd.WaitDelay = 5 * time.Second
		if out, err := cmd.CombinedOutput(); err != nil {
			return fmt.Errorf("%s (run this in the project's folder): %w\n%s", p.from, err, bytes.TrimSpace(out))
		}
	}
	return nil
}

// stamp gives everything below dir the same time, so that it does not matter when it was made.
func stamp(dir string) error {
	at := []unix.Timespec{{Sec: epoch}, {Sec: epoch}}
	return filepath.WalkDir(dir, func(path string, _ os.DirEntry, err error) error {
		if err != nil {
			return err
		}
		return unix.UtimesNanoAt(unix.AT_FDCWD, path, at, unix.AT_SYMLINK_NOFOLLOW)
	})
}

// fetch returns the files of a lock.
func (b *build) fetch(ctx context.Context, lock string) (debs.Lock, []string, error) {
	l, err := debs.ParseLock(strings.NewReader(lock))
	if err != nil {
		return nil, nil, err
	}
	files, err := l.Fetch(ctx, b.store, b.say)
	return l, files, err
}
