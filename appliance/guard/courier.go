package guard

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"sync"
	"time"

	"assent.home.arpa/appliance/ipc"
	"assent.home.arpa/capabilities"
	"assent.home.arpa/capabilities/executor"
)

// Bounds of the wait for a courier that is away.
const (
	courierRetryMin  = 100 * time.Millisecond
	courierRetryMax  = 5 * time.Second
	courierChallenge = 5 * time.Second // from connecting to the challenge
)

// abortGrace is how long a courier that was told to kill a call may take to say what became of it.
const abortGrace = 2 * time.Second

// courier is the guard's end of the courier's socket. It reconnects by itself. Grants bind the challenge of one connection.
type courier struct {
	dial   func(ctx context.Context) (net.Conn, error)
	log    *slog.Logger
	state  func(connected bool)
	frozen func() bool
	aborts sync.WaitGroup

	mu        sync.Mutex
	client    *ipc.Client // nil while away
	challenge [32]byte
	running   map[capabilities.InvocationID]context.CancelFunc
}

var _ executor.Courier = (*courier)(nil)

// newCourier returns a courier that takes no pressed grant while frozen says so.
func newCourier(path string, uid uint32, log *slog.Logger, state func(bool), frozen func() bool) *courier {
	dial := func(ctx context.Context) (net.Conn, error) {
		var d net.Dialer
		conn, err := d.DialContext(ctx, "unix", path)
		if err != nil {
			return nil, err
		}
		if err := ipc.CheckPeer(conn, uid); err != nil {
			conn.Close()
			return nil, err
		}
		return conn, nil
	}
	return &courier{dial: dial, log: log, state: state, frozen: frozen, running: map[capabilities.InvocationID]context.CancelFunc{}}
}

// run keeps the connection until ctx ends.
func (c *courier) run(ctx context.Context) {
	defer c.aborts.Wait()
	wait := courierRetryMin
	for ctx.Err() == nil {
		client, err := c.connect(ctx)
		if err != nil {
			c.log.Warn("courier not reachable", "err", err, "retry", wait)
			sleep(ctx, wait)
			wait = min(2*wait, courierRetryMax)
			continue
		}
		wait = courierRetryMin
		c.state(true)
		select {
		case <-client.Done():
		case <-ctx.Done():
			client.Close()
			<-client.Done()
		}
		c.mu.Lock()
		c.client = nil
		c.mu.Unlock()
		c.state(false)
	}
}

// connect returns once the courier has said its challenge, without which nothing can be granted.
func (c *courier) connect(ctx context.Context) (*ipc.Client, error) {
	ctx, cancel := context.WithTimeout(ctx, courierChallenge)
	defer cancel()
	conn, err := c.dial(ctx)
	if err != nil {
		return nil, err
	}
	challenges := make(chan [32]byte, 1)
	client := ipc.NewClient(ipc.NewConn(conn), func(m ipc.Message) {
		if q, ok := m.(*ipc.Challenge); ok {
			select {
			case challenges <- q.Nonce:
			default: // there is one a connection
			}
		}
	})
	select {
	case nonce := <-challenges:
		if nonce == [32]byte{} {
			client.Close()
			return nil, errors.New("guard: the courier's challenge is empty")
		}
		c.mu.Lock()
		c.client, c.challenge = client, nonce
		c.mu.Unlock()
		return client, nil
	case <-client.Done():
		return nil, errors.New("guard: the courier hung up")
	case <-ctx.Done():
		client.Close()
		return nil, errors.New("guard: the courier sent no challenge")
	}
}

func (c *courier) connected() bool {
	_, ok := c.Challenge()
	return ok
}

// Challenge implements executor.Courier.
func (c *courier) Challenge() ([32]byte, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.client == nil {
		return [32]byte{}, false
	}
	select {
	case <-c.client.Done():
		return [32]byte{}, false
	default:
		return c.challenge, true
	}
}

// Execute implements executor.Courier. When ctx ends first the worker is killed.
func (c *courier) Execute(ctx context.Context, g executor.Grant) (*ipc.Result, error) {
	m, err := g.Message()
	if err != nil {
		return nil, fmt.Errorf("%w: %w", executor.ErrNotSent, err)
	}
	if !c.connected() {
		return nil, fmt.Errorf("%w: the courier is away", executor.ErrNotSent)
	}
	ctx, client, err := c.enter(ctx, g)
	if err != nil {
		return nil, err
	}
	defer c.leave(g.Inv())
	answer, err := client.Call(ctx, m, nil)
	if err != nil {
		if ctx.Err() != nil {
			c.abort(client, g.Inv())
		}
		return nil, err
	}
	r, ok := answer.(*ipc.Result)
	if !ok {
		return nil, fmt.Errorf("guard: the courier answered %T to a grant", answer)
	}
	return r, nil
}

// enter makes a call one of those that abortAll kills. The freeze is looked at under the lock that abortAll takes after it
// has begun: either abortAll finds the call, or the call finds the freeze.
func (c *courier) enter(ctx context.Context, g executor.Grant) (context.Context, *ipc.Client, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case g.Pressed() && c.frozen():
		return nil, nil, executor.ErrFrozen
	case c.client == nil:
		return nil, nil, fmt.Errorf("%w: the courier is away", executor.ErrNotSent)
	}
	ctx, c.running[g.Inv()] = context.WithCancel(ctx)
	return ctx, c.client, nil
}

func (c *courier) leave(inv capabilities.InvocationID) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.running[inv]()
	delete(c.running, inv)
}

// abortAll kills what is being executed and returns how many calls that were. It waits for nothing. A call is given up
// where no answer comes, which kills it once more: its grant may have left only after the first word.
func (c *courier) abortAll() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	for inv, cancel := range c.running {
		if client := c.client; client != nil {
			c.aborts.Go(func() { c.abort(client, inv) })
		}
		time.AfterFunc(abortGrace, cancel)
	}
	return len(c.running)
}

func (c *courier) abort(client *ipc.Client, inv capabilities.InvocationID) {
	if err := client.Tell(&ipc.Abort{Inv: inv}); err != nil {
		c.log.Warn("abort not delivered", "inv", inv.String(), "err", err)
	}
}
