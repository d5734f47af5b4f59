package confirm

import (
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"sync"
	"sync/atomic"

	"assent.home.arpa/appliance/clock"
	"assent.home.arpa/capabilities"
	"assent.home.arpa/confirm/screen"
	"assent.home.arpa/device"
)

// Config is what a Desk works with. Display, Buttons, Clock, BootID and Key are required.
type Config struct {
	Display device.Display
	Buttons device.Buttons
	Lamp    device.Lamp // nil: none
	Clock   clock.Clock
	BootID  [16]byte
	Key     ed25519.PrivateKey // signs receipts and nothing else
	Rand    io.Reader          // nonces, pairing codes and challenges; nil: crypto/rand
	Timings Timings            // zero: DefaultTimings
	Large   bool               // letters twice as large wherever the panel chooses them; a Card says so for itself
	Journal func(Transition)   // is told every transition, in order, by Run's goroutine; must not block; may be nil
}

// Desk is the box's panel. Run owns it; every other method may be called from any goroutine, before, while and after it runs.
type Desk struct {
	cfg     Config
	public  ed25519.PublicKey
	kit     kit
	started atomic.Bool

	commands chan event
	closed   chan struct{} // Run has ended
	notices  chan Notice
	poke     chan struct{} // there is mail

	ledger ledger
	codes  codes

	mu      sync.Mutex
	waiting map[capabilities.InvocationID]*asking // guarded by mu
	slots   map[uint32]bool                       // guarded by mu: phones with a pending decision
	mail    mail                                  // guarded by mu
}

// New returns a Desk that shows nothing until Run.
func New(cfg Config) (*Desk, error) {
	switch {
	case cfg.Display == nil || cfg.Buttons == nil || cfg.Clock == nil:
		return nil, errors.New("confirm: display, buttons and clock are required")
	case cfg.BootID == [16]byte{}:
		return nil, errors.New("confirm: boot id is required")
	case len(cfg.Key) != ed25519.PrivateKeySize:
		return nil, errors.New("confirm: receipt key is required")
	case !cfg.Buttons.Has(device.Approve):
		return nil, fmt.Errorf("confirm: no approve button: %w", device.ErrNoButton)
	}
	if cfg.Timings == (Timings{}) {
		cfg.Timings = DefaultTimings()
	}
	if err := cfg.Timings.validate(); err != nil {
		return nil, err
	}
	if cfg.Rand == nil {
		cfg.Rand = rand.Reader
	}
	if cfg.Lamp == nil {
		cfg.Lamp = device.NoLamp{}
	}
	if cfg.Journal == nil {
		cfg.Journal = func(Transition) {}
	}
	public, ok := cfg.Key.Public().(ed25519.PublicKey)
	if !ok {
		return nil, errors.New("confirm: receipt key is not an Ed25519 key")
	}
	return &Desk{
		cfg:      cfg,
		public:   public,
		kit:      kit{deny: cfg.Buttons.Has(device.Deny), readsBack: cfg.Display.ReadsBack()},
		commands: make(chan event),
		closed:   make(chan struct{}),
		notices:  make(chan Notice),
		poke:     make(chan struct{}, 1),
		ledger:   ledger{tokens: map[[32]byte]*token{}},
		waiting:  map[capabilities.InvocationID]*asking{},
		slots:    map[uint32]bool{},
	}, nil
}

// Notices delivers what happens at the panel outside any Ask. It is never closed. Whoever reads it late gets the newest
// notices; a panic is never dropped.
func (d *Desk) Notices() <-chan Notice { return d.notices }

// SetIdle says what the idle screen shows. Its Shift and Frozen are the panel's own.
func (d *Desk) SetIdle(i screen.Idle) { d.post(func(m *mail) { m.idle = &i }) }

// SetAddress says at which address phones reach the box; the pairing screen shows it.
func (d *Desk) SetAddress(address string) { d.post(func(m *mail) { m.address = &address }) }

// SetFrozen(true) restores a freeze that outlived a restart. False changes nothing: only both buttons at the box thaw it.
func (d *Desk) SetFrozen(frozen bool) {
	if frozen {
		d.post(func(m *mail) { m.freeze = true })
	}
}

// mail is what Run is told without an answer. What is posted twice before Run looks counts once.
type mail struct {
	idle      *screen.Idle
	address   *string
	bulletins *[]Bulletin
	freeze    bool
	codeSpent bool
}

func (d *Desk) post(write func(*mail)) {
	d.mu.Lock()
	write(&d.mail)
	d.mu.Unlock()
	select {
	case d.poke <- struct{}{}:
	default: // Run has been told and has not looked yet
	}
}

// collect empties the mail.
func (d *Desk) collect() []event {
	d.mu.Lock()
	m := d.mail
	d.mail = mail{}
	d.mu.Unlock()
	var events []event
	if m.freeze {
		events = append(events, freeze{})
	}
	if m.codeSpent {
		events = append(events, codeSpent{})
	}
	if m.idle != nil {
		events = append(events, setIdle{*m.idle})
	}
	if m.address != nil {
		events = append(events, setAddress{*m.address})
	}
	if m.bulletins != nil {
		events = append(events, setBulletins{*m.bulletins})
	}
	return events
}

// Answers returns once Run takes its turn, which it does however the display and the buttons are; or when it has ended, or ctx
// has.
func (d *Desk) Answers(ctx context.Context) {
	select {
	case d.commands <- tick{}:
	case <-d.closed:
	case <-ctx.Done():
	}
}

// send hands ev to Run, unless it has ended.
func (d *Desk) send(ev event) {
	select {
	case d.commands <- ev:
	case <-d.closed:
	}
}
