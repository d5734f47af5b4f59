// Package watchdog tells whoever started a role that the role is alive, for as long as its parts answer.
//
// systemd restarts a unit with WatchdogSec= that does not say WATCHDOG=1 in time (sd_watchdog_enabled(3)). A role that said so
// from a timer of its own would prove that the timer runs. So every part that can hang is asked, in a goroutine of its own,
// and the role speaks only while each has answered within its patience. A part that is broken and says so is alive: starting
// it again would not mend a full disk or a display that is unplugged.
package watchdog

import (
	"context"
	"log/slog"
	"sync"
	"time"
)

// Watchdog is who has to be told, and how often. The zero value is nobody.
type Watchdog struct {
	Every time.Duration // between two beats; at most half of what the watcher waits
	Beat  func()
}

// Part is something that can hang.
type Part struct {
	Name string
	// Patience is how long it may go without an answer: as long as its longest honest piece of work.
	Patience time.Duration
	// Answers returns when the part has answered, and must not outlive ctx where the part does not.
	Answers func(ctx context.Context)
}

// Keep beats until ctx ends, as long as all parts answer, and returns when nothing of it runs any more.
func (w Watchdog) Keep(ctx context.Context, log *slog.Logger, parts ...Part) {
	if w.Every <= 0 || w.Beat == nil {
		<-ctx.Done()
		return
	}
	var asking sync.WaitGroup
	defer asking.Wait()
	watched := make([]*watched, len(parts))
	for i, p := range parts {
		watched[i] = newWatched(p)
		asking.Go(func() { watched[i].ask(ctx, w.Every) })
	}
	tick := time.NewTicker(w.Every)
	defer tick.Stop()
	for {
		if alive(log, watched) {
			w.Beat()
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
	}
}

// alive reports whether every part has answered lately, and says which has not.
func alive(log *slog.Logger, parts []*watched) bool {
	ok := true
	for _, p := range parts {
		if silent := p.silent(); silent > p.Patience {
			log.Error("a part of this role does not answer; it will be started again", "part", p.Name, "for", silent.Round(time.Second))
			ok = false
		}
	}
	return ok
}

// watched is a part and when it answered last. The time is of CLOCK_MONOTONIC, which stands still while the box sleeps, as
// systemd's does.
type watched struct {
	Part

	mu   sync.Mutex
	last time.Time
}

func newWatched(p Part) *watched { return &watched{Part: p, last: time.Now()} }

func (w *watched) ask(ctx context.Context, every time.Duration) {
	pause := time.NewTimer(0)
	defer pause.Stop()
	for {
		select {
		case <-pause.C:
		case <-ctx.Done():
			return
		}
		w.Answers(ctx)
		if ctx.Err() != nil {
			return
		}
		w.mu.Lock()
		w.last = time.Now()
		w.mu.Unlock()
		pause.Reset(every)
	}
}

func (w *watched) silent() time.Duration {
	w.mu.Lock()
	defer w.mu.Unlock()
	return time.Since(w.last)
}
