package debs

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
var ErrNotDebian = errors.New("debs: this machine's apt knows no debian mirror; run this on debian, or in a container of it")

// Archive is one release for one machine, as the mirror has it.
type Archive struct {
	Suite      string // "forky"
	Arch       string // "arm64"
	Components string // "main non-free-firmware"
}

// Resolve asks the machine's mirror which packages of an archive the named ones consist of now, and returns their lock: with all
// that they depend on, or without. Recommendations are not followed. apt checks the lists against Debian's keys.
func (a Archive) Resolve(ctx context.Context, packages []string, dependencies bool) (Lock, error) {
	var lock Lock
	err := a.ask(ctx, func(archive string, apt tool) (err error) {
		args := []string{"install", "--yes", "--print-uris"}
		if !dependencies {
			args = []string{"download", "--print-uris"}
		}
		uris, err := apt("apt-get", append(args, packages...)...)
		if err != nil {
			return err
		}
		lock, err = parseURIs(uris, archive)
		return err
	})
	return lock, err
}

// Kernel returns the names of the packages that make up the archive's newest kernel: its image and its modules, without the
// programs that other machines need to install them.
func (a Archive) Kernel(ctx context.Context) ([]string, error) {
	var packages []string
	err := a.ask(ctx, func(_ string, apt tool) error {
		depends, err := apt("apt-cache", "depends", "linux-image-"+a.Arch)
		if err != nil {
			return err
		}
		release := regexp.MustCompile(`Depends: linux-image-([0-9]\S*-` + a.Arch + `)`).FindStringSubmatch(depends)
		if release == nil {
			return fmt.Errorf("debs: %s has no linux-image-%s", a.Suite, a.Arch)
		}
		packages = []string{"linux-binary-" + release[1], "linux-modules-" + release[1]}
		return nil
	})
	return packages, err
}

// tool runs one of apt's programs on an archive's lists.
type tool func(name string, args ...string) (string, error)

// ask fetches the archive's lists into a folder of their own, and calls do with the mirror's address.
func (a Archive) ask(ctx context.Context, do func(archive string, apt tool) error) error {
	archive, err := mirror(ctx)
	if err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "assent-lock-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	options, err := a.privateState(dir, archive)
	if err != nil {
		return err
	}
	apt := func(name string, args ...string) (string, error) {
		return run(ctx, dir, name, append(options[:len(options):len(options)], args...)...)
	}
	if _, err := apt("apt-get", "-qq", "-o", "APT::Update::Error-Mode=any", "update"); err != nil {
		return err
	}
	return do(archive, apt)
}

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

// download fetches packages into a folder, each under its name in a store.
func download(ctx context.Context, archive string, l Lock, dir string) error {
	args := []string{"-qq", "-o", "Acquire::Retries=2", "-o", "APT::Sandbox::User=root", "download-file"}
	for _, p := range l {
		args = append(args, archive+p.Path, filepath.Join(dir, p.file()), fmt.Sprintf("SHA256:%x", p.Sum))
	}
	_, err := run(ctx, "", helper, args...)
	return err
}

// parseURIs reads what apt-get prints with --print-uris: 'URI' file size SHA256:sum.
func parseURIs(uris, archive string) (Lock, error) {
	var lock strings.Builder
	for _, m := range regexp.MustCompile(`(?m)^'([^']*)' \S+ ([0-9]+) SHA256:([0-9a-f]{64})\s*$`).FindAllStringSubmatch(uris, -1) {
		place, here := strings.CutPrefix(m[1], archive)
		if !here {
			return nil, errors.New("debs: a package is not of this machine's mirror")
		}
		fmt.Fprintln(&lock, place, m[2], m[3])
	}
	return ParseLock(strings.NewReader(lock.String()))
}

// privateState prepares a folder in which apt works without touching the machine's own state.
func (a Archive) privateState(dir, archive string) ([]string, error) {
	keyring := ""
	for _, ending := range []string{"pgp", "gpg"} { // it changed between releases
		path := "/usr/share/keyrings/debian-archive-keyring." + ending
		if _, err := os.Stat(path); err == nil {
			keyring = path
		}
	}
	if keyring == "" {
		return nil, errors.New("debs: debian's keys are missing; install the package debian-archive-keyring")
	}
	for _, sub := range []string{"lists/partial", "cache/archives/partial"} {
		if err := os.MkdirAll(filepath.Join(dir, sub), 0o755); err != nil {
			return nil, err
		}
	}
	for name, content := range map[string]string{
		"sources.list": fmt.Sprintf("deb [arch=%s signed-by=%s] %s %s %s\n", a.Arch, keyring, archive, a.Suite, a.Components),
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
		"APT::Architecture=" + a.Arch,
		"APT::Architectures=" + a.Arch,
		"APT::Install-Recommends=false",
		"APT::Sandbox::User=root",
		"Acquire::Languages=none",
		"Acquire::ForceHash=SHA256",        // else some commands print weaker sums
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
		return "", fmt.Errorf("debs: %w", err)
	}
	first, _, _ := strings.Cut(strings.TrimSpace(stderr.String()), "\n")
	return "", fmt.Errorf("debs: %s: %w: %.300s", filepath.Base(name), err, first)
}
