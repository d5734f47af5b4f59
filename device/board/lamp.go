package board

import (
	"errors"
	"fmt"
	"os"
	"sync"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"assent.home.arpa/device"
)

// flagOutput is of enum gpio_v2_line_flag (linux/gpio.h). An output begins inactive.
const flagOutput = 1 << 3

// beat is one part of a pattern: what is on, and for how long.
type beat struct {
	lamp, buzzer bool
	lasts        time.Duration // 0: until the next signal
}

// pattern is what a signal looks and sounds like. It begins again after its last beat, at the beat that again names.
type pattern struct {
	beats []beat
	again int
}

// patternOf tells somebody across the room apart: a short beep and slow flashes (or the flashes alone),
// steady light, three beeps and fast flashes.
func patternOf(s device.Signal) pattern {
	const ms = time.Millisecond
	switch s {
	case device.Waiting:
		return pattern{[]beat{{true, true, 80 * ms}, {true, false, 120 * ms}, {false, false, 1800 * ms}, {true, false, 200 * ms}}, 2}
	case device.Still:
		return pattern{[]beat{{true, false, 200 * ms}, {false, false, 1800 * ms}}, 0}
	case device.Holding:
		return pattern{[]beat{{true, false, 0}}, 0}
	case device.Alarm:
		on, off := beat{true, true, 250 * ms}, beat{false, false, 250 * ms}
		return pattern{[]beat{on, off, on, off, on, off, {true, false, 250 * ms}, off}, 6}
	}
	return pattern{[]beat{{false, false, 0}}, 0}
}

// signals drives a lamp and a buzzer, each on a line of its own. Kits may lack either.
type signals struct {
	host         host
	lamp, buzzer *os.File // nil: there is none
	show         chan device.Signal
	quit, done   chan struct{}
	ending       sync.Once

	mu  sync.Mutex
	err error // guarded by mu
}

var _ device.Lamp = (*signals)(nil)

// openSignals takes the lines that have a name. They may be on any chip.
func (h host) openSignals(lamp, buzzer string) (*signals, error) {
	s := &signals{host: h, show: make(chan device.Signal, 1), quit: make(chan struct{}), done: make(chan struct{})}
	var errs [2]error
	s.lamp, errs[0] = h.openOutput(want("panel.lamp", lamp))
	s.buzzer, errs[1] = h.openOutput(want("panel.buzzer", buzzer))
	go s.run()
	if err := errors.Join(errs[:]...); err != nil {
		return nil, errors.Join(err, s.close())
	}
	return s, nil
}

func (h host) openOutput(w wanted) (*os.File, error) {
	if w.name == "" {
		return nil, nil
	}
	lines, err := h.findLines([]wanted{w})
	if err != nil {
		return nil, err
	}
	chip, err := h.openChip(lines[0].chip)
	if err != nil {
		return nil, fmt.Errorf("board: %s: %w", w.key, err)
	}
	defer chip.Close()
	req := unix.GPIOV2LineRequest{Num_lines: 1}
	req.Offsets[0] = lines[0].offset
	copy(req.Consumer[:], consumer)
	req.Config.Flags = flagOutput
	if err := h.ioctl(chip, unix.GPIO_V2_GET_LINE_IOCTL, unsafe.Pointer(&req)); err != nil {
		return nil, fmt.Errorf("board: gpio line %q on %q cannot be an output: %w; set %s to another line", w.name, lines[0].chip.path, err, w.key)
	}
	return os.NewFile(uintptr(req.Fd), w.key), nil
}

// Show implements device.Lamp. It does not wait; the error is of an earlier signal.
func (s *signals) Show(signal device.Signal) error {
	select {
	case <-s.show: // nobody saw that one
	default:
	}
	select {
	case s.show <- signal:
	default: // somebody else has a newer one
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.err
}

// run plays the pattern of the latest signal.
func (s *signals) run() {
	defer close(s.done)
	p, i := patternOf(device.Quiet), 0
	for {
		b := p.beats[i]
		s.note(errors.Join(s.set(s.lamp, b.lamp), s.set(s.buzzer, b.buzzer)))
		var over <-chan time.Time
		if b.lasts > 0 {
			over = time.After(b.lasts)
		}
		select {
		case signal := <-s.show:
			p, i = patternOf(signal), 0
		case <-over:
			if i++; i == len(p.beats) {
				i = p.again
			}
		case <-s.quit:
			s.note(errors.Join(s.set(s.lamp, false), s.set(s.buzzer, false)))
			return
		}
	}
}

func (s *signals) note(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.err = err
}

func (s *signals) set(line *os.File, on bool) error { return s.host.drive(line, on) }

// drive sets an output. No output is no error.
func (h host) drive(line *os.File, on bool) error {
	if line == nil {
		return nil
	}
	v := unix.GPIOV2LineValues{Mask: 1}
	if on {
		v.Bits = 1
	}
	if err := h.ioctl(line, unix.GPIO_V2_LINE_SET_VALUES_IOCTL, unsafe.Pointer(&v)); err != nil {
		return fmt.Errorf("board: %s: %w", line.Name(), err)
	}
	return nil
}

// close switches both off and lets go of the lines.
func (s *signals) close() error {
	s.ending.Do(func() { close(s.quit) })
	<-s.done
	var errs []error
	for _, line := range []*os.File{s.lamp, s.buzzer} {
		if line != nil {
			errs = append(errs, line.Close())
		}
	}
	return errors.Join(errs...)
}
