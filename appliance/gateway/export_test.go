package gateway

import (
	"context"
	"log/slog"
	"net"

	"assent.home.arpa/appliance/ipc"
	"assent.home.arpa/appliance/wire"
)

// Turns lets a test stand in for the conversations.
type Turns = turns

// RunWith is Run with conversations of the test's own.
func RunWith(ctx context.Context, o Options, t Turns) error {
	return run(ctx, o, func(context.Context, *guard) (turns, func() error, error) {
		return t, func() error { return nil }, nil
	})
}

// RingFrames is the number of frames that are kept for a phone.
const RingFrames = ringFrames

// OffenceEvery is how often the guard hears of the offences of one slot.
const OffenceEvery = offenceEvery

// Offender is what deals with a message that does not exist, in a gateway whose guard is at the other end of conn.
func Offender(ctx context.Context, conn net.Conn) func(slot uint32, digest [32]byte) {
	s := newServer(Options{Log: slog.New(slog.DiscardHandler)}, nil)
	s.guard = &guard{client: ipc.NewClient(ipc.NewConn(conn), nil)}
	return func(slot uint32, digest [32]byte) { s.offence(ctx, slot, digest) }
}

// MaxOffences is the number of broken rules that a connection survives.
const MaxOffences = maxOffences

// DecodeFrame reads one frame from a phone.
func DecodeFrame(b []byte) (wire.Upstream, error) { return decodeFrame(b) }
