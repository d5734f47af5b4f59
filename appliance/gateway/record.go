package gateway

import (
	"context"
	"encoding/hex"
	"errors"

	"assent.home.arpa/appliance/ipc"
	"assent.home.arpa/appliance/wire"
)

// record is what a phone may know of the box's record, in the words of the contract.
func record(s *ipc.Status) wire.Record {
	r := wire.Record{HeadCode: s.HeadCode, HeadSeq: s.Head, Root: hex.EncodeToString(s.Root)}
	if len(s.Seal) > 0 {
		r.Seal = encodeBinary(s.Seal)
	}
	return r
}

// record answers what the box's record is now: after each call it is another than the phone was welcomed with.
func (s *server) record(ctx context.Context, c *socket, f wire.Upstream) {
	if len(f.Data) > 0 {
		c.offend(f.ID, badFrame(errors.New("record has no data")))
		return
	}
	status, err := quick[*ipc.Status](ctx, s.guard, &ipc.StatusRequest{})
	if err != nil {
		c.send(f.ID, wire.TypeError, explain(err))
		return
	}
	c.send(f.ID, wire.TypeRecord, record(status))
}
