package guard

import (
	"bytes"
	"context"

	"assent.home.arpa/appliance/audit"
	"assent.home.arpa/appliance/ipc"
	"assent.home.arpa/appliance/wire"
	"assent.home.arpa/capabilities"
	"assent.home.arpa/capabilities/registry"
)

// codeNotInInbox refuses an acknowledgement of what is none of the phone's business.
const codeNotInInbox capabilities.Code = "not_in_inbox"

// showInbox answers what a phone may know of unknown outcomes. Somebody unknown may know nothing.
func (g *guard) showInbox(slot uint32) *ipc.Inbox {
	ph, _ := g.phones.find(slot)
	return g.inbox.of(ph, func(slot uint32) string {
		ph, _ := g.phones.find(slot)
		return ph.Name
	})
}

// seen takes a call out of the inbox once it is on flash that a person has seen it. What became of the call stays unknown.
func (g *guard) seen(ctx context.Context, m *ipc.Seen) ipc.Message {
	ph, ok := g.phones.find(m.Slot)
	if !ok || !ph.verify(wire.SeenBytes(m.Slot, m.Inv), m.Sig) {
		g.log.Warn("acknowledgement refused", "code", codeBadSignature, "slot", m.Slot)
		g.noteClaim(ctx, codeBadSignature, m.Slot)
		return &ipc.Error{Code: codeBadSignature, Message: "this phone's signature does not fit; pair it again at the box"}
	}
	g.inbox.acks.Lock()
	defer g.inbox.acks.Unlock()
	u, there := g.inbox.find(m.Inv)
	switch {
	case !there: // another phone was quicker
		return g.showInbox(m.Slot)
	case !u.concerns(ph):
		return &ipc.Error{Code: codeNotInInbox, Message: "this was asked for by somebody else's phone"}
	}
	ctx = context.WithoutCancel(ctx)
	if err := g.journal.Barrier(ctx, u.observed(audit.Observe{By: audit.ByPhone, Slot: m.Slot, Source: "a person"})); err != nil {
		return &ipc.Error{Code: capabilities.CodeAuditUnavailable, Message: "the box cannot write its record, so this stays here; try again when it can"}
	}
	if err := g.inbox.remove(m.Inv); err != nil {
		g.log.Error("a restart would show what was seen once more", "inv", m.Inv.String(), "err", err)
	}
	g.inboxChanged()
	return g.showInbox(m.Slot)
}

// observed completes the record that ends u's time in the inbox.
func (u unknown) observed(o audit.Observe) audit.Entry {
	o.Intent, o.Status, o.Code, o.Final = u.Intent, capabilities.Unknown, u.Why, true
	return audit.Entry{Inv: u.inv(), Payload: o}
}

func (g *guard) inboxChanged() {
	g.tell(ipc.Notice{Class: ipc.NoticeInbox})
	g.showIdle()
}

// keep puts calls that nobody can speak for into the inbox. A call that only read the box itself left nothing to be settled:
// it is closed at once.
func (g *guard) keep(ctx context.Context, calls ...lostCall) {
	var items []unknown
	for _, l := range calls {
		u := unknown{
			Inv: l.inv[:], Intent: l.intent, Slot: l.proposal.Slot, Person: l.proposal.Person, Name: l.proposal.Capability,
			Version: l.proposal.Version, Log: l.proposal.Log, When: l.wall, Why: l.code, Cut: l.cut, Sent: l.sent,
		}
		c, err := g.opts.Registry.Lookup(capabilities.WireName(u.Name, u.Version))
		if err == nil && onlyReadTheBox(c.Spec()) {
			g.append(ctx, u.observed(audit.Observe{By: audit.ByGuard, Source: "it only read the box"}))
			continue
		}
		if u.Log > capabilities.LogOmit {
			title, text, destination := l.describe(c, err == nil)
			u.Title, u.Text, u.Destination = bounded(title), bounded(text), bounded(destination)
		}
		items = append(items, u)
	}
	added, err := g.inbox.add(items...)
	if err != nil {
		g.log.Error("unknown outcomes are not in the inbox's file", "err", err)
	}
	if added > 0 {
		g.inboxChanged()
	}
}

// describe says what was asked for, as the panel did. The log's own words come first. What the capability makes of the
// arguments is the same only while the box is set up as it was, so of an earlier start nothing is said that the log does not
// hold: neither a title, which may name a place, nor a text that another revision of the capability would write.
func (l lostCall) describe(c registry.Capability, known bool) (title, text, destination string) {
	if title, rest, ok := bytes.Cut(l.view, []byte("\n")); ok {
		if at := bytes.LastIndexByte(rest, '\n'); at >= 0 {
			return string(title), string(rest[:at]), string(rest[at+1:])
		}
	}
	destination = string(l.destination)
	if !known || l.old && c.Spec().Revision != l.proposal.Revision {
		return "", "", destination
	}
	plan, err := c.Plan(l.args)
	switch {
	case err != nil:
		return "", "", destination
	case l.old:
		return "", plan.Text, destination
	}
	return plan.Title, plan.Text, plan.Destination
}

func onlyReadTheBox(s capabilities.Spec) bool {
	return s.Effect == capabilities.Read && s.Network == capabilities.NetworkNone
}
