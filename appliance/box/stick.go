package box

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"

	"assent.home.arpa/appliance/cage"
	"assent.home.arpa/appliance/config"
	"assent.home.arpa/appliance/ipc"
	"assent.home.arpa/appliance/stick"
)

// ErrInUse says that a medium is the box's own.
var ErrInUse = errors.New("box: the box itself uses this medium")

// Stick runs the exporter for one block device, or an image of one, until it is pulled out, which ends ctx, or the guard
// goes. What is wrong with the medium the guard says on the panel.
func Stick(ctx context.Context, c config.Config, device string, peers Peers, log *slog.Logger) error {
	conn, err := exportDoor(ctx, c, peers)
	if err != nil {
		return err
	}
	medium, failed := stick.OpenDevice(device)
	var problem *stick.Error
	if errors.As(failed, &problem) && problem.Problem == ipc.StickBusy {
		conn.Close()
		return ErrInUse
	}
	// Before the first byte of it is looked at: no file, no connection that is not open yet.
	if err := cage.Enter(log, cage.Room{}); err != nil {
		conn.Close()
		return err
	}
	return stick.Run(ctx, ipc.NewConn(conn), func() (stick.Medium, error) { return medium, failed }, log)
}

// exportDoor connects an exporter to the guard.
func exportDoor(ctx context.Context, c config.Config, peers Peers) (net.Conn, error) {
	var dialer net.Dialer
	conn, err := dialer.DialContext(ctx, "unix", At(c.Paths.Runtime).Export)
	if err != nil {
		return nil, fmt.Errorf("box: guard: %w", err)
	}
	if err := ipc.CheckPeer(conn, peers.Guard); err != nil {
		conn.Close()
		return nil, err
	}
	return conn, nil
}
