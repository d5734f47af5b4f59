// Package guard is the role that decides: it owns the panel, the keys, the audit, the pairings and the way from a proposal
// to an effect, and it has no network.
//
// It talks over three unix sockets. The gateway is not trusted: what it says is bounded, decoded strictly, and believed only
// where a phone's signature or a press at the box stands behind it. A hostile gateway can swap a proposal inside a turn
// that a person opened (the panel shows it); it cannot open a turn, speak for somebody else, reset a cap, approve, or write
// evidence. The courier is told what to do by grants and its answers are numbers and digests. An
// exporter, which has a stick or the box's own port, is told what to write after a press, and what to show over the cable and for how
// long; of what a medium holds the guard looks at nothing but bytes that it knows.
//
// # What survives what
//
// Pairings and ask counters, what conversations have read, cool-downs, unknown outcomes that nobody has seen, and a freeze
// are files that are replaced atomically. Keys for receipts and grants live as long as the process: a restart makes every
// receipt and grant worthless. Without an audit the guard goes on answering, so that people can chat, and executes nothing.
package guard

import (
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"sync"

	"golang.org/x/sync/errgroup"

	"assent.home.arpa/appliance/audit"
	"assent.home.arpa/appliance/clock"
	"assent.home.arpa/appliance/config"
	"assent.home.arpa/appliance/ipc"
	"assent.home.arpa/appliance/watchdog"
	"assent.home.arpa/capabilities/executor"
	"assent.home.arpa/capabilities/policy"
	"assent.home.arpa/capabilities/registry"
	"assent.home.arpa/confirm"
	"assent.home.arpa/device"
)

// Options is what a guard is made of. Lamp, Timings, Boot, Exporter, Notices, Address, Scripted, Ready and Watchdog may be
// left out.
type Options struct {
	Config   config.Config
	Clock    clock.Clock
	BootID   [16]byte // the kernel's boot id
	Display  device.Display
	Buttons  device.Buttons
	Lamp     device.Lamp
	Timings  confirm.Timings // zero: the product's, as Config.Panel chooses
	Registry *registry.Registry

	Gateway    net.Listener // unix socket that the gateway connects to
	GatewayUID uint32       // the only user who may
	Courier    string       // path of the courier's unix socket
	CourierUID uint32       // the only user who may listen there

	Exporter    net.Listener // unix socket that exporters connect to, each with a stick; nil: the box takes none
	ExporterUID uint32       // the only user who may

	GrantKeyFile string // the public grant key is written here for the courier: 32 bytes
	StateDir     string // of this role alone

	Boot     audit.Boot    // what started; Config, Policy and Registry are filled in
	Notices  string        // directory of package notice, whose texts the panel shows
	Address  func() string // where phones reach the box, for the pairing screen; empty while nobody knows
	Scripted bool          // the model is a test script, which the panel says
	Log      *slog.Logger
	Ready    func() // called once the gateway may connect
	Watchdog watchdog.Watchdog

	disk audit.Disk // in place of the audit's directory, for tests
}

// guard is one running guard.
type guard struct {
	opts      Options
	log       *slog.Logger
	journal   *journal
	phones    *phones
	asks      *asks
	desk      *confirm.Desk
	exec      *executor.Executor
	courier   *courier
	freezer   *freezer
	inbox     *inbox
	flood     *flood
	today     *today
	bulletins *bulletins
	sticks    *sticks
	pairing   sync.Mutex           // one phone at a time
	prompts   sync.WaitGroup       // that the guard shows by itself
	peer      func(net.Conn) error // the second lock on the gateway socket's door
	exporter  func(net.Conn) error // and on the exporters'

	mu       sync.Mutex
	sessions map[*session]struct{}
	display  bool
}

// Run is the guard. It returns when ctx ends, or when a part without which it is none fails.
func Run(ctx context.Context, o Options) error {
	g, err := start(ctx, o)
	if err != nil {
		return err
	}
	return g.run(ctx)
}

// run is everything that happens after the start, in this goroutine and those that it waits for.
func (g *guard) run(ctx context.Context) error {
	defer g.journal.close()
	defer g.prompts.Wait()
	defer func() {
		g.asks.endAll()
		g.turnsOver(ctx)
		if entries := g.flood.drain(); len(entries) > 0 {
			g.append(ctx, entries...)
		}
	}()
	door := watchdog.Listen(g.opts.Gateway)
	g.opts.Gateway = door
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error { return ended(ctx, "panel", g.desk.Run(ctx)) })
	group.Go(func() error { return ended(ctx, "gateway socket", g.serve(ctx)) })
	if g.opts.Exporter != nil {
		group.Go(func() error { return ended(ctx, "exporter socket", g.serveSticks(ctx)) })
	}
	group.Go(func() error { g.courier.run(ctx); return nil })
	group.Go(func() error { g.watch(ctx); return nil })
	group.Go(func() error { g.refresh(ctx); return nil })
	group.Go(func() error { g.forget(ctx); return nil })
	group.Go(func() error { g.followAddress(ctx); return nil })
	group.Go(func() error { g.opts.Watchdog.Keep(ctx, g.log, g.vital(door)...); return nil })
	group.Go(func() error { g.readNotices(ctx); return nil })
	if g.opts.Ready != nil {
		g.opts.Ready()
	}
	return group.Wait()
}

// ended tells a part that stopped because it was told to from one that failed.
func ended(ctx context.Context, part string, err error) error {
	if ctx.Err() != nil {
		return nil
	}
	if err == nil {
		err = errors.New("ended by itself")
	}
	return fmt.Errorf("guard: %s: %w", part, err)
}

func start(ctx context.Context, o Options) (*guard, error) {
	if o.Registry == nil || o.Clock == nil || o.Gateway == nil || o.Log == nil || o.StateDir == "" || o.Courier == "" || o.GrantKeyFile == "" {
		return nil, errors.New("guard: registry, clock, gateway socket, log, state directory, courier and grant key file are required")
	}
	if err := os.MkdirAll(o.StateDir, 0o700); err != nil {
		return nil, fmt.Errorf("guard: state directory: %w", err)
	}
	g := &guard{opts: o, log: o.Log, sessions: map[*session]struct{}{}, display: true, flood: newFlood(o.Clock), today: newToday(o.Clock), bulletins: newBulletins(o.Config.Panel.Large, o.Clock.Boot), sticks: &sticks{now: o.Clock.Boot, change: make(chan struct{})}}
	g.peer = func(c net.Conn) error { return ipc.CheckPeer(c, o.GatewayUID) }
	g.exporter = func(c net.Conn) error { return ipc.CheckPeer(c, o.ExporterUID) }
	var err error
	if g.phones, err = openPhones(filepath.Join(o.StateDir, "phones.json")); err != nil {
		return nil, err
	}
	if g.asks, err = openAsks(filepath.Join(o.StateDir, "conversations.json"), o.Clock); err != nil {
		return nil, err
	}
	if g.inbox, err = openInbox(filepath.Join(o.StateDir, "inbox.json")); err != nil {
		return nil, err
	}
	g.freezer = openFreezer(filepath.Join(o.StateDir, "frozen"))

	receiptPublic, receiptKey, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		return nil, fmt.Errorf("guard: receipt key: %w", err)
	}
	grantPublic, grantKey, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		return nil, fmt.Errorf("guard: grant key: %w", err)
	}
	boot := o.Boot
	boot.Config, boot.Policy, boot.Registry = o.Config.Digest(), policy.Digest(), o.Registry.Digest()
	g.journal = openJournal(ctx, audit.Options{
		Dir: filepath.Join(o.StateDir, "audit"), Disk: o.disk, Clock: o.Clock, BootID: o.BootID,
		ReceiptKey: receiptPublic, GrantKey: grantPublic, Boot: boot, Quota: int64(o.Config.Audit.QuotaMB) << 20,
	}, g.auditState, func(ctx context.Context, l lostCall) { g.keep(ctx, l) })
	if err := g.compose(receiptKey, grantKey); err != nil {
		g.journal.close()
		return nil, err
	}
	// The courier reads the key when the guard connects, so it has to be there first.
	if err := replace(o.GrantKeyFile, grantPublic, 0o640); err != nil {
		g.journal.close()
		return nil, fmt.Errorf("guard: grant key file: %w", err)
	}
	g.journal.recall(ctx)
	return g, nil
}

// compose puts the parts together that decide and execute.
func (g *guard) compose(receiptKey, grantKey ed25519.PrivateKey) (err error) {
	o := g.opts
	g.desk, err = confirm.New(confirm.Config{
		Display: o.Display, Buttons: o.Buttons, Lamp: o.Lamp, Clock: o.Clock, BootID: o.BootID, Key: receiptKey,
		Timings: timings(o), Large: o.Config.Panel.Large,
		Journal: func(t confirm.Transition) {
			g.log.Debug("panel", "from", t.From.String(), "to", t.To.String(), "cause", t.Cause.String(), "inv", t.Inv.String())
		},
	})
	if err != nil {
		return err
	}
	g.desk.SetFrozen(g.freezer.frozen())
	g.bulletins.on(g.desk.SetBulletins)
	path := filepath.Join(o.StateDir, "patience.json")
	patience, err := loadPatience(path, o.BootID, o.Clock.Boot())
	if err != nil {
		return err
	}
	g.courier = newCourier(o.Courier, o.CourierUID, g.log, g.courierState, g.freezer.frozen)
	g.exec, err = executor.New(executor.Config{
		Registry: o.Registry, Desk: g.desk, Journal: g.journal, Courier: g.courier, Clock: o.Clock, BootID: o.BootID,
		GrantKey: grantKey, Proposals: o.Config.Turn.Proposals, Large: o.Config.Panel.Large, Frozen: g.freezer.frozen, Approved: g.approved,
		Patience: patience, Patient: func(people map[string]policy.Patience) {
			if err := savePatience(path, o.BootID, people); err != nil {
				g.log.Error("a restart would end people's waits", "err", err)
			}
		},
	})
	return err
}

// timings returns the panel's rules as the configuration chooses among those that the product has.
func timings(o Options) confirm.Timings {
	if o.Timings != (confirm.Timings{}) {
		return o.Timings
	}
	t := confirm.DefaultTimings()
	if o.Config.Panel.Dwell {
		t.Dwell = confirm.DwellCountdown
	}
	if o.Config.Panel.Slow {
		t = t.Unhurried()
	}
	return t
}

func (g *guard) approved() {
	g.today.count()
	g.showIdle()
}
