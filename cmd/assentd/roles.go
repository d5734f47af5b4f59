package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os/user"
	"strconv"

	"assent.home.arpa/appliance/box"
	"assent.home.arpa/appliance/courier"
	"assent.home.arpa/capabilities"
	"assent.home.arpa/device/board"
)

func gatewayRole(ctx context.Context, e env) error {
	l, err := life()
	if err != nil {
		return err
	}
	given, err := passed()
	if err != nil {
		return err
	}
	var ports box.Ports
	if ports.Phones, err = given.one("phones"); err != nil {
		return err
	}
	if ports.Plain, err = given.one("plain"); err != nil {
		return err
	}
	if ports.Phones == nil {
		// Plain TCP: a Multipath TCP socket would slip past Landlock's connect rule.
		lc := net.ListenConfig{}
		lc.SetMultipathTCP(false)
		if ports.Phones, err = lc.Listen(ctx, "tcp", e.config.Gateway.Listen); err != nil {
			return fmt.Errorf("%w; change gateway.listen, or stop what uses the port", err)
		}
	}
	return box.Gateway(ctx, e.config, ports, box.Labels{Build: build()}, e.log, l)
}

func guardRole(ctx context.Context, e env) error {
	peers, err := systemUsers()
	if err != nil {
		return err
	}
	l, err := life()
	if err != nil {
		return err
	}
	given, err := passed()
	if err != nil {
		return err
	}
	at := box.At(e.config.Paths.Runtime)
	door, err := given.unix("guard", at.Guard)
	if err != nil {
		return err
	}
	slot, err := given.one("export") // a box whose unit for it is off takes no sticks
	if err == nil && slot != nil {
		err = claim(slot)
	}
	if err != nil {
		return err
	}
	ctx, panel, closePanel := openPanel(ctx, e.config.Panel, board.Open, e.log)
	defer closePanel()
	err = box.Guard(ctx, e.config, panel, box.Doors{Gateway: door, Exporter: slot}, peers, false, e.log, l, box.AddressFrom(at))
	if cause := context.Cause(ctx); errors.Is(cause, errPanelCame) {
		return cause
	}
	return err
}

func courierRole(ctx context.Context, e env) error {
	peers, err := systemUsers()
	if err != nil {
		return err
	}
	l, err := life()
	if err != nil {
		return err
	}
	given, err := passed()
	if err != nil {
		return err
	}
	door, err := given.unix("courier", box.At(e.config.Paths.Runtime).Courier)
	if err != nil {
		return err
	}
	return box.Courier(ctx, e.config, door, peers, courier.NewHousePolicy(), e.log, l)
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

// systemUsers looks up the static users that the roles run as.
func systemUsers() (box.Peers, error) {
	var p box.Peers
	for name, uid := range map[string]*uint32{"assent-gateway": &p.Gateway, "assent-guard": &p.Guard, "assent-courier": &p.Courier, "assent-export": &p.Exporter} {
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
