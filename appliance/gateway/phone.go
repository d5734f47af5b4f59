package gateway

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"sync"

	"golang.org/x/time/rate"

	"assent.home.arpa/appliance/ipc"
	"assent.home.arpa/appliance/wire"
)

// Bounds of what is kept for one phone: enough for a dropped connection of some minutes.
const (
	ringFrames      = 2048
	ringBytes       = 1 << 20
	socketsPerPhone = 4
)

// phone is what the gateway keeps of one paired phone: the frames it was sent, its open connections, its running turn and
// what of it waits at the box. It outlives the connections.
type phone struct {
	slot uint32
	asks *rate.Limiter // over all its connections, so that reconnecting gains nothing

	mu      sync.Mutex
	name    string
	ring    [][]byte // encoded frames; the last has seq head
	size    int      // bytes in ring
	head    uint64
	sockets []*socket
	turn    *turn
	pending map[string]bool // invocations that wait at the box
	saying  string          // turn of which the model is saying something
	said    []byte          // what it has said in the step that it is at
}

// turn is a question that is being dealt with.
type turn struct {
	conversation ipc.ID
	cancel       context.CancelFunc
	ask          ipc.ID // zero until the guard has accepted the question
	cancelled    bool
}

func newPhone(slot uint32) *phone {
	return &phone{slot: slot, asks: rate.NewLimiter(1, 5), pending: map[string]bool{}}
}

// push numbers a frame, keeps it and wakes the connections. It never waits for any of them.
func (p *phone) push(re string, t wire.Type, data any) {
	p.mu.Lock()
	defer p.mu.Unlock()
	b, err := json.Marshal(wire.Downstream{V: wire.Version, Seq: p.head + 1, Re: re, Type: t, Data: data})
	if err != nil {
		panic("gateway: internal error: encode " + string(t) + ": " + err.Error())
	}
	p.note(data)
	p.head++
	p.ring = append(p.ring, b)
	p.size += len(b)
	drop := 0
	for len(p.ring)-drop > ringFrames || (p.size > ringBytes && len(p.ring)-drop > 1) {
		p.size -= len(p.ring[drop])
		drop++
	}
	p.ring = slices.Delete(p.ring, 0, drop)
	for _, s := range p.sockets {
		s.nudge()
	}
}

// note keeps what a snapshot and a phone's own wishes are checked against.
func (p *phone) note(data any) {
	if d, ok := data.(wire.Text); ok {
		p.saying = d.Turn
		if len(p.said)+len(d.Text) <= ringBytes {
			p.said = append(p.said, d.Text...)
		}
		return
	}
	p.said = p.said[:0]
	switch d := data.(type) {
	case wire.Pending:
		if d.Decided {
			delete(p.pending, d.Invocation)
		} else {
			p.pending[d.Invocation] = true
		}
	case wire.Result:
		delete(p.pending, d.Outcome.Invocation)
	case wire.TurnEnd:
		clear(p.pending)
	}
}

// unfinished adds to a snapshot what the model has said of a step that is not over: the conversation does not have it yet.
func (p *phone) unfinished(s wire.Snapshot) wire.Snapshot {
	p.mu.Lock()
	defer p.mu.Unlock()
	said := string(p.said)
	if s.Open == nil || *s.Open != p.saying || said == "" {
		return s
	}
	if n := len(s.Items); n > 0 && s.Items[n-1].Kind == "prose" && strings.TrimSpace(s.Items[n-1].Text) == strings.TrimSpace(said) {
		return s // the step has just ended
	}
	s.Items = append(s.Items, wire.Item{Kind: "prose", Turn: p.saying, Text: said})
	return s
}

// after returns the frames that follow seq, or false where some of them are no longer kept.
func (p *phone) after(seq uint64) ([][]byte, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	first := p.head - uint64(len(p.ring)) // seq before the oldest frame that is kept
	if seq < first || seq > p.head {
		return nil, false
	}
	return slices.Clone(p.ring[seq-first:]), true
}

func (p *phone) newest() uint64 {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.head
}

// join adds a connection. Where there are too many the oldest goes: it is most likely one that the phone has forgotten.
func (p *phone) join(s *socket, name string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.name = name
	if len(p.sockets) >= socketsPerPhone {
		p.sockets[0].close(closeReplaced, string(codeTooManySessions))
		p.sockets = slices.Delete(p.sockets, 0, 1)
	}
	p.sockets = append(p.sockets, s)
}

func (p *phone) leave(s *socket) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.sockets = slices.DeleteFunc(p.sockets, func(o *socket) bool { return o == s })
}

func (p *phone) hangUp(code int, why string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, s := range p.sockets {
		s.close(code, why)
	}
}

// begin reserves the phone's one turn.
func (p *phone) begin(conversation ipc.ID, cancel context.CancelFunc) (*turn, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.turn != nil {
		return nil, false
	}
	p.turn = &turn{conversation: conversation, cancel: cancel}
	return p.turn, true
}

// accept notes the guard's name for the turn. It is false where the phone has cancelled meanwhile.
func (p *phone) accept(t *turn, ask ipc.ID) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	t.ask = ask
	return !t.cancelled
}

// end frees the phone for its next turn. It may be called more than once.
func (p *phone) end(t *turn) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.turn == t {
		p.turn = nil
	}
}

// cancel marks the running turn of a conversation as cancelled and returns it with the guard's name for it.
func (p *phone) cancel(conversation ipc.ID) (ask ipc.ID, cancel context.CancelFunc, ok bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.turn == nil || p.turn.conversation != conversation {
		return ipc.ID{}, nil, false
	}
	p.turn.cancelled = true
	return p.turn.ask, p.turn.cancel, true
}

func (p *phone) waits(invocation string) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.pending[invocation]
}

// abort stops whatever turn is running.
func (p *phone) abort() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.turn != nil {
		p.turn.cancelled = true
		p.turn.cancel()
	}
}

// title is the phone's name as accepted at the box.
func (p *phone) title() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.name
}
