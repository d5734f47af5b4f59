package guard_test

import (
	"context"
	"errors"
	"io/fs"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"

	"assent.home.arpa/appliance/clock"
	"assent.home.arpa/appliance/clock/clocktest"
	"assent.home.arpa/appliance/config"
	"assent.home.arpa/appliance/guard"
	"assent.home.arpa/appliance/ipc"
	"assent.home.arpa/capabilities/executor/executortest"
	"assent.home.arpa/capabilities/registry"
	"assent.home.arpa/device/devicetest"
)

// run starts a guard on real sockets and returns how to speak to it.
func run(t *testing.T, change func(*guard.Options)) guard.Options {
	t.Helper()
	// Socket paths are bounded to 108 bytes (unix(7)), and a test's own directory can be longer.
	dir, err := os.MkdirTemp("", "guard")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	door, err := ipc.Listen(filepath.Join(dir, "guard.sock"))
	if err != nil {
		t.Fatal(err)
	}
	reg, err := registry.New(executortest.Local())
	if err != nil {
		t.Fatal(err)
	}
	still := clocktest.New()
	uid := uint32(os.Getuid())
	ready := make(chan struct{})
	o := guard.Options{
		Config: config.Default(), Clock: clock.System(), BootID: [16]byte{7}, Registry: reg,
		Display: devicetest.NewPanel(still), Buttons: devicetest.NewButtons(still),
		Gateway: door, GatewayUID: uid, Courier: filepath.Join(dir, "courier.sock"), CourierUID: uid,
		GrantKeyFile: filepath.Join(dir, "grant.pub"), StateDir: filepath.Join(dir, "state"),
		Log: slog.New(slog.DiscardHandler), Ready: func() { close(ready) },
	}
	change(&o)
	ctx, stop := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- guard.Run(ctx, o) }()
	t.Cleanup(func() {
		stop()
		if err := <-done; err != nil {
			t.Errorf("the guard failed: %v", err)
		}
	})
	<-ready
	return o
}

func hello(t *testing.T, o guard.Options) (*ipc.Client, error) {
	t.Helper()
	conn, err := net.Dial("unix", o.Gateway.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	c := ipc.NewClient(ipc.NewConn(conn), func(ipc.Message) {})
	t.Cleanup(func() { c.Close() })
	_, err = c.Call(t.Context(), &ipc.Hello{Build: "test"}, nil)
	return c, err
}

func TestSocketAdmitsOneUserAlone(t *testing.T) {
	if _, err := hello(t, run(t, func(*guard.Options) {})); err != nil {
		t.Errorf("the gateway's user was refused: %v", err)
	}
	if _, err := hello(t, run(t, func(o *guard.Options) { o.GatewayUID++ })); err == nil {
		t.Error("another user was answered")
	}
}

func TestExporterOfAnotherUserIsHungUpOn(t *testing.T) {
	for event, other := range map[string]uint32{"the exporter's user": 0, "another user": 1} {
		path := filepath.Join(t.TempDir(), "export.sock")
		run(t, func(o *guard.Options) {
			var err error
			if o.Exporter, err = ipc.Listen(path); err != nil {
				t.Fatal(err)
			}
			o.ExporterUID = uint32(os.Getuid()) + other
		})
		conn, err := net.Dial("unix", path)
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		patience := 200 * time.Millisecond
		if other != 0 {
			patience = 10 * time.Second
		}
		if err := conn.SetReadDeadline(time.Now().Add(patience)); err != nil {
			t.Fatal(err)
		}
		// A guard says nothing to an exporter before somebody pressed, so one that is let in hears nothing.
		_, err = conn.Read(make([]byte, 1))
		if heard := !errors.Is(err, os.ErrDeadlineExceeded); heard != (other != 0) {
			t.Errorf("%s: %v", event, err)
		}
	}
}

func TestCourierOfAnotherUserIsNotUsed(t *testing.T) {
	var listener *net.UnixListener
	o := run(t, func(o *guard.Options) {
		o.CourierUID++
		var err error
		if listener, err = ipc.Listen(o.Courier); err != nil {
			t.Fatal(err)
		}
	})
	defer listener.Close()
	conn, err := listener.Accept()
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	// The guard hangs up without a word, so a challenge leads nowhere.
	ipc.NewConn(conn).Send(0, &ipc.Challenge{Nonce: [32]byte{1}})
	if n, err := conn.Read(make([]byte, 1)); n != 0 || err == nil {
		t.Errorf("it got %d bytes, %v", n, err)
	}
	c, err := hello(t, o)
	if err != nil {
		t.Fatal(err)
	}
	a, err := c.Call(t.Context(), &ipc.StatusRequest{}, nil)
	if s, ok := a.(*ipc.Status); err != nil || !ok || s.Courier {
		t.Errorf("status %+v, %v", a, err)
	}
}

func TestGrantKeyIsPublishedForTheCourierAlone(t *testing.T) {
	o := run(t, func(*guard.Options) {})
	info, err := os.Stat(o.GrantKeyFile)
	if err != nil {
		t.Fatal(err)
	}
	if info.Size() != 32 || info.Mode().Perm() != 0o640 {
		t.Errorf("the key file has %d bytes and mode %v", info.Size(), info.Mode())
	}
	if err := filepath.WalkDir(o.StateDir, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := d.Info()
		if err == nil && info.Mode().Perm()&0o077 != 0 {
			t.Errorf("%s is open to others: %v", d.Name(), info.Mode())
		}
		return err
	}); err != nil {
		t.Fatal(err)
	}
}

func TestDamagedPairingsAreNotGuessedAt(t *testing.T) {
	for _, text := range []string{"", "{", `{"version":2}`, `{"version":1,"next":2,"phones":[{"slot":1,"person":"x","role":3,"key":"AAAA"}]}`, `{"version":1,"who":"me"}`} {
		dir := t.TempDir()
		if err := os.WriteFile(filepath.Join(dir, "phones.json"), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		reg, err := registry.New(executortest.Local())
		if err != nil {
			t.Fatal(err)
		}
		still := clocktest.New()
		err = guard.Run(t.Context(), guard.Options{
			Config: config.Default(), Clock: still, BootID: [16]byte{7}, Registry: reg, Display: devicetest.NewPanel(still), Buttons: devicetest.NewButtons(still),
			Gateway: newPipes(), Courier: "none", GrantKeyFile: filepath.Join(dir, "grant.pub"), StateDir: dir, Log: slog.New(slog.DiscardHandler),
		})
		if err == nil {
			t.Errorf("%q was read as pairings", text)
		}
	}
}
