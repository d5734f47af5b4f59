package guard

import (
	"context"
	"errors"

	"assent.home.arpa/appliance/audit"
	"assent.home.arpa/appliance/ipc"
	"assent.home.arpa/appliance/wire"
	"assent.home.arpa/capabilities"
	"assent.home.arpa/capabilities/executor"
	"assent.home.arpa/capabilities/policy"
)

// auth answers whether a phone holds the key of the slot that it claims.
func (g *guard) auth(m *ipc.Auth) *ipc.AuthReply {
	ph, ok := g.phones.find(m.Slot)
	if !ok || !ph.verify(wire.AuthBytes(m.Slot, m.Nonce), m.Sig) {
		return &ipc.AuthReply{}
	}
	return &ipc.AuthReply{OK: true, Name: ph.Name, Role: ph.Role, Counter: ph.Counter}
}

// catalog is what this person may propose, made from the registry now. Somebody unknown may propose nothing.
func (g *guard) catalog(m *ipc.CatalogRequest) *ipc.Catalog {
	ph, _ := g.phones.find(m.Slot)
	c := &ipc.Catalog{Registry: g.opts.Registry.Digest(), PerTurn: map[string]int{}, Results: map[string]ipc.CatalogResults{}}
	may := func(s capabilities.Spec) bool { return policy.May(policy.Role(ph.Role), s) }
	entries := g.opts.Registry.Catalog(may)
	g.asks.offered(conversation{m.Slot, m.Conversation}, offerOf(entries))
	for _, e := range entries {
		c.Entries = append(c.Entries, ipc.CatalogEntry{Name: e.Name, Version: e.Version, Description: e.Description, Parameters: e.Parameters})
	}
	for _, s := range g.opts.Registry.Specs() {
		if may(s) {
			c.PerTurn[s.WireName()] = s.Bounds.PerTurn
			c.Results[s.WireName()] = ipc.CatalogResults{Shape: s.ResultShape, Bytes: s.Bounds.Body}
		}
	}
	return c
}

// Codes of refused asks, in addition to those of package capabilities.
const (
	codeBadSignature capabilities.Code = "bad_signature"
	codeReplayed     capabilities.Code = "replayed_ask"
)

// ask opens a turn for whoever signed it, and for nobody else.
func (g *guard) ask(ctx context.Context, m *ipc.Ask) *ipc.AskReply {
	message := wire.AskBytes(m.Slot, m.Conversation, m.Counter, m.TextDigest)
	ph, ok := g.phones.find(m.Slot)
	if !ok || !ph.verify(message, m.Sig) {
		g.refusedAsk(ctx, m, codeBadSignature)
		return &ipc.AskReply{Code: codeBadSignature, Message: "this phone's signature does not fit; pair it again at the box"}
	}
	err := g.phones.advance(m.Slot, m.Counter)
	if errors.Is(err, errReplayed) {
		g.refusedAsk(ctx, m, codeReplayed)
		return &ipc.AskReply{Code: codeReplayed, Message: "this question was asked before; ask it anew"}
	}
	if err != nil {
		// The disk does not take the counter, so after a restart this ask could be replayed. It may chat.
		g.log.Error("ask counter not durable", "err", err)
	}
	id := g.asks.open(person(ph), *m, append(message, m.Sig...), err == nil)
	g.turnsOver(ctx)
	return &ipc.AskReply{Ask: id}
}

// refusedAsk records an attempt to speak for somebody.
func (g *guard) refusedAsk(ctx context.Context, m *ipc.Ask, code capabilities.Code) {
	g.log.Warn("ask refused", "code", code, "slot", m.Slot)
	g.note(ctx, audit.KindClaim, uint8(audit.ClaimProtocol), audit.Claim{
		From: audit.ByGateway, Class: audit.ClaimProtocol, Code: code, Slot: m.Slot, Conversation: audit.ID(m.Conversation), RawDigest: m.TextDigest,
	})
}

// propose takes one candidate through the stages. Pending goes out through reply; the outcome is returned.
func (g *guard) propose(ctx context.Context, m *ipc.Propose, reply func(ipc.Message) error) ipc.Message {
	a, known := g.asks.find(m.Ask)
	if known && a.turn == nil {
		return &ipc.Outcome{
			Stage: capabilities.StagePolicy, Status: capabilities.Rejected, Code: capabilities.CodeAuditUnavailable,
			Message: "the box cannot write to its disk, so nothing can be done but chat",
		}
	}
	p := executor.Proposal{Name: m.Name, Arguments: m.Arguments, Step: m.Step, Index: m.Index, RunDigest: m.RunDigest}
	if known {
		p.Turn = a.turn
	}
	from := source{gateway: true}
	if known {
		from = source{slot: a.conv.slot}
	}
	// Nobody stands behind a proposal without an ask, or over the turn's cap: what it may write is limited.
	if !known || a.turn.Proposals() >= g.opts.Config.Turn.Proposals {
		if !g.flood.allow(from, audit.KindProposal, 0) {
			code := capabilities.CodeNoAsk
			if known {
				code = capabilities.CodeBudget
			}
			return &ipc.Outcome{Stage: capabilities.StagePolicy, Status: capabilities.Rejected, Code: code, Message: "refused, as were many before"}
		}
	}
	o := g.exec.Invoke(ctx, p, func(pending ipc.Pending) {
		if err := reply(&pending); err != nil {
			g.log.Warn("pending not delivered", "inv", pending.Inv.String(), "err", err)
		}
	})
	g.log.Info("proposal ended", "inv", o.Inv.String(), "stage", o.Stage.String(), "status", o.Status.String(), "code", o.Code)
	if known {
		if err := g.asks.save(a); err != nil {
			g.log.Error("what the conversation has read is not durable", "err", err)
		}
	}
	g.showIdle()
	return &o
}
