package guard

import (
	"context"
	"time"

	"assent.home.arpa/appliance/watchdog"
)

// How long the guard's parts may take over one piece of honest work: the panel over a display that hangs, the log over a
// redaction, or a card that takes minutes for one write.
const (
	panelPatience = 30 * time.Second
	logPatience   = 5 * time.Minute
	doorPatience  = 30 * time.Second
)

// addressEvery is how often the guard looks where phones reach the box.
const addressEvery = 5 * time.Second

// vital lists what must answer for the guard to be alive. Without a display, without buttons and without a log it is.
func (g *guard) vital(door *watchdog.Listener) []watchdog.Part {
	return []watchdog.Part{
		{Name: "panel", Patience: panelPatience, Answers: g.desk.Answers},
		{Name: "audit", Patience: logPatience, Answers: g.journal.answers},
		{Name: "gateway socket", Patience: doorPatience, Answers: door.Answers},
		{Name: "calls", Patience: doorPatience, Answers: func(context.Context) { g.courier.connected() }},
	}
}

// answers returns once the log's owner takes its turn, or where there is no log.
func (j *journal) answers(ctx context.Context) {
	if log, err := j.current(); err == nil {
		log.Answers(ctx)
	}
}

// followAddress keeps true what the pairing screen says of where phones reach the box, until ctx ends.
func (g *guard) followAddress(ctx context.Context) {
	if g.opts.Address == nil {
		return
	}
	shown := ""
	for ctx.Err() == nil {
		if now := g.opts.Address(); now != shown {
			shown = now
			g.desk.SetAddress(now)
		}
		due, stop := g.opts.Clock.Until(g.opts.Clock.Boot() + addressEvery)
		select {
		case <-due:
		case <-ctx.Done():
		}
		stop()
	}
}
