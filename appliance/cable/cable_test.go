package cable_test

import (
	"bytes"
	"context"
	"errors"
	"io/fs"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"testing"
	"testing/synctest"

	"assent.home.arpa/appliance/cable"
	"assent.home.arpa/appliance/cable/cabletest"
	"assent.home.arpa/appliance/ipc"
	"assent.home.arpa/appliance/stick"
	"assent.home.arpa/appliance/stick/sticktest"
)

func setUp(t *testing.T) *cabletest.Tree {
	t.Helper()
	k := cabletest.New(t)
	if err := k.SetUp(); err != nil {
		t.Fatal(err)
	}
	return k
}

func open(t *testing.T, k *cabletest.Tree) *cable.Port {
	t.Helper()
	p, err := k.Port()
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// D4: what the kernel is told is one disk that cannot be written, at no controller.
func TestDescription(t *testing.T) {
	k := setUp(t)
	if err := k.SetUp(); err != nil {
		t.Errorf("a second time: %v", err)
	}
	for name, want := range map[string]string{
		"UDC": "", "functions/mass_storage.0/lun.0/ro": "1", "functions/mass_storage.0/lun.0/removable": "1",
		"functions/mass_storage.0/lun.0/cdrom": "0", "functions/mass_storage.0/lun.0/file": "",
	} {
		if got := k.Read(name); got != want {
			t.Errorf("%s is %q, want %q", name, got, want)
		}
	}
	link := filepath.Join(k.Gadgets, cable.Name, "configs/c.1/mass_storage.0")
	if to, err := os.Readlink(link); err != nil || filepath.Base(to) != "mass_storage.0" {
		t.Errorf("the function is not in the configuration: %q, %v", to, err)
	}
}

// D2: a second function, whoever put it there, is refused before anything can be attached.
func TestNoOtherFunction(t *testing.T) {
	for _, extra := range []string{"functions/hid.usb0", "configs/c.2"} {
		k := cabletest.New(t)
		if err := os.MkdirAll(filepath.Join(k.Gadgets, cable.Name, extra), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := k.SetUp(); err == nil {
			t.Errorf("with %s the box would pose as more than a disk", extra)
		}
	}
}

func TestBoardsWithoutAController(t *testing.T) {
	k := cabletest.New(t)
	if err := os.RemoveAll(filepath.Join(k.Controllers, "fe980000.usb")); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := k.SetUp(); !errors.Is(err, cable.ErrNoController) {
			t.Errorf("set up: %v", err)
		}
		if _, err := k.Port(); !errors.Is(err, cable.ErrNoController) {
			t.Errorf("open: %v", err)
		}
		if err := os.RemoveAll(k.Controllers); err != nil {
			t.Fatal(err)
		}
	}
}

// What an exporter that was killed left behind is gone when the next one starts.
func TestNothingStaysOnTheCable(t *testing.T) {
	k := setUp(t)
	p := open(t, k)
	m, err := p.Make(100 << 10)
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(m.Close(), p.Show()); err != nil {
		t.Fatal(err)
	}
	if k.Attached() != "fe980000.usb" || len(k.Disk()) == 0 {
		t.Fatalf("attached to %q", k.Attached())
	}
	open(t, k)
	if k.Attached() != "" || k.Disk() != nil || len(k.Left()) != 0 {
		t.Errorf("attached to %q, left %v", k.Attached(), k.Left())
	}
	if err := p.Show(); !errors.Is(err, fs.ErrNotExist) || k.Attached() != "" {
		t.Errorf("what was thrown away is shown: %v", err)
	}
}

func TestRoom(t *testing.T) {
	k := setUp(t)
	p := open(t, k)
	for _, room := range []int64{-1, 1 << 60} {
		if _, err := p.Make(room); !errors.Is(err, fs.ErrInvalid) {
			t.Errorf("room for %d: %v", room, err)
		}
	}
	for _, room := range []int64{0, 1, 3 << 20, 14 << 20, 40 << 20, 300 << 20} {
		m, err := p.Make(room)
		if err != nil {
			t.Fatal(err)
		}
		call, _ := exporterOf(t, fixed{m})
		if free := call(&ipc.StickOp{Verb: ipc.StickFree}).Size; free < room {
			t.Errorf("%d bytes are free, %d asked for", free, room)
		}
	}
}

// fixed is a port with a medium that is there.
type fixed struct{ m stick.Medium }

func (f fixed) Make(int64) (stick.Medium, error) { return f.m, nil }
func (f fixed) Show() error                      { return nil }
func (f fixed) Shown() (bool, error)             { return false, nil }
func (f fixed) Hide() error                      { return nil }

// exporterOf runs an exporter for a port, and returns the guard's end of it. The medium of a fixed port is made.
func exporterOf(t *testing.T, p stick.Port) (call func(*ipc.StickOp) *ipc.StickReply, hangUp func()) {
	t.Helper()
	a, b := net.Pipe()
	done := make(chan struct{})
	go func() {
		defer close(done)
		if err := stick.RunPort(context.Background(), ipc.NewConn(b), p, slog.New(slog.DiscardHandler)); err != nil {
			t.Error(err)
		}
	}()
	client := ipc.NewClient(ipc.NewConn(a), func(m ipc.Message) {
		if h, ok := m.(*ipc.StickHello); !ok || !h.Cable || h.Problem != 0 {
			t.Errorf("hello: %+v", m)
		}
	})
	hangUp = func() { client.Close(); <-done }
	t.Cleanup(hangUp)
	call = func(op *ipc.StickOp) *ipc.StickReply {
		t.Helper()
		m, err := client.Call(context.Background(), op, nil)
		if err != nil {
			t.Fatal(err)
		}
		return m.(*ipc.StickReply)
	}
	if _, ok := p.(fixed); ok {
		call(&ipc.StickOp{Verb: ipc.StickMake})
	}
	return call, hangUp
}

// D4: what is written is what a PC reads; it is on the cable only between the guard's two words, and gone with the guard.
func TestTheCableIsWhatTheGuardSays(t *testing.T) {
	for _, end := range []string{"hidden", "ejected", "guard gone"} {
		t.Run(end, func(t *testing.T) {
			k := setUp(t)
			call, hangUp := exporterOf(t, open(t, k))
			must := func(op *ipc.StickOp) *ipc.StickReply {
				t.Helper()
				r := call(op)
				if r.Problem != 0 {
					t.Fatalf("verb %d: problem %d", op.Verb, r.Problem)
				}
				return r
			}
			if r := call(&ipc.StickOp{Verb: ipc.StickCreate, Name: "x", Handle: 1}); r.Problem != ipc.StickUnreadable {
				t.Errorf("a file on no medium: problem %d", r.Problem)
			}
			if r := call(&ipc.StickOp{Verb: ipc.StickShow}); r.Problem != ipc.StickMissing || k.Attached() != "" {
				t.Errorf("nothing is shown: problem %d, at %q", r.Problem, k.Attached())
			}
			content := bytes.Repeat([]byte("record"), 10_000)
			must(&ipc.StickOp{Verb: ipc.StickMake, Room: 100 << 10})
			must(&ipc.StickOp{Verb: ipc.StickCreate, Name: "record", Handle: 1})
			must(&ipc.StickOp{Verb: ipc.StickWrite, Handle: 1, Data: content})
			must(&ipc.StickOp{Verb: ipc.StickClose, Handle: 1})
			if r := call(&ipc.StickOp{Verb: ipc.StickShow}); r.Problem != ipc.StickRefused || k.Attached() != "" {
				t.Errorf("shown while it is written: problem %d", r.Problem)
			}
			must(&ipc.StickOp{Verb: ipc.StickEnd})
			if k.Attached() != "" || must(&ipc.StickOp{Verb: ipc.StickShown}).Yes {
				t.Error("it is on the cable before the guard says so")
			}
			must(&ipc.StickOp{Verb: ipc.StickShow})
			if !must(&ipc.StickOp{Verb: ipc.StickShown}).Yes {
				t.Error("it is not on the cable")
			}
			if got := sticktest.Files(t, 16, k.Disk())["record"]; !bytes.Equal(got, content) {
				t.Errorf("a PC reads %d bytes of %d", len(got), len(content))
			}
			switch end {
			case "ejected":
				k.Eject()
				if must(&ipc.StickOp{Verb: ipc.StickShown}).Yes {
					t.Error("an ejected disk counts as shown")
				}
				must(&ipc.StickOp{Verb: ipc.StickHide})
			case "hidden":
				must(&ipc.StickOp{Verb: ipc.StickHide})
			default:
				hangUp()
			}
			if k.Attached() != "" || len(k.Left()) != 0 {
				t.Errorf("attached to %q, left %v", k.Attached(), k.Left())
			}
		})
	}
}

// A stick's exporter knows nothing of cables.
func TestASticksExporterRefusesTheCablesVerbs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b := net.Pipe()
		m := sticktest.NewStick(sticktest.Format(t, 2<<20, "X"))
		go stick.Run(t.Context(), ipc.NewConn(b), func() (stick.Medium, error) { return m, nil }, slog.New(slog.DiscardHandler))
		client := ipc.NewClient(ipc.NewConn(a), func(ipc.Message) {})
		defer client.Close()
		for v := ipc.StickMake; v <= ipc.StickHide+1; v++ {
			r, err := client.Call(t.Context(), &ipc.StickOp{Verb: v, Room: 1}, nil)
			if err != nil || r.(*ipc.StickReply).Problem != ipc.StickRefused {
				t.Errorf("verb %d: %+v, %v", v, r, err)
			}
		}
	})
}
