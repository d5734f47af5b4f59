package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"

	"assent.home.arpa/appliance/box"
	"assent.home.arpa/appliance/config"
	"assent.home.arpa/appliance/courier"
	"assent.home.arpa/appliance/courier/loopback"
	"assent.home.arpa/appliance/ipc"
	"assent.home.arpa/capabilities"
	"assent.home.arpa/cmd/assentsim/internal/panel"
)

// runRole plays one role of a simulated box, as assentd does on a real one.
func runRole(ctx context.Context, c console, args []string) error {
	f := newFlags("role", c)
	file := f.String("config", "", "configuration `file`")
	glass := f.String("panel", "", "`socket` of the drawn panel")
	scripted := f.Bool("scripted", false, "the model recites a script")
	fixture := f.String("fixture", "", "what the phone page says about where searches go")
	address := f.String("address", "", "where phones reach the box")
	class := f.String("class", "", "worker class")
	device := f.String("device", "", "image of a stick")
	if len(args) == 0 {
		return usageError("role needs a name")
	}
	name := args[0]
	if err := parse(f, args[1:]); err != nil {
		return err
	}
	cfg, err := config.Load(*file)
	if err != nil {
		return err
	}
	log := newLog(c.err).With("role", name)
	me := uint32(os.Getuid())
	peers := box.Peers{Gateway: me, Guard: me, Courier: me, Exporter: me}
	sockets := box.At(cfg.Paths.Runtime)
	switch name {
	case "gateway":
		l, err := listen(ctx, cfg.Gateway.Listen)
		if err != nil {
			return err
		}
		return box.Gateway(ctx, cfg, box.Ports{Phones: l}, box.Labels{Scripted: *scripted, Fixture: *fixture, Build: "assentsim"}, log, box.Life{})
	case "guard":
		l, err := ipc.Listen(sockets.Guard)
		if err != nil {
			return err
		}
		slot, err := ipc.Listen(sockets.Export)
		if err != nil {
			return err
		}
		d, err := panel.Dial(*glass, cfg.Panel)
		if err != nil {
			return err
		}
		defer d.Close()
		return box.Guard(ctx, cfg, box.Panel{Display: d, Buttons: d, Lamp: d, Kit: "drawn", Drawn: true}, box.Doors{Gateway: l, Exporter: slot}, peers, *scripted, log, box.Life{}, func() string { return *address })
	case "courier":
		l, err := ipc.Listen(sockets.Courier)
		if err != nil {
			return err
		}
		return box.Courier(ctx, cfg, l, peers, loopback.Policy{House: courier.NewHousePolicy()}, log, box.Life{})
	case "stick":
		return box.Stick(ctx, cfg, *device, peers, log)
	case "worker":
		conn, err := standardInput(c.in)
		if err != nil {
			return err
		}
		classes := map[string]capabilities.Class{"none": capabilities.ClassNone, "net": capabilities.ClassNet}
		return box.Worker(ctx, cfg, classes[*class], conn, peers, log)
	}
	return usageError(fmt.Sprintf("there is no role %q", name))
}

// listen opens a plain TCP port (see assentd on Multipath TCP).
func listen(ctx context.Context, address string) (net.Listener, error) {
	lc := net.ListenConfig{}
	lc.SetMultipathTCP(false)
	l, err := lc.Listen(ctx, "tcp", address)
	if err != nil {
		return nil, fmt.Errorf("%w; choose another address, or stop what uses this one", err)
	}
	return l, nil
}

func standardInput(f *os.File) (*net.UnixConn, error) {
	c, err := net.FileConn(f)
	if err != nil {
		return nil, errors.New("a worker needs its connection as standard input")
	}
	conn, ok := c.(*net.UnixConn)
	if !ok {
		c.Close()
		return nil, errors.New("a worker's standard input must be a unix socket")
	}
	return conn, nil
}
