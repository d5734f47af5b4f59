package box

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"runtime/debug"

	"assent.home.arpa/appliance/audit"
	"assent.home.arpa/appliance/clock"
	"assent.home.arpa/appliance/config"
	"assent.home.arpa/appliance/guard"
	"assent.home.arpa/capabilities"
	"assent.home.arpa/capabilities/health"
	"assent.home.arpa/capabilities/registry"
	"assent.home.arpa/capabilities/websearch"
	"assent.home.arpa/device"
)

// Panel is the hardware that the guard owns.
type Panel struct {
	Display device.Display
	Buttons device.Buttons
	Lamp    device.Lamp
	Kit     string // what it is made of, for the audit
	Drawn   bool   // there is no hardware: a simulator draws the glass
}

// boot is what the audit says of a start.
func (p Panel) boot() audit.Boot {
	b := audit.Boot{Program: audit.ProgramBox, Panel: p.Kit}
	if p.Drawn {
		b.Program = audit.ProgramSimulator
	}
	if info, ok := debug.ReadBuildInfo(); ok {
		b.Build = info.Main.Version
	}
	return b
}

// Peers are the users that the roles run as, by which the sockets' second lock goes.
type Peers struct {
	Gateway, Guard, Courier, Exporter uint32
}

// Doors are the sockets at which the guard is met.
type Doors struct {
	Gateway  net.Listener
	Exporter net.Listener // nil: the box takes no stick
}

// Guard runs the guard of a box. address says where phones reach it; AddressFrom on a box.
func Guard(ctx context.Context, c config.Config, p Panel, doors Doors, peers Peers, scripted bool, log *slog.Logger, life Life, address func() string) error {
	boot, err := BootID()
	if err != nil {
		return err
	}
	reg, err := Registry(c)
	if err != nil {
		return err
	}
	sockets := At(c.Paths.Runtime)
	return guard.Run(ctx, guard.Options{
		Config: c, Clock: clock.System(), BootID: boot,
		Display: p.Display, Buttons: p.Buttons, Lamp: p.Lamp,
		Registry: reg, Gateway: doors.Gateway, GatewayUID: peers.Gateway,
		Exporter: doors.Exporter, ExporterUID: peers.Exporter,
		Courier: sockets.Courier, CourierUID: peers.Courier,
		GrantKeyFile: sockets.GrantKey, StateDir: StateDir(c, "guard"),
		Boot: p.boot(), Notices: sockets.Notices, Address: address, Scripted: scripted, Log: log, Ready: life.Ready, Watchdog: life.Watchdog,
	})
}

// Registry holds what this box can do.
func Registry(c config.Config) (*registry.Registry, error) {
	search, err := searchAdapter(c.Search)
	if err != nil {
		return nil, err
	}
	return registry.New(health.Adapter{}, search)
}

func searchAdapter(s config.Search) (capabilities.Adapter, error) {
	switch s.Kind {
	case "mediawiki":
		return websearch.MediaWiki(s.URL, s.Label)
	case "searxng":
		return websearch.SearXNG(s.URL, s.Label)
	}
	return nil, fmt.Errorf("box: search.kind %q is neither mediawiki nor searxng", s.Kind)
}
