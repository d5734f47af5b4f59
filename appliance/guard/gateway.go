package guard

import (
	"context"
	"errors"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"assent.home.arpa/appliance/audit"
	"assent.home.arpa/appliance/ipc"
	"assent.home.arpa/capabilities"
)

// Bounds of the gateway's socket: a gateway has one connection, and others come and go while it restarts.
const (
	maxSessions  = 4
	maxTold      = 32 // notices that a session may leave unread
	acceptRetry  = 50 * time.Millisecond
	acceptPauses = 2 * time.Second // the longest pause between two tries to accept
)

// session is one connection of the gateway.
type session struct {
	conn    *ipc.Conn
	told    chan ipc.Notice // on their way out
	greeted atomic.Bool
}

// serve accepts the gateway until ctx ends. What a connection that drops had pending is withdrawn, since its context ends.
func (g *guard) serve(ctx context.Context) error {
	return g.accept(ctx, g.opts.Gateway, maxSessions, func(c net.Conn) error { return g.peer(c) }, g.session)
}

// accept gives each connection to l that is of the right peer a session, a few at a time, until ctx ends. An error of
// accepting, such as too many open files, passes; only a socket that was closed does not.
func (g *guard) accept(ctx context.Context, l net.Listener, most int, peer func(net.Conn) error, session func(context.Context, net.Conn)) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(ctx, func() { l.Close() })()
	var open sync.WaitGroup
	defer open.Wait()
	defer cancel()
	seats := make(chan struct{}, most)
	pause := acceptRetry
	for {
		conn, err := l.Accept()
		switch {
		case ctx.Err() != nil, errors.Is(err, net.ErrClosed):
			if err == nil {
				conn.Close()
			}
			return err
		case err != nil:
			g.log.Error("connection cannot be accepted", "err", err, "retry", pause)
			sleep(ctx, pause)
			pause = min(2*pause, acceptPauses)
			continue
		}
		pause = acceptRetry
		select {
		case seats <- struct{}{}:
		default:
			g.log.Warn("connection refused", "err", "too many are open")
			conn.Close()
			continue
		}
		open.Go(func() {
			defer func() { <-seats }()
			if err := peer(conn); err != nil {
				g.log.Warn("connection refused", "err", err)
				conn.Close()
				return
			}
			session(ctx, conn)
		})
	}
}

func sleep(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}

func (g *guard) session(ctx context.Context, conn net.Conn) {
	s := &session{conn: ipc.NewConn(conn), told: make(chan ipc.Notice, maxTold)}
	g.mu.Lock()
	g.sessions[s] = struct{}{}
	g.mu.Unlock()
	var telling sync.WaitGroup
	telling.Go(func() {
		for n := range s.told {
			if err := s.conn.Send(0, &n); err != nil {
				g.log.Warn("notice not delivered", "err", err)
				s.conn.Close()
				return
			}
		}
	})
	defer telling.Wait()
	defer func() {
		g.mu.Lock()
		defer g.mu.Unlock()
		delete(g.sessions, s)
		close(s.told) // tell sends only to those in sessions
	}()
	err := ipc.Serve(ctx, s.conn, func(ctx context.Context, m ipc.Message, reply func(ipc.Message) error) {
		if answer := g.handle(ctx, s, m, reply); answer != nil {
			if err := reply(answer); err != nil && ctx.Err() == nil {
				g.log.Warn("answer not delivered", "err", err)
			}
		}
	})
	if errors.Is(err, ipc.ErrProtocol) {
		g.log.Error("gateway broke the protocol", "err", err)
		g.note(ctx, audit.KindFault, uint8(audit.FaultProtocol), audit.Fault{Class: audit.FaultProtocol, Where: "gateway"})
	}
}

// handle deals with one message of the gateway and returns the answer, or nil where there is none.
func (g *guard) handle(ctx context.Context, s *session, m ipc.Message, reply func(ipc.Message) error) ipc.Message {
	if _, hello := m.(*ipc.Hello); !hello && !s.greeted.Load() {
		return &ipc.Error{Code: capabilities.CodeMalformed, Message: "say hello first"}
	}
	switch m := m.(type) {
	case *ipc.Hello:
		s.greeted.Store(true)
		return &ipc.Welcome{BootID: g.opts.BootID, Registry: g.opts.Registry.Digest()}
	case *ipc.Auth:
		return g.auth(m)
	case *ipc.CatalogRequest:
		return g.catalog(m)
	case *ipc.Ask:
		return g.ask(ctx, m)
	case *ipc.EndAsk:
		g.asks.end(m.Ask)
		g.turnsOver(ctx)
		return nil
	case *ipc.Propose:
		return g.propose(ctx, m, reply)
	case *ipc.Withdraw:
		g.exec.Withdraw(m.Inv, m.Slot, m.Deny)
		return nil
	case *ipc.Claim:
		g.claim(ctx, m)
		return nil
	case *ipc.Pair:
		return g.pair(ctx, m)
	case *ipc.StatusRequest:
		return g.status()
	case *ipc.InboxRequest:
		return g.showInbox(m.Slot)
	case *ipc.Seen:
		return g.seen(ctx, m)
	case *ipc.Cable:
		return g.cable(ctx, m)
	}
	// Well-formed, and not the gateway's to say: an answer, a grant, a result.
	g.log.Error("gateway sent a message of another role", "kind", m.Kind())
	g.note(ctx, audit.KindFault, uint8(audit.FaultProtocol), audit.Fault{Class: audit.FaultProtocol, Where: "gateway"})
	return &ipc.Error{Code: capabilities.CodeMalformed, Message: "a gateway cannot say this"}
}

// note records what the gateway caused, as far as its rate limit lets it.
func (g *guard) note(ctx context.Context, of audit.Kind, class uint8, p audit.Payload) {
	g.noteFrom(ctx, source{gateway: true}, of, class, p)
}

// noteFrom records what a source caused, as far as its rate limit lets it.
func (g *guard) noteFrom(ctx context.Context, from source, of audit.Kind, class uint8, p audit.Payload) {
	if g.flood.allow(from, of, class) {
		g.append(ctx, audit.Entry{Payload: p})
	}
}

// append records what nothing waits for.
func (g *guard) append(ctx context.Context, entries ...audit.Entry) {
	if err := g.journal.Append(context.WithoutCancel(ctx), entries...); err != nil {
		g.log.Error("record lost", "kind", entries[0].Payload.Kind().String(), "err", err)
	}
}

// tell sends a notice to every gateway connection. It waits for none of them: one that does not read is hung up on, and
// asks for the status when it comes back.
func (g *guard) tell(n ipc.Notice) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for s := range g.sessions {
		if !s.greeted.Load() {
			continue
		}
		select {
		case s.told <- n:
		default:
			g.log.Warn("a gateway that does not read is hung up on")
			s.conn.Close()
		}
	}
}

func (g *guard) status() *ipc.Status {
	_, pairing := g.desk.PairingCode()
	g.mu.Lock()
	display := g.display
	g.mu.Unlock()
	s := &ipc.Status{
		Frozen: g.freezer.frozen(), Pairing: pairing, Phones: g.phones.count(), Display: display,
		Audit: g.journal.Err() == nil, Courier: g.courier.connected(), Trouble: trouble(g.journal.Err()), Unknown: g.inbox.count(),
	}
	if head, root, ok := g.journal.head(); ok {
		s.HeadCode, s.Seal, s.Head, s.Root = head.Code(), head.Seal, uint64(head.Seq), root[:]
	}
	return s
}

// claim records what only the gateway can know, as claimed by the gateway.
func (g *guard) claim(ctx context.Context, m *ipc.Claim) {
	if m.Class < ipc.ClaimParseFailure || m.Class > ipc.ClaimResult {
		g.note(ctx, audit.KindFault, uint8(audit.FaultProtocol), audit.Fault{Class: audit.FaultProtocol, Where: "gateway"})
		return
	}
	c := audit.Claim{
		From: audit.ByGateway, Class: audit.ClaimClass(m.Class), Code: printable(m.Code), Text: m.Detail[:min(len(m.Detail), audit.MaxClaimText)],
		RawDigest: m.Digest, Ask: audit.ID(m.Ask), Slot: m.Slot, Step: m.Step,
	}
	if a, ok := g.asks.find(m.Ask); ok {
		c.Slot, c.Conversation = a.conv.slot, audit.ID(a.conv.id) // what the guard knows better
	}
	from := source{}
	if _, paired := g.phones.find(c.Slot); paired {
		from.slot = c.Slot
	}
	g.noteFrom(ctx, from, audit.KindClaim, uint8(c.Class), c)
}

// printable admits a code of the gateway's own, such as unknown_type, and nothing that is not one.
func printable(c capabilities.Code) capabilities.Code {
	if len(c) > 64 {
		return ""
	}
	for _, r := range c {
		if (r < 'a' || r > 'z') && r != '_' {
			return ""
		}
	}
	return c
}
