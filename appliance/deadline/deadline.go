// Package deadline ends a context at a time on the boot clock.
//
// A grant's deadline is a reading of CLOCK_BOOTTIME, which goes on in suspend and which nobody can set; a context's own
// deadline is neither.
package deadline

import (
	"context"
	"time"

	"assent.home.arpa/appliance/clock"
)

// With returns a context that ends with the cause context.DeadlineExceeded once c.Boot reaches at. The caller must call
// cancel, whose argument becomes the cause (context.Canceled where it is nil).
func With(parent context.Context, c clock.Clock, at time.Duration) (ctx context.Context, cancel context.CancelCauseFunc) {
	ctx, cancel = context.WithCancelCause(parent)
	if c.Boot() >= at {
		cancel(context.DeadlineExceeded)
		return ctx, cancel
	}
	reached, stop := c.Until(at)
	go func() {
		defer stop()
		select {
		case <-reached:
			cancel(context.DeadlineExceeded)
		case <-ctx.Done():
		}
	}()
	return ctx, cancel
}
