package board

import (
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"assent.home.arpa/device"
)

// waiting is how many edges may lie between the reader and whoever acts on them. What comes beyond that waits in the kernel.
const waiting = 64

// patience is how long the reader waits beyond the time at which a level would be settled, for the kernel to queue the edges that
// it has stamped by then.
const patience = time.Millisecond

// buttons reads one line request.
type buttons struct {
	host    host
	lines   *os.File
	offsets []uint32
	names   []device.Button
	events  chan device.Event
	quit    chan struct{}
	done    chan struct{}
	ending  sync.Once

	mu   sync.Mutex // guards all below
	soft debouncer  // nil where nobody debounces
	err  error
}

var _ device.Buttons = (*buttons)(nil)

// openButtons takes the lines of the buttons and starts to read them. An empty deny means a kit with one button.
func (h host) openButtons(approve, deny string) (*buttons, error) {
	names, wants := []device.Button{device.Approve}, []wanted{want("panel.approve", approve)}
	if deny != "" {
		names, wants = append(names, device.Deny), append(wants, want("panel.deny", deny))
	}
	lines, err := h.findLines(wants)
	if err != nil {
		return nil, err
	}
	b := &buttons{
		host: h, names: names, events: make(chan device.Event, waiting),
		quit: make(chan struct{}), done: make(chan struct{}),
	}
	for _, l := range lines {
		b.offsets = append(b.offsets, l.offset)
	}
	chip, err := h.openChip(lines[0].chip)
	if err != nil {
		return nil, fmt.Errorf("board: buttons: %w", err)
	}
	defer chip.Close()
	if !h.raw {
		b.soft = debouncer{}
	}
	b.lines, err = h.requestLines(chip, b.offsets)
	if err != nil {
		return nil, fmt.Errorf("board: gpio lines %q and %q on %q cannot be buttons: %w; wire them to lines that can interrupt", approve, deny, lines[0].chip.path, err)
	}
	go b.run()
	return b, nil
}

// Events implements device.Buttons.
func (b *buttons) Events() <-chan device.Event { return b.events }

// Has implements device.Buttons.
func (b *buttons) Has(button device.Button) bool { return slices.Contains(b.names, button) }

// Err implements device.Buttons.
func (b *buttons) Err() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.err
}

// Down implements device.Buttons. While a contact bounces it still has its old level.
func (b *buttons) Down(button device.Button) (bool, error) {
	i := slices.Index(b.names, button)
	if i < 0 {
		return false, fmt.Errorf("board: %v: %w", button, device.ErrNoButton)
	}
	down, err := b.host.lineActive(b.lines, i)
	if err != nil {
		return false, fmt.Errorf("board: level of %v: %w", button, err)
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if settled, known := b.soft.level(button); known {
		return settled, nil
	}
	return down, nil
}

// close lets go of the lines and waits for the reader.
func (b *buttons) close() error {
	var err error
	b.ending.Do(func() {
		close(b.quit)
		err = b.lines.Close()
	})
	<-b.done
	return err
}

// run reads edges until the lines are lost or closed.
func (b *buttons) run() {
	defer close(b.done)
	defer close(b.events)
	err := b.read()
	b.mu.Lock()
	defer b.mu.Unlock()
	b.err = fmt.Errorf("board: buttons lost: %w", err)
}

func (b *buttons) read() error {
	var buf [16 * eventSize]byte
	for {
		n, now, err := b.next(buf[:])
		if err != nil {
			return err
		}
		raw, err := decodeEvents(buf[:n], b.offsets, b.names)
		if err != nil {
			return err
		}
		for _, ev := range b.debounced(raw, now) {
			select {
			case b.events <- ev:
			case <-b.quit:
				return os.ErrClosed
			}
		}
	}
}

// next waits for edges. Where a change could settle meanwhile it returns by then at the latest, with the time up to which all
// edges are known, or zero.
func (b *buttons) next(buf []byte) (n int, known time.Duration, err error) {
	at, pending := b.settles()
	if !pending {
		n, err = b.lines.Read(buf)
		return n, 0, err
	}
	if err := b.lines.SetReadDeadline(time.Now().Add(max(0, at-b.host.mono()) + patience)); err != nil {
		return 0, 0, err
	}
	n, err = b.lines.Read(buf)
	if err := b.lines.SetReadDeadline(time.Time{}); err != nil {
		return 0, 0, err
	}
	if errors.Is(err, os.ErrDeadlineExceeded) {
		// The deadline may have passed while the reader was kept waiting, with edges in the kernel that nobody looked at.
		known = b.host.mono()
		if n, err = b.drain(buf); n == len(buf) {
			known = 0 // there may be more
		}
	}
	return n, known, err
}

// drain reads what the kernel holds, and does not wait for more.
func (b *buttons) drain(buf []byte) (n int, err error) {
	conn, err := b.lines.SyscallConn()
	if err != nil {
		return 0, err
	}
	failed := conn.Read(func(fd uintptr) bool {
		for {
			if n, err = unix.Read(int(fd), buf); !errors.Is(err, unix.EINTR) {
				return true
			}
		}
	})
	switch {
	case failed != nil:
		return 0, failed
	case errors.Is(err, unix.EAGAIN):
		return 0, nil
	case err != nil:
		return 0, err
	case n == 0:
		return 0, io.EOF
	}
	return n, nil
}

// settles is when the first change under way would be settled, if there is one.
func (b *buttons) settles() (at time.Duration, pending bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.soft.next()
}

// debounced turns what was read into what is delivered. known is the time up to which all edges are known, or zero.
func (b *buttons) debounced(raw []device.Event, known time.Duration) []device.Event {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.soft == nil {
		return raw
	}
	var events []device.Event
	for _, ev := range raw {
		events = append(events, b.soft.take(ev)...)
	}
	if known > 0 {
		events = append(events, b.soft.settle(known)...)
	}
	return events
}
