package kernel

import (
	"archive/tar"
	"bytes"
	"context"
	"debug/elf"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// maxMember bounds one file of a package: the image has 50 MB.
const maxMember = 256 << 20

// unpack writes the image, the modules and their order into dir.
func unpack(ctx context.Context, debs, modules []string, dir string) error {
	packed := map[string][]byte{} // compressed, by name
	haveImage := false
	for _, deb := range debs {
		err := members(ctx, deb, func(name string, r io.Reader) error {
			switch base := path.Base(name); {
			case base == imageFile:
				haveImage = true
				return save(filepath.Join(dir, imageFile), r)
			case strings.HasSuffix(base, ".ko.xz"):
				data, err := io.ReadAll(r)
				packed[moduleName(base)] = data
				return err
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
	if !haveImage {
		return errors.New("kernel: the packages hold no image")
	}
	order, err := closure(modules, func(name string) ([]byte, error) {
		if packed[name] == nil {
			return nil, nil
		}
		return unxz(ctx, packed[name])
	})
	if err != nil {
		return err
	}
	var names strings.Builder
	for _, m := range order {
		if err := os.WriteFile(filepath.Join(dir, m.name+".ko"), m.data, 0o644); err != nil {
			return err
		}
		fmt.Fprintln(&names, m.name+".ko")
	}
	return os.WriteFile(filepath.Join(dir, orderFile), []byte(names.String()), 0o644)
}

// module is one kernel module, not compressed.
type module struct {
	name string
	data []byte
}

// closure returns modules and what they depend on, in the order in which they can be loaded. load returns nil for a module
// that there is not: it is taken for built in, and if it is not, loading what needs it fails and says so.
func closure(names []string, load func(name string) ([]byte, error)) ([]module, error) {
	var order []module
	seen := map[string]bool{}
	var add func(name string) error
	add = func(name string) error {
		if seen[name] {
			return nil
		}
		seen[name] = true
		data, err := load(name)
		if err != nil || data == nil {
			return err
		}
		needs, err := depends(data)
		if err != nil {
			return fmt.Errorf("kernel: module %s: %w", name, err)
		}
		for _, need := range needs {
			if err := add(moduleName(need)); err != nil {
				return err
			}
		}
		order = append(order, module{name, data})
		return nil
	}
	for _, name := range names {
		if err := add(moduleName(name)); err != nil {
			return nil, err
		}
		if !slices.ContainsFunc(order, func(m module) bool { return m.name == moduleName(name) }) {
			return nil, fmt.Errorf("kernel: the packages hold no module %s", name)
		}
	}
	return order, nil
}

// moduleName is a module's name as the kernel has it: files use dashes and underscores alike.
func moduleName(file string) string {
	name, _, _ := strings.Cut(path.Base(file), ".ko")
	return strings.ReplaceAll(name, "-", "_")
}

// depends reads the names of the modules that a module needs out of its section .modinfo (include/linux/module.h).
func depends(data []byte) ([]string, error) {
	f, err := elf.NewFile(bytes.NewReader(data))
	if err != nil {
		return nil, err
	}
	info := f.Section(".modinfo")
	if info == nil {
		return nil, errors.New("no section .modinfo")
	}
	text, err := info.Data()
	if err != nil {
		return nil, err
	}
	for field := range bytes.SplitSeq(text, []byte{0}) {
		if list, found := bytes.CutPrefix(field, []byte("depends=")); found && len(list) > 0 {
			return strings.Split(string(list), ","), nil
		}
	}
	return nil, nil
}

// members calls take with each regular file of a package.
func members(ctx context.Context, deb string, take func(name string, r io.Reader) error) error {
	cmd := exec.CommandContext(ctx, "dpkg-deb", "--fsys-tarfile", deb)
	cmd.WaitDelay = 5 * time.Second
	pipe, err := cmd.StdoutPipe()
	if err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("kernel: %w", err)
	}
	err = eachFile(pipe, take)
	if err == nil {
		_, err = io.Copy(io.Discard, pipe) // the padding after the end
	} else {
		err = errors.Join(err, cmd.Process.Kill())
	}
	if wait := cmd.Wait(); err == nil && wait != nil {
		err = fmt.Errorf("kernel: dpkg-deb: %w", wait)
	}
	return err
}

func eachFile(r io.Reader, take func(name string, r io.Reader) error) error {
	files := tar.NewReader(r)
	for {
		h, err := files.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("kernel: package: %w", err)
		}
		if h.Typeflag != tar.TypeReg {
			continue
		}
		if h.Size > maxMember {
			return fmt.Errorf("kernel: package: %s has %d bytes", h.Name, h.Size)
		}
		if err := take(h.Name, files); err != nil {
			return err
		}
	}
}

func save(file string, r io.Reader) error {
	f, err := os.Create(file)
	if err != nil {
		return err
	}
	_, err = io.Copy(f, r)
	return errors.Join(err, f.Close())
}

func unxz(ctx context.Context, data []byte) ([]byte, error) {
	cmd := exec.CommandContext(ctx, "xz", "--decompress", "--stdout")
	cmd.WaitDelay = 5 * time.Second
	cmd.Stdin = bytes.NewReader(data)
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("kernel: xz: %w", err)
	}
	return out, nil
}
