package ipc_test

import (
	"encoding/binary"
	"errors"
	"io"
	"net"
	"os"
	"runtime"
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

// A peer may be silent between messages for ever, but not in one.
func TestMessageThatIsNeverFinished(t *testing.T) {
	for name, half := range map[string][]byte{
		"in the length": {0, 0},
		"after it":      {0, 0, 0, 7},
		"in the body":   frame("84 01 12 07 41a0")[:6],
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				a, b := net.Pipe()
				defer a.Close()
				defer b.Close()
				go func() {
					time.Sleep(time.Hour)
					a.Write(frame("84 01 12 07 41a0"))
					time.Sleep(time.Hour)
					a.Write(half)
				}()
				conn := ipc.NewConn(b)
				if id, _, err := conn.Receive(); err != nil || id != 7 {
					t.Fatalf("after a long silence: id %d, %v", id, err)
				}
				start := time.Now()
				if _, m, err := conn.Receive(); !errors.Is(err, os.ErrDeadlineExceeded) {
					t.Errorf("got %#v, %v", m, err)
				}
				if waited := time.Since(start) - time.Hour; waited <= 0 || waited > time.Minute {
					t.Errorf("waited %s for the rest", waited)
				}
			})
		})
	}
}

// The memory that a message takes is what was sent of it, not what was promised.
func TestPromisedLengthCostsNothing(t *testing.T) {
	a, b := net.Pipe()
	defer b.Close()
	conn := ipc.NewConn(b)
	go func() {
		a.Write(append(binary.BigEndian.AppendUint32(nil, ipc.MaxMessage), 0x84))
		a.Close()
	}()
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	if _, _, err := conn.Receive(); !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Fatalf("got %v", err)
	}
	runtime.ReadMemStats(&after)
	if n := after.TotalAlloc - before.TotalAlloc; n > ipc.MaxMessage/4 {
		t.Errorf("%d bytes were allocated for one", n)
	}
}
