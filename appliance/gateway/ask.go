package gateway

import (
	"context"
	"encoding/json"
	"errors"
	"strings"

	"assent.home.arpa/appliance/conversation"
	"assent.home.arpa/appliance/ipc"
	"assent.home.arpa/appliance/wire"
)

func encodeSnapshot(seq uint64, snap wire.Snapshot) []byte {
	if snap.Items == nil {
		snap.Items = []wire.Item{}
	}
	if snap.Pending == nil {
		snap.Pending = []any{}
	}
	b, err := json.Marshal(wire.Downstream{V: wire.Version, Seq: seq, Type: wire.TypeSnapshot, Data: snap})
	if err != nil {
		panic("gateway: internal error: encode snapshot: " + err.Error())
	}
	return b
}

// ask opens a turn with a question that the phone has signed. The turn belongs to the phone: it goes on when the
// connection does not.
func (s *server) ask(ctx context.Context, c *socket, f wire.Upstream) {
	var q wire.Ask
	if err := strict(f.Data, &q); err != nil {
		c.offend(f.ID, badFrame(err))
		return
	}
	id, ok := identifier(q.Conversation)
	sig, signed := binary(q.Sig, 64)
	switch {
	case !ok || id == ipc.ID{}:
		c.offend(f.ID, badFrame(errors.New("conversation must be 32 hex digits")))
		return
	case !signed:
		c.offend(f.ID, badFrame(errors.New("sig must be 64 bytes in base64url")))
		return
	case strings.TrimSpace(q.Text) == "":
		c.send(f.ID, wire.TypeError, problem(codeBadQuestion, "the question is empty; write something first"))
		return
	case len(q.Text) > wire.MaxQuestion:
		c.send(f.ID, wire.TypeError, problem(codeBadQuestion, "the question is too long; 8 KiB is the most that the box takes"))
		return
	case !c.phone.asks.Allow():
		c.offend(f.ID, retry(codeTooFast, "this phone asks too often; wait a few seconds"))
		return
	}
	ctx, cancel := context.WithCancel(ctx)
	t, ok := c.phone.begin(id, cancel)
	if !ok {
		cancel()
		c.send(f.ID, wire.TypeError, retry(codeTurnRunning, "the box still works on this phone's last question; wait for it or stop it"))
		return
	}
	p := c.phone
	if !s.start(func() {
		defer cancel()
		defer p.end(t)
		s.turn(ctx, c, f.ID, t, ipc.Ask{Slot: p.slot, Conversation: id, Counter: q.Counter, TextDigest: wire.TextDigest(q.Text), Sig: sig}, q.Text)
	}) {
		cancel()
		p.end(t)
	}
}

// turn runs one turn to its end. What goes wrong before the turn began concerns the connection that asked; what goes
// wrong later is part of the turn, and said by it.
func (s *server) turn(ctx context.Context, c *socket, re string, t *turn, a ipc.Ask, text string) {
	p := c.phone
	fail := func(e wire.Error) {
		p.end(t) // first, since the phone may try again as soon as it hears this
		c.send(re, wire.TypeError, e)
	}
	reply, err := quick[*ipc.AskReply](ctx, s.guard, &a)
	if err != nil {
		fail(explain(err))
		return
	}
	if reply.Ask == (ipc.ID{}) {
		fail(wire.Error{Code: reply.Code, Message: reply.Message})
		return
	}
	if !p.accept(t, reply.Ask) {
		s.endAsk(reply.Ask)
		fail(explain(context.Canceled))
		return
	}
	err = s.turns.Ask(ctx, conversation.Turn{Slot: a.Slot, Conversation: a.Conversation, Ask: reply.Ask, Text: text, Name: p.title()}, func(typ wire.Type, data any) {
		switch typ {
		case wire.TypeTurn:
			p.push(re, typ, data)
		case wire.TypeTurnEnd:
			p.end(t) // first, as above
			p.push("", typ, data)
		default:
			p.push("", typ, data)
		}
	})
	if err != nil { // no turn was begun
		s.endAsk(reply.Ask)
		fail(explain(err))
	}
}

// endAsk lets nothing more be proposed under a question.
func (s *server) endAsk(id ipc.ID) {
	if err := s.guard.EndAsk(id); err != nil {
		s.log.Debug("turn not ended at the guard", "err", err)
	}
}
