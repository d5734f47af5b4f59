package main

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"golang.org/x/sys/unix"

	"assent.home.arpa/confirm"
	"assent.home.arpa/confirm/screen"
	"assent.home.arpa/device"
	"assent.home.arpa/image/emulator/first"
	"assent.home.arpa/image/hil/hiltest"
)

// edgesACard is how many presses are taken on one request: a decision keeps its newest 32 edges, the approving press among them.
const edgesACard = 15

// edgeCards is how many requests are used for edges, one after the other.
const edgeCards = 6

// settling is how long a contact must be still before an edge counts: device/board sees to that, and the kernel for the bare loop.
const settling = 10 * time.Millisecond

// quietTime is how long the panel is left alone before an edge, so that nothing is being drawn when it comes.
const quietTime = 100 * time.Millisecond

// measure takes the figures, one room at a time and nothing else at work.
func measure(c *first.Console) error {
	r := &room{name: "figures", console: c}
	done := make(chan error, 1)
	go func() {
		var err error
		defer func() {
			r.leave()
			if len(r.problems) > 0 {
				err = errors.Join(err, fmt.Errorf("%q", r.problems))
			}
			done <- err
		}()
		err = r.measure()
	}()
	return <-done
}

func (r *room) measure() error {
	if err := r.furnish(0, "ssd1306"); err != nil {
		return err
	}
	if err := r.open("ssd1306"); err != nil {
		return err
	}
	if err := r.pageCost(); err != nil {
		return err
	}
	if err := r.start(); err != nil {
		return err
	}
	if err := r.idleCost(); err != nil {
		return err
	}
	return r.edges()
}

// pageCost is what the bus carries for a new picture, and for the same one in which a line changed.
func (r *room) pageCost() error {
	cost := func(put func(*device.Frame) error, f *device.Frame) (int, error) {
		r.adapter.Display.Traffic()
		err := put(f)
		bytes, _ := r.adapter.Display.Traffic()
		return bytes, err
	}
	display := r.board.Display
	var f device.Frame
	for i := range f {
		f[i] = byte(i*7) ^ byte(i/device.Width*31)
	}
	if err := display.Draw(&f); err != nil {
		return err
	}
	f.Invert()
	began := time.Now()
	page, err := cost(display.Draw, &f)
	if err != nil {
		return err
	}
	took := time.Since(began)
	for i := range device.Width {
		f[3*device.Width+i] ^= 0xff
	}
	line, err := cost(display.Update, &f)
	if err != nil {
		return err
	}
	return errors.Join(
		r.console.Figure("panel/page_bytes", float64(page)/float64(len(f)), "ratio"),
		r.console.Figure("panel/line_bytes", float64(line), "bytes"),
		r.console.Figure("panel/page_ms", millis(took), "ms"),
	)
}

// idleCost is the processor time of this process while its panel shows the idle screen: the panel's goroutines, and what
// the simulated hardware does for them, which is nothing as long as nothing is drawn.
func (r *room) idleCost() error {
	r.until("the idle screen", func() bool { return r.glass() != device.Frame{} })
	time.Sleep(500 * time.Millisecond)
	const watch = 5 * time.Second
	before, err := processorTime()
	if err != nil {
		return err
	}
	time.Sleep(watch)
	after, err := processorTime()
	if err != nil {
		return err
	}
	return r.console.Figure("panel/idle_cpu", 100*float64(after-before)/float64(watch), "percent")
}

func processorTime() (time.Duration, error) {
	var ts unix.Timespec
	err := unix.ClockGettime(unix.CLOCK_PROCESS_CPUTIME_ID, &ts)
	return time.Duration(ts.Nano()), err
}

// edges compares how long the panel takes from the moment at which a contact moves to the step that it causes with how long the
// shortest loop takes to the return of read. Both let the contact settle first, the panel by itself and the loop by the kernel's
// help; since that is most of the time, what the panel takes beyond it is said too. The two take turns, so that whatever else
// slows the machine slows both. At its end each request is approved, which says how
// long that takes.
func (r *room) edges() error {
	bank, err := hiltest.NewBank("bare", "", "bare")
	if err != nil {
		return err
	}
	defer bank.Remove()
	bare, err := openBare(bank.Device(), 1)
	if err != nil {
		return err
	}
	defer bare.close()
	var panel, settled, loop, receipts []time.Duration // from a contact's move, or from when it had settled
	for i := range edgeCards {
		req := request(byte(i + 1))
		req.Card = screen.Card{Title: "Measuring"} // one page, so that a short press turns none
		p := r.askFor(req)
		p.read()
		var steps []time.Duration
		for range edgesACard {
			moved, step := r.panelEdge()
			panel = append(panel, step-moved)
			steps = append(steps, step)
			moved, had, err := r.bareEdge(bank, bare)
			if err != nil {
				return err
			}
			loop = append(loop, had-moved)
		}
		r.press(device.Approve)
		r.until("the full bar", func() bool { return r.fullBar(p) })
		r.release(device.Approve)
		d := p.want(confirm.Approved)
		const hold = 1500 * time.Millisecond
		receipts = append(receipts, d.Completed-(d.Pressed+hold)) // from then on letting go is all it takes
		for _, step := range steps {
			settled = append(settled, step-settledBefore(step, d.Course.Presses))
		}
		time.Sleep(quietTime)
	}
	return errors.Join(
		r.console.Figure("panel/edge_vs_bare", ratio(panel, loop), "ratio"),
		r.console.Figure("panel/edge_ms", millis(median(panel)), "ms"),
		r.console.Figure("panel/settled_ms", millis(median(settled)), "ms"),
		r.console.Figure("panel/deadline_to_receipt_ms", millis(median(receipts)), "ms"),
	)
}

// panelEdge presses on the armed last page and lets go too early. It returns when the contact moved, and when the panel took
// that for a press.
func (r *room) panelEdge() (moved, step time.Duration) {
	r.in(confirm.StateArmed)
	time.Sleep(quietTime)
	moved = r.clock.Mono()
	r.press(device.Approve)
	r.in(confirm.StateHolding)
	t, _ := r.last(confirm.StateHolding)
	time.Sleep(30 * time.Millisecond)
	r.release(device.Approve)
	r.in(confirm.StateArmed)
	return moved, t.Mono
}

// bareEdge does the same to the other line.
func (r *room) bareEdge(bank *hiltest.Bank, bare *bareLine) (moved, had time.Duration, err error) {
	time.Sleep(quietTime)
	moved = r.clock.Mono()
	if err = bank.Close(1); err != nil {
		return 0, 0, err
	}
	if had, err = bare.next(); err != nil {
		return 0, 0, err
	}
	time.Sleep(30 * time.Millisecond)
	if err = bank.Open(1); err != nil {
		return 0, 0, err
	}
	_, err = bare.next()
	return moved, had, err
}

// settledBefore is when the press that caused a step had settled: the last one before it.
func settledBefore(step time.Duration, edges []device.Event) (at time.Duration) {
	for _, ev := range edges {
		if settled := ev.Mono + settling; ev.Edge == device.Press && settled <= step {
			at = settled
		}
	}
	return at
}

// ratio is one median over another.
func ratio(a, b []time.Duration) float64 { return float64(median(a)) / float64(median(b)) }

func median(all []time.Duration) time.Duration {
	slices.Sort(all)
	return all[len(all)/2]
}

func millis(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }
