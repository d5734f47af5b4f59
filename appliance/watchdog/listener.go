package watchdog

import (
	"context"
	"net"
	"sync/atomic"
	"time"
)

// acceptCheck is how often a loop that is busy is looked at again.
const acceptCheck = 100 * time.Millisecond

// Listener is a listener whose accept loop can be asked whether it lives.
type Listener struct {
	net.Listener

	waiting atomic.Bool
	rounds  atomic.Uint64
}

// Listen wraps l.
func Listen(l net.Listener) *Listener { return &Listener{Listener: l} }

// Accept implements net.Listener.
func (l *Listener) Accept() (net.Conn, error) {
	l.rounds.Add(1)
	l.waiting.Store(true)
	defer l.waiting.Store(false)
	return l.Listener.Accept()
}

// Answers returns when the accept loop waits for a connection, or has come round since.
func (l *Listener) Answers(ctx context.Context) {
	before := l.rounds.Load()
	again := time.NewTicker(acceptCheck)
	defer again.Stop()
	for !l.waiting.Load() && l.rounds.Load() == before {
		select {
		case <-again.C:
		case <-ctx.Done():
			return
		}
	}
}
