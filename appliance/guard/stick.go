package guard

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"slices"
	"sync"
	"syscall"
	"time"

	"assent.home.arpa/appliance/audit"
	"assent.home.arpa/appliance/audit/export"
	"assent.home.arpa/appliance/ipc"
	"assent.home.arpa/confirm"
)

const (
	maxSticks    = 4                // exporters that may be connected
	helloTimeout = 60 * time.Second // within which one must say what it has: a large, slow stick takes a while
	// unpluggedNote is how long the idle screen says that a copy was broken off.
	unpluggedNote = 2 * time.Minute
	// goneTimeout is how long after its first error a stick may be found to be out.
	goneTimeout = 3 * time.Second
	// A copy may take copyTimeout, and copyEveryMB more for each MiB of the record: the slowest sticks write 100 kB/s, and all of it
	// is written twice, as evidence and to be read by people, and read back.
	copyTimeout = 30 * time.Minute
	copyEveryMB = 30 * time.Second
	// offerAgain is how long after something else was offered a stick is offered again.
	offerAgain = 5 * time.Second
	// progressEvery is how often the idle screen says how far a copy is.
	progressEvery = time.Second
)

// stickState is how far it is with a stick.
type stickState uint8

const (
	stickWaiting stickState = iota // for somebody at the box
	stickRefused                   // it takes no copy, or somebody at the box said no
	stickCopying
	stickDone
	stickFailed
)

// stick is one stick in the box, behind its exporter.
type stick struct {
	client *ipc.Client
	hello  ipc.StickHello

	// Under sticks.mu.
	state  stickState
	say    words
	share  int // of the copy, in per cent
	cancel context.CancelFunc

	asked chan uint32 // of a port: the slot whose phone asked; holds one
}

// sticks are those that are in, in the order in which they came. The first is the one that is dealt with.
type sticks struct {
	mu     sync.Mutex
	in     []*stick
	change chan struct{} // closed when another comes or goes
	broken time.Duration // boot time until which the idle screen says that one was pulled out too early
	now    func() time.Duration

	port     *stick        // where the box itself can pose as a stick, or nil
	phase    cablePhase    // of that port
	unwanted int           // offers of it in a row that came to nothing
	pause    time.Duration // boot time until which it is not offered again
}

// changed is closed when a stick comes or goes from now on.
func (s *sticks) changed() <-chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.change
}

func (s *sticks) changeLocked() {
	close(s.change)
	s.change = make(chan struct{})
}

// askable reports whether somebody at the box may be asked about k: not beside another, since nobody knows which is meant, and
// not again after a no.
func (s *sticks) askable(k *stick) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.in) == 1 && s.in[0] == k && (k.state == stickWaiting || k.state == stickFailed)
}

// stop breaks off a copy: there was a panic.
func (s *sticks) stop() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, k := range s.in {
		if k.cancel != nil {
			k.cancel()
		}
	}
	if s.port != nil && s.port.cancel != nil {
		s.port.cancel()
	}
}

// note is what the idle screen says of a stick; nothing where there is none. It reports whether that is only an offer.
func (s *sticks) note() (note, hint string, offers bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if note, hint := s.cableNoteLocked(); note != "" {
		return note, hint, s.phase == cableWaiting
	}
	if len(s.in) == 0 {
		if s.broken > 0 && s.now() < s.broken {
			return "pulled out too early", "nothing is lost", false
		}
		return "", "", false
	}
	switch k := s.in[0]; {
	case k.state == stickCopying:
		return fmt.Sprintf("copying: %d of 100", k.share), "leave the stick in", false
	case k.state != stickWaiting:
		return k.say.note, k.say.hint, false
	case len(s.in) > 1:
		return "two sticks are in:", "leave only one in", false
	}
	return "copy record to stick", "hold both buttons 3s", true
}

func (s *sticks) set(k *stick, state stickState, say words) {
	s.mu.Lock()
	defer s.mu.Unlock()
	k.state, k.say = state, say
}

// serveSticks accepts exporters until ctx ends.
func (g *guard) serveSticks(ctx context.Context) error {
	return g.accept(ctx, g.opts.Exporter, maxSticks, func(c net.Conn) error { return g.exporter(c) }, g.stickIn)
}

// stickIn deals with one stick until it is out. Nothing that it does is waited for by anything else.
func (g *guard) stickIn(ctx context.Context, conn net.Conn) {
	hellos := make(chan ipc.StickHello, 1)
	k := &stick{asked: make(chan uint32, 1)}
	k.client = ipc.NewClient(ipc.NewConn(conn), func(m ipc.Message) {
		if h, ok := m.(*ipc.StickHello); ok && len(h.Label) <= ipc.MaxStickLabel {
			select {
			case hellos <- *h:
			default: // it says hello once
			}
		}
	})
	defer k.client.Close()
	defer context.AfterFunc(ctx, func() { k.client.Close() })()
	late := time.NewTimer(helloTimeout)
	defer late.Stop()
	select {
	case k.hello = <-hellos:
	case <-k.client.Done():
		return
	case <-late.C:
		g.log.Warn("an exporter that says nothing is hung up on")
		return
	}
	if k.hello.Cable {
		g.portIn(ctx, k)
		return
	}
	g.stickThere(k)
	defer g.stickGone(k)
	for {
		again, stop := g.dealWith(ctx, k)
		select {
		case <-k.client.Done():
			stop()
			return
		case <-again:
			stop()
		}
	}
}

// dealWith offers a copy to whoever makes the gesture at the box, and returns when to see to the stick again.
func (g *guard) dealWith(ctx context.Context, k *stick) (again <-chan struct{}, stop func()) {
	change := g.sticks.changed()
	if g.sticks.askable(k) {
		switch g.offerCopy(ctx, k, change) {
		case 0: // there is no panel
		case confirm.AdminBusy: // something else is offered
			return g.opts.Clock.Until(g.opts.Clock.Boot() + offerAgain)
		default: // whatever can be asked again is, without a deadline
			return g.opts.Clock.Until(0)
		}
	}
	return change, func() {}
}

func (g *guard) stickThere(k *stick) {
	g.log.Info("a stick is in", "size", k.hello.Size, "problem", k.hello.Problem)
	if k.hello.Problem != 0 {
		k.state, k.say = stickRefused, wordsOf(k.hello.Problem)
	}
	g.sticks.mu.Lock()
	g.sticks.in = append(g.sticks.in, k)
	g.sticks.changeLocked()
	g.sticks.broken = 0
	first := g.sticks.in[0] == k
	g.sticks.mu.Unlock()
	if first {
		g.bulletins.ofStick(k.say.full, false)
	}
	g.showIdle()
}

func (g *guard) stickGone(k *stick) {
	g.log.Info("a stick is out")
	s := g.sticks
	s.mu.Lock()
	first := s.in[0] == k
	s.in = slices.DeleteFunc(s.in, func(o *stick) bool { return o == k })
	s.changeLocked()
	var next words
	if len(s.in) > 0 {
		next = s.in[0].say
	}
	s.mu.Unlock()
	if first {
		g.bulletins.ofStick(next.full, false)
	}
	g.showIdle()
}

// offerCopy has the panel ask whoever makes the gesture there whether the record is to be copied, and copies it. It returns how
// the prompt ended, or 0 where it could not be offered.
func (g *guard) offerCopy(ctx context.Context, k *stick, change <-chan struct{}) confirm.AdminOutcome {
	asking, cancel := context.WithCancel(ctx)
	defer cancel()
	go func() {
		select {
		case <-k.client.Done(): // no stick, no prompt
			cancel()
		case <-change:
			cancel()
		case <-asking.Done():
		}
	}()
	approved, outcome := g.askCopy(ctx, asking, "to stick"+stickName(k.hello), 0)
	switch outcome {
	case confirm.AdminConfirmed:
		g.copyTo(ctx, k, approved)
	case confirm.AdminDenied:
		g.sticks.set(k, stickRefused, words{note: "copy was refused:", hint: "put stick in again"})
		g.showIdle()
	}
	return outcome
}

// errTooSlow ends a copy that takes too long.
var errTooSlow = errors.New("guard: the stick is too slow for the record")

const stickTitle = "Copy all the record"

// stickName is a stick as the panel names it. The label is anybody's, so only letters that cannot mislead are drawn.
func stickName(h ipc.StickHello) string {
	name := ""
	for _, c := range h.Label {
		if (c < 'A' || c > 'Z') && (c < '0' || c > '9') && c != '_' && c != '-' {
			name = ""
			break
		}
		name += string(c)
	}
	if name != "" {
		name = " " + name
	}
	return fmt.Sprintf("%s, %.1f GB", name, float64(min(max(h.Size, 0), 1<<46))/1e9)
}

// copyTo copies the record onto a stick, and records what came of it.
func (g *guard) copyTo(ctx context.Context, k *stick, approved audit.Seq) {
	copying, cancel := context.WithTimeoutCause(ctx, copyLimit(g.auditDir()), errTooSlow)
	defer cancel()
	s := g.sticks
	s.mu.Lock()
	k.state, k.share, k.cancel, k.say = stickCopying, 0, cancel, words{}
	s.mu.Unlock()
	if g.freezer.frozen() { // by a panic that came before there was anything to break off
		cancel()
	}
	defer func() {
		s.mu.Lock()
		k.cancel = nil
		s.mu.Unlock()
	}()
	g.bulletins.ofStick("", true)
	g.showIdle()
	v := newStickVolume(copying, k.call)
	report, err := g.writeTo(copying, k, v)
	done := audit.Export{By: audit.ByBox, Admin: approved, Volume: k.hello.Label}
	say := words{}
	if err == nil {
		describe(&done, report)
		say = wordsOfCopy(report)
		s.set(k, stickDone, say)
		g.log.Info("the record was copied", "head", report.Log.Head.Seq, "bytes", report.Bytes, "log", report.Log.Status.String())
	} else {
		g.log.Warn("the record was not copied", "err", err)
		g.awaitPull(err, k.client.Done())
		done.Code, say = copyFailure(err, k.client.Done(), copying)
		s.set(k, stickFailed, say)
		if done.Code == codePulled {
			s.mu.Lock()
			s.broken = s.now() + unpluggedNote
			s.mu.Unlock()
		}
	}
	if approved != 0 {
		g.record(ctx, done)
	}
	g.bulletins.ofStick(say.full, true)
	g.showIdle()
}

// copyLimit is how long copying the record in dir may take.
func copyLimit(dir string) time.Duration {
	limit := copyTimeout
	entries, _ := os.ReadDir(dir) // a record that cannot be read is not copied either
	for _, e := range entries {
		if info, err := e.Info(); err == nil {
			limit += copyEveryMB * time.Duration(info.Size()>>20)
		}
	}
	return limit
}

// progress keeps the idle screen up to date. The steps take about as long as this says.
func (g *guard) progress(k *stick) func(export.Step, int64, int64) {
	weights := map[export.Step][2]int{export.StepCheck: {0, 10}, export.StepCopy: {10, 40}, export.StepView: {50, 30}, export.StepRead: {80, 20}}
	var last time.Duration
	return func(step export.Step, done, total int64) {
		w := weights[step]
		share := w[0]
		if total > 0 {
			share += int(int64(w[1]) * min(done, total) / total)
		}
		now := g.opts.Clock.Mono()
		if now-last < progressEvery {
			return
		}
		last = now
		g.sticks.mu.Lock()
		k.share = share
		g.sticks.mu.Unlock()
		g.showIdle()
	}
}

// codePulled is of a copy whose stick went away.
const codePulled = "pulled_out"

// awaitPull gives a stick that fails the time to turn out to be gone: its device fails first.
func (g *guard) awaitPull(err error, gone <-chan struct{}) {
	var problem *stickError
	if !errors.As(err, &problem) || problem.problem != ipc.StickUnreadable {
		return
	}
	enough, stop := g.opts.Clock.Until(g.opts.Clock.Boot() + goneTimeout)
	defer stop()
	select {
	case <-gone:
	case <-enough:
	}
}

// copyFailure says what became of a copy that came to nothing, to the record and to people.
func copyFailure(err error, gone <-chan struct{}, copying context.Context) (code string, say words) {
	var noRoom *export.NoRoomError
	var problem *stickError
	select {
	case <-gone:
		return codePulled, words{}
	default:
	}
	switch {
	case errors.Is(context.Cause(copying), errTooSlow):
		return "too_long", words{"stick is too slow:", "use another one", "This stick is too slow for the record: use another. Nothing is lost."}
	case copying.Err() != nil:
		return "stopped", words{"copying was stopped:", "nothing is lost", "Copying was stopped. The stick has no copy. Nothing is lost."}
	case errors.As(err, &noRoom), errors.Is(err, syscall.ENOSPC):
		say = wordsOf(ipc.StickFull)
		if noRoom != nil {
			say.full = fmt.Sprintf("The stick is full: about %d MB are needed. Make room on it, or use another. Nothing is lost.", (noRoom.Need+1e6-1)/1e6)
		}
		return "no_room", say
	case errors.Is(err, export.ErrExists):
		return "exists", words{"no name is free:", "use another one", "The stick has something of every name for a copy: use another. Nothing is lost."}
	case errors.Is(err, export.ErrReadBack):
		return "read_back", words{"the stick is bad:", "use another one", "The stick gives back other bytes than were written: use another. Nothing is lost."}
	case errors.Is(err, context.DeadlineExceeded):
		return "too_slow", words{"stick does not reply", "use another one", "The stick does not reply: pull it out, use another. Nothing is lost."}
	case errors.As(err, &problem):
		return fmt.Sprintf("stick_%d", problem.problem), wordsOf(problem.problem)
	}
	return "internal", words{"the copy failed:", "use another stick", "The copy failed: try again, or use another stick. Nothing is lost."}
}
