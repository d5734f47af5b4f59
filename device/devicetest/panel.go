package devicetest

import (
	"fmt"
	"sync"
	"time"

	"assent.home.arpa/appliance/clock"
	"assent.home.arpa/device"
)

// kept bounds the frames that a Panel remembers.
const kept = 4096

// Panel is a display. The zero value is not ready; use NewPanel.
type Panel struct {
	clock clock.Clock

	mu     sync.Mutex // guards all below
	frames []device.Frame
	draws  int
	noise  device.Frame // the bits that noise turned in what is on the glass
	dim    bool
	blind  bool
	left   int // draws until the bus fails; negative: never
	slow   time.Duration
	resume chan struct{} // not nil while the part hangs
}

var _ device.Display = (*Panel)(nil)

// NewPanel returns a working display that acknowledges at once.
func NewPanel(c clock.Clock) *Panel { return &Panel{clock: c, left: -1} }

// Draw implements device.Display. A frame that is not acknowledged may or may not be on the glass; this part leaves the old one.
func (p *Panel) Draw(f *device.Frame) error { return p.show(f, true) }

// Update implements device.Display. What noise did is still there after it.
func (p *Panel) Update(f *device.Frame) error { return p.show(f, false) }

func (p *Panel) show(f *device.Frame, whole bool) error {
	p.mu.Lock()
	resume, slow := p.resume, p.slow
	p.mu.Unlock()
	if resume != nil {
		<-resume
	}
	if slow > 0 {
		reached, stop := p.clock.Until(p.clock.Boot() + slow)
		defer stop()
		<-reached
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.left == 0 {
		return fmt.Errorf("devicetest: draw %d: %w", p.draws+1, device.ErrBus)
	}
	if p.left > 0 {
		p.left--
	}
	p.draws++
	if len(p.frames) == kept {
		p.frames = p.frames[1:]
	}
	if whole {
		p.noise = device.Frame{}
	}
	glass := *f
	for i := range glass {
		glass[i] ^= p.noise[i]
	}
	p.frames = append(p.frames, glass)
	return nil
}

// ReadsBack implements device.Display.
func (p *Panel) ReadsBack() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return !p.blind
}

// Dim implements device.Display.
func (p *Panel) Dim(dim bool) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.left == 0 {
		return fmt.Errorf("devicetest: dim: %w", device.ErrBus)
	}
	p.dim = dim
	return nil
}

// Blind makes the part one that cannot acknowledge. Call it before anybody asks ReadsBack.
func (p *Panel) Blind() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.blind = true
}

// Fail lets the bus acknowledge n more draws and then none, until Heal.
func (p *Panel) Fail(n int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.left = n
}

// Hang makes the next draw, and those after it, wait until Heal.
func (p *Panel) Hang() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.resume == nil {
		p.resume = make(chan struct{})
	}
}

// Slow makes each draw take d of boot time.
func (p *Panel) Slow(d time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.slow = d
}

// Disturb turns a pixel that is on the glass, as noise on the bus does that nobody notices: until the next Draw.
func (p *Panel) Disturb(x, y int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	turn := func(f *device.Frame) { f.Set(x, y, !f.At(x, y)) }
	turn(&p.noise)
	if n := len(p.frames); n > 0 {
		turn(&p.frames[n-1])
	}
}

// Heal ends every fault. A draw that hangs goes on.
func (p *Panel) Heal() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.left, p.slow = -1, 0
	if p.resume != nil {
		close(p.resume)
		p.resume = nil
	}
}

// Glass returns what the panel shows: the last acknowledged frame, or a dark one, and in it what Disturb did.
func (p *Panel) Glass() device.Frame {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.frames) == 0 {
		return device.Frame{}
	}
	return p.frames[len(p.frames)-1]
}

// Frames returns what the panel showed after each acknowledgement, oldest first; only the last few thousand are kept.
func (p *Panel) Frames() []device.Frame {
	p.mu.Lock()
	defer p.mu.Unlock()
	return append([]device.Frame(nil), p.frames...)
}

// Draws counts the acknowledged draws.
func (p *Panel) Draws() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.draws
}

// Dimmed reports the brightness last asked for.
func (p *Panel) Dimmed() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.dim
}

// Lamp remembers its signals.
type Lamp struct {
	mu      sync.Mutex
	signals []device.Signal // guarded by mu
}

var _ device.Lamp = (*Lamp)(nil)

// Show implements device.Lamp.
func (l *Lamp) Show(s device.Signal) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.signals = append(l.signals, s)
	return nil
}

// Last returns the signal that the lamp shows.
func (l *Lamp) Last() device.Signal {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.signals) == 0 {
		return device.Quiet
	}
	return l.signals[len(l.signals)-1]
}
