package guard_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/fstest"
	"testing/synctest"
	"time"

	"assent.home.arpa/appliance/audit"
	"assent.home.arpa/appliance/guard"
	"assent.home.arpa/appliance/ipc"
	"assent.home.arpa/appliance/stick"
	"assent.home.arpa/appliance/stick/sticktest"
	"assent.home.arpa/confirm/screen"
	"assent.home.arpa/device"
)

const askNote, askHint = "copy record to stick", "hold both buttons 3s"

const (
	stickSize = 6 << 20 // makes a FAT16
	stickKind = 16
	wideSize  = 34 << 20 // makes a FAT32
)

func blankStick(t testing.TB) *sticktest.Stick {
	return sticktest.NewStick(sticktest.Format(t, stickSize, "HOLIDAY"))
}

// insert puts a stick into the box, with the real exporter before it, and returns how it is pulled out.
func (h *house) insert(m stick.Medium) (pull func()) {
	h.t.Helper()
	conn, err := h.slot.dial(context.Background())
	if err != nil {
		h.t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	var exporter sync.WaitGroup
	exporter.Go(func() {
		stick.Run(ctx, ipc.NewConn(conn), func() (stick.Medium, error) { return m, nil }, h.opts.Log)
	})
	synctest.Wait()
	h.hands.Wait(time.Second)
	return sync.OnceFunc(func() {
		cancel()
		exporter.Wait()
		h.hands.Wait(time.Second)
	})
}

// agree makes the gesture and holds both buttons again.
func (h *house) agree() {
	h.t.Helper()
	h.hands.HoldBoth(3500 * time.Millisecond)
	h.hands.Wait(4 * time.Second)
	h.hands.HoldBoth(4 * time.Second)
	h.hands.Wait(10 * time.Second)
}

// closeNotice turns the pages of what the panel has to say until it is over.
func (h *house) closeNotice() {
	for range 6 {
		h.hands.Wait(2 * time.Second)
		h.hands.Tap(device.Deny)
	}
	h.hands.Wait(2 * time.Second)
}

func (h *house) notes(note, hint string) bool {
	h.t.Helper()
	if !screen.FitsIdle(note, hint) {
		h.t.Errorf("%q and %q do not fit the idle screen", note, hint)
	}
	h.hands.Wait(31 * time.Second)
	return h.idle(ask[*ipc.Status](h, h.gateway, &ipc.StatusRequest{}).HeadCode, note, hint, ask[*ipc.Status](h, h.gateway, &ipc.StatusRequest{}).Phones)
}

func (h *house) exports() (exports []*audit.Export, acts []*audit.Admin) {
	h.t.Helper()
	records := h.records()
	for _, a := range find[*audit.Admin](records) {
		if a.Action == audit.AdminExport {
			acts = append(acts, a)
		}
	}
	return find[*audit.Export](records), acts
}

// copies are the finished copies on a stick, by name.
func copies(t *testing.T, m *sticktest.Stick) map[string]fstest.MapFS {
	t.Helper()
	found := map[string]fstest.MapFS{}
	for name, content := range sticktest.Files(t, stickKind, m.Content()) {
		dir, rest, ok := strings.Cut(name, "/")
		if !ok || !strings.HasPrefix(dir, "AUDIT-") || dir == "AUDIT-unfinished" {
			continue
		}
		if found[dir] == nil {
			found[dir] = fstest.MapFS{}
		}
		found[dir][rest] = &fstest.MapFile{Data: content}
	}
	return found
}

// D4: a stick, a gesture, a press; then the stick holds the record, and says whose word it is.
func TestRecordIsCopiedOntoAStick(t *testing.T) {
	live(t, t.TempDir(), func(t *testing.T, h *house) {
		p := h.pair("kitchen")
		h.turn(p, ipc.ID{1})
		h.hands.Wait(3 * time.Minute) // that gesture does not count any more
		m := blankStick(t)
		pull := h.insert(m)
		if !h.notes(askNote, askHint) {
			t.Error("the panel does not say what to do")
		}
		if m.Writes() != 0 {
			t.Error("something was written before anybody pressed")
		}
		h.agree()
		found := copies(t, m)
		if len(found) != 1 {
			t.Fatalf("%d copies", len(found))
		}
		var report audit.Report
		for dir, log := range found {
			var err error
			if report, err = audit.Verify(t.Context(), log, audit.VerifyOptions{AllSeals: true}); err != nil || report.Status != audit.Intact {
				t.Errorf("%s: %v %v", dir, report.Problem, err)
			}
			if want := fmt.Sprintf("AUDIT-%s-%d", report.Root.String()[:8], report.Head.Seq); dir != want {
				t.Errorf("%s, want %s", dir, want)
			}
			if readme := string(log["README.txt"].Data); !strings.Contains(readme, "That is the box's own word") {
				t.Errorf("the copy does not say whose word it is:\n%s", readme)
			}
		}
		code := report.Head.Code()
		if !h.says("Safe to remove. Copy read back, code " + code + ". Check it with that code on a PC.") {
			t.Error("the panel does not say that it is safe to pull it out, and the copy's own code")
		}
		h.closeNotice()
		h.turn(p, ipc.ID{2}) // the record goes on, and the copy's code stays the copy's
		if !h.notes("copy code "+code, "pull the stick out") || h.status().HeadCode == code {
			t.Error("the idle screen does not say that it is copied, and the copy's own code")
		}
		for _, log := range found {
			if v, err := audit.Verify(t.Context(), log, audit.VerifyOptions{Head: code}); err != nil || v.Status != audit.Intact {
				t.Errorf("with the code that the panel shows: %v %v", v.Problem, err)
			}
		}
		pull()
		if h.notes("copy code "+code, "pull the stick out") {
			t.Error("a stick that is out is still spoken of")
		}
		exports, acts := h.exports()
		if len(exports) != 1 || len(acts) != 1 || acts[0].Outcome != audit.Approved {
			t.Fatalf("%d exports, acts: %+v", len(exports), acts)
		}
		e := exports[0]
		if !e.OK || e.Last != report.Head.Seq || e.LastLink != report.Head.Link || e.Admin == 0 || e.By != audit.ByBox || e.Sums == (audit.Digest{}) || string(e.Volume) != "HOLIDAY" {
			t.Errorf("%+v", e)
		}
	})
}

func TestNoCopyWithoutAPress(t *testing.T) {
	live(t, t.TempDir(), func(t *testing.T, h *house) {
		h.pair("kitchen")
		h.hands.Wait(3 * time.Minute)
		m := blankStick(t)
		pull := h.insert(m)
		h.hands.HoldBoth(4 * time.Second)
		h.hands.Wait(2 * time.Minute) // nobody presses
		if !h.notes(askNote, askHint) {
			t.Error("the stick cannot be asked about again")
		}
		h.hands.HoldBoth(4 * time.Second)
		h.hands.Wait(3 * time.Second)
		pull() // before the press
		h.hands.HoldBoth(2 * time.Second)
		h.hands.Wait(time.Minute)
		pull = h.insert(m)
		h.hands.HoldBoth(4 * time.Second)
		h.hands.Wait(5 * time.Second)
		h.hands.Tap(device.Deny)
		h.hands.Wait(3 * time.Second)
		if !h.notes("copy was refused:", "put stick in again") {
			t.Error("the panel does not say how a refused stick is asked about again")
		}
		h.pair("hall") // with the refused stick in
		pull()
		h.hands.Wait(2 * time.Minute)
		pull = h.insert(m)
		if !h.notes(askNote, askHint) {
			t.Error("a stick that is put in again is not asked about")
		}
		if m.Writes() != 0 {
			t.Errorf("%d writes", m.Writes())
		}
		exports, acts := h.exports()
		pull()
		if len(exports) != 0 || len(acts) != 2 || acts[0].Outcome != audit.Expired || acts[1].Outcome != audit.Denied {
			t.Errorf("%d exports, acts %+v", len(exports), acts)
		}
		opened := 0
		for _, a := range find[*audit.Admin](h.records()) {
			if a.Action == audit.AdminPairing && a.On == audit.Yes {
				opened++
			}
		}
		if opened != 2 { // for the two phones
			t.Errorf("pairing mode was opened %d times", opened)
		}
	})
}

// A stick that comes and goes, as one with a bad contact does, asks once a gesture, and what ends everything ends what it asks.
func TestAStickAsksOnceAGesture(t *testing.T) {
	live(t, t.TempDir(), func(t *testing.T, h *house) {
		h.pair("kitchen")
		h.hands.Wait(3 * time.Minute)
		m := blankStick(t)
		pull := h.insert(m)
		h.hands.HoldBoth(4 * time.Second)
		for range 5 {
			pull()
			h.hands.Wait(3 * time.Second)
			pull = h.insert(m)
		}
		h.hands.Wait(2 * time.Second)
		h.hands.HoldBoth(2 * time.Second) // too short for a gesture, and no prompt is there for it
		if !h.notes(askNote, askHint) {
			t.Error("a stick does not wait for a gesture of its own")
		}
		h.hands.Hold(device.Deny, 6*time.Second)
		h.hands.Wait(10 * time.Second)
		h.hands.HoldBoth(4 * time.Second) // the release goes first
		h.hands.Wait(3 * time.Second)
		h.hands.HoldBoth(4 * time.Second)
		h.hands.Wait(time.Second)
		h.hands.Tap(device.Approve)
		h.hands.Wait(4 * time.Second)
		if m.Writes() != 0 {
			t.Errorf("%d writes", m.Writes())
		}
		h.agree()
		if len(copies(t, m)) != 1 {
			t.Error("after a panic and its release the stick cannot be asked about")
		}
		pull()
		if _, acts := h.exports(); len(acts) != 1 { // what nobody saw is not recorded
			t.Errorf("%d acts", len(acts))
		}
	})
}

// The gesture may come first, and somebody then fetches the stick.
func TestGestureBeforeTheStick(t *testing.T) {
	live(t, t.TempDir(), func(t *testing.T, h *house) {
		h.hands.HoldBoth(3500 * time.Millisecond)
		h.hands.Wait(20 * time.Second)
		m := blankStick(t)
		defer h.insert(m)()
		h.hands.Wait(3 * time.Second)
		h.hands.HoldBoth(4 * time.Second)
		h.hands.Wait(10 * time.Second)
		if len(copies(t, m)) != 1 {
			t.Error("no copy")
		}
	})
}

// Whatever a stick is called, the prompt can be drawn, and its name misleads nobody.
func TestPromptNamesTheStick(t *testing.T) {
	for _, c := range []struct {
		label string
		size  int64
		want  string
	}{
		{"HOLIDAY", 7_900_000_000, " HOLIDAY, 7.9 GB"},
		{"ABCDEFGHIJK", 1 << 62, " ABCDEFGHIJK, 70368.7 GB"},
		{"", -5, ", 0.0 GB"},
		{"A B", 0, ", 0.0 GB"}, // a gap at a row's end would be a mark
		{"\x9a\x00\xff", 0, ", 0.0 GB"},
		{"holiday", 0, ", 0.0 GB"}, // no FAT label has small letters
	} {
		got := guard.StickName(ipc.StickHello{Label: []byte(c.label), Size: c.size})
		if got != c.want {
			t.Errorf("%q: %q, want %q", c.label, got, c.want)
		}
		if pages, err := screen.AdminPages(guard.StickTitle, "to stick"+got, false); err != nil || len(pages) != 1 {
			t.Errorf("%q: %d pages, %v", c.label, len(pages), err)
		}
	}
}
