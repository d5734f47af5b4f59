package gateway

import (
	"context"

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

// MaxOffences is the number of broken rules that a connection survives.
const MaxOffences = maxOffences

// DecodeFrame reads one frame from a phone.
func DecodeFrame(b []byte) (wire.Upstream, error) { return decodeFrame(b) }
