package conversation

import (
	"encoding/json"
	"slices"

	"assent.home.arpa/appliance/ipc"
	"assent.home.arpa/appliance/wire"
	"assent.home.arpa/inference"
)

// Bounds of what is kept of one conversation; the oldest turns go first. The running turn is bounded by its budget.
const (
	maxItems = 400       // entries
	maxBytes = 512 << 10 // of text
)

// maxConversations bounds the conversations of one phone. The one that was quiet longest goes first.
const maxConversations = 50

// entry is one thing said, with what the phone is shown of it.
type entry struct {
	n       int64 // place in the conversation; grows, may have gaps
	turn    string
	message inference.Message
	prose   string        // of an assistant's step: what may be shown
	outcome *wire.Outcome // of an outcome
}

// talk is one conversation. Its fields belong to whoever holds Service.mu; id and slot never change, and while a turn runs
// only its run changes turn, entries and from.
type talk struct {
	slot    uint32
	id      ipc.ID
	entries []entry
	from    int64  // place of the first entry that the model is still given
	used    uint64 // when it was last asked, in asks
	turn    string // running, or empty
	cancel  func()
	pending *wire.Pending
}

func (t *talk) next() int64 {
	if len(t.entries) == 0 {
		return max(1, t.from)
	}
	return t.entries[len(t.entries)-1].n + 1
}

// history is what the model is given, oldest first.
func (t *talk) history() []inference.Message {
	out := make([]inference.Message, 0, len(t.entries))
	for _, e := range t.entries {
		if e.n >= t.from {
			out = append(out, e.message)
		}
	}
	return out
}

// forgetTurn takes the oldest turn out of what the model is given, whole. It reports false where only the running turn is
// left.
func (t *talk) forgetTurn() bool {
	first := slices.IndexFunc(t.entries, func(e entry) bool { return e.n >= t.from })
	if first < 0 {
		return false
	}
	next := t.afterTurn(first)
	if next == len(t.entries) {
		return false
	}
	t.from = t.entries[next].n
	return true
}

// afterTurn returns the index after the turn that entry i belongs to.
func (t *talk) afterTurn(i int) int {
	for turn := t.entries[i].turn; i < len(t.entries) && t.entries[i].turn == turn; i++ {
	}
	return i
}

// trim drops the oldest turns, but never the last, until the rest is within its bounds. It returns the place of the first
// entry that is left.
func (t *talk) trim() int64 {
	size := 0
	for _, e := range t.entries {
		size += e.size()
	}
	for len(t.entries) > maxItems || size > maxBytes {
		next := t.afterTurn(0)
		if next == len(t.entries) {
			break
		}
		for _, e := range t.entries[:next] {
			size -= e.size()
		}
		t.entries = slices.Delete(t.entries, 0, next)
	}
	if len(t.entries) == 0 {
		return 0
	}
	t.from = max(t.from, t.entries[0].n)
	return t.entries[0].n
}

func (e entry) size() int { return len(e.message.Text) + len(e.prose) }

func (t *talk) snapshot() wire.Snapshot {
	s := wire.Snapshot{Conversation: t.id.String(), Items: []wire.Item{}, Pending: []any{}}
	for _, e := range t.entries {
		switch {
		case e.message.Kind == inference.User:
			s.Items = append(s.Items, wire.Item{Kind: "question", Turn: e.turn, Text: e.message.Text})
		case e.outcome != nil:
			s.Items = append(s.Items, wire.Item{Kind: "outcome", Turn: e.turn, Outcome: e.outcome})
		case e.prose != "":
			s.Items = append(s.Items, wire.Item{Kind: "prose", Turn: e.turn, Text: e.prose})
		}
	}
	if t.pending != nil {
		s.Pending = append(s.Pending, *t.pending)
	}
	if t.turn != "" {
		turn := t.turn
		s.Open = &turn
	}
	return s
}

// data is the one form in which an outcome reaches model and phone.
func data(o wire.Outcome) string {
	b, err := json.Marshal(o)
	if err != nil {
		panic("conversation: internal error: " + err.Error()) // Data was checked to be JSON
	}
	return string(b)
}
