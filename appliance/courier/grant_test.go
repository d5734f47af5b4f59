package courier_test

import (
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"

	"assent.home.arpa/appliance/courier"
	"assent.home.arpa/appliance/grant"
	"assent.home.arpa/appliance/ipc"
	"assent.home.arpa/capabilities"
)

// D8: a grant of another signer, connection, boot or time does nothing: no name is looked up, no worker starts.
func TestGrantsThatAreRefused(t *testing.T) {
	var jobs atomic.Int32
	r := start(t, func(j job) { jobs.Add(1); done(j) }, nil)
	r.resolver.addrs = []string{"93.184.215.14"}
	named := func(c *grant.Claims) {
		c.Request.Host, c.Request.Address, c.Request.Scheme = "example.org", capabilities.AddressPublic, "https"
	}
	_, stranger, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	_, otherChallenge := r.connect()
	good := r.claims(named)
	forged, err := grant.Sign(stranger, good)
	if err != nil {
		t.Fatal(err)
	}
	cases := map[string][]byte{
		"nothing":             {},
		"not a grant":         []byte("approve"),
		"of another signer":   forged,
		"over the bound":      make([]byte, grant.MaxBytes+1),
		"another connection":  r.sign(r.claims(func(c *grant.Claims) { named(c); c.Challenge = otherChallenge })),
		"another boot":        r.sign(r.claims(func(c *grant.Claims) { named(c); c.BootID[0]++ })),
		"after its deadline":  r.sign(r.claims(func(c *grant.Claims) { named(c); c.Deadline = r.clock.Boot() })),
		"valid for ever":      r.sign(r.claims(func(c *grant.Claims) { named(c); c.Deadline = 1 << 62 })),
		"cut off":             r.sign(good)[:100],
		"something behind it": append(r.sign(good), 0),
	}
	signed := r.sign(good)
	for i := 0; i < len(signed); i += 3 {
		altered := append([]byte(nil), signed...)
		altered[i] ^= 1
		cases[fmt.Sprintf("byte %d altered", i)] = altered
	}
	for event, g := range cases {
		result, refused := r.execute(g)
		if refused == nil || refused.Code != capabilities.CodeGrantRefused || refused.Message == "" {
			t.Errorf("%s: %+v, %v", event, result, refused)
		}
	}
	if n := r.resolver.asked.Load(); n != 0 {
		t.Errorf("%d names were looked up without a grant", n)
	}
	if n := jobs.Load(); n != 0 {
		t.Errorf("%d workers started without a grant", n)
	}
	// The same call, properly granted, does look the name up.
	r.resolver.addrs = []string{"10.0.0.1"}
	if _, refused := r.execute(signed); refused == nil || refused.Code != capabilities.CodeUnreachable || r.resolver.asked.Load() != 1 {
		t.Errorf("a good grant: %v, %d look-ups", refused, r.resolver.asked.Load())
	}
}

func TestClassWithoutWorkersIsRefused(t *testing.T) {
	r := start(t, done, func(o *courier.Options) { delete(o.Workers, capabilities.ClassNone) })
	if _, refused := r.execute(r.sign(r.claims(automatic))); refused == nil || refused.Code != capabilities.CodeGrantRefused {
		t.Errorf("%v", refused)
	}
}

// A24 and D8: a grant is used up by its first use, whether or not that comes to anything.
func TestGrantIsUsedOnce(t *testing.T) {
	var jobs atomic.Int32
	r := start(t, func(j job) { jobs.Add(1); done(j) }, nil)
	port, _ := listen(t, false)
	for event, c := range map[string]struct {
		claims grant.Claims
		works  bool
	}{
		"after it worked":        {r.claims(to(port)), true},
		"after it could not":     {r.claims(to(1)), false},
		"after an automatic one": {r.claims(automatic), true},
	} {
		jobs.Store(0)
		signed := r.sign(c.claims)
		result, refused := r.execute(signed)
		if c.works && (refused != nil || result.Status != capabilities.Done) || !c.works && refused == nil {
			t.Errorf("%s: first use: %+v, %v", event, result, refused)
		}
		for again, g := range map[string][]byte{"the same grant": signed, "the same invocation, signed again": r.sign(c.claims)} {
			if result, refused := r.execute(g); refused == nil || refused.Code != capabilities.CodeGrantRefused {
				t.Errorf("%s: %s: %+v, %v", event, again, result, refused)
			}
		}
		if n := jobs.Load(); n > 1 {
			t.Errorf("%s: it ran %d times", event, n)
		}
	}
}

// Two copies of a grant at the same instant: one of them is the second.
func TestTwoCopiesAtOnceRunOnce(t *testing.T) {
	var jobs atomic.Int32
	r := start(t, func(j job) { jobs.Add(1); done(j) }, nil)
	for range 20 {
		signed := r.sign(r.claims(automatic))
		a, b := r.later(signed), r.later(signed)
		if ra, rb := <-a, <-b; (ra == nil) == (rb == nil) {
			t.Fatalf("%+v and %+v", ra, rb)
		}
	}
	if n := jobs.Load(); n != 20 {
		t.Errorf("%d jobs for 20 grants", n)
	}
}

func TestGrantDiesWithItsConnection(t *testing.T) {
	r := start(t, done, nil)
	signed := r.sign(r.claims(automatic))
	r.guard.Close()
	r.guard, _ = r.connect()
	if _, refused := r.execute(signed); refused == nil || refused.Code != capabilities.CodeGrantRefused {
		t.Errorf("%v", refused)
	}
}

func TestEachConnectionHasAChallengeOfItsOwn(t *testing.T) {
	r := start(t, done, nil)
	_, other := r.connect()
	if r.challenge == other || r.challenge == [32]byte{} {
		t.Errorf("%x and %x", r.challenge, other)
	}
}

// D8: a third user is refused at the socket, before a challenge is made.
func TestThirdUserIsRefused(t *testing.T) {
	hears := func(r *rig, dial func() (net.Conn, error)) error {
		conn, err := dial()
		if err != nil {
			return err
		}
		defer conn.Close()
		_, _, err = ipc.NewConn(conn).Receive()
		return err
	}
	t.Run("only the guard's user may connect", func(t *testing.T) {
		public, _, err := ed25519.GenerateKey(rand.Reader)
		if err != nil {
			t.Fatal(err)
		}
		dir := t.TempDir()
		if err := os.WriteFile(filepath.Join(dir, "key"), public, 0o644); err != nil {
			t.Fatal(err)
		}
		r := start(t, done, nil)
		o := r.options
		if o.Guard, err = ipc.Listen(filepath.Join(dir, "s")); err != nil {
			t.Fatal(err)
		}
		o.GuardUID = uint32(os.Getuid()) + 1
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- courier.Run(ctx, o) }()
		if err := hears(r, func() (net.Conn, error) { return net.Dial("unix", filepath.Join(dir, "s")) }); err == nil {
			t.Error("somebody else got a challenge")
		}
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	t.Run("nobody connects to the guard's socket", func(t *testing.T) {
		if os.Getuid() != 0 {
			t.Skip("becoming another user needs root")
		}
		r := start(t, done, nil)
		// The directory must let nobody through, so that the credentials are what refuses.
		for dir := filepath.Dir(r.socket); strings.HasPrefix(dir, os.TempDir()) && dir != os.TempDir(); dir = filepath.Dir(dir) {
			if err := os.Chmod(dir, 0o755); err != nil {
				t.Fatal(err)
			}
		}
		if err := os.Chmod(r.socket, 0o777); err != nil {
			t.Fatal(err)
		}
		if err := hears(r, func() (net.Conn, error) { return dialAs(65534, r.socket) }); err == nil || errors.Is(err, os.ErrPermission) {
			t.Errorf("nobody heard %v", err)
		}
		if err := hears(r, func() (net.Conn, error) { return net.Dial("unix", r.socket) }); err != nil {
			t.Errorf("the guard itself: %v", err)
		}
	})
}

// dialAs connects from a thread of another user. The thread ends with its goroutine.
func dialAs(uid int, path string) (net.Conn, error) {
	type result struct {
		conn net.Conn
		err  error
	}
	out := make(chan result)
	go func() {
		runtime.LockOSThread() // and never unlocked
		if _, _, errno := syscall.RawSyscall(syscall.SYS_SETRESUID, ^uintptr(0), uintptr(uid), ^uintptr(0)); errno != 0 {
			out <- result{nil, errno}
			return
		}
		conn, err := net.Dial("unix", path)
		out <- result{conn, err}
	}()
	r := <-out
	return r.conn, r.err
}

func TestKeyFile(t *testing.T) {
	dir := t.TempDir()
	for event, c := range map[string]struct {
		size int
		ok   bool
	}{"a key": {32, true}, "empty": {0, false}, "short": {31, false}, "long": {33, false}} {
		path := filepath.Join(dir, event)
		if err := os.WriteFile(path, make([]byte, c.size), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := courier.ReadKey(path); (err == nil) != c.ok {
			t.Errorf("%s: %v", event, err)
		}
	}
	if _, err := courier.ReadKey(filepath.Join(dir, "none")); err == nil {
		t.Error("a key that is not there was read")
	}
}
