package worker_test

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"assent.home.arpa/appliance/clock"
	"assent.home.arpa/appliance/grant"
	"assent.home.arpa/appliance/ipc"
	"assent.home.arpa/appliance/worker"
	"assent.home.arpa/appliance/worker/spawn"
	"assent.home.arpa/capabilities"
)

// A worker confines its whole process for ever, so every worker here is a process: this test's own program, told by its
// environment which class to be and which user to obey.
const (
	classVariable = "ASSENT_TEST_WORKER_CLASS"
	userVariable  = "ASSENT_TEST_COURIER_UID"
)

func TestMain(m *testing.M) {
	var class capabilities.Class
	if _, err := fmt.Sscan(os.Getenv(classVariable), &class); err != nil {
		os.Exit(m.Run())
	}
	uid, err := strconv.ParseUint(os.Getenv(userVariable), 10, 32)
	if err == nil {
		err = runWorker(class, uint32(uid))
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func runWorker(class capabilities.Class, uid uint32) error {
	conn, err := net.FileConn(os.Stdin)
	if err != nil {
		return err
	}
	return worker.Run(context.Background(), conn.(*net.UnixConn), worker.Options{
		Class: class, CourierUID: uid, Clock: clock.System(), Handlers: handlers(),
		Read: []string{"/proc"}, Log: slog.New(slog.NewTextHandler(os.Stderr, nil)),
	})
}

// handler is a capability's worker half that does what a test needs.
type handler struct {
	revision string
	run      func(ctx context.Context, args []byte, req *capabilities.Request, conn net.Conn) capabilities.Answer
}

func (h handler) Revision() string { return h.revision }

func (h handler) Run(ctx context.Context, args []byte, req *capabilities.Request, _ []byte, conn net.Conn, _ int) capabilities.Answer {
	return h.run(ctx, args, req, conn)
}

func answer(body string) capabilities.Answer {
	return capabilities.Answer{Status: capabilities.Done, Sent: true, Items: 1, Body: []byte(body)}
}

func handlers() []capabilities.Handler {
	type run = func(context.Context, []byte, *capabilities.Request, net.Conn) capabilities.Answer
	var out []capabilities.Handler
	for revision, f := range map[string]run{
		"echo/1": func(_ context.Context, args []byte, req *capabilities.Request, conn net.Conn) capabilities.Answer {
			if conn == nil {
				return answer(string(args))
			}
			conn.Write(req.Bytes[:4])
			conn.Write(req.Bytes[4:])
			b, _ := io.ReadAll(conn)
			body, _ := json.Marshal(string(b))
			return answer(string(body))
		},
		"silent/1": func(context.Context, []byte, *capabilities.Request, net.Conn) capabilities.Answer {
			return answer("{}")
		},
		"other-bytes/1": func(_ context.Context, _ []byte, _ *capabilities.Request, conn net.Conn) capabilities.Answer {
			io.WriteString(conn, "GET /something-else HTTP/1.1\r\n\r\n")
			return answer("{}")
		},
		"more-bytes/1": func(_ context.Context, _ []byte, req *capabilities.Request, conn net.Conn) capabilities.Answer {
			conn.Write(append(bytes.Clone(req.Bytes), "and the alarm code is 4471"...))
			return answer("{}")
		},
		"twice/1": func(_ context.Context, _ []byte, req *capabilities.Request, conn net.Conn) capabilities.Answer {
			conn.Write(req.Bytes)
			if _, err := conn.Write(req.Bytes); err == nil {
				return answer(`"sent twice"`)
			}
			return answer(`"sent once"`)
		},
		"panics/1": func(context.Context, []byte, *capabilities.Request, net.Conn) capabilities.Answer {
			panic("a secret from the answer")
		},
		"panics-late/1": func(_ context.Context, _ []byte, req *capabilities.Request, conn net.Conn) capabilities.Answer {
			conn.Write(req.Bytes[:1])
			panic("a secret from the answer")
		},
		"deaf/1": func(_ context.Context, _ []byte, req *capabilities.Request, conn net.Conn) capabilities.Answer {
			if conn != nil {
				conn.Write(req.Bytes)
			}
			select {}
		},
		"stuck/1": func(_ context.Context, _ []byte, req *capabilities.Request, conn net.Conn) capabilities.Answer {
			conn.Write(req.Bytes)
			io.ReadAll(conn) // without any thought of the context
			return capabilities.Answer{Status: capabilities.Failed, Code: capabilities.CodeTimeout}
		},
		"claims-sent/1": func(context.Context, []byte, *capabilities.Request, net.Conn) capabilities.Answer {
			return capabilities.Answer{Status: capabilities.Failed, Code: capabilities.CodeUnreachable, Sent: true}
		},
		"long/1":       constant(answer(`"` + strings.Repeat("x", 1000) + `"`)),
		"not-json/1":   constant(answer(`{"a":`)),
		"claims-no/1":  constant(capabilities.Answer{Status: capabilities.Denied, Body: []byte("{}")}),
		"nothing/1":    constant(capabilities.Answer{}),
		"breaks-out/1": breakOut,
	} {
		out = append(out, handler{revision, f})
	}
	return out
}

func constant(a capabilities.Answer) func(context.Context, []byte, *capabilities.Request, net.Conn) capabilities.Answer {
	return func(_ context.Context, _ []byte, req *capabilities.Request, conn net.Conn) capabilities.Answer {
		if conn != nil {
			conn.Write(req.Bytes)
		}
		return a
	}
}

// fleet starts worker processes of one class and gives them jobs, as a courier does.
type fleet struct {
	t      *testing.T
	socket string
	class  capabilities.Class
}

func start(t *testing.T, class capabilities.Class, courierUID int) *fleet {
	t.Helper()
	f := &fleet{t, filepath.Join(t.TempDir(), "worker.sock"), class}
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: f.socket, Net: "unix"})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() {
		ended <- spawn.Serve(ctx, l, func(ctx context.Context) *exec.Cmd {
			cmd := exec.CommandContext(ctx, "/proc/self/exe")
			cmd.Env = append(os.Environ(), fmt.Sprintf("%s=%d", classVariable, class), fmt.Sprintf("%s=%d", userVariable, courierUID))
			cmd.Stderr = t.Output()
			return cmd
		})
	}()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	return f
}

func (f *fleet) claims(revision string) grant.Claims {
	args := []byte(`{"a":1}`)
	c := grant.Claims{
		Inv: capabilities.InvocationID{1}, Capability: "test.call", Version: 1, Revision: revision, Class: f.class, Args: args, ArgsDigest: sha256.Sum256(args),
		Intent: 1, Challenge: [32]byte{1}, BootID: [16]byte{1}, Deadline: clock.System().Boot() + time.Minute, Body: 500,
	}
	if f.class == capabilities.ClassNet {
		c.Receipt = [32]byte{1}
		c.Request = &capabilities.Request{Scheme: "http", Host: "127.0.0.1", Port: 80, Address: capabilities.AddressLoopback, Bytes: []byte("GET /tea HTTP/1.1\r\nHost: x\r\n\r\n")}
	}
	return c
}

// payload is what a courier passes on of a grant.
func (f *fleet) payload(c grant.Claims) []byte {
	f.t.Helper()
	public, private, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		f.t.Fatal(err)
	}
	signed, err := grant.Sign(private, c)
	if err != nil {
		f.t.Fatal(err)
	}
	_, payload, err := grant.Verify(public, signed)
	if err != nil {
		f.t.Fatal(err)
	}
	return payload
}

// give starts a worker and hands it a job. The caller keeps out.
func (f *fleet) give(j *ipc.Job, out *os.File) *net.UnixConn {
	f.t.Helper()
	conn, err := net.DialUnix("unix", nil, &net.UnixAddr{Name: f.socket, Net: "unix"})
	if err != nil {
		f.t.Fatal(err)
	}
	f.t.Cleanup(func() { conn.Close() })
	if out == nil {
		err = ipc.NewConn(conn).Send(1, j)
	} else {
		err = ipc.NewConn(conn).SendFile(1, j, out)
	}
	if err != nil {
		f.t.Fatal(err)
	}
	return conn
}

func (f *fleet) result(conn *net.UnixConn) (*ipc.JobResult, error) {
	_, m, err := ipc.NewConn(conn).Receive()
	if err != nil {
		return nil, err
	}
	r, ok := m.(*ipc.JobResult)
	if !ok {
		return nil, fmt.Errorf("it said %T", m)
	}
	return r, nil
}

// pair is a TCP connection: our end as a descriptor to pass on, and the destination's.
func pair(t *testing.T) (*os.File, *net.TCPConn) {
	t.Helper()
	var lc net.ListenConfig
	lc.SetMultipathTCP(false)
	l, err := lc.Listen(t.Context(), "tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	here, err := net.Dial("tcp4", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer here.Close()
	there, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	file, err := here.(*net.TCPConn).File()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { file.Close(); there.Close() })
	return file, there.(*net.TCPConn)
}

// call makes a whole call in which the destination answers "hello", and returns what the destination got.
func (f *fleet) call(c grant.Claims) (*ipc.JobResult, string) {
	f.t.Helper()
	if f.class != capabilities.ClassNet {
		r, err := f.result(f.give(&ipc.Job{Claims: f.payload(c)}, nil))
		if err != nil {
			f.t.Fatal(err)
		}
		return r, ""
	}
	out, there := pair(f.t)
	io.WriteString(there, "hello")
	there.CloseWrite()
	conn := f.give(&ipc.Job{Claims: f.payload(c)}, out)
	out.Close()
	r, err := f.result(conn)
	if err != nil {
		f.t.Fatal(err)
	}
	got, err := io.ReadAll(there)
	if err != nil && !errors.Is(err, net.ErrClosed) {
		f.t.Logf("the destination read %v", err) // a reset, since the worker leaves bytes unread
	}
	return r, string(got)
}
