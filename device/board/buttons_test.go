package board_test

import (
	"errors"
	"runtime"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"periph.io/x/conn/v3/i2c"

	"assent.home.arpa/device"
	"assent.home.arpa/device/board"
	"assent.home.arpa/device/board/boardtest"
)

const (
	approve = 0 // in the order in which the lines are requested
	deny    = 1
	ms      = time.Millisecond
	at      = 2 * time.Hour
)

// read takes n events.
func read(t *testing.T, b device.Buttons, n int) []device.Event {
	t.Helper()
	var events []device.Event
	stuck := time.After(10 * time.Second)
	for len(events) < n {
		select {
		case ev, open := <-b.Events():
			if !open {
				t.Fatalf("events ended after %v: %v", events, b.Err())
			}
			events = append(events, ev)
		case <-stuck:
			t.Fatalf("no event comes after %v", events)
		}
	}
	return events
}

// mustEnd demands that no event comes any more.
func mustEnd(t *testing.T, b device.Buttons) {
	t.Helper()
	select {
	case ev, open := <-b.Events():
		if open {
			t.Fatalf("delivered %+v", ev)
		}
	case <-time.After(10 * time.Second):
		t.Fatal("the events stay open")
	}
}

func ev(b device.Button, e device.Edge, mono time.Duration, seq uint32) device.Event {
	return device.Event{Mono: mono, Edge: e, Seq: seq, Button: b}
}

// TestEdges sees the kernel's own times arrive, in order, whenever they are read.
func TestEdges(t *testing.T) {
	k, p := machine(t)
	b, _ := mustOpen(t, k, p)
	k.Edge(approve, at, true)
	k.Edge(deny, at+20*ms, true)
	k.Edge(approve, at+30*ms, false)
	k.Edge(deny, at+50*ms, false)
	k.Advance(10 * ms)
	want := []device.Event{
		ev(device.Approve, device.Press, at, 1),
		ev(device.Deny, device.Press, at+20*ms, 1),
		ev(device.Approve, device.Release, at+30*ms, 2),
		ev(device.Deny, device.Release, at+50*ms, 2),
	}
	if diff := cmp.Diff(want, read(t, b.Buttons, len(want))); diff != "" {
		t.Error(diff)
	}
}

// TestOverflow drops edges as a full queue does: the counts say so.
func TestOverflow(t *testing.T) {
	k, p := machine(t)
	b, _ := mustOpen(t, k, p)
	k.Edge(approve, at, true)
	k.Lose(approve, at+20*ms, false)
	k.Edge(approve, at+40*ms, true)
	k.Advance(10 * ms)
	want := []device.Event{
		ev(device.Approve, device.Press, at, 1),
		ev(device.Approve, device.Release, at+40*ms, 3), // whether the finger stayed is not known
		ev(device.Approve, device.Press, at+40*ms, 4),
	}
	if diff := cmp.Diff(want, read(t, b.Buttons, len(want))); diff != "" {
		t.Error(diff)
	}
}

// TestMoreThanAnybodyReads keeps what nobody reads in the kernel, and loses nothing of it.
func TestMoreThanAnybodyReads(t *testing.T) {
	k, p := machine(t)
	b, _ := mustOpen(t, k, p)
	const n = 500
	for i := range n {
		k.Edge(approve, at+time.Duration(i)*20*ms, i%2 == 0)
	}
	k.Advance(10 * ms)
	for i, ev := range read(t, b.Buttons, n) {
		if ev.Seq != uint32(i+1) {
			t.Fatalf("event %d has count %d", i, ev.Seq)
		}
	}
}

func TestDown(t *testing.T) {
	k, p := machine(t)
	b, _ := mustOpen(t, k, p)
	level := func(button device.Button, want bool) {
		t.Helper()
		if got, err := b.Buttons.Down(button); err != nil || got != want {
			t.Errorf("%v down is %v, %v", button, got, err)
		}
	}
	level(device.Approve, false)
	level(device.Deny, false)
	k.Lose(deny, at, true) // the level is true even where the edge was lost
	level(device.Approve, false)
	level(device.Deny, true)
	k.Unplug()
	if _, err := b.Buttons.Down(device.Deny); err == nil {
		t.Error("a line that is gone has a level")
	}
}

func TestOneButton(t *testing.T) {
	k, p := machine(t)
	p.Deny = ""
	b, _ := mustOpen(t, k, p)
	if !b.Buttons.Has(device.Approve) || b.Buttons.Has(device.Deny) {
		t.Error("the kit has the wrong buttons")
	}
	if _, err := b.Buttons.Down(device.Deny); !errors.Is(err, device.ErrNoButton) {
		t.Errorf("the missing button says %v", err)
	}
	k.Edge(approve, at, true)
	k.Advance(10 * ms)
	if got := read(t, b.Buttons, 1)[0]; got.Button != device.Approve || got.Edge != device.Press {
		t.Errorf("got %+v", got)
	}
}

// TestALineThatRings closes for long enough to count, and then does not come to rest, as a loose wire that somebody touched:
// nobody holds that button.
func TestALineThatRings(t *testing.T) {
	k, p := machine(t)
	b, _ := mustOpen(t, k, p)
	k.Edge(approve, at, true)
	now := at + 20*ms
	for i := range 501 {
		k.Edge(approve, now, i%2 == 1)
		now += 4 * ms
	}
	want := []device.Event{
		ev(device.Approve, device.Press, at, 1),
		ev(device.Approve, device.Release, at+20*ms+32*ms, 2),
	}
	if diff := cmp.Diff(want, read(t, b.Buttons, len(want))); diff != "" {
		t.Error(diff)
	}
	if down, err := b.Buttons.Down(device.Approve); err != nil || down {
		t.Errorf("down is %v, %v while the line rings", down, err)
	}
}

// TestLinesLost ends the events, with a reason, when the chip goes away or talks nonsense.
func TestLinesLost(t *testing.T) {
	for _, tt := range []struct {
		name string
		do   func(k *boardtest.Kernel)
	}{
		{"chip unplugged", (*boardtest.Kernel).Unplug},
		{"event of an unknown line", func(k *boardtest.Kernel) { k.Raw(rawEvent(1, 1, 2, 1)) }},
		{"event of an unknown kind", func(k *boardtest.Kernel) { k.Raw(rawEvent(1, 3, 3, 1)) }},
	} {
		t.Run(tt.name, func(t *testing.T) {
			k, p := machine(t)
			b, _ := mustOpen(t, k, p)
			if err := b.Buttons.Err(); err != nil {
				t.Fatalf("error before anything happened: %v", err)
			}
			tt.do(k)
			mustEnd(t, b.Buttons)
			if b.Buttons.Err() == nil {
				t.Error("no reason")
			}
			if err := b.Close(); err != nil {
				t.Error(err)
			}
		})
	}
}

// TestCloseWhileNobodyReads ends a reader that has edges nobody takes.
func TestCloseWhileNobodyReads(t *testing.T) {
	k, p := machine(t)
	b, _ := mustOpen(t, k, p)
	for i := range 200 {
		k.Edge(approve, at+time.Duration(i)*20*ms, i%2 == 0)
	}
	if err := b.Close(); err != nil {
		t.Error(err)
	}
	if b.Buttons.Err() == nil {
		t.Error("closed without a reason")
	}
}

func TestBounce(t *testing.T) {
	k, p := machine(t)
	b, _ := mustOpen(t, k, p)
	k.Edge(approve, at, true)
	k.Edge(approve, at+3*ms, false)
	k.Edge(approve, at+7*ms, true)
	k.Advance(10 * ms)
	want := []device.Event{ev(device.Approve, device.Press, at+7*ms, 1)}
	if diff := cmp.Diff(want, read(t, b.Buttons, 1)); diff != "" {
		t.Error(diff)
	}
	k.Lose(approve, at+20*ms, false) // the contact bounces just now
	if down, err := b.Buttons.Down(device.Approve); err != nil || !down {
		t.Errorf("down is %v, %v during a bounce", down, err)
	}
	if down, err := b.Buttons.Down(device.Deny); err != nil || down {
		t.Errorf("down is %v, %v before any edge", down, err)
	}
}

// TestLateReader: the reader was kept waiting until the press would be settled, and the end of the bounce lies in
// the kernel. It looks there first.
func TestLateReader(t *testing.T) {
	k, p := machine(t)
	b, _ := mustOpen(t, k, p)
	asks := k.Asks()
	k.Edge(approve, at, true)
	for k.Asks() == asks { // it waits for the press to settle
		runtime.Gosched()
	}
	k.Behind(approve, at+5*ms, at+12*ms, false)
	for k.Asks() < asks+3 { // it has looked, and asked again
		runtime.Gosched()
	}
	k.Advance(10 * ms)
	k.Edge(approve, at+50*ms, true)
	k.Advance(10 * ms)
	want := []device.Event{ev(device.Approve, device.Press, at+50*ms, 1)}
	if diff := cmp.Diff(want, read(t, b.Buttons, 1)); diff != "" {
		t.Error(diff)
	}
}

// TestRawEdges is for a test of the contacts: what bounces is seen.
func TestRawEdges(t *testing.T) {
	k, p := machine(t)
	b, err := board.OpenRawOn(k.Root, k, func(int) (i2c.BusCloser, error) { return boardtest.NewSSD1306(), nil }, p)
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	k.Edge(approve, at, true)
	k.Edge(approve, at+3*ms, false)
	k.Edge(approve, at+4*ms, true)
	want := []device.Event{
		ev(device.Approve, device.Press, at, 1), ev(device.Approve, device.Release, at+3*ms, 2), ev(device.Approve, device.Press, at+4*ms, 3),
	}
	if diff := cmp.Diff(want, read(t, b.Buttons, 3)); diff != "" {
		t.Error(diff)
	}
	if down, err := b.Buttons.Down(device.Approve); err != nil || !down {
		t.Errorf("down is %v, %v", down, err)
	}
	if _, err := open(k, p, boardtest.NewSSD1306()); !errors.Is(err, board.ErrInUse) {
		t.Errorf("a second program gets %v, want ErrInUse", err)
	}
}
