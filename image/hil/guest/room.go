package main

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"sync"
	"time"

	"assent.home.arpa/appliance/clock"
	"assent.home.arpa/appliance/config"
	"assent.home.arpa/confirm"
	"assent.home.arpa/confirm/screen"
	"assent.home.arpa/device"
	"assent.home.arpa/device/board"
	"assent.home.arpa/device/board/boardtest"
	"assent.home.arpa/image/emulator/first"
	"assent.home.arpa/image/hil/hiltest"
	"assent.home.arpa/image/hil/report"
)

// Lines of a room's bank.
const (
	approveLine = 1
	denyLine    = 2
	lampLine    = 3
)

// patience bounds every wait for something that should come at once, on a slow emulator with other rooms at work.
const patience = 10 * time.Second

// room is one box in one case: its parts, its panel, and a pair of hands.
type room struct {
	name    string
	console *first.Console
	bank    *hiltest.Bank
	adapter *hiltest.Adapter
	board   *board.Board
	clock   *sleeper
	desk    *confirm.Desk
	stop    func()
	cancels []func()

	outcome  string
	receipts int

	mu       sync.Mutex // guards all below
	journal  []confirm.Transition
	notices  []confirm.Notice
	problems []string
}

// display makes a display of the kind that a room's box has.
func display(part string) *boardtest.OLED {
	if part == "sh1106" {
		return boardtest.NewSH1106()
	}
	return boardtest.NewSSD1306()
}

// furnish makes a room's hardware: a chip with the lines that the product expects, and a display on a bus.
func (r *room) furnish(port int, part string) error {
	var err error
	if r.bank, err = hiltest.NewBank(r.name, "", "assent-approve", "assent-deny", "assent-lamp", "assent-buzzer"); err != nil {
		return err
	}
	r.adapter = hiltest.NewAdapter(port, display(part))
	return r.adapter.Plug()
}

// panel is the configuration of a room's box. There are other rooms with lines of the same names, so it says where.
func (r *room) panel(part string) config.Panel {
	p := config.Default().Panel
	p.Display, p.Bus = part, r.adapter.Place()
	p.Approve += "@" + r.bank.Place()
	p.Deny += "@" + r.bank.Place()
	p.Lamp, p.Buzzer = "assent-lamp@"+r.bank.Place(), "assent-buzzer@"+r.bank.Place()
	return p
}

// open opens the box's parts.
func (r *room) open(part string) error {
	var err error
	r.board, err = board.Open(r.panel(part))
	return err
}

// start lets the panel run.
func (r *room) start() error {
	r.clock = &sleeper{Clock: clock.System()}
	var err error
	r.desk, err = confirm.New(confirm.Config{
		Display: r.board.Display, Buttons: r.board.Buttons, Lamp: r.board.Lamp, Clock: r.clock, BootID: [16]byte{1},
		Key: ed25519.NewKeyFromSeed(make([]byte, ed25519.SeedSize)), Journal: r.note,
	})
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		if err := r.desk.Run(ctx); !errors.Is(err, context.Canceled) {
			r.problem("the panel ended: %v", err)
		}
	}()
	go r.listen(ctx)
	r.stop = func() { cancel(); <-ended }
	return nil
}

func (r *room) note(t confirm.Transition) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.journal = append(r.journal, t)
}

func (r *room) listen(ctx context.Context) {
	for {
		select {
		case n := <-r.desk.Notices():
			r.mu.Lock()
			r.notices = append(r.notices, n)
			r.mu.Unlock()
		case <-ctx.Done():
			return
		}
	}
}

// leave takes everything apart again.
func (r *room) leave() {
	for _, cancel := range r.cancels {
		cancel()
	}
	if r.stop != nil {
		r.stop()
	}
	if r.board != nil {
		_ = r.board.Close() // some cases take its parts away
	}
	if r.adapter != nil {
		if err := r.adapter.Refused(); err != nil {
			r.problem("the display got what its data sheet does not have: %v", err)
		}
		if err := r.adapter.Pull(); err != nil {
			r.problem("%v", err)
		}
	}
	if r.bank != nil {
		_ = r.bank.Remove()
	}
}

// problem records that something is not as it should be.
func (r *room) problem(format string, args ...any) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.problems = append(r.problems, fmt.Sprintf(format, args...))
}

// fatal records a problem after which the case means nothing any more, and ends it.
func (r *room) fatal(format string, args ...any) {
	r.problem(format, args...)
	r.problem("the panel went through %s", r.path())
	runtime.Goexit()
}

// must ends the case on an error.
func (r *room) must(err error) {
	if err != nil {
		r.fatal("%v", err)
	}
}

func (r *room) line(b device.Button) int {
	if b == device.Deny {
		return denyLine
	}
	return approveLine
}

// The hands.

func (r *room) press(b device.Button)   { r.must(r.bank.Close(r.line(b))) }
func (r *room) release(b device.Button) { r.must(r.bank.Open(r.line(b))) }

func (r *room) hold(b device.Button, d time.Duration) {
	r.press(b)
	time.Sleep(d)
	r.release(b)
}

func (r *room) tap(b device.Button) { r.hold(b, 100*time.Millisecond) }

// bounce moves a contact at the given times after now, beginning with a press, as a worn button does.
func (r *room) bounce(b device.Button, after ...time.Duration) {
	start := time.Now()
	for i, d := range after {
		time.Sleep(time.Until(start.Add(d)))
		if i%2 == 0 {
			r.press(b)
		} else {
			r.release(b)
		}
	}
}

// The eyes.

// glass is what somebody sees.
func (r *room) glass() device.Frame {
	f, lit := r.adapter.Display.Glass(false)
	if !lit {
		return device.Frame{}
	}
	return f
}

// shows reports whether the glass shows a page, whatever its strip says.
func (r *room) shows(p screen.Page) bool {
	glass := r.glass()
	const strip = device.Width * (device.Height/8 - 1)
	return bytes.Equal(glass[:strip], p.Frame[:strip])
}

// photograph sends what the glass shows to the host, between two draws if it can.
func (r *room) photograph(of string) {
	const between, tries = 20 * time.Millisecond, 50
	for range tries {
		if r.adapter.Still(between) {
			break
		}
		time.Sleep(5 * time.Millisecond)
	}
	f := r.glass()
	r.must(r.console.Put(report.Line{Glass: &report.Glass{Name: r.name + " " + of, Frame: f[:]}}))
}

// lit demands that the lamp is on, or off.
func (r *room) lit(want bool) {
	on, err := r.bank.High(lampLine)
	r.must(err)
	if on != want {
		r.problem("the lamp is on: %v", on)
	}
}

// until waits for something that should come soon.
func (r *room) until(what string, is func() bool) {
	for end := time.Now().Add(patience); !is(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			r.photograph("instead")
			r.fatal("%s did not come", what)
		}
	}
}

// last is the latest transition into a state.
func (r *room) last(s confirm.State) (confirm.Transition, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, t := range slices.Backward(r.journal) {
		if t.To == s {
			return t, true
		}
	}
	return confirm.Transition{}, false
}

func (r *room) passed(s confirm.State) bool {
	_, ok := r.last(s)
	return ok
}

// now is the state that the panel is in.
func (r *room) now() confirm.State {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.journal) == 0 {
		return confirm.StateIdle
	}
	return r.journal[len(r.journal)-1].To
}

// in waits until the panel is in a state.
func (r *room) in(s confirm.State) {
	r.until("state "+s.String(), func() bool { return r.now() == s })
}

// path tells the last of the panel's way for a person.
func (r *room) path() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	var steps []string
	const enough = 12
	for _, t := range r.journal[max(0, len(r.journal)-enough):] {
		steps = append(steps, fmt.Sprintf("%v (%s)", t.To, t.Cause))
	}
	return strings.Join(steps, ", ")
}

// noticed counts the notices of a kind.
func (r *room) noticed(k confirm.NoticeKind) int {
	r.mu.Lock()
	defer r.mu.Unlock()
	n := 0
	for _, got := range r.notices {
		if got.Kind == k {
			n++
		}
	}
	return n
}

// sleeper is the box's clock. It can be made to say that the box has slept.
type sleeper struct {
	clock.Clock
	mu    sync.Mutex
	slept time.Duration // guarded by mu
}

func (s *sleeper) sleep(d time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.slept += d
}

// Boot implements clock.Clock.
func (s *sleeper) Boot() time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.Clock.Boot() + s.slept
}

// Until implements clock.Clock. It may be late by what was slept meanwhile, as after a real suspend by a quarter second.
func (s *sleeper) Until(t time.Duration) (<-chan struct{}, func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.Clock.Until(t - s.slept)
}
