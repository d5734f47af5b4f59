package executor

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"assent.home.arpa/appliance/audit"
	"assent.home.arpa/appliance/ipc"
	"assent.home.arpa/capabilities"
	"assent.home.arpa/capabilities/policy"
)

// TurnLife bounds a turn on the boot-time clock, whatever else happens.
const TurnLife = 30 * time.Minute

// Person is who asks: a paired phone and what it may do.
type Person struct {
	Slot  uint32 // pairing slot, from 1
	ID    string // opaque; in the audit, and the queue is fair by it
	Phone string // the phone's name as the panel shows it
	Role  policy.Role
}

// Ask is the signed question that a turn answers.
type Ask struct {
	ID           ipc.ID
	Conversation ipc.ID
	TextDigest   [32]byte
	Counter      uint64
	Signed       []byte // the bytes that the phone signed, and the signature
}

// Turn is one live ask with what was proposed under it. It ends with End or after TurnLife.
type Turn struct {
	person       Person
	ask          Ask
	conversation *Conversation
	expires      time.Duration // boot

	ctx  context.Context // ends with the turn; not a request's, so it may be kept
	stop context.CancelFunc
	gate chan struct{} // holds one token: the right to be the turn's one running proposal

	mu        sync.Mutex
	proposals int
	calls     map[capabilities.Name]int
	denied    map[capabilities.Name]bool
}

// NewTurn opens a turn at the boot time now. Whoever calls it has verified the ask.
func NewTurn(p Person, a Ask, c *Conversation, now time.Duration) *Turn {
	t := &Turn{
		person: p, ask: a, conversation: c, expires: now + TurnLife,
		gate: make(chan struct{}, 1), calls: map[capabilities.Name]int{}, denied: map[capabilities.Name]bool{},
	}
	t.ctx, t.stop = context.WithCancel(context.Background())
	return t
}

// End closes the turn. What is pending under it is withdrawn; what is being executed goes on to be recorded.
func (t *Turn) End() { t.stop() }

// Live reports whether anything may be proposed under t at the boot time now.
func (t *Turn) Live(now time.Duration) bool { return t.ctx.Err() == nil && now < t.expires }

// Person returns who asked.
func (t *Turn) Person() Person { return t.person }

// Proposals returns how many were submitted so far.
func (t *Turn) Proposals() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.proposals
}

// enter waits until no other proposal of this turn is on its way.
func (t *Turn) enter(ctx context.Context) (leave func(), err error) {
	select {
	case t.gate <- struct{}{}:
		return func() { <-t.gate }, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

func (t *Turn) count() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.proposals++
	return t.proposals
}

func (t *Turn) countCall(n capabilities.Name) int {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.calls[n]++
	return t.calls[n]
}

func (t *Turn) deny(n capabilities.Name) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.denied[n] = true
}

func (t *Turn) wasDenied(n capabilities.Name) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.denied[n]
}

// Conversation is what the guard remembers of a conversation: which sources outside the box it has read. They are never
// forgotten while it lasts, they are shown on the card, and they change nothing else.
type Conversation struct {
	mu      sync.Mutex
	sources []string
	more    int // sources beyond the bound
}

// NewConversation returns a conversation that has read sources, or nothing.
func NewConversation(sources []string) *Conversation {
	c := &Conversation{}
	for _, s := range sources {
		c.Read(s)
	}
	return c
}

// Sources returns what was read, oldest first.
func (c *Conversation) Sources() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.sources)
}

// Read notes that something of source was read.
func (c *Conversation) Read(source string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if slices.Contains(c.sources, source) {
		return
	}
	if len(c.sources) == audit.MaxTaint {
		c.more++
		return
	}
	c.sources = append(c.sources, source)
}

// banner is the panel's line about what was read, or empty.
func (c *Conversation) banner() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	n := len(c.sources)
	if n == 0 {
		return ""
	}
	line := "written after reading " + c.sources[n-1]
	if others := n - 1 + c.more; others > 0 {
		line += fmt.Sprintf(" and %d more", others)
	}
	return line
}
