package kernel

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"time"
)

// helper is apt's downloader. It is on no path, since only other programs call it.
const helper = "/usr/lib/apt/apt-helper"

// ErrNotDebian says that the machine's apt, if it has one, knows no mirror of Debian.
var ErrNotDebian = errors.New("kernel: this machine's apt knows no debian mirror; run this on debian, or in a container of it")

// mirror returns the address of the Debian archive that the machine's apt uses, with a slash at its end.
func mirror(ctx context.Context) (string, error) {
	out, err := run(ctx, "", "apt-get", "indextargets", "--format", "$(REPO_URI)", "Created-By: Packages")
	if errors.Is(err, exec.ErrNotFound) {
		return "", ErrNotDebian
	}
	if err != nil {
		return "", err
	}
	for line := range strings.Lines(out) {
		uri := strings.TrimRight(strings.TrimSpace(line), "/")
		// Every mirror has the archive under this name; security updates and other archives have others.
		if strings.HasSuffix(uri, "/debian") && !strings.ContainsAny(uri, " []") {
			return uri + "/", nil
		}
	}
	return "", ErrNotDebian
}

// download fetches one package into a file.
func download(ctx context.Context, archive string, p Package, file string) error {
	_, err := run(ctx, "", helper, "-qq", "-o", "Acquire::Retries=2", "-o", "APT::Sandbox::User=root",
		"download-file", archive+p.Path, file, fmt.Sprintf("SHA256:%x", p.Sum))
	return err
}

// Latest asks the machine's mirror which packages a suite's kernel for arm64 consists of now, and returns their lock. apt
// checks the lists against Debian's keys.
func Latest(ctx context.Context, suite string) (Lock, error) {
	archive, err := mirror(ctx)
	if err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp("", "assent-lock-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	options, err := privateState(dir, archive, suite)
	if err != nil {
		return nil, err
	}
	apt := func(tool string, args ...string) (string, error) {
		return run(ctx, dir, tool, append(options[:len(options):len(options)], args...)...)
	}
	if _, err := apt("apt-get", "-qq", "-o", "APT::Update::Error-Mode=any", "update"); err != nil {
		return nil, err
	}
	depends, err := apt("apt-cache", "depends", "linux-image-arm64")
	if err != nil {
		return nil, err
	}
	release := regexp.MustCompile(`Depends: linux-image-([0-9]\S*-arm64)`).FindStringSubmatch(depends)
	if release == nil {
		return nil, fmt.Errorf("kernel: %s has no linux-image-arm64", suite)
	}
	uris, err := apt("apt-get", "download", "--print-uris", "linux-binary-"+release[1], "linux-modules-"+release[1])
	if err != nil {
		return nil, err
	}
	return parseURIs(uris, archive)
}

// parseURIs reads what apt-get prints with --print-uris: 'URI' file size SHA256:sum.
func parseURIs(uris, archive string) (Lock, error) {
	var lock strings.Builder
	for _, m := range regexp.MustCompile(`(?m)^'([^']*)' \S+ ([0-9]+) SHA256:([0-9a-f]{64})$`).FindAllStringSubmatch(uris, -1) {
		place, here := strings.CutPrefix(m[1], archive)
		if !here {
			return nil, errors.New("kernel: a package is not of this machine's mirror")
		}
		fmt.Fprintln(&lock, place, m[2], m[3])
	}
	return ParseLock(strings.NewReader(lock.String()))
}

// privateState prepares a folder in which apt works without touching the machine's own state.
func privateState(dir, archive, suite string) ([]string, error) {
	keyring := ""
	for _, ending := range []string{"pgp", "gpg"} { // it changed between releases
		path := "/usr/share/keyrings/debian-archive-keyring." + ending
		if _, err := os.Stat(path); err == nil {
			keyring = path
		}
	}
	if keyring == "" {
		return nil, errors.New("kernel: debian's keys are missing; install the package debian-archive-keyring")
	}
	for _, sub := range []string{"lists/partial", "cache/archives/partial"} {
		if err := os.MkdirAll(filepath.Join(dir, sub), 0o755); err != nil {
			return nil, err
		}
	}
	for name, content := range map[string]string{
		"sources.list": fmt.Sprintf("deb [arch=arm64 signed-by=%s] %s %s main\n", keyring, archive, suite),
		"status":       "",
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o644); err != nil {
			return nil, err
		}
	}
	var options []string
	for _, o := range []string{
		"Dir::Etc::sourcelist=" + filepath.Join(dir, "sources.list"),
		"Dir::Etc::sourceparts=/dev/null",
		"Dir::State::Lists=" + filepath.Join(dir, "lists"),
		"Dir::State::status=" + filepath.Join(dir, "status"),
		"Dir::Cache=" + filepath.Join(dir, "cache"),
		"APT::Architecture=arm64",
		"APT::Architectures=arm64",
		"APT::Sandbox::User=root",
		"Acquire::Languages=none",
		"Acquire::Check-Valid-Until=false", // a mirror that stands still is signed all the same
	} {
		options = append(options, "-o", o)
	}
	return options, nil
}

// run runs a tool and returns its standard output. The first line of what it complains about becomes the error.
func run(ctx context.Context, dir, name string, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "LC_ALL=C")
	cmd.WaitDelay = 5 * time.Second
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	err := cmd.Run()
	switch {
	case err == nil:
		return stdout.String(), nil
	case ctx.Err() != nil:
		return "", ctx.Err()
	case errors.Is(err, exec.ErrNotFound), errors.Is(err, os.ErrNotExist):
		return "", fmt.Errorf("kernel: %w", err)
	}
	first, _, _ := strings.Cut(strings.TrimSpace(stderr.String()), "\n")
	return "", fmt.Errorf("kernel: %s: %w: %.300s", filepath.Base(name), err, first)
}
