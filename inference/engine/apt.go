package engine

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

// suite is the Debian release whose llama.cpp Assent was measured with.
const suite = "forky"

// apt runs the machine's apt with state of its own, so that nothing of the system's changes.
type apt struct {
	dir     string
	options []string
	triplet string // of the libraries' folder, as in "aarch64-linux-gnu"
}

// newApt prepares private state in dir. The error is ErrNotDebian where there is no Debian mirror to ask.
func newApt(ctx context.Context, dir string) (*apt, error) {
	for _, tool := range []string{"apt-get", "dpkg", "dpkg-deb"} {
		if _, err := exec.LookPath(tool); err != nil {
			return nil, fmt.Errorf("%w (%s is missing)", ErrNotDebian, tool)
		}
	}
	arch, err := output(ctx, "", "dpkg", "--print-architecture")
	if err != nil {
		return nil, err
	}
	arch = strings.TrimSpace(arch)
	triplets := map[string]string{"amd64": "x86_64-linux-gnu", "arm64": "aarch64-linux-gnu"}
	if triplets[arch] == "" {
		return nil, fmt.Errorf("%w for %s: only amd64 and arm64 have the engine", ErrNotDebian, arch)
	}
	mirror, err := debianMirror(ctx)
	if err != nil {
		return nil, err
	}
	keyring, err := debianKeyring()
	if err != nil {
		return nil, err
	}
	a := &apt{dir: dir, triplet: triplets[arch]}
	for _, sub := range []string{"lists/partial", "cache/archives/partial", "debs"} {
		if err := os.MkdirAll(filepath.Join(dir, sub), 0o755); err != nil {
			return nil, err
		}
	}
	source := fmt.Sprintf("deb [arch=%s signed-by=%s] %s %s main\n", arch, keyring, mirror, suite)
	for name, content := range map[string]string{"sources.list": source, "status": ""} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o644); err != nil {
			return nil, err
		}
	}
	for _, option := range []string{
		"Dir::Etc::sourcelist=" + filepath.Join(dir, "sources.list"),
		"Dir::Etc::sourceparts=/dev/null",
		"Dir::Etc::preferences=/dev/null",
		"Dir::Etc::preferencesparts=/dev/null",
		"Dir::State::Lists=" + filepath.Join(dir, "lists"),
		"Dir::State::status=" + filepath.Join(dir, "status"),
		"Dir::Cache=" + filepath.Join(dir, "cache"),
		"APT::Architecture=" + arch,
		"APT::Architectures=" + arch,
		"APT::Get::AllowUnauthenticated=false",
		"Acquire::AllowInsecureRepositories=false",
		// Files belong to whoever runs this, and apt's own user could not read them.
		"APT::Sandbox::User=root",
		"Acquire::Languages=none",
		"Acquire::IndexTargets::deb::DEP-11::DefaultEnabled=false",
		// A mirror that stands still is signed all the same, and an old engine without a network does no harm.
		"Acquire::Check-Valid-Until=false",
		"Acquire::Retries=2",
	} {
		a.options = append(a.options, "-o", option)
	}
	return a, nil
}

// debianMirror returns the address of the Debian archive that the machine's apt is set up with.
func debianMirror(ctx context.Context) (string, error) {
	out, err := output(ctx, "", "apt-get", "indextargets", "--format", "$(REPO_URI)", "Created-By: Packages")
	if err != nil {
		return "", err
	}
	for uri := range strings.Lines(out) {
		uri = strings.TrimSpace(uri)
		// The archive's path is /debian on every mirror; security updates and other archives have other names.
		if strings.HasSuffix(strings.TrimSuffix(uri, "/"), "/debian") && !strings.ContainsAny(uri, " []") {
			return uri, nil
		}
	}
	return "", ErrNotDebian
}

// debianKeyring returns the file of Debian's archive keys. Its ending changed between releases.
func debianKeyring() (string, error) {
	for _, ending := range []string{"pgp", "gpg"} {
		path := "/usr/share/keyrings/debian-archive-keyring." + ending
		if _, err := os.Stat(path); err == nil {
			return path, nil
		}
	}
	return "", errors.New("debian's keys are missing; install the package debian-archive-keyring")
}

func (a *apt) update(ctx context.Context) error {
	_, err := output(ctx, "", "apt-get", append(a.options, "-qq", "-o", "APT::Update::Error-Mode=any", "update")...)
	return err
}

// download fetches packages and returns their files. apt refuses what does not match the signed list.
func (a *apt) download(ctx context.Context, names []string) ([]string, error) {
	args := append(append(a.options[:len(a.options):len(a.options)], "-qq", "download"), names...)
	if _, err := output(ctx, filepath.Join(a.dir, "debs"), "apt-get", args...); err != nil {
		return nil, err
	}
	debs, err := filepath.Glob(filepath.Join(a.dir, "debs", "*.deb"))
	if err != nil {
		return nil, err
	}
	if len(debs) != len(names) {
		return nil, fmt.Errorf("%d packages arrived instead of %d", len(debs), len(names))
	}
	return debs, nil
}

// unpack lays the packages out below root and adds the launcher.
func (a *apt) unpack(ctx context.Context, debs []string, root string) error {
	if err := os.Mkdir(root, 0o755); err != nil {
		return err
	}
	for _, deb := range debs {
		if _, err := output(ctx, "", "dpkg-deb", "--extract", deb, root); err != nil {
			return err
		}
	}
	libraries := filepath.Join("usr", "lib", a.triplet)
	loader, err := findLoader(root, libraries)
	if err != nil {
		return err
	}
	backends, err := filepath.Glob(filepath.Join(root, libraries, "ggml", "backends*", "*.so"))
	if err != nil {
		return err
	}
	if len(backends) == 0 {
		return errors.New("the packages hold no ggml backends")
	}
	// ggml searches the folder of the running program, and that is the loader.
	beside := filepath.Dir(filepath.Join(root, loader))
	for _, backend := range backends {
		target, err := filepath.Rel(beside, backend)
		if err != nil {
			return err
		}
		if err := os.Symlink(target, filepath.Join(beside, filepath.Base(backend))); err != nil {
			return err
		}
	}
	for _, unneeded := range []string{"doc", "man", "locale", "i18n"} {
		if err := os.RemoveAll(filepath.Join(root, "usr", "share", unneeded)); err != nil {
			return err
		}
	}
	return os.WriteFile(filepath.Join(root, program), []byte(launcher(libraries, loader)), 0o755)
}

// findLoader returns the path below root of the dynamic loader, which sits in different places on different architectures.
func findLoader(root, libraries string) (string, error) {
	for _, dir := range []string{libraries, filepath.Join("usr", "lib"), filepath.Join("usr", "lib64")} {
		found, err := filepath.Glob(filepath.Join(root, dir, "ld-linux*.so.*"))
		if err != nil {
			return "", err
		}
		if len(found) > 0 {
			return filepath.Rel(root, found[0])
		}
	}
	return "", errors.New("the packages hold no dynamic loader")
}

// output runs a tool and returns its standard output; what it complains about becomes the error.
func output(ctx context.Context, dir, name string, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "LC_ALL=C", "DEBIAN_FRONTEND=noninteractive")
	cmd.WaitDelay = 5 * time.Second
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Run(); err != nil {
		if ctx.Err() != nil {
			return "", ctx.Err()
		}
		return "", fmt.Errorf("%s: %s", name, firstLine(stderr.String(), err))
	}
	return stdout.String(), nil
}
