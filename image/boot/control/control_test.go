package control_test

import (
	"encoding/json"
	"errors"
	"net"
	"path/filepath"
	"testing"
	"time"

	"assent.home.arpa/device"
	"assent.home.arpa/image/boot/control"
)

// agent answers in the box's place.
func agent(t *testing.T, answer func(control.Request) control.Answer) (*control.Agent, func(control.Answer), func()) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "port")
	l, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	said := make(chan net.Conn, 1)
	go func() {
		conn, err := l.Accept()
		l.Close()
		if err != nil {
			return
		}
		out := json.NewEncoder(conn)
		conn.Write([]byte("the end of a line}\n"))
		out.Encode(control.Answer{Glass: &control.Glass{}})
		said <- conn
		_ = control.Requests(conn, func(r control.Request) {
			a := answer(r)
			a.ID = r.ID
			out.Encode(a)
		})
	}()
	a, err := control.Dial(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	conn := <-said
	t.Cleanup(func() { a.Close(); conn.Close() })
	return a, func(news control.Answer) { json.NewEncoder(conn).Encode(news) }, func() { conn.Close() }
}

func TestHandsAndEyes(t *testing.T) {
	moves := make(chan control.Move, 2)
	a, say, hangUp := agent(t, func(r control.Request) control.Answer {
		if r.Move != nil {
			moves <- *r.Move
		}
		return control.Answer{}
	})
	if _, lit := a.View(); lit {
		t.Error("a display that is off is lit")
	}
	changes, stop := a.Watch()
	defer stop()
	var f device.Frame
	f.Set(3, 4, true)
	say(control.Answer{Glass: &control.Glass{Frame: f[:], On: true}})
	<-changes
	if got, lit := a.View(); !lit || got != f {
		t.Error("the picture did not come")
	}
	if err := a.Hold(time.Millisecond, device.Approve, device.Deny); err != nil {
		t.Fatal(err)
	}
	if down, up := <-moves, <-moves; !down.Down || up.Down || len(down.Buttons) != 2 || len(up.Buttons) != 2 {
		t.Errorf("moves %+v and %+v", down, up)
	}
	hangUp()
	<-changes
	if _, lit := a.View(); lit {
		t.Error("a box that is gone shows something")
	}
	if _, err := a.Run(t.Context(), "true"); !errors.Is(err, control.ErrGone) {
		t.Errorf("a box that is gone: %v", err)
	}
}

func TestCommands(t *testing.T) {
	a, _, _ := agent(t, func(r control.Request) control.Answer {
		switch r.Run.Args[0] {
		case "good":
			return control.Answer{Output: "said"}
		case "bad":
			return control.Answer{Output: "why", Exit: 3}
		}
		return control.Answer{Error: "no such program"}
	})
	if out, err := a.Run(t.Context(), "good"); err != nil || out != "said" {
		t.Errorf("%q, %v", out, err)
	}
	if out, err := a.Run(t.Context(), "bad"); err == nil || out != "why" {
		t.Errorf("%q, %v", out, err)
	}
	if _, err := a.Run(t.Context(), "missing"); err == nil {
		t.Error("a program that there is not")
	}
}
