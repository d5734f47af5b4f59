package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"assent.home.arpa/image/debs"
	"assent.home.arpa/image/modules"
)

// unpackRoot puts the packages' files together and throws away what is not kept.
func (b *build) unpackRoot(ctx context.Context) error {
	lock, files, err := b.fetch(ctx, rootLock)
	if err != nil {
		return err
	}
	b.lock = lock
	root := b.path("root")
	if err := os.Mkdir(root, 0o755); err != nil {
		return err
	}
	for _, file := range files {
		c, err := debs.ReadControl(ctx, file)
		if err != nil {
			return err
		}
		b.packages = append(b.packages, c)
		if release, found := strings.CutPrefix(c.Name, "linux-modules-"); found {
			b.kernel = release
			if err := b.selectModules(ctx, file); err != nil {
				return err
			}
			continue
		}
		if err := extract(ctx, file, root); err != nil {
			return err
		}
	}
	if err := b.takeKernel(); err != nil {
		return err
	}
	if err := prune(root, append(kept(), "usr/lib/modules"), removed()); err != nil {
		return err
	}
	return pruneUnits(root)
}

// takeKernel moves the kernel out of the root: it is booted from the boot partition.
func (b *build) takeKernel() error {
	for _, name := range []string{"boot/vmlinuz-" + b.kernel, "usr/lib/modules/" + b.kernel + "/vmlinuz"} {
		if from := b.path("root", name); exists(from) {
			return os.Rename(from, b.path("vmlinuz"))
		}
	}
	return errors.New("the packages hold no kernel")
}

// save writes a file, with the folders on the way to it.
func save(file string, r io.Reader) error {
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		return err
	}
	f, err := os.Create(file)
	if err != nil {
		return err
	}
	_, err = io.Copy(f, r)
	return errors.Join(err, f.Close())
}

func exists(file string) bool {
	_, err := os.Lstat(file)
	return err == nil
}

// selectModules unpacks the modules that the box needs, and those that the first process loads.
func (b *build) selectModules(ctx context.Context, deb string) error {
	packed := map[string][]byte{} // compressed
	where := map[string]string{}  // path in the root
	err := debs.Members(ctx, deb, func(name string, r io.Reader) error {
		name = strings.TrimPrefix(name, "./")
		if inPlace, found := strings.CutSuffix(name, ".ko.xz"); found {
			data, err := io.ReadAll(r)
			packed[modules.Name(name)], where[modules.Name(name)] = data, inPlace+".ko"
			return err
		}
		if base := path.Base(name); strings.HasPrefix(base, "modules.builtin") || base == "modules.order" {
			return save(b.path("root", name), r)
		}
		return nil
	})
	if err != nil {
		return err
	}
	load := func(name string) ([]byte, error) {
		if packed[name] == nil {
			return nil, nil
		}
		return modules.Unxz(ctx, packed[name])
	}
	all, err := modules.Closure(rootModules(), load)
	if err != nil {
		return err
	}
	for _, m := range all {
		if err := save(b.path("root", where[m.Name]), bytes.NewReader(m.Data)); err != nil {
			return err
		}
	}
	for name, wanted := range map[string][]string{"boot-modules": bootModules(), "test-modules": append(bootModules(), "ext4")} {
		order, err := modules.Closure(wanted, load)
		if err != nil {
			return err
		}
		for i, m := range order {
			if err := save(b.path(name, fmt.Sprintf("%02d-%s.ko", i, m.Name)), bytes.NewReader(m.Data)); err != nil {
				return err
			}
		}
	}
	return nil
}

// prune removes from root what no pattern of keep matches, or what one of drop does; a pattern stands for everything below what it
// matches too. Links at the top stay, and so do folders that are not empty.
func prune(root string, keep, drop []string) error {
	var files, dirs []string
	err := filepath.WalkDir(root, func(file string, e fs.DirEntry, err error) error {
		if err != nil || file == root {
			return err
		}
		if e.IsDir() {
			dirs = append(dirs, file)
		} else {
			files = append(files, file)
		}
		return nil
	})
	if err != nil {
		return err
	}
	for _, file := range files {
		name, err := filepath.Rel(root, file)
		if err != nil {
			return err
		}
		top := !strings.Contains(name, "/")
		if (top || under(keep, name)) && !under(drop, name) {
			continue
		}
		if err := os.Remove(file); err != nil {
			return err
		}
	}
	slices.Reverse(dirs) // what is inside comes first
	for _, dir := range dirs {
		_ = os.Remove(dir) // fails while there is something in it
	}
	return nil
}

// under reports whether a pattern matches name or a folder that it is in.
func under(patterns []string, name string) bool {
	for part := name; part != "."; part = path.Dir(part) {
		if slices.ContainsFunc(patterns, func(p string) bool { ok, _ := path.Match(p, part); return ok }) {
			return true
		}
	}
	return false
}

// units is where packages have their units.
const units = "usr/lib/systemd/system"

// pruneUnits removes services whose program is not in the root, what only activates them, and links that lead nowhere.
func pruneUnits(root string) error {
	services, err := filepath.Glob(filepath.Join(root, units, "*.service"))
	if err != nil {
		return err
	}
	for _, file := range services {
		text, err := os.ReadFile(file)
		if errors.Is(err, fs.ErrNotExist) {
			continue // a link to one that is gone
		}
		if err != nil {
			return err
		}
		program := program(string(text))
		if program == "" || exists(filepath.Join(root, program)) {
			continue
		}
		if err := os.Remove(file); err != nil {
			return err
		}
		bare := strings.TrimSuffix(strings.TrimSuffix(file, ".service"), "@")
		for _, kind := range []string{".socket", ".path", ".timer"} {
			if err := os.Remove(bare + kind); err != nil && !errors.Is(err, fs.ErrNotExist) {
				return err
			}
		}
	}
	return pruneLinks(filepath.Join(root, units), root)
}

// program is the first program that a unit starts, as an absolute path, or nothing.
func program(unit string) string {
	for line := range strings.Lines(unit) {
		if command, found := strings.CutPrefix(line, "ExecStart="); found {
			first, _, _ := strings.Cut(strings.TrimSpace(strings.TrimLeft(command, "-@:+!|")), " ")
			if strings.HasPrefix(first, "/") {
				return first
			}
			return filepath.Join("/usr/bin", first)
		}
	}
	return ""
}

// pruneLinks removes links below dir that lead nowhere in root, and folders that are empty then.
func pruneLinks(dir, root string) error {
	var dirs []string
	err := filepath.WalkDir(dir, func(file string, e fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if e.IsDir() {
			dirs = append(dirs, file)
		}
		if e.Type() != fs.ModeSymlink {
			return nil
		}
		target, err := os.Readlink(file)
		if err != nil {
			return err
		}
		if filepath.IsAbs(target) {
			target = filepath.Join(root, target)
		} else {
			target = filepath.Join(filepath.Dir(file), target)
		}
		if target == filepath.Join(root, "dev/null") || exists(target) {
			return nil
		}
		return os.Remove(file)
	})
	slices.Reverse(dirs)
	for _, dir := range dirs {
		_ = os.Remove(dir)
	}
	return err
}
