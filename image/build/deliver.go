package main

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"assent.home.arpa/image/rootlist"
)

// name is what the image's files are called.
const name = "assent-arm64"

// maxCompressed is how large the compressed image may be, in bytes.
const maxCompressed = 360_000_000

// deliver puts what was made into out. quick leaves out what takes long and only people who flash need.
func (b *build) deliver(ctx context.Context, out string, quick bool, stdout io.Writer) error {
	for _, dir := range []string{out, filepath.Join(out, "test"), filepath.Join(out, "qemu")} {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			return err
		}
	}
	// Sums of the last build must not stand beside files of this one, and no image without its sums.
	if err := removeAll(out, "*.sha256", "SHA256SUMS", "*.bmap", "*.xz", "*.img", "*"+partial); err != nil {
		return err
	}
	if err := b.documents(out); err != nil {
		return err
	}
	image := filepath.Join(out, name+".img") + partial
	for from, to := range map[string]string{
		b.path("disk"):              image,
		b.path("test/assent-a.efi"): filepath.Join(out, "test/assent-a.efi"),
		filepath.Join(string(b.tools), "usr/lib/u-boot/qemu_arm64/u-boot.bin"): filepath.Join(out, "qemu/u-boot.bin"),
	} {
		if text, err := exec.CommandContext(ctx, "cp", "--sparse=always", from, to).CombinedOutput(); err != nil {
			return fmt.Errorf("cp: %w: %s", err, text)
		}
	}
	var packed []string
	if !quick {
		b.say("compressing")
		// The same bytes with any number of processors.
		stop := b.watch(b.path("disk.xz"), time.Minute)
		err := b.tool(ctx, "xz", "--threads=+0", "--block-size=16MiB", "-3", "--keep", "--force", "/build/disk")
		stop()
		if err != nil {
			return err
		}
		info, err := os.Stat(b.path("disk.xz"))
		if err != nil {
			return err
		}
		fmt.Fprintf(stdout, "image/compressed_mb %.1f MB 360\n", float64(info.Size())/1e6)
		if info.Size() > maxCompressed {
			return fmt.Errorf("the compressed image has %d bytes, more than %d", info.Size(), maxCompressed)
		}
		if text, err := exec.CommandContext(ctx, "cp", b.path("disk.xz"), filepath.Join(out, name+".img.xz")+partial).CombinedOutput(); err != nil {
			return fmt.Errorf("cp: %w: %s", err, text)
		}
		packed = []string{name + ".img.xz"}
	}
	if err := b.writeMap(ctx, image, filepath.Join(out, name+".bmap")); err != nil {
		return err
	}
	if err := publish(out, append(packed, name+".img"), name+".bmap", "packages.txt", "root.list", "sbom.spdx.json"); err != nil {
		return err
	}
	if err := giveBack(out); err != nil {
		return err
	}
	for _, image := range packed {
		b.say("made " + filepath.Join(out, image) + "; next, to see the disks that it can go onto: bin/assent flash")
	}
	return nil
}

// partial ends the names of images without sums: a build that is broken off leaves nothing that could be flashed unchecked.
const partial = ".partial"

// publish writes the sums of all files, and only then gives the images their names.
func publish(out string, images []string, beside ...string) error {
	if err := sums(out, images, beside); err != nil {
		return err
	}
	for _, image := range images {
		file := filepath.Join(out, image)
		if err := os.Rename(file+partial, file); err != nil {
			return err
		}
	}
	return nil
}

// watch says every so often how much a tool has written to a file, until stop is called.
func (b *build) watch(file string, every time.Duration) (stop func()) {
	done := make(chan struct{})
	var watching sync.WaitGroup
	watching.Go(func() {
		for seconds := every; ; seconds += every {
			select {
			case <-done:
				return
			case <-time.After(every):
			}
			if info, err := os.Stat(file); err == nil {
				b.say(fmt.Sprintf("compressing: %d MB written after %.0f s", info.Size()/1e6, seconds.Seconds()))
			}
		}
	})
	return func() { close(done); watching.Wait() }
}

// removeAll removes the files of dir that a pattern matches.
func removeAll(dir string, patterns ...string) error {
	for _, pattern := range patterns {
		files, err := filepath.Glob(filepath.Join(dir, pattern))
		if err != nil {
			return err
		}
		for _, file := range files {
			if err := os.Remove(file); err != nil {
				return err
			}
		}
	}
	return nil
}

// documents writes what the image consists of, and fails where it holds something that it must not.
func (b *build) documents(out string) error {
	list, err := rootList(b.path("root"))
	if err != nil {
		return err
	}
	problems, err := rootlist.Check(strings.NewReader(list))
	if err != nil {
		return err
	}
	rights, err := rootlist.Rights(b.path("root"))
	if err != nil {
		return err
	}
	if problems = append(problems, rights...); len(problems) > 0 {
		return fmt.Errorf("the root holds what it must not: %v", problems)
	}
	bill, err := b.bill()
	if err != nil {
		return err
	}
	var packages strings.Builder
	for _, p := range b.packages {
		fmt.Fprintln(&packages, p.Name, p.Version, p.Architecture)
	}
	for file, text := range map[string]string{"root.list": list, "packages.txt": packages.String(), "sbom.spdx.json": bill} {
		if err := os.WriteFile(filepath.Join(out, file), []byte(text), 0o644); err != nil {
			return err
		}
	}
	return nil
}

// rootList is one path a line, sorted.
func rootList(root string) (string, error) {
	var paths []string
	err := filepath.WalkDir(root, func(file string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		name, err := filepath.Rel(root, file)
		paths = append(paths, name)
		return err
	})
	slices.Sort(paths)
	return strings.Join(paths, "\n") + "\n", err
}

// sums writes the checksums of the files, each image's into a file beside it and all into one.
func sums(out string, images, beside []string) error {
	var all bytes.Buffer
	for i, file := range slices.Concat(images, beside) {
		path, image := filepath.Join(out, file), i < len(images)
		if image {
			path += partial
		}
		sum, err := checksum(path)
		if err != nil {
			return err
		}
		line := fmt.Sprintf("%x  %s\n", sum, file)
		all.WriteString(line)
		if image {
			if err := os.WriteFile(filepath.Join(out, file+".sha256"), []byte(line), 0o644); err != nil {
				return err
			}
		}
	}
	return os.WriteFile(filepath.Join(out, "SHA256SUMS"), all.Bytes(), 0o644)
}

func checksum(file string) ([]byte, error) {
	f, err := os.Open(file)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	h := sha256.New()
	_, err = io.Copy(h, f)
	return h.Sum(nil), err
}

// giveBack makes what sudo made belong to whoever called it.
func giveBack(out string) error {
	var uid, gid int
	if _, err := fmt.Sscan(os.Getenv("SUDO_UID")+" "+os.Getenv("SUDO_GID"), &uid, &gid); err != nil {
		return nil // not by sudo
	}
	return filepath.WalkDir(out, func(file string, _ fs.DirEntry, err error) error {
		return errors.Join(err, os.Lchown(file, uid, gid))
	})
}
