package main

import (
	"errors"
	"fmt"
	"net"
	"os"

	"github.com/coreos/go-systemd/v22/activation"
	"github.com/coreos/go-systemd/v22/daemon"
	"golang.org/x/sys/unix"

	"assent.home.arpa/appliance/box"
	"assent.home.arpa/appliance/ipc"
	"assent.home.arpa/appliance/watchdog"
)

// life is systemd, where it started this process (sd_notify(3)).
func life() (box.Life, error) {
	l := box.Life{Ready: func() { daemon.SdNotify(false, daemon.SdNotifyReady) }}
	within, err := daemon.SdWatchdogEnabled(false)
	if err != nil {
		return l, fmt.Errorf("systemd's watchdog: %w", err)
	}
	if within > 0 {
		l.Watchdog = watchdog.Watchdog{Every: within / 3, Beat: func() { daemon.SdNotify(false, daemon.SdNotifyWatchdog) }}
	}
	return l, nil
}

// sockets are those that systemd passed, by name (FileDescriptorName=, systemd.socket(5)). They are taken once.
type sockets map[string][]net.Listener

func passed() (sockets, error) {
	named, err := activation.ListenersWithNames()
	if err != nil {
		return nil, fmt.Errorf("sockets from systemd: %w", err)
	}
	return named, nil
}

// one returns the listener of a name, or nil where none was passed.
func (s sockets) one(name string) (net.Listener, error) {
	switch l := s[name]; len(l) {
	case 0:
		return nil, nil
	case 1:
		return l[0], nil
	default:
		return nil, fmt.Errorf("systemd passed %d sockets named %s, want one", len(l), name)
	}
}

// unix returns the unix listener of a name, or makes one at path.
func (s sockets) unix(name, path string) (net.Listener, error) {
	l, err := s.one(name)
	if err != nil {
		return nil, err
	}
	if l == nil {
		return ipc.Listen(path)
	}
	return l, claim(l)
}

// claim puts this process's user in place of PID 1's, which made the socket, for those who look with whom they speak
// (SO_PEERCRED, unix(7)): it is noted at listen(2), which may be called again.
func claim(l net.Listener) error {
	u, ok := l.(*net.UnixListener)
	if !ok {
		return errors.New("systemd passed a socket of another kind, want a unix one")
	}
	raw, err := u.SyscallConn()
	if err != nil {
		return os.NewSyscallError("listen", err)
	}
	var again error
	if err := raw.Control(func(fd uintptr) { again = unix.Listen(int(fd), unix.SOMAXCONN) }); err != nil {
		return os.NewSyscallError("listen", err)
	}
	return os.NewSyscallError("listen", again)
}
