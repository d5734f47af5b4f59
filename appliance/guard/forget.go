package guard

import (
	"context"
	"fmt"
	"time"

	"assent.home.arpa/appliance/audit"
	"assent.home.arpa/appliance/clock"
)

// How often literal payloads that have had their time are removed, and how often it is looked whether the date is known.
const (
	forgetEvery = 24 * time.Hour
	forgetLook  = time.Hour
)

// steady says since when the date can be believed. One wrong answer of a time server must not make everything old.
type steady struct {
	known  bool
	since  time.Duration // boot time
	offset time.Duration // of the wall clock from the boot time, then
}

// maxStep is how far the wall clock may move, all in all, and still be the same clock.
const maxStep = time.Hour

// look takes a reading. It reports whether for forgetEvery the clock was known at each look and made no step.
func (s *steady) look(boot time.Duration, wall time.Time, state clock.State) bool {
	offset := time.Duration(wall.UnixNano()) - boot
	switch {
	case state == clock.Unset:
		s.known = false
	case !s.known || (offset-s.offset).Abs() > maxStep:
		*s = steady{known: true, since: boot, offset: offset}
	}
	return s.known && boot-s.since >= forgetEvery
}

// forget removes literal payloads that are older than the household wants to keep them, once a day, until ctx ends. Without
// a date that was steady for a day nothing is old.
func (g *guard) forget(ctx context.Context) {
	days := g.opts.Config.Audit.LiteralDays
	if days == 0 {
		return
	}
	var date steady
	due := g.opts.Clock.Boot()
	for ctx.Err() == nil {
		now := g.opts.Clock.Boot()
		if wall, state := g.opts.Clock.Wall(); date.look(now, wall, state) && now >= due {
			due = now + forgetEvery
			g.forgetBefore(ctx, wall.AddDate(0, 0, -days))
		}
		next, stop := g.opts.Clock.Until(now + forgetLook)
		select {
		case <-next:
		case <-ctx.Done():
		}
		stop()
	}
}

func (g *guard) forgetBefore(ctx context.Context, before time.Time) {
	if err := g.inbox.forget(before); err != nil {
		g.log.Error("inbox not stored", "err", err)
	}
	reason := fmt.Sprintf("kept for %d days", g.opts.Config.Audit.LiteralDays)
	report, err := g.journal.redact(ctx, audit.RedactOptions{Before: before, By: audit.ByTimer, Reason: reason})
	if err != nil {
		g.log.Error("literal payloads are kept a day longer", "removed", report.Redacted, "err", err)
		return
	}
	if report.Redacted > 0 {
		g.log.Info("literal payloads removed", "count", report.Redacted)
	}
}
