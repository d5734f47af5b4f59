//go:build linux

package main

import (
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"time"

	"golang.org/x/sys/unix"

	"assent.home.arpa/appliance/box"
	"assent.home.arpa/appliance/cage"
	"assent.home.arpa/appliance/config"
)

// settings is the file that all roles read.
const settings = "/run/assent/settings/assent.toml"

// role is one unit's walls: what it may do, so that everything else is tried.
type role struct {
	name    string
	unit    string
	meets   []string // sockets that it connects to
	own     []string // sockets that it listens on
	state   []string // directories that it writes
	reads   []string // files that it must be able to read
	devices []string // prefixes of devices that it uses
	dials   bool     // it opens TCP connections
	netlink bool     // it asks about addresses
	input   bool     // its connection is its standard input: it is started by a socket that accepts
	ports   bool     // it has the box's ports
}

func roles() []role {
	const notify = "/run/systemd/notify"
	return []role{
		{
			name: "guard", unit: "assent-guard.service", meets: []string{notify, socketIn("guard-courier", "courier.sock")},
			state: []string{"/var/lib/assent/guard", "/run/assent/guard-courier"}, reads: []string{settings, "/proc/sys/kernel/random/boot_id"},
			devices: []string{"/dev/i2c-", "/dev/gpiochip", "/dev/spidev"},
		},
		{
			name: "gateway", unit: "assent-gateway.service", meets: []string{notify, socketIn("gateway-guard", "guard.sock"), socketIn("gateway-model", "llama.sock")},
			state: []string{"/var/lib/assent/gateway"}, ports: true,
		},
		{
			name: "courier", unit: "assent-courier.service", meets: []string{notify, socketIn("courier-worker", "none.sock"), socketIn("courier-worker", "net.sock")},
			own: []string{socketIn("guard-courier", "courier.sock")}, dials: true,
		},
		{name: "worker-none", unit: "assent-worker-none@.service", input: true, reads: []string{"/proc/loadavg", "/proc/meminfo", "/sys/devices/system/cpu/online"}},
		{name: "worker-net", unit: "assent-worker-net@.service", input: true},
		{name: "model", unit: "assent-model.service", state: []string{"/run/assent/gateway-model", "/var/lib/assent/models"}, reads: []string{settings}},
		{name: "address", unit: "assent-address.service", meets: []string{notify}, state: []string{"/run/assent/address"}, reads: []string{settings}, netlink: true},
	}
}

func roleNamed(name string) (role, bool) {
	for _, r := range roles() {
		if r.name == name {
			return r, true
		}
	}
	return role{}, false
}

// cage confines this process as the role confines itself.
func (r role) cage() error {
	c, err := config.Load(settings)
	if err != nil {
		return err
	}
	room, ok := box.Room(c, r.name)
	if !ok {
		return nil
	}
	return cage.Enter(slog.New(slog.NewTextHandler(os.Stderr, nil)), room)
}

// needs are what the role must be able to do where it is.
func (r role) needs(to targets) []attempt {
	var list []attempt
	for _, path := range r.reads {
		list = append(list, attempt{name: "read " + path, try: func() error { _, err := os.ReadFile(path); return err }})
	}
	for _, dir := range r.state {
		if dir != "/var/lib/assent/models" { // it only reads them
			list = append(list, written(dir))
		}
	}
	for _, path := range r.meets {
		if _, err := os.Stat(path); err == nil || path != socketIn("gateway-model", "llama.sock") { // there may be no model
			list = append(list, attempt{name: "connect to " + path, try: func() error { return connectUnix(path) }})
		}
	}
	if r.dials && to.near != "" {
		list = append(list, attempt{name: "connect by TCP", try: func() error { return connect(unix.SOCK_STREAM, 0, to.near) }})
	}
	return list
}

// sockets collects what the role was handed of the host's network.
func (r role) sockets() ([]given, error) {
	switch {
	case r.ports:
		return ports()
	case r.input:
		return passedOn()
	}
	return nil, nil
}

// firstPort is where systemd puts the sockets that it passes (sd_listen_fds(3)).
const firstPort = 3

// ports are the gateway's, and a connection to one.
func ports() ([]given, error) {
	var all []given
	for i := range 2 {
		fd := firstPort + i
		unix.SetNonblock(fd, false)
		unix.SetsockoptTimeval(fd, unix.SOL_SOCKET, unix.SO_RCVTIMEO, &unix.Timeval{Sec: 5})
		conn, _, err := unix.Accept(fd)
		if err != nil {
			return nil, fmt.Errorf("port %d of the gateway: %w", i, err)
		}
		all = append(all, given{fmt.Sprintf("a connection at port %d", i), conn}, given{fmt.Sprintf("port %d", i), fd})
	}
	return all, nil
}

// passedOn are the descriptors that come over the connection at standard input.
func passedOn() ([]given, error) {
	c, err := net.FileConn(os.Stdin)
	if err != nil {
		return nil, fmt.Errorf("standard input: %w", err)
	}
	u, ok := c.(*net.UnixConn)
	if !ok {
		return nil, errors.New("standard input is no unix socket")
	}
	if err := u.SetReadDeadline(time.Now().Add(5 * time.Second)); err != nil {
		return nil, err
	}
	oob := make([]byte, unix.CmsgSpace(4*4))
	_, n, _, _, err := u.ReadMsgUnix(make([]byte, 1), oob)
	if err != nil {
		return nil, fmt.Errorf("standard input: %w", err)
	}
	messages, err := unix.ParseSocketControlMessage(oob[:n])
	if err != nil {
		return nil, err
	}
	var all []given
	for _, m := range messages {
		fds, err := unix.ParseUnixRights(&m)
		if err != nil {
			return nil, err
		}
		for i, fd := range fds {
			all = append(all, given{fmt.Sprintf("its connection (%d)", i), fd})
		}
	}
	return all, nil
}
