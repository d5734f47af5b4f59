package confirm_test

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"errors"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"assent.home.arpa/appliance/clock/clocktest"
	"assent.home.arpa/capabilities"
	"assent.home.arpa/confirm"
	"assent.home.arpa/confirm/screen"
	"assent.home.arpa/device"
	"assent.home.arpa/device/devicetest"
)

const (
	approve = device.Approve
	deny    = device.Deny
)

// box is a running panel with its fakes, inside a synctest bubble.
type box struct {
	*testing.T
	desk    *confirm.Desk
	panel   *devicetest.Panel
	buttons *devicetest.Buttons
	lamp    *devicetest.Lamp
	clock   *clocktest.Clock
	hands   devicetest.Hands
	stop    func() error

	mu      sync.Mutex
	journal []confirm.Transition // guarded by mu
	notices []confirm.Notice     // guarded by mu
}

// option changes the parts before the panel starts.
type option func(*confirm.Config, *box)

func blind(_ *confirm.Config, b *box) { b.panel.Blind() }

func oneButton(cfg *confirm.Config, b *box) {
	b.buttons = devicetest.NewOneButton(b.clock)
	cfg.Buttons = b.buttons
}

func dwell(cfg *confirm.Config, _ *box) {
	cfg.Timings = confirm.DefaultTimings()
	cfg.Timings.Dwell = confirm.DwellCountdown
}

func heldSinceBoot(_ *confirm.Config, b *box) { b.buttons.HeldSinceBoot(approve) }

func testKey() ed25519.PrivateKey {
	return ed25519.NewKeyFromSeed(bytes.Repeat([]byte{7}, ed25519.SeedSize))
}

// inBox runs test with a panel that has started and shows its idle screen.
func inBox(t *testing.T, test func(b *box), options ...option) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		c := clocktest.New()
		b := &box{T: t, clock: c, panel: devicetest.NewPanel(c), buttons: devicetest.NewButtons(c), lamp: &devicetest.Lamp{}}
		cfg := confirm.Config{
			Display: b.panel, Buttons: b.buttons, Lamp: b.lamp, Clock: c, BootID: [16]byte{1}, Key: testKey(),
			Rand: rand.NewChaCha8([32]byte{1}),
			Journal: func(tr confirm.Transition) {
				b.mu.Lock()
				defer b.mu.Unlock()
				b.journal = append(b.journal, tr)
			},
		}
		for _, o := range options {
			o(&cfg, b)
		}
		desk, err := confirm.New(cfg)
		if err != nil {
			t.Fatal(err)
		}
		b.desk = desk
		b.hands = devicetest.Hands{Buttons: b.buttons, Clock: c, Settle: synctest.Wait}
		b.run()
		defer func() {
			b.panel.Heal()
			if err := b.stop(); !errors.Is(err, context.Canceled) {
				t.Errorf("run ended with %v", err)
			}
		}()
		test(b)
	})
}

func (b *box) run() {
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- b.desk.Run(ctx) }()
	go func() {
		for {
			select {
			case n := <-b.desk.Notices():
				b.mu.Lock()
				b.notices = append(b.notices, n)
				b.mu.Unlock()
			case <-ctx.Done():
				return
			}
		}
	}()
	b.stop = func() error {
		cancel()
		synctest.Wait()
		b.clock.Advance(time.Minute) // a draw under way may be a slow one
		return <-ended
	}
	b.hands.Wait(100 * time.Millisecond)
}

// noticed counts the notices of a kind.
func (b *box) noticed(kind confirm.NoticeKind) int {
	synctest.Wait()
	b.mu.Lock()
	defer b.mu.Unlock()
	n := 0
	for _, got := range b.notices {
		if got.Kind == kind {
			n++
		}
	}
	return n
}

// passed reports whether the panel was ever in the state.
func (b *box) passed(s confirm.State) bool {
	synctest.Wait()
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, tr := range b.journal {
		if tr.To == s {
			return true
		}
	}
	return false
}

// pending is an Ask under way.
type pending struct {
	b      *box
	cancel func()
	done   chan struct{}
	dec    confirm.Decision
	err    error
}

func (b *box) ask(r confirm.Request) *pending {
	ctx, cancel := context.WithCancel(context.Background())
	p := &pending{b: b, cancel: cancel, done: make(chan struct{})}
	go func() {
		defer close(p.done)
		p.dec, p.err = b.desk.Ask(ctx, r)
	}()
	synctest.Wait()
	return p
}

func (p *pending) decided() bool {
	synctest.Wait()
	select {
	case <-p.done:
		return true
	default:
		return false
	}
}

// want demands how the Ask has ended by now.
func (p *pending) want(o confirm.Outcome) confirm.Decision {
	p.b.Helper()
	if !p.decided() {
		p.b.Fatalf("not decided, want %v", o)
	}
	if p.err != nil || p.dec.Outcome != o {
		p.b.Fatalf("decided %v, %v; want %v", p.dec.Outcome, p.err, o)
	}
	return p.dec
}

// undecided demands that the Ask still waits.
func (p *pending) undecided() {
	p.b.Helper()
	if p.decided() {
		p.b.Fatalf("decided %v, %v; want it pending", p.dec.Outcome, p.err)
	}
}

// request is the n-th of a row of requests by different persons on different phones.
func request(n byte) confirm.Request {
	return confirm.Request{
		Inv: capabilities.InvocationID{n}, Slot: uint32(n), Person: string(rune('a' + n)), Phone: "KITCHEN",
		Capability: "web.search", Version: 1, Revision: "mediawiki/1", SchemaDigest: [32]byte{2}, Registry: "r1",
		ArgsDigest: capabilities.ArgsDigest{n, 3}, RequestDigest: [32]byte{n, 4},
		Card: screen.Card{Title: "Search Wikipedia for", Text: "late show", Destination: "wikipedia.org", Note: "GET", Phone: "KITCHEN"},
	}
}

func binding(r confirm.Request) confirm.Binding {
	return confirm.Binding{
		Inv: r.Inv, ArgsDigest: r.ArgsDigest, RequestDigest: r.RequestDigest, Capability: r.Capability, Version: r.Version,
		Revision: r.Revision, SchemaDigest: r.SchemaDigest, Registry: r.Registry, Slot: r.Slot,
	}
}

func (b *box) pages(r confirm.Request) []screen.Page {
	b.Helper()
	pages, err := screen.Pages(r.Card)
	if err != nil {
		b.Fatal(err)
	}
	return pages
}

// shows reports whether the glass shows the page, whatever its strip says.
func (b *box) shows(p screen.Page) bool {
	synctest.Wait()
	glass := b.panel.Glass()
	const strip = device.Width * (device.Height/8 - 1)
	return bytes.Equal(glass[:strip], p.Frame[:strip])
}

// reach waits until the front card is announced.
func (b *box) reach() { b.hands.Wait(1100 * time.Millisecond) }

// onGlass is how long a page must stay.
func onGlass(p screen.Page) time.Duration {
	return 700*time.Millisecond + time.Duration(p.CodePoints)*15*time.Millisecond
}

// read opens the announced card and reads it to the end, so that the last page is armed.
func (b *box) read(r confirm.Request) {
	b.Helper()
	b.hands.Tap(approve)
	for i, p := range b.pages(r) {
		if i > 0 {
			b.hands.Tap(approve)
		}
		if !b.shows(p) {
			b.Fatalf("page %d is not on the glass", i+1)
		}
		b.hands.Wait(onGlass(p) + 50*time.Millisecond)
	}
}

const fullHold = 1600 * time.Millisecond

// grant asks, reads and holds: the whole press.
func (b *box) grant(r confirm.Request) confirm.Decision {
	b.Helper()
	p := b.ask(r)
	b.reach()
	b.read(r)
	b.hands.Hold(approve, fullHold)
	return p.want(confirm.Approved)
}
