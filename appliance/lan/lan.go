// Package lan notes at which address of the household's network phones reach the box.
//
// The guard draws that address beside the pairing code, and has no network of its own in which it could look. So a role
// without any other power follows the kernel's word (rtnetlink(7)) and keeps one file true: an address and a line feed, or no
// file while the box has none. What is in it is a convenience: a wrong address leads a phone astray, and pairs nothing.
package lan

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
)

// maxFile bounds the file: the longest address has 39 bytes (RFC 4291 section 2.2).
const maxFile = 64

// Interface is what an address is chosen from.
type Interface struct {
	Up       bool
	Loopback bool
	Addrs    []netip.Addr
}

// Choose returns the address that phones are most likely to reach: an IPv4 one of a private network, else any IPv4 one, else an
// IPv6 one of the house, else any. Among equals the first wins, so that the picture on the panel does not change by itself.
func Choose(all []Interface) (netip.Addr, bool) {
	best, rank := netip.Addr{}, 0
	for _, i := range all {
		if !i.Up || i.Loopback {
			continue
		}
		for _, a := range i.Addrs {
			if r := ranked(a.Unmap()); r > rank {
				best, rank = a.Unmap(), r
			}
		}
	}
	return best, rank > 0
}

// ranked says how good an address is; 0 is no use. One that is only valid on the link is none: browsers have no way to say
// which link.
func ranked(a netip.Addr) int {
	switch {
	case !a.IsGlobalUnicast():
		return 0
	case a.Is4() && a.IsPrivate():
		return 4
	case a.Is4():
		return 3
	case a.IsPrivate():
		return 2
	}
	return 1
}

// interfaces asks the kernel.
func interfaces() ([]Interface, error) {
	all, err := net.Interfaces()
	if err != nil {
		return nil, fmt.Errorf("lan: %w", err)
	}
	out := make([]Interface, 0, len(all))
	for _, i := range all {
		addrs, err := i.Addrs()
		if err != nil {
			continue // it went away meanwhile
		}
		one := Interface{Up: i.Flags&net.FlagUp != 0, Loopback: i.Flags&net.FlagLoopback != 0}
		for _, a := range addrs {
			if n, ok := a.(*net.IPNet); ok {
				if addr, ok := netip.AddrFromSlice(n.IP); ok {
					one.Addrs = append(one.Addrs, addr.Unmap())
				}
			}
		}
		out = append(out, one)
	}
	return out, nil
}

// Read returns the address in the file at path. It fails with fs.ErrNotExist while the box has none.
func Read(path string) (netip.Addr, error) {
	f, err := os.Open(path)
	if err != nil {
		return netip.Addr{}, fmt.Errorf("lan: %w", err)
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, maxFile))
	if err != nil {
		return netip.Addr{}, fmt.Errorf("lan: %w", err)
	}
	line, ok := strings.CutSuffix(string(b), "\n")
	a, err := netip.ParseAddr(line)
	if !ok || err != nil || a.Zone() != "" || a.String() != line || ranked(a) == 0 {
		return netip.Addr{}, fmt.Errorf("lan: %s holds no address", path)
	}
	return a, nil
}

// write puts an address into the file, or takes the file away. Whoever reads it has the old one or the new one.
func write(path string, a netip.Addr, ok bool) error {
	if !ok {
		if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("lan: %w", err)
		}
		return nil
	}
	f, err := os.CreateTemp(filepath.Dir(path), ".address-*")
	if err != nil {
		return fmt.Errorf("lan: %w", err)
	}
	defer os.Remove(f.Name())
	_, err = f.WriteString(a.String() + "\n")
	if err = errors.Join(err, f.Chmod(0o644), f.Close()); err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		return fmt.Errorf("lan: %w", err)
	}
	return nil
}
