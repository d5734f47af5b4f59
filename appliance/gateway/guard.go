package gateway

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"sync"
	"time"

	"assent.home.arpa/appliance/conversation"
	"assent.home.arpa/appliance/ipc"
)

// errGuardGone says that there is no connection to the guard: nothing was asked.
var errGuardGone = fmt.Errorf("gateway: the guard is not connected: %w", conversation.ErrNotSubmitted)

// Bounds of the wait for a guard that is away, and of its answers to what needs nobody at the box.
const (
	guardBackoffMin = 100 * time.Millisecond
	guardBackoffMax = 5 * time.Second
	guardAnswer     = 10 * time.Second
)

// guard is the gateway's end of the guard's socket. It reconnects by itself; while there is no connection every question
// fails with errGuardGone, and a question that was open when the connection was lost with ipc.ErrClosed.
type guard struct {
	path   string
	build  string
	log    *slog.Logger
	notice func(ipc.Notice)
	state  func(connected bool)

	mu     sync.Mutex
	client *ipc.Client
}

// run keeps the connection until ctx ends.
func (g *guard) run(ctx context.Context) {
	wait := guardBackoffMin
	for ctx.Err() == nil {
		client, err := g.connect(ctx)
		if err != nil {
			g.log.Warn("guard not reachable", "err", err, "retry", wait)
			select {
			case <-time.After(wait):
			case <-ctx.Done():
			}
			wait = min(2*wait, guardBackoffMax)
			continue
		}
		wait = guardBackoffMin
		g.log.Info("guard connected")
		g.state(true) // first, so that who says hello to this guard is not hung up on
		g.set(client)
		select {
		case <-client.Done():
		case <-ctx.Done():
			client.Close()
			<-client.Done()
		}
		g.set(nil)
		if ctx.Err() == nil { // else it is the gateway that goes
			g.state(false)
		}
	}
}

func (g *guard) connect(ctx context.Context) (*ipc.Client, error) {
	ctx, cancel := context.WithTimeout(ctx, guardAnswer)
	defer cancel()
	var d net.Dialer
	conn, err := d.DialContext(ctx, "unix", g.path)
	if err != nil {
		return nil, err
	}
	client := ipc.NewClient(ipc.NewConn(conn), func(m ipc.Message) {
		if n, ok := m.(*ipc.Notice); ok {
			g.notice(*n)
		}
	})
	if _, err := ask[*ipc.Welcome](ctx, client, &ipc.Hello{Build: g.build}, nil); err != nil {
		client.Close()
		return nil, err
	}
	return client, nil
}

func (g *guard) set(c *ipc.Client) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.client = c
}

func (g *guard) current() (*ipc.Client, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.client == nil {
		return nil, errGuardGone
	}
	return g.client, nil
}

// ask demands the one kind of answer that the contract has for m.
func ask[A ipc.Message](ctx context.Context, c *ipc.Client, m ipc.Message, interim func(*ipc.Pending)) (A, error) {
	var none A
	answer, err := c.Call(ctx, m, interim)
	if err != nil {
		return none, err
	}
	a, ok := answer.(A)
	if !ok {
		return none, fmt.Errorf("gateway: the guard answered %T with %T", m, answer)
	}
	return a, nil
}

// quick asks what the guard answers by itself.
func quick[A ipc.Message](ctx context.Context, g *guard, m ipc.Message) (A, error) {
	ctx, cancel := context.WithTimeout(ctx, guardAnswer)
	defer cancel()
	c, err := g.current()
	if err != nil {
		var none A
		return none, err
	}
	return ask[A](ctx, c, m, nil)
}

// Catalog implements conversation.Guard.
func (g *guard) Catalog(ctx context.Context, slot uint32, conversation ipc.ID) (*ipc.Catalog, error) {
	return quick[*ipc.Catalog](ctx, g, &ipc.CatalogRequest{Slot: slot, Conversation: conversation})
}

// Propose implements conversation.Guard. It waits as long as somebody at the box takes.
func (g *guard) Propose(ctx context.Context, p ipc.Propose, pending func(*ipc.Pending)) (*ipc.Outcome, error) {
	c, err := g.current()
	if err != nil {
		return nil, err
	}
	return ask[*ipc.Outcome](ctx, c, &p, pending)
}

// Claim implements conversation.Guard.
func (g *guard) Claim(c ipc.Claim) error {
	if len(c.Detail) > ipc.MaxClaimDetail {
		c.Detail = c.Detail[:ipc.MaxClaimDetail]
	}
	return g.tell(&c)
}

// EndAsk implements conversation.Guard.
func (g *guard) EndAsk(id ipc.ID) error { return g.tell(&ipc.EndAsk{Ask: id}) }

// Withdraw implements conversation.Guard.
func (g *guard) Withdraw(w ipc.Withdraw) error { return g.tell(&w) }

func (g *guard) tell(m ipc.Message) error {
	c, err := g.current()
	if err != nil {
		return err
	}
	return c.Tell(m)
}

// pair waits for somebody at the box.
func (g *guard) pair(ctx context.Context, p ipc.Pair) (*ipc.PairReply, error) {
	c, err := g.current()
	if err != nil {
		return nil, err
	}
	return ask[*ipc.PairReply](ctx, c, &p, nil)
}

var _ conversation.Guard = (*guard)(nil)
