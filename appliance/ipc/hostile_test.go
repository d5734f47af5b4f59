package ipc_test

import (
	"context"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"os"
	"runtime"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

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

// flood writes messages until the peer takes no more, and counts those that it took.
func flood(t *testing.T, raw net.Conn, n int, m func(i int) (uint64, ipc.Message)) *atomic.Int64 {
	t.Helper()
	var taken atomic.Int64
	conn := ipc.NewConn(raw)
	go func() {
		for i := range n {
			b, err := conn.Encode(m(i))
			if err != nil {
				t.Error(err)
				return
			}
			if _, err := raw.Write(b); err != nil {
				return
			}
			taken.Add(1)
		}
	}()
	return &taken
}

// A flood is read no faster than it is dealt with, and the connection outlives it.
func TestFloodIsHeldBack(t *testing.T) {
	const many, bound = 1000, 200
	for name, id := range map[string]func(i int) uint64{
		"questions": func(i int) uint64 { return uint64(i + 1) },
		"notices":   func(int) uint64 { return 0 },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				a, b := net.Pipe()
				release := make(chan struct{})
				var dealt atomic.Int64
				served := make(chan error, 1)
				go func() {
					served <- ipc.Serve(t.Context(), ipc.NewConn(b), func(ctx context.Context, m ipc.Message, reply func(ipc.Message) error) {
						if _, ok := m.(*ipc.StatusRequest); ok {
							reply(&ipc.Status{Phones: 3})
							return
						}
						<-release
						dealt.Add(1)
					})
				}()
				taken := flood(t, a, many, func(i int) (uint64, ipc.Message) { return id(i), &ipc.Claim{} })
				synctest.Wait()
				if n := taken.Load(); n == 0 || n > bound {
					t.Errorf("%d messages were taken in while none was dealt with", n)
				}
				close(release)
				synctest.Wait()
				if taken, dealt := taken.Load(), dealt.Load(); taken != many || dealt != many {
					t.Fatalf("%d of %d messages were taken, %d dealt with", taken, many, dealt)
				}
				client := ipc.NewClient(ipc.NewConn(a), func(ipc.Message) {})
				if m, err := client.Call(t.Context(), &ipc.StatusRequest{}, nil); err != nil || m.(*ipc.Status).Phones != 3 {
					t.Errorf("after the flood: %v, %v", m, err)
				}
				client.Close()
				if err := <-served; err != io.EOF {
					t.Errorf("served until %v", err)
				}
			})
		})
	}
}

// The end of a turn must not overtake what was said before it, and must not wait for questions.
func TestNoticesKeepTheirOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b := net.Pipe()
		defer a.Close()
		first := make(chan struct{})
		var order []uint32
		go ipc.Serve(t.Context(), ipc.NewConn(b), func(ctx context.Context, m ipc.Message, _ func(ipc.Message) error) {
			switch m := m.(type) {
			case *ipc.Propose:
				<-ctx.Done()
			case *ipc.Claim:
				if m.Slot == 0 {
					<-first
				}
				order = append(order, m.Slot)
			}
		})
		const full = 64
		flood(t, a, full+8, func(i int) (uint64, ipc.Message) {
			if i < full {
				return uint64(i + 1), &ipc.Propose{}
			}
			return 0, &ipc.Claim{Slot: uint32(i - full)}
		})
		synctest.Wait()
		if len(order) != 0 {
			t.Fatalf("%d were dealt with before the first was", order)
		}
		close(first)
		synctest.Wait()
		if diff := cmp.Diff([]uint32{0, 1, 2, 3, 4, 5, 6, 7}, order); diff != "" {
			t.Errorf("order (-want +got):\n%s", diff)
		}
	})
}
