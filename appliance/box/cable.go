package box

import (
	"context"
	"log/slog"

	"assent.home.arpa/appliance/cable"
	"assent.home.arpa/appliance/cage"
	"assent.home.arpa/appliance/config"
	"assent.home.arpa/appliance/ipc"
	"assent.home.arpa/appliance/stick"
)

// Cable runs the exporter for the port by which the box can pose as a stick, until ctx ends or the guard goes. Whatever an
// exporter before it left on the cable is taken off first, whether the guard can be reached or not. It fails with
// cable.ErrNoController where the board has no such port.
func Cable(ctx context.Context, c config.Config, peers Peers, log *slog.Logger) error {
	dir := StateDir(c, "export")
	port, err := cable.Open(cable.Gadgets, cable.Controllers, dir)
	if err != nil {
		return err
	}
	conn, err := exportDoor(ctx, c, peers)
	if err != nil {
		return err
	}
	// The kernel opens the image in this process's name, so what the cage leaves is all that can be shown.
	if err := cage.Enter(log, cage.Room{Write: []string{dir, cable.Dir}}); err != nil {
		conn.Close()
		return err
	}
	return stick.RunPort(ctx, ipc.NewConn(conn), port, log)
}
