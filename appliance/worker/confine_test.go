package worker_test

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"net"
	"os"
	"path/filepath"
	"testing"
	"unsafe"

	"github.com/landlock-lsm/go-landlock/landlock/syscall"
	"golang.org/x/sys/unix"

	"assent.home.arpa/capabilities"
)

// targets is what a worker that was taken over would like to reach.
type targets struct {
	Port   int    `json:"port"` // a listener on this machine
	File   string `json:"file"`
	Folder string `json:"folder"`
}

// attempts tries every way out and says which were open.
func attempts(to targets) map[string]bool {
	open := map[string]bool{}
	addr := &unix.SockaddrInet4{Port: to.Port, Addr: [4]byte{127, 0, 0, 1}}
	if fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM, 0); err == nil {
		open["connect a new socket"] = unix.Connect(fd, addr) == nil
		unix.Close(fd)
	}
	if fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM, 0); err == nil {
		open["listen"] = unix.Bind(fd, &unix.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}}) == nil
		unix.Close(fd)
	}
	// Dissolve each inherited connection and take its socket elsewhere: it may belong to another network namespace.
	for fd := range 64 {
		if domain, err := unix.GetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_DOMAIN); err != nil || domain != unix.AF_INET {
			continue
		}
		// x/sys has no sockaddr of AF_UNSPEC.
		unspec := unix.RawSockaddr{Family: unix.AF_UNSPEC}
		unix.Syscall(unix.SYS_CONNECT, uintptr(fd), uintptr(unsafe.Pointer(&unspec)), unsafe.Sizeof(unspec))
		// A socket that does not block is on its way at once.
		if err := unix.Connect(fd, addr); err == nil || err == unix.EINPROGRESS {
			open["take the connection elsewhere"] = true
		}
	}
	_, err := os.ReadFile(to.File)
	open["read a file"] = err == nil
	_, err = os.ReadDir("/")
	open["list the root"] = err == nil
	open["write a file"] = os.WriteFile(filepath.Join(to.Folder, "loot"), []byte("x"), 0o600) == nil
	_, err = os.ReadFile("/proc/loadavg")
	open["read what the worker was given"] = err == nil
	if p, err := os.StartProcess("/bin/true", []string{"true"}, &os.ProcAttr{}); err == nil {
		p.Wait()
		open["start a program"] = true
	}
	return open
}

// breakOut is the handler of a worker that was taken over.
func breakOut(_ context.Context, args []byte, req *capabilities.Request, conn net.Conn) capabilities.Answer {
	if conn != nil {
		conn.Write(req.Bytes)
	}
	var to targets
	if err := json.Unmarshal(args, &to); err != nil {
		return capabilities.Answer{Status: capabilities.Failed}
	}
	body, err := json.Marshal(attempts(to))
	if err != nil {
		return capabilities.Answer{Status: capabilities.Failed}
	}
	return answer(string(body))
}

// W1 and D8: a worker that was taken over reaches nothing but its descriptor. The same attempts from this unconfined
// process succeed, or the test would prove nothing.
func TestWorkerThatWasTakenOverGetsNowhere(t *testing.T) {
	if abi, err := syscall.LandlockGetABIVersion(); err != nil || abi < 4 {
		t.Skipf("this kernel's landlock (abi %d, %v) cannot refuse connects", abi, err)
	}
	l, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	folder := t.TempDir()
	to := targets{Port: l.Addr().(*net.TCPAddr).Port, File: filepath.Join(folder, "secret"), Folder: folder}
	if err := os.WriteFile(to.File, []byte("x"), 0o644); err != nil {
		t.Fatal(err)
	}
	args, err := json.Marshal(to)
	if err != nil {
		t.Fatal(err)
	}
	for _, class := range []capabilities.Class{capabilities.ClassNet, capabilities.ClassNone} {
		f := start(t, class, os.Getuid())
		c := f.claims("breaks-out/1")
		c.Args, c.ArgsDigest, c.Body = args, sha256.Sum256(args), 4096
		got, _ := f.call(c)
		var open map[string]bool
		if err := json.Unmarshal(got.Body, &open); err != nil {
			t.Fatalf("class %s: %+v", class, got)
		}
		t.Logf("class %s: %v", class, open)
		for way, is := range open {
			if is && way != "read what the worker was given" {
				t.Errorf("class %s could %s", class, way)
			}
		}
		if !open["read what the worker was given"] {
			t.Errorf("class %s cannot read what it needs", class)
		}
	}
	pair(t) // a connection to dissolve
	open := attempts(to)
	for _, way := range []string{"connect a new socket", "listen", "take the connection elsewhere", "read a file", "write a file", "list the root", "start a program"} {
		if !open[way] {
			t.Errorf("an unconfined process could not %s either", way)
		}
	}
}
