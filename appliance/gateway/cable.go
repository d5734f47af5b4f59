package gateway

import (
	"context"
	"errors"

	"assent.home.arpa/appliance/ipc"
	"assent.home.arpa/appliance/wire"
)

// cable passes on that the owner wants the record offered over the box's USB cable. The guard checks who signed it.
func (s *server) cable(ctx context.Context, c *socket, f wire.Upstream) {
	var q wire.Cable
	if err := strict(f.Data, &q); err != nil {
		c.offend(f.ID, badFrame(err))
		return
	}
	sig, signed := binary(q.Sig, 64)
	if !signed {
		c.offend(f.ID, badFrame(errors.New("sig must be 64 bytes in base64url")))
		return
	}
	offered, err := quick[*ipc.CableReply](ctx, s.guard, &ipc.Cable{Slot: c.phone.slot, Counter: q.Counter, Sig: sig})
	if err != nil {
		c.send(f.ID, wire.TypeError, explain(err))
		return
	}
	c.send(f.ID, wire.TypeCable, wire.CableOffer{Seconds: offered.Seconds})
}
