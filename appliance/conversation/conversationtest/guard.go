package conversationtest

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"sync"

	"assent.home.arpa/appliance/conversation"
	"assent.home.arpa/appliance/ipc"
	"assent.home.arpa/capabilities"
)

// Capability is something that the guard can do.
type Capability struct {
	Name    capabilities.Name
	Press   bool
	PerTurn int    // zero: 100
	Shape   string // JSON Schema of its results; empty: any object
	Bytes   int    // bound of its results; zero: 4 KiB
	// Run executes a call. Its outcome needs a status, and a body or a code; the guard fills in the rest.
	Run func(arguments []byte) ipc.Outcome
}

// Answer is a Run that is done with one body always.
func Answer(body string) func([]byte) ipc.Outcome {
	return func([]byte) ipc.Outcome { return ipc.Outcome{Status: capabilities.Done, Body: []byte(body)} }
}

// Guard is a conversation.Guard: it knows asks, takes one proposal at a time, has a box at which somebody may decide, and
// can be lost.
type Guard struct {
	decisions chan capabilities.Status

	mu        sync.Mutex
	list      []Capability
	asks      map[ipc.ID]*ask
	lost      chan struct{}
	away      bool
	busy      bool
	overlaps  int
	proposals []ipc.Propose
	claims    []ipc.Claim
	executed  []string
}

type ask struct {
	ended  chan struct{}
	over   bool
	denied map[string]bool
}

var _ conversation.Guard = (*Guard)(nil)

// NewGuard returns a guard that can do what is listed.
func NewGuard(list ...Capability) *Guard {
	return &Guard{list: list, decisions: make(chan capabilities.Status), asks: map[ipc.ID]*ask{}, lost: make(chan struct{})}
}

// Open opens an ask.
func (g *Guard) Open() ipc.ID {
	g.mu.Lock()
	defer g.mu.Unlock()
	var id ipc.ID
	rand.Read(id[:])
	g.asks[id] = &ask{ended: make(chan struct{}), denied: map[string]bool{}}
	return id
}

// Catalog implements conversation.Guard.
func (g *Guard) Catalog(context.Context, uint32, ipc.ID) (*ipc.Catalog, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.away {
		return nil, ipc.ErrClosed
	}
	c := &ipc.Catalog{Registry: [32]byte{7}, PerTurn: map[string]int{}, Results: map[string]ipc.CatalogResults{}}
	for _, k := range g.list {
		name := capabilities.WireName(k.Name, 1)
		c.Entries = append(c.Entries, ipc.CatalogEntry{
			Name: name, Version: 1, Description: "what " + string(k.Name) + " is for", Parameters: []byte(`{"type":"object"}`),
		})
		c.PerTurn[name] = or(k.PerTurn, 100)
		c.Results[name] = ipc.CatalogResults{Shape: []byte(or(k.Shape, `{"type":"object"}`)), Bytes: or(k.Bytes, 4<<10)}
	}
	return c, nil
}

func or[T comparable](v, otherwise T) T {
	var zero T
	if v == zero {
		return otherwise
	}
	return v
}

// Propose implements conversation.Guard.
func (g *Guard) Propose(ctx context.Context, p ipc.Propose, pending func(*ipc.Pending)) (*ipc.Outcome, error) {
	g.mu.Lock()
	if g.away {
		g.mu.Unlock()
		return nil, conversation.ErrNotSubmitted
	}
	if g.busy {
		g.overlaps++
	}
	g.busy = true
	g.proposals = append(g.proposals, p)
	a, lost := g.asks[p.Ask], g.lost
	live := a != nil && !a.over
	g.mu.Unlock()
	defer func() { g.mu.Lock(); defer g.mu.Unlock(); g.busy = false }()

	o := &ipc.Outcome{Message: "in the guard's words"}
	rand.Read(o.Inv[:])
	k, known := g.find(string(p.Name))
	switch {
	case !live:
		return reject(o, capabilities.StagePolicy, capabilities.CodeNoAsk), nil
	case !known:
		return reject(o, capabilities.StageResolve, capabilities.CodeUnknownCapability), nil
	}
	o.Name, o.Version, o.Revision = k.Name, 1, "test/1"
	switch {
	case !json.Valid(p.Arguments):
		return reject(o, capabilities.StageValidate, capabilities.CodeInvalidArguments), nil
	case a.denied[string(p.Name)]:
		return reject(o, capabilities.StagePolicy, capabilities.CodeDeniedInTurn), nil
	case k.Press:
		pending(&ipc.Pending{Inv: o.Inv, Name: k.Name, Version: 1, Revision: o.Revision, Title: "May it?", Text: string(p.Arguments), Pages: 1, Request: p.Arguments})
		s, err := g.wait(ctx, a, lost)
		if err != nil {
			return nil, err
		}
		if s != capabilities.Done {
			a.denied[string(p.Name)] = s == capabilities.Denied
			o.Stage, o.Status = capabilities.StageConfirm, s
			return o, nil
		}
	}
	return g.execute(k, p, o, lost)
}

func reject(o *ipc.Outcome, stage capabilities.Stage, code capabilities.Code) *ipc.Outcome {
	o.Stage, o.Status, o.Code = stage, capabilities.Rejected, code
	return o
}

func (g *Guard) wait(ctx context.Context, a *ask, lost chan struct{}) (capabilities.Status, error) {
	select {
	case s := <-g.decisions:
		return s, nil
	case <-a.ended:
		return capabilities.Withdrawn, nil
	case <-lost:
		return 0, ipc.ErrClosed
	case <-ctx.Done():
		return 0, ctx.Err()
	}
}

func (g *Guard) execute(k Capability, p ipc.Propose, o *ipc.Outcome, lost chan struct{}) (*ipc.Outcome, error) {
	g.mu.Lock()
	g.executed = append(g.executed, string(p.Name)+string(p.Arguments))
	g.mu.Unlock()
	done := k.Run(p.Arguments)
	select {
	case <-lost:
		return nil, ipc.ErrClosed
	default:
	}
	o.Stage = or(done.Stage, capabilities.StageRecord)
	o.Status, o.Code, o.Body, o.Retrieved = done.Status, done.Code, done.Body, done.Retrieved
	return o, nil
}

func (g *Guard) find(name string) (Capability, bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, k := range g.list {
		if capabilities.WireName(k.Name, 1) == name {
			return k, true
		}
	}
	return Capability{}, false
}

// Claim implements conversation.Guard.
func (g *Guard) Claim(c ipc.Claim) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.away {
		return ipc.ErrClosed
	}
	g.claims = append(g.claims, c)
	return nil
}

// EndAsk implements conversation.Guard.
func (g *Guard) EndAsk(id ipc.ID) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	if a := g.asks[id]; a != nil && !a.over {
		a.over = true
		close(a.ended)
	}
	return nil
}

// Decide is somebody at the box: Done approves what waits there. It blocks until something waits.
func (g *Guard) Decide(s capabilities.Status) { g.decisions <- s }

// Lose drops the connection: what is open fails, and nothing can be asked from now on.
func (g *Guard) Lose() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.away = true
	close(g.lost)
}

// Offer changes what the guard can do.
func (g *Guard) Offer(list ...Capability) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.list = list
}

// Proposals returns what was submitted, in order.
func (g *Guard) Proposals() []ipc.Propose {
	g.mu.Lock()
	defer g.mu.Unlock()
	return append([]ipc.Propose{}, g.proposals...)
}

// Claims returns what the gateway reported, in order.
func (g *Guard) Claims() []ipc.Claim {
	g.mu.Lock()
	defer g.mu.Unlock()
	return append([]ipc.Claim{}, g.claims...)
}

// Executed returns name and arguments of each call that was executed, in order.
func (g *Guard) Executed() []string {
	g.mu.Lock()
	defer g.mu.Unlock()
	return append([]string{}, g.executed...)
}

// Overlaps returns how often a proposal was submitted before the last one had ended.
func (g *Guard) Overlaps() int {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.overlaps
}
