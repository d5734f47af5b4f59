package guard_test

import (
	"bytes"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"assent.home.arpa/appliance/audit"
	"assent.home.arpa/appliance/audit/audittest"
	"assent.home.arpa/appliance/clock"
	"assent.home.arpa/appliance/grant"
	"assent.home.arpa/appliance/guard"
	"assent.home.arpa/appliance/ipc"
	"assent.home.arpa/capabilities"
	"assent.home.arpa/capabilities/executor/executortest"
	"assent.home.arpa/confirm/screen"
	"assent.home.arpa/device"
)

// shows waits until the idle screen is brought up to date, and demands that it says so.
func (h *house) shows(note, hint string, phones int) {
	h.t.Helper()
	h.hands.Wait(31 * time.Second)
	head := ask[*ipc.Status](h, h.gateway, &ipc.StatusRequest{}).HeadCode
	if !h.idle(head, note, hint, phones) {
		h.t.Errorf("the panel does not say %q, %q", note, hint)
	}
}

// idle reports whether the panel shows the idle screen with this.
func (h *house) idle(head, note, hint string, phones int) bool {
	glass := h.panel.Glass()
	for shift := range 100 {
		for today := range 4 {
			if glass == screen.DrawIdle(screen.Idle{Today: today, Phones: phones, HeadCode: head, Shift: shift, Note: note, Hint: hint}) {
				return true
			}
		}
	}
	return false
}

// fill makes the log full with what a gateway can make it record: calls of nothing.
func (h *house) fill(p *phone) {
	h.t.Helper()
	args := bytes.Repeat([]byte{'x'}, 16<<10)
	for range 40 {
		turn := h.turn(p, ipc.ID{9})
		for range h.opts.Config.Turn.Proposals {
			o := h.now(&ipc.Propose{Ask: turn, Name: []byte("nothing__v1"), Arguments: args, Step: 1, Index: 1})
			if o.Code == capabilities.CodeAuditUnavailable {
				return
			}
		}
	}
	h.t.Fatal("the log does not fill up")
}

func (h *house) status() *ipc.Status {
	h.t.Helper()
	return ask[*ipc.Status](h, h.gateway, &ipc.StatusRequest{})
}

// A full log: people are told, and can chat; what is under way is settled; it goes on by itself when there is room, and not
// before.
func TestAFullLogIsSaidAndPassesByItself(t *testing.T) {
	disk := audittest.NewDisk()
	liveOn(t, t.TempDir(), disk, func(t *testing.T, h *house) {
		p := h.pair("Kitchen")
		release := make(chan struct{})
		h.courier.answer = func(c grant.Claims) ipc.Message {
			<-release
			return executortest.Done(c, []byte(`{"ok":true}`))
		}
		running := make(chan *ipc.Outcome, 1)
		turn := h.turn(p, ipc.ID{1})
		go func() { running <- h.now(state(turn)) }()
		synctest.Wait()
		disk.Arm(audittest.Fault{Full: true})
		h.fill(p)
		synctest.Wait() // a notice comes when it comes
		if s := h.status(); s.Audit || s.Trouble != ipc.AuditFull || !h.noticed(ipc.NoticeAuditFull) || h.noticed(ipc.NoticeAuditLost) {
			t.Errorf("status %+v", s)
		}
		close(release)
		h.want(<-running, capabilities.Done, "")
		h.shows("the record is full:", "hold both buttons 3s", 1)
		b := h.turn(p, ipc.ID{2}) // chat goes on
		for _, m := range []*ipc.Propose{state(b), search(b, query)} {
			if o := h.now(m); o.Status == capabilities.Done || o.Code != capabilities.CodeAuditUnavailable {
				t.Errorf("ended as %+v", o)
			}
		}
		if h.noticed(ipc.NoticeAuditBack) {
			t.Error("an outcome that fits was taken for room")
		}

		disk.Arm(audittest.Fault{})
		h.hands.Wait(31 * time.Second)
		if s := h.status(); !s.Audit || s.Trouble != 0 || !h.noticed(ipc.NoticeAuditBack) {
			t.Errorf("with room: status %+v", s)
		}
		h.want(h.now(state(h.turn(p, ipc.ID{3}))), capabilities.Done, "")
		h.shows("", "", 1)
	})
}

// A disk that is full as the box starts is no different.
func TestADiskThatIsFullFromTheStartPassesByItself(t *testing.T) {
	disk := audittest.NewDisk()
	liveOn(t, t.TempDir(), disk, func(t *testing.T, h *house) {
		p := h.pair("Kitchen")
		h.close()
		disk.Arm(audittest.Fault{Full: true})
		h.start()
		if s := h.status(); s.Audit || s.Trouble != ipc.AuditFull {
			t.Errorf("status %+v", s)
		}
		if o := h.now(state(h.turn(p, ipc.ID{1}))); o.Code != capabilities.CodeAuditUnavailable {
			t.Errorf("ended as %+v", o)
		}
		disk.Arm(audittest.Fault{})
		h.hands.Wait(31 * time.Second)
		if s := h.status(); !s.Audit || !h.noticed(ipc.NoticeAuditBack) {
			t.Errorf("with room: status %+v", s)
		}
		h.want(h.now(state(h.turn(p, ipc.ID{2}))), capabilities.Done, "")
	})
}

// verified demands an intact log on the disk and returns its records.
func verified(t *testing.T, disk *audittest.Disk) (out []audit.Entered) {
	t.Helper()
	r, err := audit.Verify(t.Context(), disk.FS(), audit.VerifyOptions{AllSeals: true, Visit: func(e audit.Entered) error {
		out = append(out, e)
		return nil
	}})
	if err != nil || r.Status != audit.Intact {
		t.Fatalf("the log is %s: %v, %v", r.Status, r.Problem, err)
	}
	return out
}

// A damaged log: people are told, chat goes on, nothing is executed and nothing of the log is touched, until somebody at the
// box begins a new one.
func TestADamagedLogIsKeptAsideAtTheBox(t *testing.T) {
	const segment = "seg-00000000.cborseq"
	disk := audittest.NewDisk()
	liveOn(t, t.TempDir(), disk, func(t *testing.T, h *house) {
		p := h.pair("Kitchen")
		h.courier.answer = interrupted
		k := h.propose(h.gateway, search(h.turn(p, ipc.ID{1}), query))
		h.want(h.approve(k), capabilities.Unknown, capabilities.CodeInterrupted)
		h.courier.answer = nil
		h.close()
		damaged := disk.Content(segment)
		damaged[100] ^= 1
		disk.Put(segment, damaged)
		h.start()

		if s := h.status(); s.Audit || s.Trouble != ipc.AuditDamaged || len(s.Seal) != 0 {
			t.Errorf("status %+v", s)
		}
		h.shows("record is damaged:", "hold both buttons 3s", 1)
		for _, m := range []*ipc.Propose{state(h.turn(p, ipc.ID{1})), search(h.turn(p, ipc.ID{2}), query)} {
			if o := h.now(m); o.Status == capabilities.Done || o.Code != capabilities.CodeAuditUnavailable {
				t.Errorf("ended as %+v", o)
			}
		}

		h.hands.HoldBoth(3500 * time.Millisecond)
		h.hands.Wait(3 * time.Second)
		h.hands.Tap(device.Deny)
		h.hands.Wait(3 * time.Minute) // until pairing mode is closed
		if s := h.status(); s.Trouble != ipc.AuditDamaged || !bytes.Equal(disk.Content(segment), damaged) {
			t.Fatalf("after a no: status %+v", s)
		}

		h.hands.HoldBoth(3500 * time.Millisecond)
		h.hands.Wait(3 * time.Second)
		h.hands.HoldBoth(4 * time.Second)
		h.hands.Wait(time.Second)
		h.hands.Tap(device.Approve)
		h.hands.Wait(4 * time.Second)
		if s := h.status(); !s.Audit || s.Trouble != 0 || len(s.Seal) == 0 || !h.noticed(ipc.NoticeAuditBack) {
			t.Fatalf("after the press: status %+v", s)
		}
		if got := disk.Content("damaged-0001/" + segment); !bytes.Equal(got, damaged) {
			t.Error("the damaged log was not kept as it was")
		}
		h.want(h.now(state(h.turn(p, ipc.ID{3}))), capabilities.Done, "")
		// What nobody had seen is still there; the new log has no promise that it could point at.
		if _, err := h.seen(p, k.pending.Inv); err != nil {
			t.Error(err)
		}
		h.close()
		records := verified(t, disk)
		var reset []*audit.Admin
		for _, a := range find[*audit.Admin](records) {
			if a.Action == audit.AdminReset {
				reset = append(reset, a)
			}
		}
		if len(reset) != 1 || reset[0].By != audit.ByBox || reset[0].Outcome != audit.Approved || reset[0].Subject != "log, kept in damaged-0001" {
			t.Errorf("recorded as %+v", reset)
		}
		if o := finals(records); len(o) != 1 || o[0].Intent != 0 {
			t.Errorf("seen is recorded as %+v", o)
		}
		h.start()
	})
}

// literals are the bodies of blobs that are still there.
func literals(records []audit.Entered) (n int) {
	return len(find[*audit.Blob](records))
}

// pass lets hours pass in which nobody is at the box.
func (h *house) pass(hours int) {
	for range hours {
		h.clock.Advance(time.Hour)
		synctest.Wait()
	}
}

// B13: literal payloads go after as many days as the household wants, once the date is known; the log stays intact.
func TestLiteralPayloadsAreForgottenAfterTheirTime(t *testing.T) {
	disk := audittest.NewDisk()
	liveOn(t, t.TempDir(), disk, func(t *testing.T, h *house) {
		p := h.pair("Kitchen")
		h.courier.answer = interrupted
		h.want(h.approve(h.propose(h.gateway, search(h.turn(p, ipc.ID{1}), query))), capabilities.Unknown, capabilities.CodeInterrupted)
		h.courier.answer = nil
		disk.Arm(audittest.Fault{Full: true})
		h.fill(p) // so that the segment is closed
		disk.Arm(audittest.Fault{})
		h.close()
		before := literals(verified(t, disk))
		wall, _ := h.clock.Wall()

		h.days = 3
		h.clock.SetWall(wall.AddDate(10, 0, 0), clock.Unset)
		h.start()
		h.pass(2)
		if got := h.inbox(p.slot); got[0].Text == "" {
			t.Error("forgotten without knowing the date")
		}
		h.clock.SetWall(wall.AddDate(10, 0, 0), clock.Synced) // one wrong answer of a time server
		h.pass(23)
		if got := h.inbox(p.slot); got[0].Text != "tall towers" {
			t.Error("forgotten for a clock that was wrong for less than a day")
		}
		h.clock.SetWall(wall.AddDate(0, 0, 1), clock.Synced)
		h.pass(25)
		if got := h.inbox(p.slot); got[0].Text != "tall towers" {
			t.Error("forgotten before its time")
		}
		h.pass(25)
		if got := h.inbox(p.slot); len(got) != 1 || got[0].Text != "" || got[0].Title == "" {
			t.Errorf("the inbox keeps %+v", got)
		}
		h.close()
		records := verified(t, disk)
		redacts := find[*audit.Redact](records)
		if len(redacts) == 0 || redacts[0].By != audit.ByTimer || redacts[0].Reason != "kept for 3 days" || literals(records) >= before {
			t.Errorf("%d removals, %d of %d bodies left", len(redacts), literals(records), before)
		}
		h.start()
	})
}

// TestRoomIsMadeAtTheBox: when calls that run by themselves have had their half of the record, somebody at the box may give
// up the oldest quarter of it. A no, and a phone, change nothing.
func TestRoomIsMadeAtTheBox(t *testing.T) {
	disk := audittest.NewDisk()
	liveOn(t, t.TempDir(), disk, func(t *testing.T, h *house) {
		p := h.pair("Kitchen")
		h.close()
		h.quotaMB = 6
		h.start()
		full := func() bool {
			for range 600 {
				o := h.now(state(h.turn(p, ipc.ID{1})))
				if o.Code == capabilities.CodeAuditUnavailable {
					return true
				}
			}
			return false
		}
		if !full() {
			t.Fatal("calls that run by themselves take more than their half")
		}
		if s := h.status(); !s.Audit {
			t.Errorf("approved calls go on: %+v", s)
		}
		const oldest = "seg-00000000.cborseq"
		h.hands.HoldBoth(3500 * time.Millisecond)
		h.hands.Wait(3 * time.Second)
		h.hands.Tap(device.Deny)
		h.hands.Wait(3 * time.Minute)
		if disk.Content(oldest) == nil {
			t.Fatal("removed after a no")
		}
		h.hands.HoldBoth(3500 * time.Millisecond)
		h.hands.Wait(3 * time.Second)
		pages, err := screen.AdminPages(guard.RoomTitle, guard.RoomText, false)
		if err != nil || len(pages) != 2 || !strings.Contains(guard.RoomText, "checked on a PC") {
			t.Fatalf("%d pages, %v", len(pages), err)
		}
		h.hands.Tap(device.Approve)
		h.hands.Wait(3 * time.Second)
		if glass := h.panel.Glass(); !bytes.Equal(glass[:device.Width*7], pages[1].Frame[:device.Width*7]) {
			t.Error("the panel does not say that a copy counts once a PC checked it")
		}
		h.hands.HoldBoth(4 * time.Second)
		h.hands.Wait(time.Second)
		h.hands.Tap(device.Approve)
		h.hands.Wait(4 * time.Second)
		if disk.Content(oldest) != nil {
			t.Fatal("not removed after the press")
		}
		h.want(h.now(state(h.turn(p, ipc.ID{2}))), capabilities.Done, "")
		h.close()
		records := verified(t, disk)
		prunes := find[*audit.Prune](records)
		if len(prunes) != 1 || prunes[0].Admin == 0 || prunes[0].By != audit.ByBox {
			t.Errorf("recorded as %+v", prunes)
		}
		h.start()
	})
}
