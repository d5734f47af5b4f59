package gateway

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"time"

	"assent.home.arpa/appliance/ipc"
	"assent.home.arpa/appliance/wire"
	"assent.home.arpa/capabilities"
)

// snapshotTries bounds the search for a moment at which a snapshot and the ring say the same.
const snapshotTries = 16

func encodeBinary(b []byte) string { return base64.RawURLEncoding.EncodeToString(b) }

// frame deals with one frame. It runs in the reader, so frames of one connection are dealt with in order.
func (s *server) frame(ctx context.Context, c *socket, b []byte) {
	f, err := decodeFrame(b)
	if err != nil {
		c.offend(f.ID, badFrame(err))
		return
	}
	switch f.Type {
	case wire.TypePing:
		c.send(f.ID, wire.TypePong, struct{}{})
	case wire.TypeHello:
		s.hello(ctx, c, f)
	case wire.TypePair:
		s.pair(ctx, c, f)
	case wire.TypeAsk, wire.TypeCancel, wire.TypeDeny, wire.TypeSeen, wire.TypeRecord, wire.TypeCable:
		if c.phone == nil {
			c.offend(f.ID, problem(codeHelloFirst, "this connection has not said who it is; reload the page"))
			return
		}
		switch f.Type {
		case wire.TypeAsk:
			s.ask(ctx, c, f)
		case wire.TypeCancel:
			s.cancel(c, f)
		case wire.TypeSeen:
			s.seen(ctx, c, f)
		case wire.TypeRecord:
			s.record(ctx, c, f)
		case wire.TypeCable:
			s.cable(ctx, c, f)
		default:
			s.deny(c, f)
		}
	default:
		s.unknown(ctx, c, f, b)
	}
}

// unknown answers a type that does not exist. It is in the audit besides: the only reason to send one is to try whether
// something like "approve" works.
func (s *server) unknown(ctx context.Context, c *socket, f wire.Upstream, b []byte) {
	var slot uint32
	if c.phone != nil {
		slot = c.phone.slot
	}
	s.offence(ctx, slot, sha256.Sum256(b))
	c.offend(f.ID, problem(codeUnknownType, "there is no such message; nothing was done. Requests are approved at the box and nowhere else"))
}

func (s *server) hello(ctx context.Context, c *socket, f wire.Upstream) {
	var h wire.Hello
	if err := strict(f.Data, &h); err != nil {
		c.offend(f.ID, badFrame(err))
		return
	}
	sig, ok := binary(h.Sig, 64)
	if !ok {
		c.offend(f.ID, badFrame(errors.New("sig must be 64 bytes in base64url")))
		return
	}
	if c.phone != nil {
		c.offend(f.ID, problem(codeBadFrame, "this connection has said hello already"))
		return
	}
	who, err := quick[*ipc.AuthReply](ctx, s.guard, &ipc.Auth{Slot: h.Slot, Nonce: c.nonce, Sig: sig})
	if err != nil {
		c.send(f.ID, wire.TypeError, explain(err))
		return
	}
	if !who.OK {
		c.offend(f.ID, problem(codeNotPaired, "the box does not know this phone; pair it again at the box"))
		return
	}
	status, err := quick[*ipc.Status](ctx, s.guard, &ipc.StatusRequest{})
	if err != nil {
		c.send(f.ID, wire.TypeError, explain(err))
		return
	}
	p, ok := s.known(h.Slot)
	if !ok {
		c.send(f.ID, wire.TypeError, retry(codeTooManySessions, "too many phones are connected; close the page on one of them"))
		return
	}
	c.phone = p
	p.join(c, who.Name)
	at := s.resume(p, h)
	r := record(status)
	w := wire.Welcome{
		Session: s.session, Name: who.Name, Role: who.Role.String(), Model: s.opts.ModelLabel, Scripted: s.opts.Scripted,
		Counter: who.Counter, Frozen: status.Frozen, Resumed: len(at.first) == 0, HeadCode: r.HeadCode, Seal: r.Seal, HeadSeq: r.HeadSeq,
		Root: r.Root,
	}
	first := [][]byte{encode(f.ID, wire.TypeWelcome, w)}
	for _, n := range s.standing(status) {
		first = append(first, encode("", wire.TypeNotice, n))
	}
	// After the place in the ring is known: what changes from now on is told there.
	in, err := quick[*ipc.Inbox](ctx, s.guard, &ipc.InboxRequest{Slot: h.Slot})
	if err != nil {
		s.log.Warn("inbox not asked for", "slot", h.Slot, "err", err)
	} else if len(in.Items) > 0 || in.Older > 0 {
		first = append(first, encode("", wire.TypeInbox, inbox(in)))
	}
	at.first = append(first, at.first...)
	c.attach <- at // one hello a connection, so there is room
}

// standing are the notices that a phone which has just come has missed.
func (s *server) standing(now *ipc.Status) []wire.Notice {
	var out []wire.Notice
	if s.opts.Fixture != "" {
		out = append(out, wire.Notice{Class: "fixture", Message: s.opts.Fixture})
	}
	for class, well := range map[ipc.NoticeClass]bool{ipc.NoticeFrozen: !now.Frozen, ipc.NoticeDisplayLost: now.Display, auditLost(now.Trouble): now.Audit, ipc.NoticeCourierLost: now.Courier} {
		if words, ok := notice(class); ok && !well {
			out = append(out, words)
		}
	}
	return out
}

// resume says where in the ring a connection begins, and what it must be sent before that: nothing where the ring holds
// all that the phone missed, else the conversation as it is. A snapshot carries the seq of the last frame that it
// contains. The conversation goes on meanwhile, so it is taken again until no frame fell in between.
func (s *server) resume(p *phone, h wire.Hello) attachment {
	if h.Session == s.session {
		if _, ok := p.after(h.Last); ok {
			return attachment{phone: p, cursor: h.Last}
		}
	}
	id, named := identifier(h.Conversation)
	var snap wire.Snapshot
	var seq uint64
	for range snapshotTries {
		seq = p.newest()
		found := false
		if named {
			snap, found = s.turns.Snapshot(p.slot, id)
			snap = p.unfinished(snap)
		}
		if !found {
			snap = wire.Snapshot{Conversation: h.Conversation}
		}
		if p.newest() == seq {
			break
		}
	}
	return attachment{phone: p, cursor: seq, first: [][]byte{encodeSnapshot(seq, snap)}}
}

// pair asks the guard, which asks whoever is at the box. That takes a while, so the connection goes on meanwhile.
func (s *server) pair(ctx context.Context, c *socket, f wire.Upstream) {
	var q wire.Pair
	if err := strict(f.Data, &q); err != nil {
		c.offend(f.ID, badFrame(err))
		return
	}
	key, ok := binary(q.Key, 65)
	if !ok || q.Code == "" || len(q.Code) > 16 || q.Name == "" || len(q.Name) > 4*wire.MaxPhoneName {
		c.offend(f.ID, badFrame(errors.New("pairing needs a code, a name of at most 24 characters and a key")))
		return
	}
	if !s.guesses.left(remoteAddr(c.ws.NetConn()), time.Now()) {
		c.offend(f.ID, retry(codePairingBusy, "too many wrong codes from this device; wait two minutes, then read the code on the box again"))
		return
	}
	select {
	case c.pairing <- struct{}{}:
	default:
		c.offend(f.ID, retry(codePairingBusy, "this phone is being paired; look at the box"))
		return
	}
	if !s.start(func() {
		defer func() { <-c.pairing }()
		s.pairAtBox(ctx, c, f.ID, ipc.Pair{Code: q.Code, Name: q.Name, Key: key})
	}) {
		<-c.pairing
	}
}

func (s *server) pairAtBox(ctx context.Context, c *socket, re string, q ipc.Pair) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	go func() {
		select {
		case <-c.done:
			cancel()
		case <-ctx.Done():
		}
	}()
	reply, err := s.guard.pair(ctx, q)
	switch {
	case err != nil:
		c.send(re, wire.TypeError, explain(err))
	case !reply.OK:
		code, message := reply.Code, reply.Message
		if code == "" {
			code = codePairingRefused
		}
		if code == codePairingRefused {
			s.guesses.refused(remoteAddr(c.ws.NetConn()), time.Now())
		}
		if message == "" {
			message = "the box did not accept this phone; hold both buttons on the box and try again"
		}
		c.send(re, wire.TypeError, retry(code, message))
	default:
		c.send(re, wire.TypePaired, wire.Paired{Slot: reply.Slot, Name: reply.Name, Role: reply.Role.String()})
	}
}

// cancel ends the phone's own turn. The guard is told first, so that what waits at the box goes at once.
func (s *server) cancel(c *socket, f wire.Upstream) {
	var q wire.Cancel
	if err := strict(f.Data, &q); err != nil {
		c.offend(f.ID, badFrame(err))
		return
	}
	id, ok := identifier(q.Conversation)
	if !ok {
		c.offend(f.ID, badFrame(errors.New("conversation must be 32 hex digits")))
		return
	}
	ask, stop, ok := c.phone.cancel(id)
	if !ok {
		c.send(f.ID, wire.TypeError, problem(codeNoTurn, "there is nothing to stop in this conversation"))
		return
	}
	if ask != (ipc.ID{}) {
		s.endAsk(ask)
	}
	if !s.turns.Cancel(c.phone.slot, id) {
		stop() // the model has not been asked yet
	}
}

// deny takes back what this phone itself has waiting at the box. It can only end a decision.
func (s *server) deny(c *socket, f wire.Upstream) {
	var q wire.Deny
	if err := strict(f.Data, &q); err != nil {
		c.offend(f.ID, badFrame(err))
		return
	}
	inv, ok := identifier(q.Invocation)
	if !ok || !c.phone.waits(q.Invocation) {
		c.send(f.ID, wire.TypeError, problem(codeNotPending, "nothing of this phone waits at the box under that number"))
		return
	}
	if err := s.guard.Withdraw(ipc.Withdraw{Inv: capabilities.InvocationID(inv), Slot: c.phone.slot, Deny: true}); err != nil {
		c.send(f.ID, wire.TypeError, explain(err))
	}
}
