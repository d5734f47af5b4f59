package box_test

import (
	"context"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"log/slog"
	mathrand "math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"assent.home.arpa/appliance/audit"
	"assent.home.arpa/appliance/box"
	"assent.home.arpa/appliance/clock"
	"assent.home.arpa/appliance/config"
	"assent.home.arpa/appliance/grant"
	"assent.home.arpa/appliance/ipc"
	"assent.home.arpa/appliance/wire"
	"assent.home.arpa/capabilities"
	"assent.home.arpa/capabilities/executor/executortest"
	"assent.home.arpa/device/devicetest"
)

var kills = flag.Int("kills", 200, "how often the guard is killed")

// guardIn names, to a copy of the test's own program, the directory whose guard it is to be.
const guardIn = "ASSENT_TEST_GUARD_IN"

func TestMain(m *testing.M) {
	if image := os.Getenv(exporterOf); image != "" {
		if err := beExporter(os.Getenv(guardIn), image); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	if dir := os.Getenv(guardIn); dir != "" {
		if err := beGuard(dir); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	os.Exit(m.Run())
}

func configIn(dir string) config.Config {
	c := config.Default()
	c.Paths = config.Paths{State: filepath.Join(dir, "state"), Runtime: filepath.Join(dir, "run")}
	return c
}

// beGuard runs a guard as the box does, but for the panel, at which nobody presses.
func beGuard(dir string) error {
	c := configIn(dir)
	l, err := ipc.Listen(box.At(c.Paths.Runtime).Guard)
	if err != nil {
		return err
	}
	me, clk := uint32(os.Getuid()), clock.System()
	panel := box.Panel{Display: devicetest.NewPanel(clk), Buttons: devicetest.NewButtons(clk), Lamp: &devicetest.Lamp{}}
	return box.Guard(context.Background(), c, panel, box.Doors{Gateway: l}, box.Peers{Gateway: me, Guard: me, Courier: me}, true, slog.New(slog.DiscardHandler), box.Life{}, nil)
}

// around is what goes on around a guard that is killed: a gateway that asks, and a courier that executes.
type around struct {
	t       *testing.T
	config  config.Config
	sockets box.Sockets
	phone   *ecdsa.PrivateKey

	mu       sync.Mutex
	counter  uint64
	executed map[capabilities.InvocationID]grant.Claims
	twice    int
	outcomes []ipc.Outcome
	first    time.Time // when the first of them was heard
	refused  int
	claims   int
}

// pairedBox lays out a box with one phone, which was paired before.
func pairedBox(t *testing.T) *around {
	t.Helper()
	// Socket paths are bounded to 108 bytes (unix(7)), and a test's own directory can be longer.
	dir, err := os.MkdirTemp("", "box")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	c := configIn(dir)
	a := &around{t: t, config: c, sockets: box.At(c.Paths.Runtime), executed: map[capabilities.InvocationID]grant.Claims{}}
	if err := a.sockets.Make(); err != nil {
		t.Fatal(err)
	}
	if a.phone, err = ecdsa.GenerateKey(elliptic.P256(), rand.Reader); err != nil {
		t.Fatal(err)
	}
	point, err := a.phone.PublicKey.Bytes()
	if err != nil {
		t.Fatal(err)
	}
	paired, err := json.Marshal(map[string]any{
		"version": 1, "next": 2, "phones": []any{map[string]any{"slot": 1, "person": "p1", "name": "kitchen", "role": ipc.RoleAdult, "key": point, "counter": 0}},
	})
	if err != nil {
		t.Fatal(err)
	}
	state := box.StateDir(c, "guard")
	if err := os.MkdirAll(state, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(state, "phones.json"), paired, 0o600); err != nil {
		t.Fatal(err)
	}
	return a
}

func (a *around) audit() fs.FS {
	return os.DirFS(filepath.Join(box.StateDir(a.config, "guard"), "audit"))
}

// court executes what it is granted, and notes it before it answers.
func (a *around) court(ctx context.Context) {
	l, err := ipc.Listen(a.sockets.Courier)
	if err != nil {
		a.t.Error(err)
		return
	}
	defer context.AfterFunc(ctx, func() { l.Close() })()
	var guards sync.WaitGroup
	defer guards.Wait()
	for {
		conn, err := l.Accept()
		if err != nil {
			return
		}
		guards.Go(func() { a.spend(ipc.NewConn(conn)) })
	}
}

func (a *around) spend(conn *ipc.Conn) {
	defer conn.Close()
	key, err := os.ReadFile(a.sockets.GrantKey)
	if err != nil {
		a.t.Error("a guard connects before it has published its key:", err)
		return
	}
	challenge := ipc.Challenge{}
	rand.Read(challenge.Nonce[:])
	if conn.Send(0, &challenge) != nil {
		return
	}
	for {
		id, m, err := conn.Receive()
		if err != nil {
			return
		}
		x, ok := m.(*ipc.Execute)
		if !ok {
			continue
		}
		claims, _, err := grant.Verify(ed25519.PublicKey(key), x.Grant)
		if err != nil || claims.Challenge != challenge.Nonce {
			a.t.Errorf("a grant that is none: %v", err)
			return
		}
		a.mu.Lock()
		if _, again := a.executed[claims.Inv]; again {
			a.twice++
		}
		a.executed[claims.Inv] = claims
		a.mu.Unlock()
		if conn.Send(id, executortest.Done(claims, []byte(`{"uptime":"1 h"}`))) != nil {
			return
		}
	}
}

// ask opens turns and proposes until the guard is gone.
func (a *around) ask(ctx context.Context) {
	client := a.reach(ctx)
	if client == nil {
		return
	}
	defer client.Close()
	for {
		r, err := client.Call(ctx, a.signed(), nil)
		if err != nil {
			return
		}
		turn, ok := r.(*ipc.AskReply)
		if !ok || turn.Ask == (ipc.ID{}) {
			a.t.Errorf("an ask was answered with %+v", r)
			return
		}
		for index, name := range []string{"system_health__v1", "no_such__v1", "system_health__v1"} {
			p := &ipc.Propose{Ask: turn.Ask, Name: []byte(name), Arguments: []byte(`{}`), Step: 1, Index: uint16(index + 1)}
			r, err := client.Call(ctx, p, nil)
			if err != nil {
				return
			}
			if o, ok := r.(*ipc.Outcome); ok {
				a.heard(*o)
			}
		}
		if client.Tell(&ipc.Claim{Class: ipc.ClaimParseFailure, Ask: turn.Ask, Slot: 1, Code: capabilities.CodeMalformed, Step: 1}) != nil {
			return
		}
		a.mu.Lock()
		a.claims++
		a.mu.Unlock()
	}
}

// reach connects to the guard as soon as it listens and answers; nil where ctx ends first.
func (a *around) reach(ctx context.Context) *ipc.Client {
	again := time.NewTicker(2 * time.Millisecond)
	defer again.Stop()
	for {
		if conn, err := net.Dial("unix", a.sockets.Guard); err == nil {
			client := ipc.NewClient(ipc.NewConn(conn), func(ipc.Message) {})
			if _, err := client.Call(ctx, &ipc.Hello{Build: "test"}, nil); err == nil {
				return client
			}
			client.Close()
		}
		select {
		case <-again.C:
		case <-ctx.Done():
			return nil
		}
	}
}

func (a *around) signed() *ipc.Ask {
	a.mu.Lock()
	a.counter++
	ask := &ipc.Ask{Slot: 1, Conversation: ipc.ID{1}, Counter: a.counter, TextDigest: wire.TextDigest("how are you?")}
	a.mu.Unlock()
	d := sha256.Sum256(wire.AskBytes(ask.Slot, ask.Conversation, ask.Counter, ask.TextDigest))
	r, s, err := ecdsa.Sign(rand.Reader, a.phone, d[:])
	if err != nil {
		a.t.Error(err)
	}
	ask.Sig = append(r.FillBytes(make([]byte, 32)), s.FillBytes(make([]byte, 32))...)
	return ask
}

func (a *around) heard(o ipc.Outcome) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if o.Status == capabilities.Done {
		if len(a.outcomes) == 0 {
			a.first = time.Now()
		}
		a.outcomes = append(a.outcomes, o)
	} else {
		a.refused++
	}
}

// run starts a guard, loads it, and kills it after so long: it may be starting still.
func (a *around) run(after time.Duration) {
	t := a.t
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	cmd := exec.Command(self)
	cmd.Env = append(os.Environ(), guardIn+"="+filepath.Dir(a.config.Paths.State))
	cmd.Stderr = os.Stderr
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	var gateway sync.WaitGroup
	gateway.Go(func() { a.ask(ctx) })
	time.Sleep(after) // the moment is the fault; nothing waits for it
	if err := cmd.Process.Kill(); err != nil {
		t.Fatalf("the guard ended by itself: %v", err)
	}
	var exit *exec.ExitError
	if err := cmd.Wait(); !errors.As(err, &exit) || exit.Exited() {
		t.Fatalf("the guard ended by itself: %v", err)
	}
	stop()
	gateway.Wait()
}

// judge reads the log as it lies there. What a kill leaves is whole or torn, never altered.
func (a *around) judge(visit func(audit.Entered) error) (audit.Report, bool) {
	a.t.Helper()
	r, err := audit.Verify(a.t.Context(), a.audit(), audit.VerifyOptions{AllSeals: true, Visit: visit})
	if errors.Is(err, fs.ErrNotExist) {
		return r, false
	}
	if err != nil {
		a.t.Fatal(err)
	}
	if code := r.Status.ExitCode(); code != 0 && code != 2 {
		a.t.Fatalf("after a kill the log is %s: %v", r.Status, r.Problem)
	}
	return r, true
}

// D3, W14: the real guard, over its real sockets, with its log in a real directory, is killed at random moments while it
// works and while it starts. What it acknowledged is in the log, what was executed had been promised there, what was cut off
// is unknown, and nothing is executed twice.
func TestAGuardThatIsKilledAtAnyMoment(t *testing.T) {
	a := pairedBox(t)
	ctx, stop := context.WithCancel(t.Context())
	var courier sync.WaitGroup
	courier.Go(func() { a.court(ctx) })
	defer courier.Wait()
	defer stop()

	begun := time.Now()
	first := a.lived(t)
	start := a.first.Sub(begun) // until a call has gone through
	random := mathrand.New(mathrand.NewPCG(9, uint64(*kills)))
	torn := 0
	for n := range *kills {
		a.run(time.Duration(random.Int64N(int64(2 * start))))
		// Reading the whole log takes longer, the longer it is.
		if n%16 == 0 {
			if r, ok := a.judge(nil); ok && r.Status == audit.Incomplete {
				torn++
			}
		}
		if t.Failed() {
			t.Fatalf("after kill %d of %d", n+1, *kills)
		}
	}
	if last := a.lived(t); last <= first {
		t.Errorf("%d calls at the end, and %d at the beginning", last, first)
	}
	a.account(torn)
}

// lived runs a guard until one call has gone through, kills it, and returns how many calls have by then.
func (a *around) lived(t *testing.T) int {
	t.Helper()
	calls := func() int {
		a.mu.Lock()
		defer a.mu.Unlock()
		return len(a.outcomes)
	}
	before := calls()
	for wait := 500 * time.Millisecond; calls() == before; wait *= 2 {
		if wait > time.Minute {
			t.Fatal("no call goes through")
		}
		a.run(wait)
	}
	return calls()
}

// account holds the log against what was seen of the guard outside.
func (a *around) account(torn int) {
	t := a.t
	t.Helper()
	// One more start mends what the last kill left; it is killed when it answers.
	a.lived(t)
	intents := map[capabilities.InvocationID]audit.Seq{}
	effects := map[capabilities.InvocationID]capabilities.Status{}
	at := map[capabilities.InvocationID]audit.Seq{}
	boots, tails, unknowns, claims := 0, 0, 0, 0
	var sealed audit.Seq
	r, ok := a.judge(func(e audit.Entered) error {
		inv := capabilities.InvocationID(e.Inv)
		switch p := e.Payload.(type) {
		case *audit.Boot:
			boots++
			if p.TailBytes > 0 {
				tails++
			}
		case *audit.IntentRecord:
			intents[inv] = e.Seq
		case *audit.EffectRecord:
			effects[inv], at[inv] = p.Status, e.Seq
			if p.Status == capabilities.Unknown {
				unknowns++
			}
		case *audit.Claim:
			if p.Class == audit.ClaimParseFailure {
				claims++
			}
		case *audit.Seal:
			sealed = e.Seq
		}
		return nil
	})
	if !ok {
		t.Fatal("there is no log")
	}
	if a.twice > 0 {
		t.Errorf("%d calls were executed twice", a.twice)
	}
	for inv, c := range a.executed {
		if seq, ok := intents[inv]; !ok || seq != audit.Seq(c.Intent) || seq > sealed {
			t.Errorf("%s was executed on the word of record %d, which is not there", inv, c.Intent)
		}
	}
	heard := map[capabilities.InvocationID]bool{}
	for _, o := range a.outcomes {
		heard[o.Inv] = true
		if effects[o.Inv] != capabilities.Done || at[o.Inv] != audit.Seq(o.Seq) || at[o.Inv] > sealed {
			t.Errorf("%s was acknowledged as record %d; the log says %s in record %d", o.Inv, o.Seq, effects[o.Inv], at[o.Inv])
		}
		if _, ok := a.executed[o.Inv]; !ok {
			t.Errorf("%s was acknowledged and never executed", o.Inv)
		}
	}
	open := 0
	for inv := range intents {
		switch effects[inv] {
		case capabilities.Done:
			if _, ok := a.executed[inv]; !ok {
				t.Errorf("%s is done in the log and was never executed", inv)
			}
		case capabilities.Unknown:
			if heard[inv] {
				t.Errorf("%s was acknowledged, and is unknown", inv)
			}
		case 0:
			open++
		}
	}
	if open != len(r.Open) || open > 1 {
		t.Errorf("%d intents without an effect, which the last kill alone can have left; the verifier says %d", open, len(r.Open))
	}
	t.Logf("%d kills, %d starts in the log: %d calls executed, %d acknowledged, %d unknown; %d refusals heard; %d claims, of %d made; "+
		"%d torn tails mended; at %d looks in between %d logs were torn; %d records in %d segments",
		*kills, boots, len(a.executed), len(a.outcomes), unknowns, a.refused, claims, a.claims, tails, (*kills+15)/16, torn, r.Records, r.Segments)
}
