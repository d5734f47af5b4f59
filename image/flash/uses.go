package flash

import (
	"bufio"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// uses maps a block device, by its number or by its path, to where it is mounted or that it is swap (proc(5)).
func (m Machine) uses() (map[string][]string, error) {
	uses := map[string][]string{}
	err := lines(filepath.Join(m.Proc, "mountinfo"), func(line string) {
		before, after, _ := strings.Cut(line, " - ")
		fields, source := strings.Fields(before), strings.Fields(after)
		if len(fields) < 5 {
			return
		}
		point := unescape(fields[4])
		uses[fields[2]] = append(uses[fields[2]], point)
		// btrfs and its like have a number of their own; their source is a path.
		if len(source) >= 2 && strings.HasPrefix(source[1], "/") {
			path := m.real(unescape(source[1]))
			uses[path] = append(uses[path], point)
		}
	})
	if err != nil {
		return nil, err
	}
	err = lines(filepath.Join(filepath.Dir(m.Proc), "swaps"), func(line string) {
		if fields := strings.Fields(line); len(fields) > 0 && strings.HasPrefix(fields[0], "/") {
			path := m.real(unescape(fields[0]))
			uses[path] = append(uses[path], "swap")
		}
	})
	if err != nil && !errors.Is(err, fs.ErrNotExist) { // a kernel without swap
		return nil, err
	}
	return uses, nil
}

// real is where a path of the machine leads to; /dev/mapper is full of links.
func (m Machine) real(path string) string {
	if rest, ok := strings.CutPrefix(path, "/dev/"); ok {
		path = filepath.Join(m.Dev, rest)
	}
	if real, err := filepath.EvalSymlinks(path); err == nil {
		return real
	}
	return path
}

// inUse says what uses a disk: mounts and swap on it, on its partitions, and on whatever is built on those.
func (m Machine) inUse(dir string, uses map[string][]string) []string {
	var found []string
	seen := map[string]bool{}
	var visit func(dir string)
	visit = func(dir string) {
		name := filepath.Base(dir)
		if seen[name] {
			return
		}
		seen[name] = true
		found = append(found, uses[text(dir, "dev")]...)
		found = append(found, uses[filepath.Join(m.Dev, name)]...)
		holders, _ := os.ReadDir(filepath.Join(dir, "holders")) // a device without holders has none
		for _, h := range holders {
			above := filepath.Join(m.Sys, "block", h.Name())
			before := len(found)
			visit(above)
			if len(found) == before {
				found = append(found, "part of "+firstOf(text(above, "dm/name"), h.Name()))
			}
		}
		children, _ := os.ReadDir(dir)
		for _, c := range children {
			if child := filepath.Join(dir, c.Name()); text(child, "partition") != "" {
				visit(child)
			}
		}
	}
	visit(dir)
	slices.Sort(found)
	return slices.Compact(found)
}

// system reports whether a computer runs from what is mounted there.
func system(point string) bool {
	return slices.Contains([]string{"/", "/boot", "/boot/efi", "/boot/firmware", "/efi", "/etc", "/home", "/opt", "/srv", "/usr", "/var", "swap"}, point)
}

func lines(path string, do func(string)) error {
	f, err := os.Open(path)
	if err != nil {
		return fmt.Errorf("looking for what is in use: %w", err)
	}
	defer f.Close()
	s := bufio.NewScanner(f)
	for s.Scan() {
		do(s.Text())
	}
	if err := s.Err(); err != nil {
		return fmt.Errorf("looking for what is in use: %w", err)
	}
	return nil
}

// unescape undoes the kernel's octal escapes of blanks in paths.
func unescape(s string) string {
	return strings.NewReplacer(`\040`, " ", `\011`, "\t", `\012`, "\n", `\134`, `\`).Replace(s)
}
