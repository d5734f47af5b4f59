package ipc_test

import (
	"errors"
	"io"
	"net"
	"os"
	"testing"
	"testing/synctest"
	"time"

	"assent.home.arpa/appliance/ipc"
)

// A peer that does not read holds up one writer once, and nobody after that.
func TestPeerThatDoesNotRead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b := net.Pipe()
		defer b.Close()
		conn := ipc.NewConn(a)
		if err := conn.Send(1, &ipc.StatusRequest{}); !errors.Is(err, os.ErrDeadlineExceeded) {
			t.Fatalf("got %v", err)
		}
		start := time.Now()
		if err := conn.Send(2, &ipc.StatusRequest{}); !errors.Is(err, io.ErrClosedPipe) {
			t.Errorf("a later message: got %v", err)
		}
		if waited := time.Since(start); waited != 0 {
			t.Errorf("a later message waited %s for the same peer", waited)
		}
		if _, err := b.Read(make([]byte, 1)); err != io.EOF {
			t.Errorf("the peer was not hung up on: %v", err)
		}
	})
}
