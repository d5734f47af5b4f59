package guard_test

import (
	"bytes"
	"context"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"assent.home.arpa/appliance/ipc"
)

// hostile plays an exporter that somebody took over through a stick: it does what it is told, and lies.
func (h *house) hostile(answer func(n int, op *ipc.StickOp, honest *ipc.StickReply) ipc.Message) (gone func() bool) {
	h.t.Helper()
	conn, err := h.slot.dial(context.Background())
	if err != nil {
		h.t.Fatal(err)
	}
	c := ipc.NewConn(conn)
	var over atomic.Bool
	go func() {
		defer over.Store(true)
		defer c.Close()
		if c.Send(0, &ipc.StickHello{Size: 1 << 30, Label: []byte("NICE")}) != nil {
			return
		}
		type call struct {
			id uint64
			op *ipc.StickOp
		}
		calls := make(chan call, 16) // as a socket holds what is not read yet
		go func() {
			defer close(calls)
			for {
				id, m, err := c.Receive()
				if err != nil {
					return
				}
				calls <- call{id, m.(*ipc.StickOp)}
			}
		}()
		files, names := map[string][]byte{}, map[uint32]string{}
		n := -1
		for call := range calls {
			n++
			id, op := call.id, call.op
			r := &ipc.StickReply{}
			switch op.Verb {
			case ipc.StickFree:
				r.Size = 1 << 30
			case ipc.StickCreate:
				names[op.Handle] = op.Name
			case ipc.StickWrite:
				files[names[op.Handle]] = append(files[names[op.Handle]], op.Data...)
			case ipc.StickRead:
				r.Data = files[op.Name][op.Offset : op.Offset+int64(op.Size)]
			}
			if a := answer(n, op, r); a != nil && c.Send(id, a) != nil {
				return
			}
		}
	}()
	synctest.Wait()
	h.hands.Wait(time.Second)
	return func() bool { synctest.Wait(); return over.Load() }
}

// An exporter that was taken over can spoil its own copy, and nothing else: no byte of its own is looked at.
func TestHostileExporter(t *testing.T) {
	lied := false
	honest := func(_ int, _ *ipc.StickOp, r *ipc.StickReply) ipc.Message { return r }
	for _, c := range []struct {
		event  string
		answer func(n int, op *ipc.StickOp, r *ipc.StickReply) ipc.Message
		code   string
	}{
		{"honest", honest, ""},
		{"other bytes", func(_ int, op *ipc.StickOp, r *ipc.StickReply) ipc.Message {
			if op.Verb == ipc.StickRead && lied {
				t.Error("after bytes that are not its own the guard reads on")
			}
			if len(r.Data) > 100 {
				r.Data, lied = bytes.Clone(r.Data), true
				r.Data[99] ^= 1
			}
			return r
		}, "read_back"},
		{"fewer bytes", func(_ int, op *ipc.StickOp, r *ipc.StickReply) ipc.Message {
			r.Data = r.Data[:len(r.Data)/2]
			return r
		}, "read_back"},
		{"more bytes", func(_ int, op *ipc.StickOp, r *ipc.StickReply) ipc.Message {
			if op.Verb == ipc.StickRead {
				r.Data = append(bytes.Clone(r.Data), 1)
			}
			return r
		}, "read_back"},
		{"no room, in a negative way", func(_ int, op *ipc.StickOp, r *ipc.StickReply) ipc.Message {
			if op.Verb == ipc.StickFree {
				r.Size = -1 << 62
			}
			return r
		}, ""},
		{"a problem that is none", func(n int, _ *ipc.StickOp, r *ipc.StickReply) ipc.Message {
			if n == 7 {
				return &ipc.StickReply{Problem: 250}
			}
			return r
		}, "stick_250"},
		{"another kind of message", func(n int, _ *ipc.StickOp, r *ipc.StickReply) ipc.Message {
			if n == 7 {
				return &ipc.Welcome{}
			}
			return r
		}, "internal"},
		{"an order for a guard", func(n int, _ *ipc.StickOp, r *ipc.StickReply) ipc.Message {
			if n == 7 {
				return &ipc.Execute{Grant: []byte{1}}
			}
			return r
		}, "internal"},
	} {
		t.Run(c.event, func(t *testing.T) {
			live(t, t.TempDir(), func(t *testing.T, h *house) {
				h.hostile(c.answer)
				h.agree()
				h.closeNotice()
				exports, _ := h.exports()
				if len(exports) != 1 || exports[0].Code != c.code || exports[0].OK != (c.code == "") {
					t.Fatalf("%+v", exports)
				}
			})
		})
	}
	t.Run("it says that everything is there already", func(t *testing.T) {
		live(t, t.TempDir(), func(t *testing.T, h *house) {
			h.hostile(func(_ int, op *ipc.StickOp, r *ipc.StickReply) ipc.Message {
				r.Yes = true
				if op.Verb == ipc.StickRename {
					r.Problem = ipc.StickExists
				}
				return r
			})
			h.agree()
			if !h.says("The stick has something of every name for a copy: use another. Nothing is lost.") {
				t.Error("the panel does not say that there is no copy")
			}
			if exports, _ := h.exports(); len(exports) != 1 || exports[0].OK || exports[0].Code != "exists" {
				t.Errorf("%+v", exports)
			}
		})
	})
	t.Run("it answers a little before each limit", func(t *testing.T) {
		live(t, t.TempDir(), func(t *testing.T, h *house) {
			n := 0
			h.hostile(func(_ int, _ *ipc.StickOp, r *ipc.StickReply) ipc.Message {
				n++
				time.Sleep(55 * time.Second)
				return r
			})
			h.agree()
			time.Sleep(40 * time.Minute)
			synctest.Wait()
			h.hands.Wait(10 * time.Second)
			if !h.says("This stick is too slow for the record: use another. Nothing is lost.") {
				t.Error("the panel does not say that it takes too long")
			}
			if exports, _ := h.exports(); len(exports) != 1 || exports[0].OK || exports[0].Code != "too_long" || n < 10 {
				t.Errorf("after %d operations: %+v", n, exports)
			}
		})
	})
	t.Run("a label that is too long, and then nothing", func(t *testing.T) {
		live(t, t.TempDir(), func(t *testing.T, h *house) {
			conn, err := h.slot.dial(context.Background())
			if err != nil {
				t.Fatal(err)
			}
			c := ipc.NewConn(conn)
			if err := c.Send(0, &ipc.StickHello{Label: make([]byte, 200)}); err != nil {
				t.Fatal(err)
			}
			time.Sleep(2 * time.Minute)
			if _, _, err := c.Receive(); err == nil {
				t.Error("it is still listened to")
			}
		})
	})
	t.Run("many of them", func(t *testing.T) {
		live(t, t.TempDir(), func(t *testing.T, h *house) {
			var gone []func() bool
			for range 6 {
				gone = append(gone, h.hostile(honest))
			}
			left := 0
			for _, g := range gone {
				if !g() {
					left++
				}
			}
			if left > 4 {
				t.Errorf("%d are listened to", left)
			}
			if o := h.now(state(h.turn(h.pair("kitchen"), ipc.ID{1}))); o.Status != 1 {
				t.Errorf("a call: %+v", o)
			}
		})
	})
}
