package cage_test

import (
	"encoding/json"
	"fmt"
	"log/slog"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"
	"unsafe"

	"github.com/landlock-lsm/go-landlock/landlock/syscall"
	"golang.org/x/sys/unix"

	"assent.home.arpa/appliance/cage"
)

// inCage names, to a copy of the test's own program, what it is to try.
const inCage = "ASSENT_TEST_CAGE"

// order is what a role that was taken over tries, and what room it has.
type order struct {
	Free   bool // no cage: the control
	Room   cage.Room
	Port   int    // a listener of this machine
	Secret string // a file outside the room
	Public string // a file inside it
	State  string // a directory of its own
	Socket string // a unix socket that it may connect to
	Other  string // and one that it may not
}

// The descriptors that PID 1 or the role had opened before.
const (
	listener = 3 + iota
	accepted
	multipath // a Multipath TCP listener, if the kernel has it
)

func TestMain(m *testing.M) {
	if text := os.Getenv(inCage); text != "" {
		var o order
		if err := json.Unmarshal([]byte(text), &o); err != nil {
			panic(err)
		}
		if !o.Free {
			if err := cage.Enter(slog.New(slog.DiscardHandler), o.Room); err != nil {
				panic(err)
			}
		}
		if err := json.NewEncoder(os.Stdout).Encode(o.attempts()); err != nil {
			panic(err)
		}
		return
	}
	os.Exit(m.Run())
}

// attempts tries every way out and says which were open.
func (o order) attempts() map[string]bool {
	to := &unix.SockaddrInet4{Port: o.Port, Addr: [4]byte{127, 0, 0, 1}}
	open := map[string]bool{
		"take a connection elsewhere":         elsewhere(accepted, to),
		"take a listener elsewhere":           elsewhere(listener, to),
		"take a multipath listener away":      elsewhere(multipath, to),
		"connect":                             socket(unix.SOCK_STREAM, 0, func(fd int) error { return unix.Connect(fd, to) }),
		"listen":                              socket(unix.SOCK_STREAM, 0, func(fd int) error { return unix.Bind(fd, &unix.SockaddrInet4{}) }),
		"read a file":                         readable(o.Secret),
		"list the root":                       listable("/"),
		"write a file":                        os.WriteFile(o.Secret, nil, 0o600) == nil,
		"read what the room has":              readable(o.Public),
		"write where the room is":             os.WriteFile(filepath.Join(o.State, "own"), nil, 0o600) == nil,
		"reach whom it meets":                 reachable(o.Socket),
		"reach others":                        reachable(o.Other),
		"be looked into by others like it":    dumpable(),
		"signal a process outside":            unix.Kill(os.Getppid(), 0) == nil,
		"start a program":                     exec.Command("/bin/true").Run() == nil,
		"make a device file":                  unix.Mknod(filepath.Join(o.State, "null"), unix.S_IFCHR|0o600, 1<<8|3) == nil,
		"move a file in from outside":         os.Rename(o.Secret, filepath.Join(o.State, "moved")) == nil,
		"reach the abstract socket of others": reachable("@" + o.Other),
	}
	return open
}

// elsewhere dissolves an inherited socket and connects it to another place. A socket that does not block is on its way at
// once.
func elsewhere(fd int, to unix.Sockaddr) bool {
	unspec := unix.RawSockaddr{Family: unix.AF_UNSPEC} // x/sys has no sockaddr of that family
	unix.Syscall(unix.SYS_CONNECT, uintptr(fd), uintptr(unsafe.Pointer(&unspec)), unsafe.Sizeof(unspec))
	unix.Shutdown(fd, unix.SHUT_RDWR) // a listener is one no more
	unix.Syscall(unix.SYS_CONNECT, uintptr(fd), uintptr(unsafe.Pointer(&unspec)), unsafe.Sizeof(unspec))
	err := unix.Connect(fd, to)
	return err == nil || err == unix.EINPROGRESS
}

func socket(kind, protocol int, try func(fd int) error) bool {
	fd, err := unix.Socket(unix.AF_INET, kind, protocol)
	if err != nil {
		return false
	}
	defer unix.Close(fd)
	return try(fd) == nil
}

func readable(path string) bool { _, err := os.ReadFile(path); return err == nil }
func listable(path string) bool { _, err := os.ReadDir(path); return err == nil }

func reachable(path string) bool {
	c, err := net.Dial("unix", path)
	if err != nil {
		return false
	}
	return c.Close() == nil
}

func dumpable() bool {
	d, err := unix.PrctlRetInt(unix.PR_GET_DUMPABLE, 0, 0, 0, 0)
	return err != nil || d != 0
}

// W1, D8: a role that was taken over reaches nothing but its room, not even with the sockets that it was given. The same
// attempts from outside a cage succeed, or the test would prove nothing.
func TestRoleThatWasTakenOverStaysInItsCage(t *testing.T) {
	abi, err := syscall.LandlockGetABIVersion()
	if err != nil || abi < 4 {
		t.Skipf("SKIPPED: this kernel's landlock (abi %d, %v) cannot refuse connects", abi, err)
	}
	dir, err := os.MkdirTemp("", "cage") // a test's own directory may be too long for a socket
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	o := order{
		Secret: filepath.Join(dir, "secret"), Public: filepath.Join(dir, "public"), State: filepath.Join(dir, "state"),
		Socket: filepath.Join(dir, "meet", "s"), Other: filepath.Join(dir, "others", "s"),
	}
	for _, d := range []string{o.State, filepath.Dir(o.Socket), filepath.Dir(o.Other)} {
		if err := os.Mkdir(d, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range []string{o.Socket, o.Other, "@" + o.Other} {
		l, err := net.Listen("unix", name)
		if err != nil {
			t.Fatal(err)
		}
		defer l.Close()
	}
	away := plain(t)
	o.Port = away.Addr().(*net.TCPAddr).Port
	o.Room = cage.Room{Read: []string{o.Public, filepath.Join(dir, "absent")}, Write: []string{o.State}, Sockets: []string{filepath.Dir(o.Socket)}}

	got := o.run(t)
	o.Free = true
	free := o.run(t)
	o.Free, o.Room.Dials = false, true
	courier := o.run(t)
	inside := []string{"read what the room has", "write where the room is", "reach whom it meets"}
	for way, is := range got {
		t.Logf("%-40s caged %-5v courier %-5v free %v", way, is, courier[way], free[way])
		expected := slices.Contains(inside, way)
		switch {
		case way == "take a multipath listener away":
			// Landlock does not know Multipath TCP: that is why no listener is one, and why the box has it turned off.
			continue
		case abi < 9 && way == "reach others":
			continue // directories are closed to it all the same
		case abi < 6 && (way == "signal a process outside" || way == "reach the abstract socket of others"):
			continue
		case os.Getuid() != 0 && way == "make a device file":
			continue
		case is != expected:
			t.Errorf("in its cage: could %s: %v", way, is)
		case !free[way]:
			t.Errorf("outside a cage it could not %s either", way)
		}
	}
	for way, is := range courier {
		if want := got[way] || way == "connect" || way == "take a connection elsewhere" || way == "take a listener elsewhere"; is != want && way != "take a multipath listener away" {
			t.Errorf("one that dials: could %s: %v", way, is)
		}
	}
}

// plain is a listener of one path, as PID 1 makes it.
func plain(t *testing.T) *net.TCPListener {
	t.Helper()
	lc := net.ListenConfig{}
	lc.SetMultipathTCP(false)
	l, err := lc.Listen(t.Context(), "tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	return l.(*net.TCPListener)
}

// run starts a copy of this program with a listener and a connection that it was given, and returns what it could do.
func (o order) run(t *testing.T) map[string]bool {
	t.Helper()
	for path, text := range map[string]string{o.Secret: "x", o.Public: "x"} {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range []string{"null", "moved", "own"} {
		os.Remove(filepath.Join(o.State, name))
	}
	given := plain(t)
	phone, err := net.Dial("tcp4", given.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer phone.Close()
	conn, err := given.AcceptTCP()
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	lc := net.ListenConfig{}
	lc.SetMultipathTCP(true)
	multi, err := lc.Listen(t.Context(), "tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer multi.Close()
	text, err := json.Marshal(o)
	if err != nil {
		t.Fatal(err)
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(self)
	cmd.Env = append(os.Environ(), fmt.Sprintf("%s=%s", inCage, text))
	cmd.Stderr = os.Stderr
	for _, s := range []interface{ File() (*os.File, error) }{given, conn, multi.(*net.TCPListener)} {
		f, err := s.File()
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		cmd.ExtraFiles = append(cmd.ExtraFiles, f)
	}
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	var open map[string]bool
	if err := json.Unmarshal(out, &open); err != nil {
		t.Fatal(err)
	}
	return open
}
