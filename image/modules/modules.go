// Package modules finds out which other kernel modules a module needs, and brings them into the order in which they can be loaded.
package modules

import (
	"bytes"
	"context"
	"debug/elf"
	"errors"
	"fmt"
	"os/exec"
	"path"
	"slices"
	"strings"
	"time"
)

// Module is one kernel module, not compressed.
type Module struct {
	Name string
	Data []byte
}

// Closure returns modules and what they depend on, in the order in which they can be loaded. load returns nil for a module
// that there is not: it is taken for built in, and if it is not, loading what needs it fails and says so.
func Closure(names []string, load func(name string) ([]byte, error)) ([]Module, error) {
	var order []Module
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
			return fmt.Errorf("modules: module %s: %w", name, err)
		}
		for _, need := range needs {
			if err := add(Name(need)); err != nil {
				return err
			}
		}
		order = append(order, Module{name, data})
		return nil
	}
	for _, name := range names {
		if err := add(Name(name)); err != nil {
			return nil, err
		}
		if !slices.ContainsFunc(order, func(m Module) bool { return m.Name == Name(name) }) {
			return nil, fmt.Errorf("modules: there is no module %s", name)
		}
	}
	return order, nil
}

// Name is a module's name as the kernel has it: files use dashes and underscores alike.
func Name(file string) string {
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

// Unxz unpacks a module as Debian ships it.
func Unxz(ctx context.Context, data []byte) ([]byte, error) {
	cmd := exec.CommandContext(ctx, "xz", "--decompress", "--stdout")
	cmd.WaitDelay = 5 * time.Second
	cmd.Stdin = bytes.NewReader(data)
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("modules: xz: %w", err)
	}
	return out, nil
}
