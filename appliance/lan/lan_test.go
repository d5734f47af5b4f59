package lan_test

import (
	"context"
	"errors"
	"io/fs"
	"log/slog"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"assent.home.arpa/appliance/lan"
)

func TestChoose(t *testing.T) {
	up := func(addrs ...string) lan.Interface {
		i := lan.Interface{Up: true}
		for _, a := range addrs {
			i.Addrs = append(i.Addrs, netip.MustParseAddr(a))
		}
		return i
	}
	down, loop := up("192.168.1.9"), up("127.0.0.1", "::1")
	down.Up, loop.Loopback = false, true
	for _, tc := range []struct {
		name string
		all  []lan.Interface
		want string
	}{
		{"nothing", nil, ""},
		{"only itself", []lan.Interface{loop}, ""},
		{"a cable that is out", []lan.Interface{loop, down}, ""},
		{"before dhcp has answered", []lan.Interface{loop, up("169.254.3.4", "fe80::1")}, ""},
		{"a home", []lan.Interface{loop, up("fe80::1", "2001:db8::5", "fd00::5", "192.168.1.20")}, "192.168.1.20"},
		{"a public network", []lan.Interface{up("2001:db8::5", "203.0.113.7")}, "203.0.113.7"},
		{"a home without ipv4", []lan.Interface{up("fe80::1", "2001:db8::5", "fd00::5")}, "fd00::5"},
		{"two cards", []lan.Interface{up("10.0.0.2"), up("192.168.1.20")}, "10.0.0.2"},
		{"an ipv4 address in ipv6 form", []lan.Interface{up("::ffff:10.0.0.2")}, "10.0.0.2"},
	} {
		got, ok := lan.Choose(tc.all)
		if ok != (tc.want != "") || ok && got.String() != tc.want {
			t.Errorf("%s: %v %v, want %q", tc.name, got, ok, tc.want)
		}
	}
}

func TestReadTakesOnlyAnAddress(t *testing.T) {
	path := filepath.Join(t.TempDir(), "address")
	if _, err := lan.Read(path); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("no file: %v", err)
	}
	for text, good := range map[string]bool{
		"192.168.1.20\n": true, "fd00::5\n": true,
		"": false, "\n": false, "192.168.1.20": false, "192.168.1.20\n\n": false, "192.168.1.20/24\n": false,
		"evil.example\n": false, "127.0.0.1\n": false, "fe80::1%eth0\n": false, "FD00::5\n": false, "192.168.1.20:80\n": false,
	} {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if a, err := lan.Read(path); (err == nil) != good || good && a.String()+"\n" != text {
			t.Errorf("%q: %v %v", text, a, err)
		}
	}
}

// The file follows a real network card as it comes up, changes its address, and goes.
func TestFollowsTheKernel(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("SKIPPED: a network of its own needs root")
	}
	ip, err := exec.LookPath("ip")
	if err != nil {
		t.Skip("SKIPPED: this machine has no ip(8)")
	}
	path := filepath.Join(t.TempDir(), "address")
	done := make(chan error, 1)
	ctx, stop := context.WithCancel(t.Context())
	// Follow stays in one network as long as its thread does, and the commands start in it.
	commands := make(chan []string)
	ran := make(chan error)
	first := make(chan struct{})
	go func() {
		runtime.LockOSThread() // and never unlocked: this thread ends with its network
		if err := unix.Unshare(unix.CLONE_NEWNET); err != nil {
			ran <- err
			return
		}
		for args := range commands {
			if args == nil {
				changesIn(ctx, path, done, first)
				ran <- nil
				continue
			}
			ran <- exec.Command(ip, args...).Run()
		}
	}()
	do := func(args ...string) {
		t.Helper()
		select {
		case err := <-ran:
			t.Skipf("SKIPPED: no network of its own: %v", err)
		case commands <- args:
			if err := <-ran; err != nil {
				t.Fatalf("ip %v: %v", args, err)
			}
		}
	}
	wait := func(want string) {
		t.Helper()
		for range 200 {
			if a, err := lan.Read(path); want == "" && errors.Is(err, fs.ErrNotExist) || err == nil && a.String() == want {
				return
			}
			time.Sleep(20 * time.Millisecond)
		}
		b, err := os.ReadFile(path)
		t.Fatalf("the file holds %q (%v), want %q", b, err, want)
	}
	do("link", "set", "lo", "up")
	do("link", "add", "one", "type", "veth", "peer", "name", "two")
	do("link", "set", "two", "up")
	do()
	<-first
	wait("")
	do("address", "add", "192.168.7.2/24", "dev", "one")
	wait("") // the card is down
	do("link", "set", "one", "up")
	wait("192.168.7.2")
	do("address", "del", "192.168.7.2/24", "dev", "one")
	do("address", "add", "10.3.0.2/24", "dev", "one")
	wait("10.3.0.2")
	do("link", "del", "one")
	wait("")
	stop()
	if err := <-done; err != nil {
		t.Errorf("follow: %v", err)
	}
	close(commands)
}

// changesIn follows in a thread that shares the network of this one.
func changesIn(ctx context.Context, path string, done chan<- error, first chan<- struct{}) {
	self, err := os.Open("/proc/thread-self/ns/net")
	if err != nil {
		done <- err
		return
	}
	go func() {
		runtime.LockOSThread()
		defer self.Close()
		if err := unix.Setns(int(self.Fd()), unix.CLONE_NEWNET); err != nil {
			done <- err
			return
		}
		done <- lan.Follow(ctx, path, slog.New(slog.DiscardHandler), func() { close(first) })
	}()
}
