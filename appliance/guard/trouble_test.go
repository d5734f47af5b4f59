package guard_test

import (
	"bytes"
	"testing"
	"testing/synctest"
	"time"

	"assent.home.arpa/appliance/audit/audittest"
	"assent.home.arpa/appliance/grant"
	"assent.home.arpa/appliance/ipc"
	"assent.home.arpa/capabilities"
	"assent.home.arpa/capabilities/executor/executortest"
	"assent.home.arpa/confirm/screen"
)

// shows waits until the idle screen is brought up to date, and demands that it says so.
func (h *house) shows(note, hint string, phones int) {
	h.t.Helper()
	h.hands.Wait(31 * time.Second)
	head := ask[*ipc.Status](h, h.gateway, &ipc.StatusRequest{}).HeadCode
	glass := h.panel.Glass()
	for shift := range 100 {
		for today := range 4 {
			if glass == screen.DrawIdle(screen.Idle{Today: today, Phones: phones, HeadCode: head, Shift: shift, Note: note, Hint: hint}) {
				return
			}
		}
	}
	h.t.Errorf("the panel does not say %q, %q", note, hint)
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
		if s := h.status(); s.Audit || s.Trouble != ipc.AuditFull || !h.noticed(ipc.NoticeAuditFull) || h.noticed(ipc.NoticeAuditLost) {
			t.Errorf("status %+v", s)
		}
		close(release)
		h.want(<-running, capabilities.Done, "")
		h.shows("the record is full:", "export it", 1)
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
