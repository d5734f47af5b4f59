package guard

import (
	"bytes"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"slices"
	"sync"

	"assent.home.arpa/appliance/clock"
	"assent.home.arpa/appliance/ipc"
	"assent.home.arpa/capabilities/executor"
	"assent.home.arpa/capabilities/policy"
)

// Bounds of what is remembered: turns that may be live at once, the oldest of which ends for a new one; conversations; and
// how many of those that have read something outlive a restart, the most recently changed.
const (
	maxTurns         = 256
	maxConversations = 2048
	maxTainted       = 512
)

// asks holds the live asks, and what conversations have read, which survives a restart.
type asks struct {
	path  string
	clock clock.Clock

	mu      sync.Mutex
	byID    map[ipc.ID]*ask
	current map[conversation]ipc.ID
	read    map[conversation]*executor.Conversation
	tainted []taint // as it is on flash, the least recently changed first
	number  uint64
	over    []*ask // ended since ended was last called
}

// conversation names one for the guard: a phone cannot touch another's by guessing its id.
type conversation struct {
	slot uint32
	id   ipc.ID
}

// ask is an accepted ask. Its turn is nil where the counter could not be made durable: chat goes on, proposals do not.
type ask struct {
	id     ipc.ID
	digest [32]byte // of the question's text
	turn   *executor.Turn
	conv   conversation
	read   *executor.Conversation
	number uint64 // asks are numbered as they come
	offer  offer
}

type taint struct {
	Slot         uint32   `json:"slot"`
	Conversation []byte   `json:"conversation"`
	Sources      []string `json:"sources"`
}

type taintFile struct {
	Version       int     `json:"version"`
	Conversations []taint `json:"conversations"`
}

func openAsks(path string, c clock.Clock) (*asks, error) {
	a := &asks{path: path, clock: c, byID: map[ipc.ID]*ask{}, current: map[conversation]ipc.ID{}, read: map[conversation]*executor.Conversation{}}
	b, err := read(path)
	if err != nil {
		return nil, fmt.Errorf("guard: conversations: %w", err)
	}
	if b == nil {
		return a, nil
	}
	var f taintFile
	dec := json.NewDecoder(bytes.NewReader(b))
	dec.DisallowUnknownFields()
	if err := dec.Decode(&f); err != nil || f.Version != 1 {
		return nil, fmt.Errorf("guard: conversations: %s is damaged; remove it, and begin new conversations on the phones", path)
	}
	for _, t := range f.Conversations {
		if len(t.Conversation) != len(ipc.ID{}) {
			return nil, fmt.Errorf("guard: conversations: %s is damaged; remove it, and begin new conversations on the phones", path)
		}
		a.read[conversation{t.Slot, ipc.ID(t.Conversation)}] = executor.NewConversation(t.Sources)
	}
	a.tainted = f.Conversations
	return a, nil
}

// open begins a turn and ends the one that the conversation had. Without durable it cannot propose anything.
func (a *asks) open(p executor.Person, q ipc.Ask, signed []byte, durable bool) ipc.ID {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.expire()
	key := conversation{p.Slot, q.Conversation}
	a.endLocked(a.current[key])
	conv := a.read[key]
	if conv == nil {
		conv = executor.NewConversation(nil)
		a.read[key] = conv
	}
	var id ipc.ID
	rand.Read(id[:]) // never fails: crypto/rand ends the program instead
	a.number++
	e := &ask{id: id, digest: q.TextDigest, conv: key, read: conv, number: a.number}
	if durable {
		e.turn = executor.NewTurn(p, executor.Ask{
			ID: id, Conversation: q.Conversation, TextDigest: q.TextDigest, Counter: q.Counter, Signed: signed,
		}, conv, a.clock.Boot())
	}
	a.byID[id], a.current[key] = e, id
	return id
}

// expire forgets turns that are over, the oldest one where there are too many, and conversations that it need not remember.
func (a *asks) expire() {
	now := a.clock.Boot()
	var oldest ipc.ID
	for id, e := range a.byID {
		if e.turn == nil || !e.turn.Live(now) {
			a.endLocked(id)
		} else if o := a.byID[oldest]; o == nil || e.number < o.number {
			oldest = id
		}
	}
	if len(a.byID) >= maxTurns {
		a.endLocked(oldest)
	}
	if len(a.read) < maxConversations {
		return
	}
	for key, c := range a.read {
		if _, open := a.current[key]; !open && len(c.Sources()) == 0 {
			delete(a.read, key)
		}
	}
}

// find returns an ask and whether it is known.
func (a *asks) find(id ipc.ID) (*ask, bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	e, ok := a.byID[id]
	return e, ok
}

func (a *asks) end(id ipc.ID) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.endLocked(id)
}

func (a *asks) endLocked(id ipc.ID) {
	e := a.byID[id]
	if e == nil {
		return
	}
	if e.turn != nil {
		e.turn.End()
	}
	delete(a.byID, id)
	if a.current[e.conv] == id {
		delete(a.current, e.conv)
	}
	a.over = append(a.over, e)
}

// save makes durable what a conversation has read since it was last saved.
func (a *asks) save(e *ask) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	conv := a.read[e.conv]
	if conv == nil {
		conv = e.read
		a.read[e.conv] = conv
	}
	for _, source := range e.read.Sources() {
		conv.Read(source) // a call can outlive its turn, and what it read must not get lost
	}
	sources := conv.Sources()
	i := slices.IndexFunc(a.tainted, func(t taint) bool { return t.Slot == e.conv.slot && ipc.ID(t.Conversation) == e.conv.id })
	switch {
	case len(sources) == 0, i >= 0 && len(a.tainted[i].Sources) == len(sources):
		return nil
	case i >= 0:
		a.tainted = slices.Delete(a.tainted, i, i+1)
	}
	a.tainted = append(a.tainted, taint{Slot: e.conv.slot, Conversation: e.conv.id[:], Sources: sources})
	for len(a.tainted) > maxTainted {
		old := a.tainted[0]
		delete(a.read, conversation{old.Slot, ipc.ID(old.Conversation)})
		a.tainted = slices.Delete(a.tainted, 0, 1)
	}
	b, err := json.Marshal(taintFile{Version: 1, Conversations: a.tainted})
	if err != nil {
		return err
	}
	return replace(a.path, b, 0o600)
}

func person(ph phone) executor.Person {
	return executor.Person{Slot: ph.Slot, ID: ph.Person, Phone: ph.Name, Role: policy.Role(ph.Role)}
}
