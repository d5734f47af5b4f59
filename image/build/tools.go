package main

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"assent.home.arpa/image/debs"
)

// tools is a file tree of the programs that make an image.
type tools string

// workDir is where a build's folder is inside the tree, so that no path of the machine gets into the image.
const workDir = "/build"

// enter runs a program in the tree $1, with the folder $2 at /build. Mounts are the process's own and go with it.
const enter = `set -e
tree=$1 work=$2
shift 2
mount --bind "$work" "$tree/build"
mount -t proc proc "$tree/proc"
mount --rbind /dev "$tree/dev"
exec chroot "$tree" "$@"`

// unpackTools unpacks the locked tools into a folder of dir that is named by the lock, or finds them there.
func unpackTools(ctx context.Context, dir, store string, say func(string)) (tools, error) {
	lock, err := debs.ParseLock(strings.NewReader(toolsLock))
	if err != nil {
		return "", err
	}
	sum := sha256.Sum256([]byte(workDir + lock.String()))
	home := filepath.Join(dir, fmt.Sprintf("tools-%x", sum[:8]))
	if _, err := os.Stat(home); err == nil || !errors.Is(err, os.ErrNotExist) {
		return tools(home), err
	}
	files, err := lock.Fetch(ctx, store, say)
	if err != nil {
		return "", err
	}
	say(fmt.Sprintf("unpacking the tools, %d packages", len(files)))
	part, err := os.MkdirTemp(dir, ".tools-")
	if err != nil {
		return "", err
	}
	defer os.RemoveAll(part)
	if err := os.Chmod(part, 0o755); err != nil {
		return "", err
	}
	for _, file := range files {
		if err := extract(ctx, file, part); err != nil {
			return "", err
		}
	}
	for _, place := range []string{workDir, "proc", "dev", "tmp"} {
		if err := os.MkdirAll(filepath.Join(part, place), 0o1777); err != nil {
			return "", err
		}
	}
	if err := os.Rename(part, home); err != nil && !errors.Is(err, fs.ErrExist) { // somebody was faster
		return "", err
	}
	return tools(home), nil
}

// extract unpacks one package's files into dir; no script of the package runs.
func extract(ctx context.Context, deb, dir string) error {
	if out, err := exec.CommandContext(ctx, "dpkg-deb", "--extract", deb, dir).CombinedOutput(); err != nil {
		return fmt.Errorf("unpacking %s: %w: %s", filepath.Base(deb), err, bytes.TrimSpace(out))
	}
	return nil
}

// run runs a tool with the folder work at /build, and returns what it printed. Its last complaints are part of the error.
func (t tools) run(ctx context.Context, work string, env []string, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, "unshare", append([]string{"--mount", "--propagation", "private", "sh", "-c", enter, "enter", string(t), work}, args...)...)
	cmd.Env = append([]string{
		"PATH=/usr/sbin:/usr/bin", "HOME=/", "LC_ALL=C.UTF-8", "TZ=UTC", fmt.Sprintf("SOURCE_DATE_EPOCH=%d", epoch),
		"PYTHONDONTWRITEBYTECODE=1",
	}, env...)
	cmd.WaitDelay = 5 * time.Second
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Run(); err != nil {
		if ctx.Err() != nil {
			return "", ctx.Err()
		}
		said := strings.TrimSpace(stderr.String())
		return "", fmt.Errorf("%s: %w: %s", args[0], err, said[max(0, len(said)-2000):])
	}
	return stdout.String(), nil
}
