package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
)

// name is what the image's files are called.
const name = "assent-arm64"

// deliver puts what was made into out.
func (b *build) deliver(ctx context.Context, out string, quick bool, stdout io.Writer) error {
	for _, dir := range []string{out, filepath.Join(out, "test"), filepath.Join(out, "qemu")} {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			return err
		}
	}
	for from, to := range map[string]string{
		b.path("disk"):              name + ".img",
		b.path("test/assent-a.efi"): "test/assent-a.efi",
		filepath.Join(string(b.tools), "usr/lib/u-boot/qemu_arm64/u-boot.bin"): "qemu/u-boot.bin",
	} {
		cmd := exec.CommandContext(ctx, "cp", "--sparse=always", from, filepath.Join(out, to))
		if text, err := cmd.CombinedOutput(); err != nil {
			return errors.Join(err, errors.New(string(text)))
		}
	}
	fmt.Fprintln(stdout, filepath.Join(out, name+".img"))
	return nil
}

func verifyReproducible(ctx context.Context, out string, say func(string), stdout io.Writer) error {
	return errors.New("not yet")
}
