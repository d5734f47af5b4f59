// Package spawn starts one process for each connection, as systemd does for a socket unit with Accept=yes.
//
// On the box systemd does it, with a sandbox for each class of worker. On a PC and in tests, this does.
package spawn

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os/exec"
	"sync"
)

// Serve accepts connections on l, which it closes, until ctx ends. For each it starts the command that command returns,
// with the connection as its standard input. It waits for all of them; one that outlives ctx is killed.
func Serve(ctx context.Context, l *net.UnixListener, command func(context.Context) *exec.Cmd) error {
	ctx, cancel := context.WithCancel(ctx)
	var processes sync.WaitGroup
	defer processes.Wait()
	defer cancel()
	defer context.AfterFunc(ctx, func() { l.Close() })()
	for {
		conn, err := l.AcceptUnix()
		if err != nil {
			if ctx.Err() != nil && errors.Is(err, net.ErrClosed) {
				return nil
			}
			l.Close()
			return fmt.Errorf("spawn: %w", err)
		}
		cmd := command(ctx)
		if err := start(cmd, conn); err != nil {
			l.Close()
			return fmt.Errorf("spawn: %w", err)
		}
		processes.Go(func() { cmd.Wait() }) // how a worker ended is for its courier to say
	}
}

func start(cmd *exec.Cmd, conn *net.UnixConn) error {
	defer conn.Close()
	f, err := conn.File()
	if err != nil {
		return err
	}
	defer f.Close()
	cmd.Stdin = f
	return cmd.Start()
}
