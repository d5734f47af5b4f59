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
	"assent.home.arpa/image/hil/hiltest"
)

// edgesACard is how many presses are taken on one request: a decision keeps its first 64 edges.
const edgesACard = 30

// edgeCards is how many requests are used for edges, one after the other.
const edgeCards = 3

// settling is how long the kernel lets a contact settle before it stamps the edge (as device/board asks it to). Decisions
// carry the time of the edge itself, which was that much earlier.
const settling = 10 * time.Millisecond

// quietTime is how long the panel is left alone before an edge, so that nothing is being drawn when it comes.
const quietTime = 100 * time.Millisecond

// measure takes the figures, one room at a time and nothing else at work.
func measure(c *console) error {
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

// pageCost is what the bus carries for a picture in which everything differs, and for one in which a line of text does.
func (r *room) pageCost() error {
	draw := func(f *device.Frame) (int, error) {
		r.adapter.Display.Traffic()
		err := r.board.Display.Draw(f)
		bytes, _ := r.adapter.Display.Traffic()
		return bytes, err
	}
	var f device.Frame
	for i := range f {
		f[i] = byte(i*7) ^ byte(i/device.Width*31)
	}
	if _, err := draw(&f); err != nil {
		return err
	}
	f.Invert()
	began := time.Now()
	page, err := draw(&f)
	if err != nil {
		return err
	}
	took := time.Since(began)
	for i := range device.Width {
		f[3*device.Width+i] ^= 0xff
	}
	line, err := draw(&f)
	if err != nil {
		return err
	}
	return errors.Join(
		r.console.figure("panel/page_bytes", float64(page)/float64(len(f)), "ratio"),
		r.console.figure("panel/line_bytes", float64(line), "bytes"),
		r.console.figure("panel/page_ms", millis(took), "ms"),
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
	return r.console.figure("panel/idle_cpu", 100*float64(after-before)/float64(watch), "percent")
}

func processorTime() (time.Duration, error) {
	var ts unix.Timespec
	err := unix.ClockGettime(unix.CLOCK_PROCESS_CPUTIME_ID, &ts)
	return time.Duration(ts.Nano()), err
}

// edges compares how long the panel takes from an edge to the step that it causes with how long the shortest loop takes from
// an edge to the return of read. Both lines are asked for in the same words; the clock starts when the kernel stamps the edge.
// The two take turns, so that whatever else slows the machine slows both. At its end each request is approved, which says
// how long that takes.
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
	var product, plain, receipts []time.Duration
	for i := range edgeCards {
		req := request(byte(i + 1))
		req.Card = screen.Card{Title: "Measuring"} // one page, so that a short press turns none
		p := r.askFor(req)
		p.read()
		var steps []time.Duration
		for range edgesACard {
			step, err := r.productEdge()
			if err != nil {
				return err
			}
			steps = append(steps, step)
			time.Sleep(quietTime)
			if err := bank.Close(1); err != nil {
				return err
			}
			took, err := bare.next(patience)
			if err != nil {
				return err
			}
			plain = append(plain, took)
			time.Sleep(30 * time.Millisecond)
			if err := bank.Open(1); err != nil {
				return err
			}
			if _, err := bare.next(patience); err != nil {
				return err
			}
		}
		r.press(device.Approve)
		d := p.want(confirm.Approved)
		have := r.clock.Mono()
		r.release(device.Approve)
		const hold = 1500 * time.Millisecond
		receipts = append(receipts, have-(d.Pressed+hold))
		lags, err := lag(steps, d.Presses)
		if err != nil {
			return err
		}
		product = append(product, lags...)
		time.Sleep(200 * time.Millisecond)
	}
	return errors.Join(
		r.console.figure("panel/edge_vs_bare", float64(median(product))/float64(median(plain)), "ratio"),
		r.console.figure("panel/edge_ms", millis(median(product)), "ms"),
		r.console.figure("panel/bare_edge_ms", millis(median(plain)), "ms"),
		r.console.figure("panel/deadline_to_receipt_ms", millis(median(receipts)), "ms"),
	)
}

// productEdge presses on the armed last page, lets go too early, waits until the page is armed again, and returns when the
// panel took the press for one.
func (r *room) productEdge() (time.Duration, error) {
	r.in(confirm.StateArmed)
	time.Sleep(quietTime)
	r.press(device.Approve)
	r.in(confirm.StateHolding)
	step, _ := r.last(confirm.StateHolding)
	time.Sleep(30 * time.Millisecond)
	r.release(device.Approve)
	r.in(confirm.StateArmed)
	return step.Mono, nil
}

// lag matches steps with the presses that caused them: the last edge of the button before each.
func lag(steps []time.Duration, edges []device.Event) ([]time.Duration, error) {
	var lags []time.Duration
	for _, step := range steps {
		var press time.Duration
		for _, ev := range edges {
			if ev.Edge == device.Press && ev.Mono+settling <= step {
				press = ev.Mono + settling
			}
		}
		if press == 0 {
			return nil, errors.New("a step without an edge")
		}
		lags = append(lags, step-press)
	}
	return lags, nil
}

func median(all []time.Duration) time.Duration {
	slices.Sort(all)
	return all[len(all)/2]
}

func millis(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }
