//go:build linux

package main

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"path/filepath"
	"slices"
	"unsafe"

	"golang.org/x/sys/unix"
)

// world is an address that nobody has (RFC 5737 section 3).
const world = "192.0.2.1:443"

// patience is enough for a listener of this machine. A connect that hangs has got a packet out, or is about to.
const patience = 2

// targets are listeners of the box itself, by which can be seen whether a socket gets anywhere.
type targets struct{ near, far string }

type target struct{ name, address string }

// outside are the places beyond the box. It may have no address on a LAN.
func (t targets) outside() []target {
	all := []target{{"the world", world}}
	if t.far != "" {
		all = append(all, target{"the LAN", t.far})
	}
	return all
}

// given is a socket of the host's network that a role was handed.
type given struct {
	name string
	fd   int
}

// bystanders are the sockets of everybody else on the box.
func bystanders() []string {
	return []string{
		"/run/dbus/system_bus_socket", "/run/systemd/private", "/run/systemd/notify", "/run/systemd/journal/socket", "/run/systemd/journal/stdout", "/run/systemd/journal/dev-log", "/run/udev/control",
		"/run/systemd/resolve/io.systemd.Resolve", "/run/systemd/resolve/io.systemd.Resolve.Monitor", "/run/systemd/io.systemd.Hostname", "/run/systemd/io.systemd.Manager",
		"/run/systemd/io.systemd.Credentials", "/run/systemd/io.systemd.NamespaceResource", "/run/systemd/io.systemd.MountFileSystem", "/run/systemd/netif/io.systemd.Network", "/run/systemd/userdb/io.systemd.DynamicUser",
		"/run/assent/gateway-guard/guard.sock", "/run/assent/guard-courier/courier.sock", "/run/assent/courier-worker/none.sock", "/run/assent/courier-worker/net.sock",
		"/run/assent/gateway-model/llama.sock", "/run/assent/export-guard/export.sock",
	}
}

// meetings lists the sockets that a role does not connect to.
func meetings(r role) []attempt {
	var list []attempt
	for _, path := range bystanders() {
		if slices.Contains(r.meets, path) || slices.Contains(r.own, path) {
			continue
		}
		list = append(list, attempt{name: "connect to " + path, try: func() error { return connectUnix(path) }})
	}
	return list
}

func connectUnix(path string) error {
	var all error
	for _, kind := range []int{unix.SOCK_STREAM, unix.SOCK_DGRAM, unix.SOCK_SEQPACKET} {
		fd, err := unix.Socket(unix.AF_UNIX, kind, 0)
		if err != nil {
			all = errors.Join(all, err)
			continue
		}
		err = unix.Connect(fd, &unix.SockaddrUnix{Name: path})
		unix.Close(fd)
		if err == nil {
			return nil
		}
		if !errors.Is(err, unix.EPROTOTYPE) {
			all = err
		}
	}
	return all
}

// network lists the ways out.
func network(r role, to targets, sockets []given) []attempt {
	var list []attempt
	add := func(name string, try func() error) { list = append(list, attempt{name: name, try: try}) }
	if !r.dials {
		for _, p := range to.outside() {
			add("connect to "+p.name+" by TCP", func() error { return connect(unix.SOCK_STREAM, 0, p.address) })
			add("connect to "+p.name+" by Multipath TCP", func() error { return connect(unix.SOCK_STREAM, unix.IPPROTO_MPTCP, p.address) })
		}
	}
	add("send to the world by UDP", func() error { return connect(unix.SOCK_DGRAM, 0, world) })
	add("send to everybody on the LAN", func() error { return connect(unix.SOCK_DGRAM, 0, "255.255.255.255:9") })
	add("speak mdns", func() error { return connect(unix.SOCK_DGRAM, 0, "224.0.0.251:5353") })
	if !r.netlink { // what may ask may say "filter" as well, which takes a capability
		add("ask the kernel about the network", openSocket(unix.AF_NETLINK, unix.SOCK_RAW, unix.NETLINK_ROUTE))
		add("speak with the packet filter", openSocket(unix.AF_NETLINK, unix.SOCK_RAW, unix.NETLINK_NETFILTER))
	}
	add("take a network card down or up", setFlags)
	add("listen on a port of the LAN", func() error { return listenOn(to.far) })
	for _, s := range sockets {
		for _, p := range append([]target{{"the box", to.near}}, to.outside()...) {
			add("take "+s.name+" to "+p.name, func() error { return elsewhere(s.fd, p.address) })
		}
	}
	return list
}

func sockaddr(address string) (unix.Sockaddr, error) {
	a, err := netip.ParseAddrPort(address)
	if err != nil || !a.Addr().Is4() {
		return nil, fmt.Errorf("%w: %q is no address to try", errOpen, address)
	}
	return &unix.SockaddrInet4{Port: int(a.Port()), Addr: a.Addr().As4()}, nil
}

// connect opens a socket and uses it. A datagram has to be sent to be refused by a filter. The flag for broadcasts is needed by
// the one group that is one.
func connect(kind, protocol int, address string) error {
	to, err := sockaddr(address)
	if err != nil {
		return err
	}
	fd, err := unix.Socket(unix.AF_INET, kind|unix.SOCK_CLOEXEC, protocol)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	if kind == unix.SOCK_DGRAM {
		if err := unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_BROADCAST, 1); err != nil {
			return err
		}
		return unix.Sendto(fd, []byte("probe"), 0, to)
	}
	return onItsWay(fd, to)
}

// onItsWay connects, and says of a connect that is under way that it was not refused.
func onItsWay(fd int, to unix.Sockaddr) error {
	if err := unix.SetsockoptTimeval(fd, unix.SOL_SOCKET, unix.SO_SNDTIMEO, &unix.Timeval{Sec: patience}); err != nil {
		return err
	}
	err := unix.Connect(fd, to)
	if errors.Is(err, unix.EINPROGRESS) || errors.Is(err, unix.EALREADY) || errors.Is(err, unix.ETIMEDOUT) || errors.Is(err, unix.ECONNREFUSED) {
		return fmt.Errorf("%w: %w", errOpen, err)
	}
	return err
}

// elsewhere dissolves a socket that was handed over and connects it to another place (see package cage).
func elsewhere(fd int, address string) error {
	to, err := sockaddr(address)
	if err != nil {
		return err
	}
	if domain, err := unix.GetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_DOMAIN); err == nil && domain == unix.AF_INET6 {
		if to, err = mapped(address); err != nil {
			return err
		}
	}
	for range 2 {
		unspec := unix.RawSockaddr{Family: unix.AF_UNSPEC} // x/sys has no sockaddr of that family
		unix.Syscall(unix.SYS_CONNECT, uintptr(fd), uintptr(unsafe.Pointer(&unspec)), unsafe.Sizeof(unspec))
		unix.Shutdown(fd, unix.SHUT_RDWR) // a listener is one no more
	}
	return onItsWay(fd, to)
}

// mapped is an IPv4 address for a socket of both families.
func mapped(address string) (unix.Sockaddr, error) {
	a, err := netip.ParseAddrPort(address)
	if err != nil {
		return nil, fmt.Errorf("%w: %q is no address to try", errOpen, address)
	}
	return &unix.SockaddrInet6{Port: int(a.Port()), Addr: netip.AddrFrom16(a.Addr().As16()).As16()}, nil
}

// setFlags sets the loopback's flags to what they are, which takes the same right as any other.
func setFlags() error {
	fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_DGRAM, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	r, err := unix.NewIfreq("lo")
	if err != nil {
		return err
	}
	if err := unix.IoctlIfreq(fd, unix.SIOCGIFFLAGS, r); err != nil {
		return err
	}
	return unix.IoctlIfreq(fd, unix.SIOCSIFFLAGS, r)
}

func listenOn(address string) error {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return errors.New("the box has no address on the LAN")
	}
	to, err := sockaddr(net.JoinHostPort(host, "0"))
	if err != nil {
		return err
	}
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	if err := unix.Bind(fd, to); err != nil {
		return err
	}
	return unix.Listen(fd, 1)
}

// socketIn is a socket's file in the directory of a meeting.
func socketIn(dir, name string) string { return filepath.Join("/run/assent", dir, name) }
