package box

import (
	"context"
	"log/slog"
	"net"

	"assent.home.arpa/appliance/cage"
	"assent.home.arpa/appliance/clock"
	"assent.home.arpa/appliance/config"
	"assent.home.arpa/appliance/gateway"
	"assent.home.arpa/inference/llama"
)

// Labels are what the page must say about this box besides its name.
type Labels struct {
	Scripted bool   // the model recites a script
	Fixture  string // where "outside" is not outside; empty on a box
	Build    string
}

// Ports are where phones connect: to the page, and, where plain is not nil, to be told of it.
type Ports struct {
	Phones, Plain net.Listener
}

// Gateway runs the gateway of a box. It confines the whole process, for ever.
func Gateway(ctx context.Context, c config.Config, ports Ports, labels Labels, log *slog.Logger, life Life) error {
	sockets := At(c.Paths.Runtime)
	if err := cage.Enter(log, gatewayRoom(c, sockets)); err != nil {
		return err
	}
	model, err := llama.New(llama.Options{Socket: sockets.Model, Dialect: c.Model.Dialect})
	if err != nil {
		return err
	}
	return gateway.Run(ctx, gateway.Options{
		Config: c, Listener: ports.Phones, Plain: ports.Plain, Guard: sockets.Guard, Provider: model, StateDir: StateDir(c, "gateway"),
		Clock: clock.System(), Build: labels.Build, ModelLabel: c.Model.Name,
		Scripted: labels.Scripted, Fixture: labels.Fixture, Log: log, Ready: life.Ready, Watchdog: life.Watchdog,
	})
}
