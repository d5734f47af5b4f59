package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os/user"
	"strconv"

	"github.com/coreos/go-systemd/v22/activation"
	"github.com/coreos/go-systemd/v22/daemon"

	"assent.home.arpa/appliance/box"
	"assent.home.arpa/appliance/courier"
	"assent.home.arpa/appliance/ipc"
	"assent.home.arpa/capabilities"
	"assent.home.arpa/device/board"
)

func gatewayRole(ctx context.Context, e env) error {
	l, err := passed("phones")
	if err != nil {
		return err
	}
	if l == nil {
		// Plain TCP: a Multipath TCP socket would slip past Landlock's connect rule.
		lc := net.ListenConfig{}
		lc.SetMultipathTCP(false)
		if l, err = lc.Listen(ctx, "tcp", e.config.Gateway.Listen); err != nil {
			return fmt.Errorf("%w; change gateway.listen, or stop what uses the port", err)
		}
	}
	return box.Gateway(ctx, e.config, l, box.Labels{Build: build()}, e.log, ready)
}

func guardRole(ctx context.Context, e env) error {
	peers, err := systemUsers()
	if err != nil {
		return err
	}
	l, err := socket("guard", box.At(e.config.Paths.Runtime).Guard)
	if err != nil {
		return err
	}
	b, err := board.Open(e.config.Panel)
	if err != nil {
		return err
	}
	defer b.Close()
	panel := box.Panel{Display: b.Display, Buttons: b.Buttons, Lamp: b.Lamp, Kit: e.config.Panel.Display}
	return box.Guard(ctx, e.config, panel, l, peers, "https://"+e.config.Gateway.Listen, false, e.log, ready)
}

func courierRole(ctx context.Context, e env) error {
	peers, err := systemUsers()
	if err != nil {
		return err
	}
	l, err := socket("courier", box.At(e.config.Paths.Runtime).Courier)
	if err != nil {
		return err
	}
	ready()
	return box.Courier(ctx, e.config, l, peers, courier.NewHousePolicy(), e.log)
}

func workerRole(ctx context.Context, e env) error {
	classes := map[string]capabilities.Class{"none": capabilities.ClassNone, "net": capabilities.ClassNet}
	if len(e.args) != 1 || classes[e.args[0]] == 0 {
		return usageError("worker takes one class: none or net")
	}
	peers, err := systemUsers()
	if err != nil {
		return err
	}
	c, err := net.FileConn(e.stdin)
	if err != nil {
		return errors.New("a worker is started by a socket unit, with its connection as standard input")
	}
	conn, ok := c.(*net.UnixConn)
	if !ok {
		c.Close()
		return errors.New("a worker's standard input must be a unix socket")
	}
	return box.Worker(ctx, e.config, classes[e.args[0]], conn, peers, e.log)
}

// ready tells systemd, where there is one.
func ready() { daemon.SdNotify(false, daemon.SdNotifyReady) }

// passed returns the listener that systemd passed under a name (FileDescriptorName=, systemd.socket(5)), or nil.
func passed(name string) (net.Listener, error) {
	named, err := activation.ListenersWithNames()
	if err != nil {
		return nil, fmt.Errorf("sockets from systemd: %w", err)
	}
	switch l := named[name]; len(l) {
	case 0:
		return nil, nil
	case 1:
		return l[0], nil
	default:
		return nil, fmt.Errorf("systemd passed %d sockets named %s, want one", len(l), name)
	}
}

func socket(name, path string) (net.Listener, error) {
	if l, err := passed(name); l != nil || err != nil {
		return l, err
	}
	return ipc.Listen(path)
}

// systemUsers looks up the static users that the roles run as.
func systemUsers() (box.Peers, error) {
	var p box.Peers
	for name, uid := range map[string]*uint32{"assent-gateway": &p.Gateway, "assent-guard": &p.Guard, "assent-courier": &p.Courier} {
		u, err := user.Lookup(name)
		if err != nil {
			return p, fmt.Errorf("the system has no user %s: this program runs on the box's image; on a PC use assentsim", name)
		}
		n, err := strconv.ParseUint(u.Uid, 10, 32)
		if err != nil {
			return p, fmt.Errorf("user %s has uid %q", name, u.Uid)
		}
		*uid = uint32(n)
	}
	return p, nil
}
