package guard

import (
	"context"
	"net"
)

// RunPiped is Run with pipes in place of sockets: they have no peer credentials, and they let a test stop time. eyes is
// given what somebody at the box reads from the panel: the pairing code.
func RunPiped(ctx context.Context, o Options, courier func(context.Context) (net.Conn, error), eyes func(code func() (string, bool))) error {
	g, err := start(ctx, o)
	if err != nil {
		return err
	}
	g.peer = func(net.Conn) error { return nil }
	g.courier.dial = courier
	eyes(g.desk.PairingCode)
	return g.run(ctx)
}

// CheckName is checkName.
func CheckName(name string, existing ...string) error { return checkName(name, existing) }
