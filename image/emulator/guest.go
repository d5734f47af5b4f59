package emulator

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"

	"assent.home.arpa/image/cpio"
)

// Build builds one of the project's packages for the box's processor, without symbols, into a file. It has to be called in the
// project's folder.
func Build(ctx context.Context, pkg, file, tags string) error {
	build := exec.CommandContext(ctx, "go", "build", "-trimpath", "-tags="+tags, "-ldflags=-s -w", "-o", file, pkg)
	build.Env = append(os.Environ(), "CGO_ENABLED=0", "GOOS=linux", "GOARCH=arm64")
	if out, err := build.CombinedOutput(); err != nil {
		return fmt.Errorf("%s does not build (run this in the project's folder): %w\n%s", pkg, err, bytes.TrimSpace(out))
	}
	return nil
}

// Pack builds a package that is the first and only process of a machine, and makes the initial file system of that machine: the
// program as /init, and the modules in /modules, named in the order in which they are to be loaded. It returns the file.
func Pack(ctx context.Context, dir, pkg string, modules []string) (string, error) {
	program := filepath.Join(dir, "guest")
	if err := Build(ctx, pkg, program, ""); err != nil {
		return "", err
	}
	initrd := filepath.Join(dir, "initrd.cpio")
	f, err := os.Create(initrd)
	if err != nil {
		return "", err
	}
	out := bufio.NewWriter(f)
	return initrd, errors.Join(Archive(out, program, modules), out.Flush(), f.Close())
}

// Archive writes what Pack makes a file of: a program as /init, modules, and what a first process needs.
func Archive(out io.Writer, program string, modules []string) error {
	w := cpio.NewWriter(out)
	for _, dir := range []string{"dev", "proc", "sys", "modules"} {
		if err := w.Dir(dir, 0o755); err != nil {
			return err
		}
	}
	if err := w.Char("dev/console", 0o600, 5, 1); err != nil {
		return err
	}
	add := func(name, file string, perm uint32) error {
		data, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		return w.File(name, perm, data)
	}
	if err := add("init", program, 0o755); err != nil {
		return err
	}
	for i, m := range modules {
		if err := add(fmt.Sprintf("modules/%02d-%s", i, filepath.Base(m)), m, 0o644); err != nil {
			return err
		}
	}
	return w.Close()
}
