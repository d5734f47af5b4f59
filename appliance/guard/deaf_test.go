package guard_test

import (
	"net"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"assent.home.arpa/appliance/audit"
	"assent.home.arpa/appliance/grant"
	"assent.home.arpa/appliance/ipc"
	"assent.home.arpa/capabilities"
	"assent.home.arpa/device"
)

// deaf connects a gateway that says hello and then reads nothing.
func (h *house) deaf() net.Conn {
	h.t.Helper()
	conn, err := h.doors.dial(h.t.Context())
	if err != nil {
		h.t.Fatal(err)
	}
	c := ipc.NewConn(conn)
	if err := c.Send(1, &ipc.Hello{Build: "deaf"}); err != nil {
		h.t.Fatal(err)
	}
	if _, m, err := c.Receive(); err != nil {
		h.t.Fatal(m, err)
	}
	return conn
}

// TestGatewayThatDoesNotReadDelaysNoPanic: no time passes here but the panel's, so whatever waits for a write waits for ever.
func TestGatewayThatDoesNotReadDelaysNoPanic(t *testing.T) {
	live(t, t.TempDir(), func(t *testing.T, h *house) {
		p := h.pair("Kitchen")
		defer h.deaf().Close()
		h.pairingCode() // a notice that it does not read
		h.hands.Wait(3 * time.Minute)
		h.courier.mu.Lock()
		h.courier.answer = func(grant.Claims) ipc.Message { return nil }
		h.courier.mu.Unlock()
		running := h.propose(h.gateway, search(h.turn(p, ipc.ID{1}), query))
		h.read(running)
		h.hands.Hold(device.Approve, 2*time.Second)
		h.hands.Wait(4 * time.Second)
		h.hands.Hold(device.Deny, 6*time.Second)
		h.courier.mu.Lock()
		if n := len(h.courier.aborted); n != 1 {
			t.Errorf("%d calls were killed", n)
		}
		h.courier.mu.Unlock()
		if _, err := os.Stat(filepath.Join(h.opts.StateDir, "frozen")); err != nil {
			t.Error("the freeze would not survive a restart:", err)
		}
		if !h.noticed(ipc.NoticeFrozen) {
			t.Error("the gateway that reads was not told")
		}
		if f := find[*audit.Freeze](h.records()); len(f) != 1 || !f[0].On || f[0].Killed != 1 {
			t.Errorf("%d freeze records, the first %+v", len(f), *f[0])
		}
	})
}

func TestGatewayThatDoesNotReadIsHungUpOn(t *testing.T) {
	live(t, t.TempDir(), func(t *testing.T, h *house) {
		deaf := h.deaf()
		for range 20 { // two notices each
			h.courier.mu.Lock()
			conn := h.courier.conn
			h.courier.mu.Unlock()
			conn.Close()
			synctest.Wait()
		}
		if n, err := deaf.Read(make([]byte, 1)); err == nil {
			t.Errorf("it is still told: %d bytes", n)
		}
		ask[*ipc.Status](h, h.gateway, &ipc.StatusRequest{})
	})
}

// TestRestartShortensNoWait: to crash the guard does not end a cool-down (W10).
func TestRestartShortensNoWait(t *testing.T) {
	live(t, t.TempDir(), func(t *testing.T, h *house) {
		p := h.pair("Kitchen")
		for range 3 { // the third is ten minutes; a stop of the house takes an hour
			k := h.propose(h.gateway, search(h.turn(p, ipc.ID{1}), query))
			h.hands.Tap(device.Deny)
			h.want(h.outcome(k), capabilities.Denied, "")
			h.hands.Wait(10 * time.Minute)
		}
		h.reboots++
		h.restart()
		o := h.now(search(h.turn(p, ipc.ID{2}), query))
		h.want(o, capabilities.Rejected, capabilities.CodeCoolDown)
		if o.RetryIn < 9*60 {
			t.Errorf("told to wait %d s", o.RetryIn)
		}
		h.restart() // the same boot, an hour later
		k := h.propose(h.gateway, search(h.turn(p, ipc.ID{3}), query))
		h.hands.Tap(device.Deny)
		h.want(h.outcome(k), capabilities.Denied, "")
	})
}

// TestOnePhoneCannotKeepThePanelBusy: whoever asks and takes back, or asks anew, waits in the end, and a restart of the
// guard or of the box forgives nothing (W10).
func TestOnePhoneCannotKeepThePanelBusy(t *testing.T) {
	for event, again := range map[string]func(h *house, p *phone, k card){
		"taken back": func(h *house, p *phone, k card) {
			if err := h.gateway.Tell(&ipc.Withdraw{Inv: k.pending.Inv, Slot: p.slot}); err != nil {
				h.t.Fatal(err)
			}
		},
		"asked anew": func(h *house, p *phone, _ card) { h.turn(p, ipc.ID{1}) },
		"taken back before it counts as unseen": func(h *house, p *phone, k card) {
			h.hands.Wait(175 * time.Second)
			if err := h.gateway.Tell(&ipc.Withdraw{Inv: k.pending.Inv, Slot: p.slot}); err != nil {
				h.t.Fatal(err)
			}
		},
	} {
		t.Run(event, func(t *testing.T) {
			live(t, t.TempDir(), func(t *testing.T, h *house) {
				p := h.pair("Kitchen")
				for range 3 {
					k := h.propose(h.gateway, search(h.turn(p, ipc.ID{1}), query))
					again(h, p, k)
					h.want(h.outcome(k), capabilities.Withdrawn, "")
				}
				h.reboots++
				h.restart()
				k := h.propose(h.gateway, search(h.turn(p, ipc.ID{1}), query))
				again(h, p, k)
				h.want(h.outcome(k), capabilities.Withdrawn, "")
				o := h.now(search(h.turn(p, ipc.ID{1}), query))
				h.want(o, capabilities.Rejected, capabilities.CodeCoolDown)
				if o.RetryIn == 0 || o.RetryIn > 30 || o.Message == "" {
					t.Errorf("told %q, to wait %d s", o.Message, o.RetryIn)
				}
			})
		})
	}
}

func TestSessionsAreBounded(t *testing.T) {
	live(t, t.TempDir(), func(t *testing.T, h *house) {
		var more []net.Conn // beside the house's own
		for range 3 {
			more = append(more, h.deaf())
		}
		conn, err := h.doors.dial(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if n, err := conn.Read(make([]byte, 1)); err == nil {
			t.Errorf("a fifth session was answered with %d bytes", n)
		}
		ask[*ipc.Status](h, h.gateway, &ipc.StatusRequest{})
		more[0].Close()
		synctest.Wait()
		more[0] = h.deaf()
		for _, c := range more {
			c.Close()
		}
	})
}

func TestAcceptErrorsPass(t *testing.T) {
	live(t, t.TempDir(), func(t *testing.T, h *house) {
		for range 5 {
			h.doors.errs <- &net.OpError{Op: "accept", Err: syscall.EMFILE}
		}
		h.deaf().Close()
		ask[*ipc.Status](h, h.gateway, &ipc.StatusRequest{})
	})
}
