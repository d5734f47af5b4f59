// Package debs fetches Debian packages that a lock names, and reads what is in them. Nothing is installed on the machine, and no
// package's script is run.
//
// A lock fixes path in the archive, size and SHA-256 of each package. They come from whatever mirror the machine's apt uses,
// through apt's own downloader, so proxies and mirrors are those that the machine is set up with; what arrives must have the
// locked sum. What was fetched stays in a store, named by its content.
package debs

import (
	"bufio"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"path"
	"strconv"
	"strings"
)

// Limits of a lock and of a package.
const (
	maxPackages = 512
	maxPackage  = 512 << 20 // bytes
)

// ErrLock says that a lock cannot be read.
var ErrLock = errors.New("debs: damaged lock")

// Package is one locked package.
type Package struct {
	Path string // in the archive, as its URL has it: "pool/main/l/linux/….deb"
	Size int64  // bytes
	Sum  [sha256.Size]byte
}

// Name is the name of the package.
func (p Package) Name() string {
	name, _, _ := strings.Cut(path.Base(p.Path), "_")
	return name
}

// Lock is the list of packages that belong together.
type Lock []Package

// ParseLock reads a lock: one package a line, "path size sha256", with comments from # to the end of the line.
func ParseLock(r io.Reader) (Lock, error) {
	var l Lock
	lines := bufio.NewScanner(r)
	for n := 1; lines.Scan(); n++ {
		text, _, _ := strings.Cut(lines.Text(), "#")
		fields := strings.Fields(text)
		if len(fields) == 0 {
			continue
		}
		p, err := parsePackage(fields)
		if err != nil {
			return nil, fmt.Errorf("%w: line %d: %v", ErrLock, n, err)
		}
		l = append(l, p)
	}
	if err := lines.Err(); err != nil {
		return nil, fmt.Errorf("%w: %v", ErrLock, err)
	}
	if len(l) == 0 || len(l) > maxPackages {
		return nil, fmt.Errorf("%w: %d packages, 1 to %d are possible", ErrLock, len(l), maxPackages)
	}
	return l, nil
}

func parsePackage(fields []string) (Package, error) {
	if len(fields) != 3 {
		return Package{}, fmt.Errorf("%d fields instead of 3", len(fields))
	}
	p := Package{Path: fields[0]}
	if !strings.HasPrefix(p.Path, "pool/") || !strings.HasSuffix(p.Path, ".deb") || path.Clean(p.Path) != p.Path {
		return Package{}, fmt.Errorf("%q is no path of a package", p.Path)
	}
	size, err := strconv.ParseInt(fields[1], 10, 64)
	if err != nil || size < 1 || size > maxPackage {
		return Package{}, fmt.Errorf("%q is no size of a package", fields[1])
	}
	sum, err := hex.DecodeString(fields[2])
	if err != nil || len(sum) != sha256.Size {
		return Package{}, fmt.Errorf("%q is no sha-256", fields[2])
	}
	p.Size, p.Sum = size, [sha256.Size]byte(sum)
	return p, nil
}

// String is the lock as ParseLock reads it.
func (l Lock) String() string {
	var b strings.Builder
	for _, p := range l {
		fmt.Fprintf(&b, "%s %d %x\n", p.Path, p.Size, p.Sum)
	}
	return b.String()
}
