package guard_test

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"assent.home.arpa/appliance/audit"
	"assent.home.arpa/appliance/audit/audittest"
	"assent.home.arpa/appliance/clock"
	"assent.home.arpa/appliance/clock/clocktest"
	"assent.home.arpa/appliance/config"
	"assent.home.arpa/appliance/grant"
	"assent.home.arpa/appliance/guard"
	"assent.home.arpa/appliance/ipc"
	"assent.home.arpa/appliance/watchdog"
	"assent.home.arpa/appliance/wire"
	"assent.home.arpa/capabilities/executor/executortest"
	"assent.home.arpa/capabilities/registry"
	"assent.home.arpa/confirm/screen"
	"assent.home.arpa/device"
	"assent.home.arpa/device/devicetest"
)

// pipes is a listener whose connections stay within the process.
type pipes struct {
	conns  chan net.Conn
	errs   chan error // what accepting fails with
	closed chan struct{}
	once   sync.Once
}

func newPipes() *pipes {
	return &pipes{conns: make(chan net.Conn), errs: make(chan error), closed: make(chan struct{})}
}

func (p *pipes) Accept() (net.Conn, error) {
	select {
	case c := <-p.conns:
		return c, nil
	case err := <-p.errs:
		return nil, err
	case <-p.closed:
		return nil, net.ErrClosed
	}
}

func (p *pipes) Close() error   { p.once.Do(func() { close(p.closed) }); return nil }
func (p *pipes) Addr() net.Addr { return &net.UnixAddr{Name: "pipe", Net: "unix"} }

func (p *pipes) dial(ctx context.Context) (net.Conn, error) {
	near, far := net.Pipe()
	select {
	case p.conns <- far:
		return near, nil
	case <-p.closed:
		return nil, net.ErrClosed
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// house is a running guard with a panel, hands, a courier and a gateway's connection.
type house struct {
	t       *testing.T
	dir     string
	clock   *clocktest.Clock
	panel   *devicetest.Panel
	buttons *devicetest.Buttons
	hands   devicetest.Hands
	local   *executortest.Adapter
	search  *executortest.Adapter
	opts    guard.Options
	gateway *ipc.Client
	courier *courier
	doors   *pipes
	slot    *pipes                // where sticks go in
	days    int                   // that literal payloads are kept; 0: as long as the log
	large   bool                  // letters on the panel
	quotaMB int                   // 0: the default
	disk    audit.Disk            // of the audit; nil: the state directory's
	watched watchdog.Watchdog     // who restarts the guard
	address func() string         // where phones reach the box
	late    atomic.Bool           // a freeze that comes as the grant leaves
	code    func() (string, bool) // the pairing code, as somebody at the box reads it

	mu      sync.Mutex
	notices []ipc.Notice
	reboots byte
	stop    context.CancelFunc
	done    chan error
}

// live runs test in a bubble with a guard on the given state directory.
func live(t *testing.T, dir string, test func(t *testing.T, h *house)) {
	t.Helper()
	liveOn(t, dir, nil, test)
}

// liveOn is live with the audit on a disk of its own.
func liveOn(t *testing.T, dir string, disk audit.Disk, test func(t *testing.T, h *house)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		h := &house{t: t, dir: dir, clock: clocktest.New(), local: executortest.Local(), search: executortest.Search(), courier: &courier{}, disk: disk}
		h.clock.SetWall(time.Date(2027, 3, 1, 12, 0, 0, 0, time.UTC), clock.Synced)
		h.start()
		defer h.close()
		test(t, h)
	})
}

func (h *house) start() {
	h.t.Helper()
	reg, err := registry.New(h.local, h.search)
	if err != nil {
		h.t.Fatal(err)
	}
	h.panel, h.buttons = devicetest.NewPanel(h.clock), devicetest.NewButtons(h.clock)
	h.hands = devicetest.Hands{Buttons: h.buttons, Clock: h.clock, Settle: synctest.Wait}
	h.doors, h.slot = newPipes(), newPipes()
	keyFile := filepath.Join(h.dir, "grant.pub")
	h.opts = guard.Options{
		Config: config.Default(), Clock: h.clock, BootID: [16]byte{7 + h.reboots}, Display: h.panel, Buttons: h.buttons, Registry: reg,
		Gateway: h.doors, Exporter: h.slot, Courier: "unused", GrantKeyFile: keyFile, StateDir: filepath.Join(h.dir, "state"),
		Notices: filepath.Join(h.dir, "notices"), Boot: audit.Boot{Program: audit.ProgramSimulator}, Log: slog.New(slog.DiscardHandler),
		Watchdog: h.watched, Address: h.address,
	}
	h.opts.Config.Audit.LiteralDays, h.opts.Config.Panel.Large = h.days, h.large
	if h.quotaMB > 0 {
		h.opts.Config.Audit.QuotaMB = h.quotaMB
	}
	h.courier.open(h.clock, h.opts.BootID, keyFile)
	ctx, stop := context.WithCancel(context.Background())
	h.stop, h.done = stop, make(chan error, 1)
	read := make(chan func() (string, bool), 1)
	go func() {
		h.done <- guard.RunPiped(ctx, h.opts, h.disk, h.courier.dial, h.late.Load, func(code func() (string, bool)) { read <- code })
	}()
	select {
	case h.code = <-read:
	case err := <-h.done:
		h.t.Fatal(err)
	}
	h.gateway = h.connect()
	h.hands.Wait(time.Second)
}

func (h *house) connect() *ipc.Client {
	h.t.Helper()
	conn, err := h.doors.dial(context.Background())
	if err != nil {
		h.t.Fatal(err)
	}
	c := ipc.NewClient(ipc.NewConn(conn), func(m ipc.Message) {
		if n, ok := m.(*ipc.Notice); ok {
			h.mu.Lock()
			defer h.mu.Unlock()
			h.notices = append(h.notices, *n)
		}
	})
	ask[*ipc.Welcome](h, c, &ipc.Hello{Build: "test"})
	return c
}

func (h *house) close() {
	h.t.Helper()
	h.stop()
	h.gateway.Close()
	synctest.Wait()
	h.clock.Advance(time.Hour) // whatever still waits for a deadline
	if err := <-h.done; err != nil {
		h.t.Errorf("the guard failed: %v", err)
	}
	h.courier.close()
	synctest.Wait()
}

func (h *house) restart() {
	h.t.Helper()
	h.close()
	h.start()
}

func (h *house) noticed(c ipc.NoticeClass) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, n := range h.notices {
		if n.Class == c {
			return true
		}
	}
	return false
}

// records stops the guard and returns an intact log's records.
func (h *house) records() []audit.Entered {
	h.t.Helper()
	h.restart() // what was appended is sealed by a clean stop
	dir := filepath.Join(h.opts.StateDir, "audit")
	audittest.Verify(h.t, dir)
	return audittest.Records(h.t, dir)
}

func find[P audit.Payload](records []audit.Entered) (out []P) {
	for _, r := range records {
		if p, ok := r.Payload.(P); ok {
			out = append(out, p)
		}
	}
	return out
}

// person is the opaque name of the person who was paired first.
func (h *house) person() string {
	h.t.Helper()
	b, err := os.ReadFile(filepath.Join(h.opts.StateDir, "phones.json"))
	var f struct{ Phones []struct{ Person string } }
	if err := errors.Join(err, json.Unmarshal(b, &f)); err != nil {
		h.t.Fatal(err)
	}
	return f.Phones[0].Person
}

// reports are the claims that the gateway made, without those that end a turn.
func reports(records []audit.Entered) []*audit.Claim {
	return slices.DeleteFunc(find[*audit.Claim](records), func(c *audit.Claim) bool { return c.Class == audit.ClaimTurn })
}

// ask demands the one answer that the contract has.
func ask[A ipc.Message](h *house, c *ipc.Client, m ipc.Message) A {
	h.t.Helper()
	a, err := c.Call(context.Background(), m, nil)
	if err != nil {
		h.t.Fatalf("%T: %v", m, err)
	}
	got, ok := a.(A)
	if !ok {
		h.t.Fatalf("%T was answered with %T", m, a)
	}
	return got
}

// phone is a phone's key and what it knows.
type phone struct {
	key     *ecdsa.PrivateKey
	slot    uint32
	counter uint64
}

func newPhone(t *testing.T) *phone {
	t.Helper()
	k, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return &phone{key: k}
}

func (p *phone) point(t *testing.T) []byte {
	t.Helper()
	b, err := p.key.PublicKey.Bytes()
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// sign is what WebCrypto does.
func (p *phone) sign(t *testing.T, message []byte) []byte {
	t.Helper()
	d := sha256.Sum256(message)
	r, s, err := ecdsa.Sign(rand.Reader, p.key, d[:])
	if err != nil {
		t.Fatal(err)
	}
	return append(r.FillBytes(make([]byte, 32)), s.FillBytes(make([]byte, 32))...)
}

// ask returns the phone's next signed ask.
func (p *phone) ask(t *testing.T, conversation ipc.ID) *ipc.Ask {
	t.Helper()
	p.counter++
	return p.askAs(t, p.slot, conversation, p.counter)
}

func (p *phone) askAs(t *testing.T, slot uint32, conversation ipc.ID, counter uint64) *ipc.Ask {
	t.Helper()
	text := wire.TextDigest("how tall is the tower?")
	return &ipc.Ask{
		Slot: slot, Conversation: conversation, Counter: counter, TextDigest: text,
		Sig: p.sign(t, wire.AskBytes(slot, conversation, counter, text)),
	}
}

// pairingCode opens pairing mode at the box and reads the code there.
func (h *house) pairingCode() string {
	h.t.Helper()
	h.hands.HoldBoth(3500 * time.Millisecond)
	h.hands.Wait(time.Second)
	code, open := h.code()
	if !open {
		h.t.Fatal("pairing mode did not open")
	}
	return code
}

// pair opens pairing mode at the box, pairs a phone and accepts it there.
func (h *house) pair(name string) *phone {
	h.t.Helper()
	p := newPhone(h.t)
	code := h.pairingCode()
	done := make(chan *ipc.PairReply, 1)
	go func() {
		a, _ := h.gateway.Call(context.Background(), &ipc.Pair{Code: code, Name: name, Key: p.point(h.t)}, nil)
		r, _ := a.(*ipc.PairReply)
		done <- r
	}()
	h.hands.Wait(3 * time.Second)
	role := ipc.RoleAdult
	if ask[*ipc.Status](h, h.gateway, &ipc.StatusRequest{}).Phones == 0 {
		role = ipc.RoleOwner
	}
	title, text := guard.PairPrompt(wire.KeyCode(code, p.point(h.t)), role)
	pages, err := screen.AdminPages(title, text, h.large, name)
	if err != nil {
		h.t.Fatal(err)
	}
	if glass := h.panel.Glass(); !bytes.Equal(glass[:device.Width*7], pages[0].Frame[:device.Width*7]) {
		h.t.Error("the prompt is not on the glass, or in other letters")
	}
	for range pages[1:] {
		h.hands.Tap(device.Approve)
		h.hands.Wait(3 * time.Second)
	}
	h.hands.HoldBoth(4 * time.Second)
	synctest.Wait()
	var r *ipc.PairReply
	select {
	case r = <-done:
	default:
	}
	if r == nil || !r.OK {
		h.t.Fatalf("%q was not paired: %+v", name, r)
	}
	p.slot = r.Slot
	h.hands.Wait(4 * time.Second)
	return p
}

// turn opens a turn and returns its ask.
func (h *house) turn(p *phone, conversation ipc.ID) ipc.ID {
	h.t.Helper()
	r := ask[*ipc.AskReply](h, h.gateway, p.ask(h.t, conversation))
	if r.Ask == (ipc.ID{}) {
		h.t.Fatalf("the ask was refused: %s %s", r.Code, r.Message)
	}
	return r.Ask
}

const query = `{"query":"tall towers"}`

func search(a ipc.ID, args string) *ipc.Propose {
	return &ipc.Propose{Ask: a, Name: []byte("find_pages__v1"), Arguments: []byte(args), Step: 1, Index: 1}
}

func state(a ipc.ID) *ipc.Propose {
	return &ipc.Propose{Ask: a, Name: []byte("box_state__v1"), Arguments: []byte("{}"), Step: 1, Index: 1}
}

// card is a proposal that waits at the box.
type card struct {
	pending ipc.Pending
	done    chan *ipc.Outcome
	told    chan ipc.Pending // of it, later
}

// propose submits something that needs a press and waits until it is pending.
func (h *house) propose(c *ipc.Client, m *ipc.Propose) card {
	h.t.Helper()
	k := card{done: make(chan *ipc.Outcome, 1), told: make(chan ipc.Pending, 4)}
	go func() {
		a, err := c.Call(context.Background(), m, func(p *ipc.Pending) { k.told <- *p })
		if err != nil {
			k.done <- nil
			return
		}
		o, _ := a.(*ipc.Outcome)
		k.done <- o
	}()
	select {
	case k.pending = <-k.told:
	case o := <-k.done:
		h.t.Fatalf("it ended before it was pending: %+v", o)
	}
	h.hands.Wait(1500 * time.Millisecond) // NEXT REQUEST
	return k
}

// read opens the front card and pages to its end.
func (h *house) read(k card) {
	h.t.Helper()
	for range k.pending.Pages {
		h.hands.Tap(device.Approve)
		h.hands.Wait(5 * time.Second)
	}
}

// approve reads the front card and holds the button.
func (h *house) approve(k card) *ipc.Outcome {
	h.t.Helper()
	h.read(k)
	h.hands.Hold(device.Approve, 2*time.Second)
	return h.outcome(k)
}

func (h *house) outcome(k card) *ipc.Outcome {
	h.t.Helper()
	synctest.Wait()
	select {
	case o := <-k.done:
		h.hands.Wait(4 * time.Second) // the result leaves the glass
		return o
	default:
		h.t.Fatal("the proposal has not ended")
		return nil
	}
}

func (h *house) now(m *ipc.Propose) *ipc.Outcome {
	h.t.Helper()
	return ask[*ipc.Outcome](h, h.gateway, m)
}

// courier is the far side of the courier's socket: it reads the key, says a challenge and spends grants.
type courier struct {
	mu      sync.Mutex
	doors   *pipes
	answer  func(c grant.Claims) ipc.Message // nil: Done
	grants  []grant.Claims
	aborted []ipc.Abort
	conn    *ipc.Conn
	wg      sync.WaitGroup
}

func (c *courier) open(clk clock.Clock, boot [16]byte, keyFile string) {
	c.doors = newPipes()
	c.wg.Go(func() {
		for {
			conn, err := c.doors.Accept()
			if err != nil {
				return
			}
			key, err := os.ReadFile(keyFile)
			if err != nil {
				conn.Close()
				continue
			}
			c.wg.Go(func() { c.serve(ipc.NewConn(conn), ed25519.PublicKey(key), clk, boot) })
		}
	})
}

func (c *courier) dial(ctx context.Context) (net.Conn, error) { return c.doors.dial(ctx) }

func (c *courier) close() {
	c.doors.Close()
	c.wg.Wait()
}

func (c *courier) serve(conn *ipc.Conn, key ed25519.PublicKey, clk clock.Clock, boot [16]byte) {
	defer conn.Close()
	var challenge [32]byte
	rand.Read(challenge[:])
	if conn.Send(0, &ipc.Challenge{Nonce: challenge}) != nil {
		return
	}
	c.mu.Lock()
	c.conn = conn
	c.mu.Unlock()
	for {
		id, m, err := conn.Receive()
		if err != nil {
			return
		}
		switch m := m.(type) {
		case *ipc.Execute:
			claims, _, err := grant.Verify(key, m.Grant)
			if err != nil || claims.Challenge != challenge || claims.BootID != boot || clk.Boot() >= claims.Deadline {
				conn.Send(id, &ipc.Error{Code: "grant_refused", Message: "not a good grant"})
				continue
			}
			c.mu.Lock()
			c.grants = append(c.grants, claims)
			answer := c.answer
			c.mu.Unlock()
			if answer == nil {
				conn.Send(id, executortest.Done(claims, []byte(`{"ok":true}`)))
			} else if a := answer(claims); a != nil {
				conn.Send(id, a)
			}
		case *ipc.Abort:
			c.mu.Lock()
			c.aborted = append(c.aborted, *m)
			c.mu.Unlock()
		}
	}
}

func (c *courier) count() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.grants)
}
