package watchdog_test

import (
	"context"
	"log/slog"
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"assent.home.arpa/appliance/watchdog"
)

// D8: a role says that it lives only while its parts do.
func TestBeatsWhileAllPartsAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var beats atomic.Int64
		hung := make(chan struct{})
		var hang atomic.Bool
		ctx, cancel := context.WithCancel(t.Context())
		var running sync.WaitGroup
		running.Go(func() {
			w := watchdog.Watchdog{Every: 10 * time.Second, Beat: func() { beats.Add(1) }}
			w.Keep(ctx, slog.New(slog.DiscardHandler),
				watchdog.Part{Name: "quick", Patience: 20 * time.Second, Answers: func(context.Context) {}},
				watchdog.Part{Name: "slow", Patience: 2 * time.Minute, Answers: func(ctx context.Context) {
					if !hang.Load() {
						return
					}
					select {
					case <-hung:
					case <-ctx.Done():
					}
				}})
		})
		time.Sleep(5 * time.Minute)
		synctest.Wait()
		if n := beats.Load(); n < 29 {
			t.Errorf("%d beats in 5 minutes of good health", n)
		}
		hang.Store(true)
		time.Sleep(100 * time.Second)
		synctest.Wait()
		before := beats.Load()
		time.Sleep(30 * time.Second) // its patience is over on the way
		synctest.Wait()
		over := beats.Load()
		if before < 38 || over > before+3 {
			t.Errorf("%d beats within the patience, %d past its end", before, over)
		}
		time.Sleep(time.Hour)
		synctest.Wait()
		if n := beats.Load(); n != over {
			t.Errorf("%d beats for a part that hangs", n-over)
		}
		close(hung) // a disk that came back in time
		time.Sleep(time.Minute)
		synctest.Wait()
		if n := beats.Load(); n < over+5 {
			t.Errorf("%d beats after it came back", n-over)
		}
		cancel()
		running.Wait()
	})
}

func TestNobodyToTell(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan struct{})
		go func() {
			watchdog.Watchdog{}.Keep(ctx, slog.New(slog.DiscardHandler))
			close(ended)
		}()
		synctest.Wait()
		select {
		case <-ended:
			t.Error("it ended before its role")
		default:
		}
		cancel()
		<-ended
	})
}

// pipes is a listener for which every send is a connection.
type pipes chan net.Conn

func (p pipes) Accept() (net.Conn, error) { return <-p, nil }
func (p pipes) Close() error              { return nil }
func (p pipes) Addr() net.Addr            { return nil }

func TestAcceptLoop(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		in := make(pipes)
		l := watchdog.Listen(in)
		stuck := make(chan struct{})
		go func() {
			for {
				if c, _ := l.Accept(); c == nil {
					return
				}
				<-stuck // it is lost in what it accepted
			}
		}()
		synctest.Wait()
		answered := func() bool {
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			l.Answers(ctx)
			return ctx.Err() == nil
		}
		if !answered() {
			t.Error("a loop that waits for a connection is taken for dead")
		}
		a, b := net.Pipe()
		defer a.Close()
		defer b.Close()
		in <- a
		synctest.Wait()
		if answered() {
			t.Error("a loop that never comes round is taken for alive")
		}
		stuck <- struct{}{}
		if !answered() {
			t.Error("a loop that came round is taken for dead")
		}
		in <- nil
	})
}
