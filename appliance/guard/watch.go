package guard

import (
	"context"
	"slices"
	"sync"
	"time"

	"assent.home.arpa/appliance/audit"
	"assent.home.arpa/appliance/clock"
	"assent.home.arpa/appliance/ipc"
	"assent.home.arpa/confirm"
	"assent.home.arpa/confirm/screen"
)

// How often the idle screen is brought up to date: by itself, and at most, while the record grows.
const (
	idleEvery = 30 * time.Second
	headEvery = 2 * time.Second // what nothing waits for is sealed, and moves the head, within a second
)

// maxHappened bounds what waits to be recorded of the panel. It fills only while the disk hangs.
const maxHappened = 256

// happened is a notice of the panel with what was done about it at once.
type happened struct {
	confirm.Notice
	killed int   // calls, by a panic
	err    error // why a release did not hold
}

// backlog is what waits to be recorded, oldest first.
type backlog []happened

// add takes h, and reports what had to make room for it. A panic never does: where there is nothing else, the one that comes
// is one with the last.
func (b *backlog) add(h happened) (lost confirm.NoticeKind, full bool) {
	if full = len(*b) == maxHappened; full {
		i := slices.IndexFunc(*b, func(h happened) bool { return h.Kind != confirm.Panic })
		switch {
		case i >= 0:
			lost = (*b)[i].Kind
			*b = slices.Delete(*b, i, i+1)
		case h.Kind == confirm.Panic:
			(*b)[len(*b)-1].killed += h.killed
			return h.Kind, true
		default:
			return h.Kind, true
		}
	}
	*b = append(*b, h)
	return lost, full
}

// watch acts on what happens at the panel. A panic and its release take effect here, where nothing waits for a disk that
// holds the audit or for a gateway; recording and telling is left to a goroutine that may be slow.
func (g *guard) watch(ctx context.Context) {
	var telling sync.WaitGroup
	defer telling.Wait()
	out := make(chan happened)
	defer close(out)
	telling.Go(func() {
		for h := range out {
			g.noticed(ctx, h)
		}
	})
	var waiting backlog
	for {
		var to chan<- happened
		var next happened
		if len(waiting) > 0 {
			to, next = out, waiting[0]
		}
		select {
		case n := <-g.desk.Notices():
			if lost, full := waiting.add(g.act(n)); full {
				g.log.Error("panel notice lost", "kind", lost.String())
			}
		case to <- next:
			waiting = waiting[1:]
		case <-ctx.Done():
			for _, h := range waiting { // it happened, so it is recorded
				out <- h
			}
			return
		}
	}
}

// act does what cannot wait.
func (g *guard) act(n confirm.Notice) happened {
	h := happened{Notice: n}
	switch n.Kind {
	case confirm.Panic:
		g.freezer.hold()
		g.sticks.stop()
		h.killed = g.courier.abortAll()
		if err := g.freezer.keep(); err != nil {
			g.log.Error("the freeze would not survive a restart", "err", err)
		}
	case confirm.BulletinRead:
		g.log.Info("notice closed at the box", "name", g.bulletins.close(n.Bulletin))
	case confirm.Unfrozen:
		if h.err = g.freezer.thaw(); h.err != nil {
			g.log.Error("the freeze cannot be ended", "err", h.err)
			g.desk.SetFrozen(true)
		}
	}
	return h
}

func (g *guard) noticed(ctx context.Context, n happened) {
	g.log.Info("panel notice", "kind", n.Kind.String())
	switch n.Kind {
	case confirm.Panic:
		g.record(ctx, audit.Freeze{On: true, By: audit.ByBox, Reason: "panic", Killed: uint32(n.killed)})
		g.tell(ipc.Notice{Class: ipc.NoticeFrozen})
		g.showIdle()
	case confirm.Unfrozen:
		if n.err != nil {
			return
		}
		g.record(ctx, audit.Freeze{On: false, By: audit.ByBox, Reason: "released at the box"})
		g.tell(ipc.Notice{Class: ipc.NoticeUnfrozen})
		g.showIdle()
	case confirm.PairingOpened:
		g.record(ctx, audit.Admin{Action: audit.AdminPairing, Outcome: audit.Approved, By: audit.ByBox, On: audit.Yes})
		g.tell(ipc.Notice{Class: ipc.NoticePairingOpen})
		if trouble(g.journal.Err()) == ipc.AuditDamaged {
			g.prompts.Go(func() { g.offerNewLog(ctx) })
		}
		if last, ok := g.journal.spareable(); ok && g.journal.crowded() {
			g.prompts.Go(func() { g.offerRoom(ctx, last) })
		}
	case confirm.PairingClosed:
		g.record(ctx, audit.Admin{Action: audit.AdminPairing, Outcome: audit.Approved, By: audit.ByBox, On: audit.No})
		g.tell(ipc.Notice{Class: ipc.NoticePairingClosed})
	case confirm.PanelLost, confirm.ButtonsLost:
		class := audit.FaultDisplay
		if n.Kind == confirm.ButtonsLost {
			class = audit.FaultButton
		}
		g.setDisplay(false)
		g.record(ctx, audit.Fault{Class: class, Where: "panel"})
		g.tell(ipc.Notice{Class: ipc.NoticeDisplayLost})
	case confirm.PanelBack:
		g.setDisplay(true)
		g.tell(ipc.Notice{Class: ipc.NoticeDisplayBack})
	case confirm.ButtonDoubted:
		g.record(ctx, audit.Fault{Class: audit.FaultButton, Where: "panel", Code: "doubted"})
	case confirm.HoldRevoked:
		g.append(ctx, audit.Entry{Inv: n.Inv, Payload: audit.Admin{Action: audit.AdminRevoke, Outcome: audit.Withdrawn, By: audit.ByBox}})
	}
}

// record is for what happened at the box: it is on flash, with its literal payloads, before anybody is told.
func (g *guard) record(ctx context.Context, p audit.Payload, blobs ...audit.Entry) {
	if err := g.journal.Barrier(context.WithoutCancel(ctx), append(blobs, audit.Entry{Payload: p})...); err != nil {
		g.log.Error("record lost", "kind", p.Kind().String(), "err", err)
	}
}

func (g *guard) setDisplay(ok bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.display = ok
}

func (g *guard) courierState(connected bool) {
	if connected {
		g.log.Info("courier connected")
		g.tell(ipc.Notice{Class: ipc.NoticeCourierBack})
		return
	}
	g.log.Warn("courier lost")
	g.tell(ipc.Notice{Class: ipc.NoticeCourierLost})
}

// refresh keeps the idle screen true and records what a flood kept out, until ctx ends.
func (g *guard) refresh(ctx context.Context) {
	for ctx.Err() == nil {
		g.journal.retry(ctx)
		g.showIdle()
		if entries := g.flood.due(); len(entries) > 0 {
			g.append(ctx, entries...)
		}
		due, stop := g.opts.Clock.Until(g.opts.Clock.Boot() + idleEvery)
		g.followHead(ctx, due)
		stop()
	}
}

// followHead keeps the code of the record's head true on the idle screen until due: people compare it with their phones.
func (g *guard) followHead(ctx context.Context, due <-chan struct{}) {
	for {
		select {
		case <-g.journal.moved:
		case <-due:
			return
		case <-ctx.Done():
			return
		}
		pause, stop := g.opts.Clock.Until(g.opts.Clock.Boot() + headEvery)
		g.showIdle()
		select {
		case <-pause:
			stop()
			g.showIdle()
		case <-due:
			stop()
			return
		case <-ctx.Done():
			stop()
			return
		}
	}
}

func (g *guard) showIdle() {
	idle := screen.Idle{Today: g.today.value(), Phones: g.phones.count(), Scripted: g.opts.Scripted}
	if head, _, ok := g.journal.head(); ok {
		idle.HeadCode = head.Code()
	}
	var offers bool
	wrong := trouble(g.journal.Err())
	if idle.Note, idle.Hint, offers = g.sticks.note(); idle.Note == "" || offers && wrong != 0 {
		idle.Note, idle.Hint = idleNote(wrong, g.inbox.count()) // a copy can wait, and only the box says what keeps it from working
	}
	g.desk.SetIdle(idle)
}

// today counts approvals since midnight, or since the start where the date is not known.
type today struct {
	clock clock.Clock

	mu  sync.Mutex
	day string
	n   int
}

func newToday(c clock.Clock) *today { return &today{clock: c} }

func (t *today) count() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.rollLocked()
	t.n++
}

func (t *today) value() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.rollLocked()
	return t.n
}

func (t *today) rollLocked() {
	wall, state := t.clock.Wall()
	if state == clock.Unset {
		return
	}
	if day := wall.Format(time.DateOnly); day != t.day {
		if t.day != "" {
			t.n = 0
		}
		t.day = day
	}
}
