package gateway

import (
	"context"
	"errors"
	"time"

	"assent.home.arpa/appliance/ipc"
	"assent.home.arpa/appliance/wire"
	"assent.home.arpa/capabilities"
)

// inbox is what a phone may know of unknown outcomes, in the words of the contract.
func inbox(in *ipc.Inbox) wire.Inbox {
	out := wire.Inbox{Items: []wire.Unknown{}, Older: in.Older}
	for _, u := range in.Items[:min(len(in.Items), ipc.MaxUnknowns)] {
		item := wire.Unknown{
			Invocation: u.Inv.String(), Slot: u.Slot, Phone: u.Phone, Capability: u.Name, Version: u.Version, Title: u.Title, Text: u.Text,
			Destination: u.Destination, Record: u.Seq, Code: u.Why, Cut: u.Cut, Sent: u.Sent,
		}
		if u.When != 0 {
			item.At = time.UnixMilli(u.When).UTC().Format(time.RFC3339)
		}
		out.Items = append(out.Items, item)
	}
	return out
}

// seen passes on that a person has read of an unknown outcome. The guard checks who signed it.
func (s *server) seen(ctx context.Context, c *socket, f wire.Upstream) {
	var q wire.Seen
	if err := strict(f.Data, &q); err != nil {
		c.offend(f.ID, badFrame(err))
		return
	}
	inv, ok := identifier(q.Invocation)
	sig, signed := binary(q.Sig, 64)
	if !ok || !signed {
		c.offend(f.ID, badFrame(errors.New("invocation must be 32 hex digits, and sig 64 bytes in base64url")))
		return
	}
	left, err := quick[*ipc.Inbox](ctx, s.guard, &ipc.Seen{Slot: c.phone.slot, Inv: capabilities.InvocationID(inv), Sig: sig})
	if err != nil {
		c.send(f.ID, wire.TypeError, explain(err))
		return
	}
	c.send(f.ID, wire.TypeInbox, inbox(left))
}

// inboxChanged has every phone told what its inbox holds now.
func (s *server) inboxChanged() {
	select {
	case s.inboxes <- struct{}{}:
	default: // it is about to be asked for
	}
}

// tellInboxes tells phones of each change of their inboxes, until ctx ends. It runs apart from whoever hears the guard's
// notices, since it waits for the guard's answers, and one change at a time, so that the last word is the latest.
func (s *server) tellInboxes(ctx context.Context) {
	for {
		select {
		case <-s.inboxes:
		case <-ctx.Done():
			return
		}
		for _, p := range s.all() {
			in, err := quick[*ipc.Inbox](ctx, s.guard, &ipc.InboxRequest{Slot: p.slot})
			if err != nil {
				s.log.Warn("inbox not asked for", "slot", p.slot, "err", err)
				continue // hello asks again when the guard is back
			}
			p.push("", wire.TypeInbox, inbox(in))
		}
	}
}
