package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"os/exec"
	"sync"
	"syscall"

	"assent.home.arpa/appliance/cable"
	"assent.home.arpa/appliance/cage"
	"assent.home.arpa/appliance/ipc"
	"assent.home.arpa/appliance/stick"
)

// exporterName is what this program is called where it is the exporter and not the first process.
const exporterName = "exporter"

// Whom the exporter is, and where the image is.
const (
	exporterUser = 906
	exporterDir  = "/image"
)

// beExporter is the box's exporter at the cable, with its own user, its cage, and its connection to the guard as descriptor 3.
func beExporter() int {
	log := slog.New(slog.NewTextHandler(io.Discard, nil))
	err := func() error {
		conn, err := net.FileConn(os.NewFile(3, "guard"))
		if err != nil {
			return err
		}
		port, err := cable.Open(cable.Gadgets, cable.Controllers, exporterDir)
		if err != nil {
			return err
		}
		if err := cage.Enter(log, cage.Room{Write: []string{exporterDir, cable.Dir}}); err != nil {
			return err
		}
		return stick.RunPort(context.Background(), ipc.NewConn(conn), port, log)
	}()
	if err != nil {
		fmt.Fprintln(os.Stderr, "exporter:", err)
		return 1
	}
	return 0
}

// exporter is such a process, and the guard's end of its connection.
type exporter struct {
	cmd    *exec.Cmd
	client *ipc.Client
	hello  chan ipc.StickHello
	ended  chan error
	said   *tail
}

func startExporter() (*exporter, error) {
	pair, err := syscall.Socketpair(syscall.AF_UNIX, syscall.SOCK_STREAM|syscall.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, err
	}
	near, far := os.NewFile(uintptr(pair[0]), "guard"), os.NewFile(uintptr(pair[1]), "exporter")
	defer near.Close()
	defer far.Close()
	conn, err := net.FileConn(near)
	if err != nil {
		return nil, err
	}
	x := &exporter{hello: make(chan ipc.StickHello, 1), ended: make(chan error, 1), said: &tail{}}
	x.cmd = exec.Command("/proc/self/exe")
	x.cmd.Args = []string{exporterName}
	x.cmd.ExtraFiles = []*os.File{far}
	x.cmd.Stderr = x.said
	x.cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: exporterUser, Gid: exporterUser}}
	if err := x.cmd.Start(); err != nil {
		conn.Close()
		return nil, err
	}
	x.client = ipc.NewClient(ipc.NewConn(conn), func(m ipc.Message) {
		if h, ok := m.(*ipc.StickHello); ok {
			x.hello <- *h
		}
	})
	go func() { x.ended <- x.cmd.Wait() }()
	return x, nil
}

// do has it do one thing, as the guard would.
func (x *exporter) do(op *ipc.StickOp) (*ipc.StickReply, error) {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	m, err := x.client.Call(ctx, op, nil)
	if err != nil {
		return nil, fmt.Errorf("verb %d: %w; it said %q", op.Verb, err, x.said.String())
	}
	r, ok := m.(*ipc.StickReply)
	switch {
	case !ok:
		return nil, errors.New("the exporter answered with something else")
	case r.Problem != 0:
		return nil, fmt.Errorf("verb %d: problem %d", op.Verb, r.Problem)
	}
	return r, nil
}

// tail keeps the last of what a process says.
type tail struct {
	mu   sync.Mutex
	text []byte
}

func (t *tail) Write(b []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	const enough = 512
	t.text = append(t.text, b...)
	t.text = t.text[max(0, len(t.text)-enough):]
	return len(b), nil
}

func (t *tail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return string(t.text)
}
