package main

import (
	"bytes"
	"context"
	"debug/elf"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"assent.home.arpa/image/rootlist"
)

// fitOut turns the packages' files into the box's root.
func (b *build) fitOut(ctx context.Context) error {
	root := b.path("root")
	for _, step := range []func() error{
		func() error { return accounts(root) },
		func() error { return overlay(root, "image/root", "systemd") },
		func() error { return certificates(root) },
		func() error { return finish(root) },
		func() error { return b.tool(ctx, "depmod", "-b", "/build/root", b.kernel) },
		func() error { return b.tool(ctx, "systemd-sysusers", "--root=/build/root") },
		func() error { return b.tool(ctx, "systemctl", "--root=/build/root", "preset-all") },
		func() error { return tidy(root) },
		func() error { return librariesThere(root) },
		func() error { return rootlist.Plain(root) },
		func() error { return stamp(root) },
	} {
		if err := step(); err != nil {
			return err
		}
	}
	return nil
}

func (b *build) tool(ctx context.Context, args ...string) error {
	_, err := b.run(ctx, args...)
	return err
}

// accounts makes the accounts that every Debian has, but for those of people and of services that are not there.
func accounts(root string) error {
	passwd, err := os.ReadFile(filepath.Join(root, "usr/share/base-passwd/passwd.master"))
	if err != nil {
		return err
	}
	var stay strings.Builder
	for line := range strings.Lines(string(passwd)) {
		fields := strings.Split(strings.TrimSpace(line), ":")
		if len(fields) == 7 && slices.Contains([]string{"root", "daemon", "nobody"}, fields[0]) {
			fields[6] = "/usr/sbin/nologin"
			fmt.Fprintln(&stay, strings.Join(fields, ":"))
		}
	}
	group, err := os.ReadFile(filepath.Join(root, "usr/share/base-passwd/group.master"))
	if err != nil {
		return err
	}
	if err := save(filepath.Join(root, "etc/passwd"), strings.NewReader(stay.String())); err != nil {
		return err
	}
	if err := save(filepath.Join(root, "etc/group"), bytes.NewReader(group)); err != nil {
		return err
	}
	return os.RemoveAll(filepath.Join(root, "usr/share/base-passwd"))
}

// overlay copies the project's own files over the root: each folder mirrors it.
func overlay(root string, from ...string) error {
	for _, dir := range from {
		err := filepath.WalkDir(dir, func(file string, e fs.DirEntry, err error) error {
			if err != nil {
				return err
			}
			name, err := filepath.Rel(dir, file)
			if err != nil || e.IsDir() || !strings.Contains(name, "/") { // what is at the top describes the folder
				return err
			}
			to := filepath.Join(root, name)
			if e.Type() == fs.ModeSymlink {
				target, err := os.Readlink(file)
				if err != nil {
					return err
				}
				if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
					return err
				}
				return os.Symlink(target, to)
			}
			data, err := os.ReadFile(file)
			if err != nil {
				return err
			}
			_ = os.Remove(to) // it may be a link
			return save(to, bytes.NewReader(data))
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// certificates puts the certificate authorities into the one file that programs look for.
func certificates(root string) error {
	files, err := filepath.Glob(filepath.Join(root, "usr/share/ca-certificates/mozilla/*.crt"))
	if err != nil {
		return err
	}
	if len(files) < 50 {
		return fmt.Errorf("only %d certificate authorities", len(files))
	}
	var all bytes.Buffer
	for _, file := range files { // sorted by name
		text, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		all.Write(bytes.TrimSpace(text))
		all.WriteByte('\n')
	}
	if err := os.RemoveAll(filepath.Join(root, "usr/share/ca-certificates")); err != nil {
		return err
	}
	return save(filepath.Join(root, "etc/ssl/certs/ca-certificates.crt"), &all)
}

// finish makes what scripts of packages would have made, and what a root that is never written needs.
func finish(root string) error {
	for _, dir := range []struct {
		name string
		perm fs.FileMode
	}{
		{"boot", 0o755},
		{"dev", 0o755},
		{"proc", 0o555},
		{"sys", 0o555},
		{"run", 0o755},
		{"var", 0o755},
		{"tmp", 0o1777},
		{"root", 0o700},
		{"etc/systemd/system", 0o755},
	} {
		if err := os.MkdirAll(filepath.Join(root, dir.name), 0o755); err != nil {
			return err
		}
		if err := os.Chmod(filepath.Join(root, dir.name), dir.perm&fs.ModePerm|sticky(dir.perm)); err != nil {
			return err
		}
	}
	for name, target := range map[string]string{
		"etc/mtab":                                   "../proc/self/mounts",
		"etc/os-release":                             "../usr/lib/os-release",
		"etc/resolv.conf":                            "../run/systemd/resolve/stub-resolv.conf",
		"usr/lib/systemd/system/default.target":      "multi-user.target",
		"usr/lib/firmware/regulatory.db":             "regulatory.db-debian",
		"usr/lib/firmware/regulatory.db.p7s":         "regulatory.db.p7s-debian",
		"usr/lib/systemd/system/ctrl-alt-del.target": "/dev/null",
	} {
		file := filepath.Join(root, name)
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			return err
		}
		_ = os.Remove(file)
		if err := os.Symlink(target, file); err != nil {
			return err
		}
	}
	// Empty, so that every start makes an identifier of its own; nothing that lasts depends on it.
	if err := save(filepath.Join(root, "etc/machine-id"), strings.NewReader("")); err != nil {
		return err
	}
	return save(filepath.Join(root, "usr/lib/os-release"), strings.NewReader(osRelease))
}

// sticky is the bit of a folder in which everybody may write and only owners may remove.
func sticky(perm fs.FileMode) fs.FileMode {
	if perm&0o1000 != 0 {
		return fs.ModeSticky
	}
	return 0
}

// osRelease says what this is (os-release(5)).
const osRelease = `NAME="Assent"
ID=assent
ID_LIKE=debian
PRETTY_NAME="Assent"
`

// tidy removes what only the making needed, and what tools leave behind.
func tidy(root string) error {
	for _, pattern := range []string{"etc/*-", "etc/.pwd.lock", "etc/.updated", "var/.updated", "var/*", "usr/lib/systemd/system-preset/90-systemd.preset"} {
		files, err := filepath.Glob(filepath.Join(root, pattern))
		if err != nil {
			return err
		}
		for _, file := range files {
			if err := os.RemoveAll(file); err != nil {
				return err
			}
		}
	}
	return pruneLinks(filepath.Join(root, "etc/systemd"), root)
}

// librariesThere fails where a program or a library needs a library that is not in the root: a package was dropped that is needed.
func librariesThere(root string) error {
	var programs []string
	have := map[string]bool{}
	err := filepath.WalkDir(filepath.Join(root, "usr"), func(file string, e fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		have[e.Name()] = true
		if e.Type().IsRegular() {
			programs = append(programs, file)
		}
		return nil
	})
	if err != nil {
		return err
	}
	for _, file := range programs {
		f, err := elf.Open(file)
		if err != nil {
			continue // not a program
		}
		needed, err := f.ImportedLibraries()
		f.Close()
		if err != nil {
			continue // a kernel module
		}
		for _, name := range needed {
			if !have[name] {
				return fmt.Errorf("%s needs %s, which is in no package of the lock", strings.TrimPrefix(file, root), name)
			}
		}
	}
	return nil
}
