package board

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// place is one numbered device and where the kernel says it sits.
type place struct {
	number int
	unit   int    // where there are two numbers: the chip select of "spidev0.1"
	path   string // below /sys/devices: "platform/soc/fe804000.i2c/i2c-1"
}

// places lists a class of numbered devices: the links in dir whose names are prefix and a number, in that order. A
// kernel without the class has none.
func places(root, dir, prefix string) ([]place, error) {
	dir = filepath.Join(root, dir)
	entries, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	devices, err := filepath.EvalSymlinks(filepath.Join(root, "sys/devices"))
	if err != nil {
		return nil, err
	}
	var found []place
	for _, e := range entries {
		number, unit, ok := numbers(e.Name(), prefix)
		if !ok {
			continue
		}
		target, err := filepath.EvalSymlinks(filepath.Join(dir, e.Name()))
		if errors.Is(err, fs.ErrNotExist) { // unplugged meanwhile
			continue
		}
		if err != nil {
			return nil, err
		}
		path, err := filepath.Rel(devices, target)
		if err != nil {
			return nil, err
		}
		found = append(found, place{number, unit, path})
	}
	slices.SortFunc(found, func(a, b place) int { return cmp.Or(a.number-b.number, a.unit-b.unit) })
	return found, nil
}

// numbers reads the number behind a prefix, and the one behind a point if there is one.
func numbers(name, prefix string) (number, unit int, ok bool) {
	digits, ok := strings.CutPrefix(name, prefix)
	first, second, two := strings.Cut(digits, ".")
	n, err := strconv.ParseUint(first, 10, 16)
	if !ok || err != nil {
		return 0, 0, false
	}
	if !two {
		return int(n), 0, true
	}
	u, err := strconv.ParseUint(second, 10, 16)
	return int(n), int(u), err == nil
}

// at reports whether want is a run of whole elements of the path. The empty want is anywhere.
func (p place) at(want string) bool {
	want = strings.Trim(strings.TrimPrefix(want, "/sys/devices"), "/")
	return want == "" || strings.Contains("/"+p.path+"/", "/"+want+"/")
}

// list names places for a person.
func list(all []place) string {
	paths := make([]string, len(all))
	for i, p := range all {
		paths[i] = fmt.Sprintf("%q", p.path)
	}
	return strings.Join(paths, ", ")
}
