package deadline_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"assent.home.arpa/appliance/clock"
	"assent.home.arpa/appliance/clock/clocktest"
	"assent.home.arpa/appliance/deadline"
)

func TestEndsWithTheBootClockAlone(t *testing.T) {
	for event, c := range map[string]struct {
		move func(*clocktest.Clock)
		ends bool
	}{
		"time passes":          {func(c *clocktest.Clock) { c.Advance(time.Minute) }, true},
		"not all of it":        {func(c *clocktest.Clock) { c.Advance(time.Minute - 1) }, false},
		"the box sleeps":       {func(c *clocktest.Clock) { c.Suspend(time.Minute) }, true},
		"the date jumps ahead": {func(c *clocktest.Clock) { c.SetWall(time.Now().AddDate(1, 0, 0), clock.Synced) }, false},
	} {
		synctest.Test(t, func(t *testing.T) {
			clk := clocktest.New()
			ctx, cancel := deadline.With(t.Context(), clk, clk.Boot()+time.Minute)
			defer cancel(nil)
			c.move(clk)
			synctest.Wait()
			if ended := ctx.Err() != nil; ended != c.ends {
				t.Errorf("%s: ended %v", event, ended)
			}
			if c.ends && !errors.Is(context.Cause(ctx), context.DeadlineExceeded) {
				t.Errorf("%s: cause %v", event, context.Cause(ctx))
			}
		})
	}
}

func TestPastIsOverAtOnce(t *testing.T) {
	clk := clocktest.New()
	ctx, cancel := deadline.With(t.Context(), clk, clk.Boot())
	defer cancel(nil)
	if !errors.Is(context.Cause(ctx), context.DeadlineExceeded) {
		t.Errorf("cause %v", context.Cause(ctx))
	}
}

func TestCancelFreesTheWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		clk := clocktest.New()
		ctx, cancel := deadline.With(t.Context(), clk, clk.Boot()+time.Minute)
		stopped := errors.New("stopped")
		cancel(stopped)
		synctest.Wait()
		if n := clk.Waiting(); n != 0 {
			t.Errorf("%d waits are left", n)
		}
		if !errors.Is(context.Cause(ctx), stopped) {
			t.Errorf("cause %v", context.Cause(ctx))
		}
	})
}
