package guard_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"assent.home.arpa/appliance/audit"
	"assent.home.arpa/appliance/audit/audittest"
	"assent.home.arpa/appliance/cable/cabletest"
	"assent.home.arpa/appliance/guard"
	"assent.home.arpa/appliance/ipc"
	"assent.home.arpa/appliance/stick"
	"assent.home.arpa/appliance/stick/sticktest"
	"assent.home.arpa/appliance/wire"
	"assent.home.arpa/confirm/screen"
	"assent.home.arpa/device"
)

// plug gives the box a port, with the real exporter at it, and returns how the exporter ends.
func (h *house) plug(k *cabletest.Tree) (end func()) {
	h.t.Helper()
	if err := k.SetUp(); err != nil {
		h.t.Fatal(err)
	}
	port, err := k.Port()
	if err != nil {
		h.t.Fatal(err)
	}
	conn, err := h.slot.dial(context.Background())
	if err != nil {
		h.t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	var exporter sync.WaitGroup
	exporter.Go(func() { stick.RunPort(ctx, ipc.NewConn(conn), port, h.opts.Log) })
	synctest.Wait()
	h.hands.Wait(time.Second)
	return sync.OnceFunc(func() {
		cancel()
		exporter.Wait()
		h.hands.Wait(time.Second)
	})
}

// cable asks for the record over the cable, as the phone in a slot.
func (h *house) cable(p *phone, slot uint32, counter uint64) ipc.Message {
	h.t.Helper()
	m, err := h.gateway.Call(context.Background(), &ipc.Cable{Slot: slot, Counter: counter, Sig: p.sign(h.t, wire.CableBytes(slot, counter))}, nil)
	var refused *ipc.Error
	switch {
	case errors.As(err, &refused):
		return refused
	case err != nil:
		h.t.Fatal(err)
	}
	h.hands.Wait(time.Second)
	return m
}

// offered asks for it, and demands that it is offered at the box.
func (h *house) offered(p *phone, counter uint64) {
	h.t.Helper()
	m := h.cable(p, 1, counter)
	if r, ok := m.(*ipc.CableReply); !ok || r.Seconds != 300 {
		h.t.Fatalf("%+v", m)
	}
}

const (
	cableNote    = "record over cable:"
	cableText    = "The record is on the USB cable, read-only, code %s. Eject it on the PC when done."
	ejectedText  = "Ejected on the PC: the record is off the cable."
	timeOverText = "Time is over: the record is off the cable. If it was not enough, ask again."
)

// onCable is the log that a PC reads.
func onCable(t *testing.T, k *cabletest.Tree) audit.Report {
	t.Helper()
	found := copies(t, sticktest.NewStick(k.Disk()))
	if len(found) != 1 {
		t.Fatalf("%d copies are on the cable", len(found))
	}
	for _, files := range found {
		for _, want := range []string{"README.txt", "SHA256SUMS", "view/index.html"} {
			if files[want] == nil {
				t.Errorf("a PC finds no %s", want)
			}
		}
		r, err := audit.Verify(t.Context(), files, audit.VerifyOptions{AllSeals: true})
		if err != nil || r.Status != audit.Intact {
			t.Errorf("a PC says: %v %v", r.Problem, err)
		}
		return r
	}
	return audit.Report{}
}

// D4: the owner asks, somebody at the box presses, and then a PC reads the record, until it ejects it.
func TestRecordIsReadOverTheCable(t *testing.T) {
	k := cabletest.New(t)
	live(t, t.TempDir(), func(t *testing.T, h *house) {
		p := h.pair("kitchen")
		h.turn(p, ipc.ID{1})
		h.hands.Wait(3 * time.Minute) // that gesture does not count any more
		defer h.plug(k)()
		if h.notes(cableNote, askHint) {
			t.Error("it is offered before anybody asks")
		}
		h.offered(p, 50)
		if !h.notes(cableNote, askHint) || k.Attached() != "" || len(k.Left()) != 0 {
			t.Errorf("the panel does not say what to do, or something is there already: %q, %v", k.Attached(), k.Left())
		}
		h.hands.HoldBoth(3500 * time.Millisecond)
		h.hands.Wait(4 * time.Second)
		if _, open := h.code(); open || k.Attached() != "" {
			t.Errorf("the gesture opened pairing, or the cable: %q", k.Attached())
		}
		h.hands.HoldBoth(4 * time.Second)
		h.hands.Wait(10 * time.Second)
		r := onCable(t, k)
		if !h.says(fmt.Sprintf(cableText, r.Head.Code())) {
			t.Error("the panel does not say that it is on the cable")
		}
		h.closeNotice()
		if !h.notes("on cable: "+r.Head.Code(), "eject it on the PC") {
			t.Error("the idle screen does not say that it is on the cable")
		}
		k.Eject()
		h.hands.Wait(3 * time.Second)
		if k.Attached() != "" || len(k.Left()) != 0 || !h.says(ejectedText) {
			t.Errorf("after it was ejected: at %q, left %v", k.Attached(), k.Left())
		}
		h.offered(p, 51) // again
		exports, acts := h.exports()
		if len(exports) != 1 || len(acts) != 1 || acts[0].Outcome != audit.Approved || acts[0].Slot != 1 {
			t.Fatalf("%d exports, acts: %+v", len(exports), acts)
		}
		if e := exports[0]; !e.OK || !e.Cable || e.Code != "ejected" || e.Last != r.Head.Seq || e.LastLink != r.Head.Link || e.Admin == 0 || e.By != audit.ByBox {
			t.Errorf("%+v", e)
		}
	})
}

// Whatever ends it, the record is off the cable, and how it ended is recorded.
func TestTheCableEnds(t *testing.T) {
	for _, c := range []struct {
		event, code string
		do          func(h *house, endExporter func())
	}{
		{"time over", "time_over", func(h *house, _ func()) { h.hands.Wait(10 * time.Minute) }},
		{"panic", "stopped", func(h *house, _ func()) { h.hands.Hold(device.Deny, 6*time.Second); h.hands.Wait(time.Second) }},
		{"the exporter goes", "cable_failed", func(h *house, end func()) { end(); h.hands.Wait(3 * time.Second) }},
		{"the guard goes", "", func(h *house, _ func()) { h.restart() }},
	} {
		t.Run(c.event, func(t *testing.T) {
			k := cabletest.New(t)
			live(t, t.TempDir(), func(t *testing.T, h *house) {
				p := h.pair("kitchen")
				h.hands.Wait(3 * time.Minute)
				end := h.plug(k)
				defer end()
				h.offered(p, 50)
				h.agree()
				onCable(t, k)
				if c.event == "time over" {
					h.hands.Wait(9*time.Minute + 30*time.Second)
					onCable(t, k)
				}
				c.do(h, end)
				if k.Attached() != "" || len(k.Left()) != 0 {
					t.Errorf("at %q, left %v", k.Attached(), k.Left())
				}
				if c.event == "time over" && !h.says(timeOverText) {
					t.Error("the panel does not say that time is over")
				}
				exports, _ := h.exports()
				if c.code == "" { // the guard could not say any more how it ended
					return
				}
				if len(exports) != 1 || exports[0].Code != c.code || !exports[0].Cable || !exports[0].OK {
					t.Errorf("%+v", exports)
				}
			})
		})
	}
}

// Nobody but the owner has it offered, and without a yes at the box nothing is on the cable.
func TestNothingIsOnTheCableWithoutOwnerAndPress(t *testing.T) {
	k := cabletest.New(t)
	live(t, t.TempDir(), func(t *testing.T, h *house) {
		owner, adult := h.pair("kitchen"), h.pair("hall")
		h.hands.Wait(3 * time.Minute)
		refused := func(event string, m ipc.Message, code string) {
			t.Helper()
			if e, ok := m.(*ipc.Error); !ok || string(e.Code) != code {
				t.Errorf("%s: %+v", event, m)
			}
		}
		refused("no port", h.cable(owner, 1, 10), "no_cable")
		defer h.plug(k)()
		refused("an adult", h.cable(adult, 2, 10), "not_allowed")
		refused("an adult in the owner's name", h.cable(adult, 1, 20), "bad_signature")
		refused("a request from before", h.cable(owner, 1, 10), "replayed_ask")
		refused("nobody", h.cable(owner, 9, 20), "bad_signature")
		pull := h.insert(blankStick(t))
		refused("a stick is in", h.cable(owner, 1, 20), "cable_busy")
		pull()
		h.hands.Hold(device.Deny, 6*time.Second)
		refused("frozen", h.cable(owner, 1, 21), "frozen")
		h.hands.Wait(10 * time.Second)
		h.hands.HoldBoth(4 * time.Second)
		h.hands.Wait(4 * time.Second)
		h.hands.HoldBoth(4 * time.Second)
		h.hands.Wait(time.Second)
		h.hands.Tap(device.Approve)
		h.hands.Wait(time.Minute)

		h.offered(owner, 30)
		refused("twice", h.cable(owner, 1, 31), "cable_busy")
		h.hands.Wait(5 * time.Minute) // nobody comes
		if k.Attached() != "" {
			t.Error("nobody pressed")
		}
		h.pairingCode() // and the gesture is for that again
		h.hands.Wait(3 * time.Minute)
		refused("so soon", h.cable(owner, 1, 32), "cable_refused")
		h.hands.Wait(7 * time.Minute)
		h.offered(owner, 33)
		h.hands.HoldBoth(3500 * time.Millisecond)
		h.hands.Wait(3 * time.Second)
		h.hands.Tap(device.Deny)
		h.hands.Wait(3 * time.Second)
		refused("after a no", h.cable(owner, 1, 34), "cable_refused")
		h.hands.Wait(20 * time.Minute)
		h.offered(owner, 35)
		if k.Attached() != "" || len(k.Left()) != 0 {
			t.Errorf("at %q, left %v", k.Attached(), k.Left())
		}
		exports, acts := h.exports()
		outcomes := []audit.ApprovalOutcome{}
		for _, a := range acts {
			outcomes = append(outcomes, a.Outcome)
		}
		if len(exports) != 0 || !slices.Equal(outcomes, []audit.ApprovalOutcome{audit.Denied}) {
			t.Errorf("%d exports, acts %v", len(exports), outcomes)
		}
	})
}

// A gesture that was made before a phone asked is not for that: it pairs a phone, and the cable waits for another.
func TestTheCableTakesNoEarlierGesture(t *testing.T) {
	k := cabletest.New(t)
	live(t, t.TempDir(), func(t *testing.T, h *house) {
		p := h.pair("kitchen")
		h.hands.Wait(3 * time.Minute)
		defer h.plug(k)()
		h.pairingCode()
		h.offered(p, 50)
		if _, open := h.code(); !open {
			t.Fatal("a message of a phone closed the pairing that somebody at the box had opened")
		}
		h.hands.Tap(device.Deny)
		h.hands.Wait(6 * time.Minute) // and 5 minutes end the offer

		h.hands.Wait(10 * time.Minute)
		h.pair("hall")
		h.offered(p, 51)
		h.hands.Wait(4 * time.Second)
		h.hands.HoldBoth(4 * time.Second) // opens it, and no more
		h.hands.Wait(10 * time.Second)
		if k.Attached() != "" {
			t.Fatal("one hold put the record on the cable, after a gesture that had paired a phone")
		}
		h.hands.HoldBoth(4 * time.Second)
		h.hands.Wait(10 * time.Second)
		onCable(t, k)
	})
}

// Whoever asks again and again keeps nobody from pairing, nor from a stick: what came to nothing is not offered again at once, and ever
// more rarely. A yes has that forgotten.
func TestTheCableIsOfferedEverMoreRarely(t *testing.T) {
	k := cabletest.New(t)
	live(t, t.TempDir(), func(t *testing.T, h *house) {
		p := h.pair("kitchen")
		h.hands.Wait(3 * time.Minute)
		defer h.plug(k)()
		counter := uint64(50)
		nothing := func(pause time.Duration) {
			t.Helper()
			counter++
			h.offered(p, counter)
			h.hands.HoldBoth(3500 * time.Millisecond)
			h.hands.Wait(70 * time.Second) // whoever wanted to pair does nothing, and it expires
			h.pairingCode()
			h.hands.Tap(device.Deny)
			h.hands.Wait(pause - 2*time.Minute)
			counter++
			if e, ok := h.cable(p, 1, counter).(*ipc.Error); !ok || e.Code != "cable_refused" {
				t.Fatalf("offered again before %v are over: %+v", pause, e)
			}
			h.hands.Wait(2 * time.Minute)
		}
		for _, minutes := range []time.Duration{10, 20, 40, 80, 160, 160} {
			nothing(minutes * time.Minute)
		}
		counter++
		h.offered(p, counter)
		h.agree()
		k.Eject()
		h.hands.Wait(3 * time.Second)
		h.closeNotice()
		nothing(10 * time.Minute)
	})
}

// An offer does not hide that the record is damaged.
func TestTroubleIsSaidAboveOffers(t *testing.T) {
	const segment = "seg-00000000.cborseq"
	disk := audittest.NewDisk()
	k := cabletest.New(t)
	liveOn(t, t.TempDir(), disk, func(t *testing.T, h *house) {
		p := h.pair("kitchen")
		h.close()
		damaged := disk.Content(segment)
		damaged[100] ^= 1
		disk.Put(segment, damaged)
		h.start()
		defer h.plug(k)()
		says := func(event string) {
			t.Helper()
			if !h.notes("record is damaged:", askHint) {
				t.Errorf("the idle screen does not say that the record is damaged, but %s", event)
			}
		}
		h.offered(p, 50)
		says("the cable is offered")
		h.hands.Wait(6 * time.Minute)
		defer h.insert(blankStick(t))()
		says("a stick is in")
	})
}

// A stick that comes while the cable is offered waits, and has its turn.
func TestAStickWaitsForTheCable(t *testing.T) {
	k := cabletest.New(t)
	live(t, t.TempDir(), func(t *testing.T, h *house) {
		p := h.pair("kitchen")
		h.hands.Wait(3 * time.Minute)
		defer h.plug(k)()
		h.offered(p, 50)
		m := blankStick(t)
		defer h.insert(m)()
		h.agree()
		if onCable(t, k); m.Writes() != 0 {
			t.Error("the press was for the cable, and the stick was written to")
		}
		k.Eject()
		h.hands.Wait(20 * time.Second)
		h.closeNotice()
		h.agree()
		if len(copies(t, m)) != 1 || k.Attached() != "" {
			t.Errorf("%d copies on the stick, cable at %q", len(copies(t, m)), k.Attached())
		}
	})
}

// Whatever is said of the cable can be drawn.
func TestWordsOfTheCableFit(t *testing.T) {
	if pages, err := screen.AdminPages(guard.StickTitle, guard.CablePrompt, false); err != nil || len(pages) != 1 {
		t.Errorf("%d pages, %v", len(pages), err)
	}
	for _, full := range append(guard.CableWords(), fmt.Sprintf(cableText, "ABCD2345"), ejectedText, timeOverText) {
		if pages, err := screen.Bulletin(full, false); err != nil || len(pages) > 3 {
			t.Errorf("%q: %d pages, %v", full, len(pages), err)
		}
	}
}
