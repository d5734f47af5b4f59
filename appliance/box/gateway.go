package box

import (
	"context"
	"log/slog"
	"net"

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

// Gateway runs the gateway of a box.
func Gateway(ctx context.Context, c config.Config, l net.Listener, labels Labels, log *slog.Logger, ready func()) error {
	sockets := At(c.Paths.Runtime)
	model, err := llama.New(llama.Options{Socket: sockets.Model, Dialect: c.Model.Dialect})
	if err != nil {
		return err
	}
	return gateway.Run(ctx, gateway.Options{
		Config: c, Listener: l, Guard: sockets.Guard, Provider: model, StateDir: StateDir(c, "gateway"),
		Clock: clock.System(), Build: labels.Build, ModelLabel: c.Model.Name,
		Scripted: labels.Scripted, Fixture: labels.Fixture, Log: log, Ready: ready,
	})
}
