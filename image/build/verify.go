package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
)

// verifyReproducible builds a second time, with tools that are unpacked anew, in another folder, and compares the disk with what the
// first build delivered to out. Only the packages are the same files: their sums are checked against the lock.
func verifyReproducible(ctx context.Context, out string, say func(string), stdout io.Writer) error {
	if err := rootOnly(); err != nil {
		return err
	}
	first := filepath.Join(out, name+".img")
	want, err := checksum(first)
	if errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("there is no %s to compare with: run make image first", first)
	}
	if err != nil {
		return err
	}
	cache, err := cacheDir()
	if err != nil {
		return err
	}
	fresh, err := os.MkdirTemp("", "assent-verify-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(fresh)
	t, err := unpackTools(ctx, fresh, filepath.Join(cache, "debs"), say)
	if err != nil {
		return err
	}
	b := &build{tools: t, store: filepath.Join(cache, "debs"), say: say}
	defer b.clean()
	if err := b.all(ctx); err != nil {
		return err
	}
	got, err := checksum(b.path("disk"))
	if err != nil {
		return err
	}
	fmt.Fprintf(stdout, "first build   %x\nsecond build  %x\n", want, got)
	if !bytes.Equal(got, want) {
		return errors.Join(errors.New("the two builds differ"), explain(first, b.path("disk")))
	}
	fmt.Fprintln(stdout, "image/reproducible 1 bool 1")
	return nil
}

// explain says where two disks differ first.
func explain(one, two string) error {
	a, err := os.Open(one)
	if err != nil {
		return err
	}
	defer a.Close()
	b, err := os.Open(two)
	if err != nil {
		return err
	}
	defer b.Close()
	const step = 1 << 20
	x, y := make([]byte, step), make([]byte, step)
	for at := int64(0); ; at += step {
		n, errX := io.ReadFull(a, x)
		m, errY := io.ReadFull(b, y)
		if !bytes.Equal(x[:n], y[:m]) {
			return fmt.Errorf("first in the megabyte at %d", at)
		}
		if errX != nil || errY != nil {
			return errors.New("in their size")
		}
	}
}
