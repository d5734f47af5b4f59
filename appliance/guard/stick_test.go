package guard_test

import (
	"bytes"
	"context"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/fstest"
	"testing/synctest"
	"time"

	"assent.home.arpa/appliance/audit"
	"assent.home.arpa/appliance/guard"
	"assent.home.arpa/appliance/ipc"
	"assent.home.arpa/appliance/stick"
	"assent.home.arpa/appliance/stick/fat"
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

// Whatever is said of a stick can be drawn.
func TestWordsOfSticksFit(t *testing.T) {
	for p := ipc.StickProblem(0); p <= ipc.StickRefused+1; p++ {
		note, hint, full := guard.StickWords(p)
		for _, line := range []string{note, hint} {
			if odd := strings.Trim(strings.ToUpper(line), "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789/:+.,-! "); odd != "" || len(line) > 20 || line == "" {
				t.Errorf("%q does not fit the idle screen", line)
			}
		}
		if pages, err := screen.Bulletin(full, false); err != nil || len(pages) > 3 {
			t.Errorf("%q: %d pages, %v", full, len(pages), err)
		}
	}
}

func image(t testing.TB, at int, magic string) *sticktest.Stick {
	b := sticktest.Format(t, wideSize, "X")
	copy(b[at:], magic)
	return sticktest.NewStick(b)
}

// Whatever somebody puts in: the panel says what it is and what to do, and nothing on it changes.
func TestSticksThatTakeNoCopy(t *testing.T) {
	small := sticktest.Format(t, 1<<20, "X")
	for _, c := range []struct {
		event string
		stick *sticktest.Stick
		note  string
	}{
		{"exFAT", image(t, 3, "EXFAT   "), "this stick is exFAT:"},
		{"NTFS", image(t, 3, "NTFS    "), "this stick is NTFS:"},
		{"ext4", image(t, 1080, "\x53\xef"), "a stick for Linux:"},
		{"encrypted", image(t, 0, "LUKS\xba\xbe"), "stick is encrypted:"},
		{"an installer", image(t, 32769, "CD001"), "stick has a system:"},
		{"zeros", sticktest.NewStick(make([]byte, 1<<20)), "unformatted stick:"},
		{"two partitions", sticktest.NewStick(sticktest.Partitioned(0x0c, small, small)), "stick in many parts:"},
		{"a boot partition", sticktest.NewStick(sticktest.Partitioned(0xef, small)), "a system starts here"},
		{"a lying size", image(t, 32, "\xff\xff\xff\x7f"), "stick is damaged:"},
		{"a table of gigabytes", image(t, 36, "\xff\xff\xff\x7f"), "unknown kind of FAT:"},
	} {
		t.Run(c.event, func(t *testing.T) {
			live(t, t.TempDir(), func(t *testing.T, h *house) {
				before := c.stick.Content()
				pull := h.insert(c.stick)
				h.closeNotice()
				status := ask[*ipc.Status](h, h.gateway, &ipc.StatusRequest{})
				if hint := guard.StickHint(c.note); !h.idle(status.HeadCode, c.note, hint, 0) {
					t.Errorf("the panel does not say %q", c.note)
				}
				h.hands.HoldBoth(4 * time.Second)
				h.hands.Wait(4 * time.Second)
				h.hands.HoldBoth(4 * time.Second)
				pull()
				if !bytes.Equal(before, c.stick.Content()) || c.stick.Writes() != 0 {
					t.Error("the stick was written to")
				}
			})
		})
	}
}

// What goes wrong halfway is said, recorded, and loses nothing; the next stick is taken.
func TestCopiesThatFail(t *testing.T) {
	full := func(t *testing.T, room int64) *sticktest.Stick {
		b := sticktest.Format(t, stickSize, "FULL")
		v, err := fat.Open(sticktest.NewStick(b), 0, stickSize)
		if err != nil {
			t.Fatal(err)
		}
		free, err := v.Free()
		if err != nil {
			t.Fatal(err)
		}
		return sticktest.NewStick(sticktest.Put(t, stickKind, b, map[string][]byte{"film": make([]byte, free-room)}))
	}
	for _, c := range []struct {
		event string
		make  func(t *testing.T) *sticktest.Stick
		code  string
		note  string
	}{
		{"full", func(t *testing.T) *sticktest.Stick { return full(t, 100<<10) }, "no_room", "the stick is full:"},
		{"full halfway", func(t *testing.T) *sticktest.Stick { return full(t, audit.SegmentSize+20<<10) }, "no_room", "the stick is full:"},
		{"read-only", func(t *testing.T) *sticktest.Stick { m := blankStick(t); m.Refuse = true; return m }, "stick_10", "stick is read-only:"},
		{"worn out", func(t *testing.T) *sticktest.Stick { m := blankStick(t); m.Rot = true; return m }, "read_back", "the stick is bad:"},
		{"fails at once", func(t *testing.T) *sticktest.Stick { m := blankStick(t); m.PullAt(1); return m }, "stick_12", "the stick fails:"},
		{"fails halfway", func(t *testing.T) *sticktest.Stick { m := blankStick(t); m.PullAt(40); return m }, "stick_12", "the stick fails:"},
	} {
		t.Run(c.event, func(t *testing.T) {
			live(t, t.TempDir(), func(t *testing.T, h *house) {
				m := c.make(t)
				pull := h.insert(m)
				h.agree()
				h.closeNotice()
				if !h.notes(c.note, guard.StickHint(c.note)) {
					t.Errorf("the panel does not say %q", c.note)
				}
				if c.code != "stick_12" {
					if found := copies(t, m); len(found) != 0 {
						t.Errorf("%d copies", len(found))
					}
				}
				pull()
				good := blankStick(t)
				pull = h.insert(good)
				h.agree()
				if len(copies(t, good)) != 1 {
					t.Error("the next stick has no copy")
				}
				pull()
				exports, _ := h.exports()
				if len(exports) != 2 || exports[0].OK || exports[0].Code != c.code || !exports[1].OK {
					t.Errorf("%d: %+v", len(exports), *exports[0])
				}
			})
		})
	}
}

// What has the copy's name on a stick is no copy that anybody here knows of: it is neither believed nor touched.
func TestCopyBesideWhatHasItsName(t *testing.T) {
	live(t, t.TempDir(), func(t *testing.T, h *house) {
		h.pair("kitchen")
		h.hands.Wait(3 * time.Minute)
		forged := map[string][]byte{}
		status := h.status()
		for seq := range 40 { // whichever it will be
			forged[fmt.Sprintf("AUDIT-%x-%d", status.Root[:4], status.Head+uint64(seq))] = []byte("a copy, really")
		}
		m := sticktest.NewStick(sticktest.Put(t, stickKind, blankStick(t).Content(), forged))
		pull := h.insert(m)
		h.agree()
		defer pull()
		found := copies(t, m)
		for dir, log := range found {
			report, err := audit.Verify(t.Context(), log, audit.VerifyOptions{AllSeals: true})
			if err != nil || report.Status != audit.Intact {
				t.Errorf("%s: %v %v", dir, report.Problem, err)
			}
			name := fmt.Sprintf("AUDIT-%x-%d", status.Root[:4], report.Head.Seq)
			if left := sticktest.Files(t, stickKind, m.Content())[name]; dir != name+"-2" || string(left) != "a copy, really" {
				t.Errorf("the copy is %s, and %s holds %q", dir, name, left)
			}
			if !h.says("Safe to remove. Copy read back, code " + report.Head.Code() + ". Check it with that code on a PC. Its name was taken, so it ends with a number.") {
				t.Error("the panel does not say that something had the copy's name")
			}
		}
		if exports, _ := h.exports(); len(found) != 1 || len(exports) != 1 || !exports[0].OK {
			t.Errorf("%d copies, %d exports", len(found), len(exports))
		}
	})
}

// slow is a stick that does not get on with its writes until it is let.
type slow struct {
	*sticktest.Stick
	go_ chan struct{}
}

func (s slow) WriteAt(p []byte, off int64) (int, error) {
	<-s.go_
	return s.Stick.WriteAt(p, off)
}

// A copy under way keeps nothing waiting, and ends where its stick is pulled out, or where there is a panic.
func TestLifeGoesOnDuringACopy(t *testing.T) {
	for _, c := range []struct {
		event string
		end   func(h *house, m slow, pull func())
		code  string
	}{
		{"it goes on", func(h *house, m slow, pull func()) { close(m.go_); h.hands.Wait(10 * time.Second) }, ""},
		{"pulled out halfway", func(h *house, m slow, pull func()) { m.PullAt(3); close(m.go_); pull() }, "pulled_out"},
		{"panic", func(h *house, m slow, pull func()) {
			h.hands.Hold(device.Deny, 6*time.Second)
			close(m.go_)
			h.hands.Wait(10 * time.Second)
		}, "stopped"},
		{"it never goes on", func(h *house, m slow, pull func()) { time.Sleep(3 * time.Minute); close(m.go_); synctest.Wait() }, "too_slow"},
	} {
		t.Run(c.event, func(t *testing.T) {
			live(t, t.TempDir(), func(t *testing.T, h *house) {
				p := h.pair("kitchen")
				h.hands.Wait(3 * time.Minute)
				m := slow{blankStick(t), make(chan struct{})}
				pull := h.insert(m)
				h.agree()
				if !h.notes("copying: 10 of 100", "leave the stick in") && !h.notes("copying: 0 of 100", "leave the stick in") {
					t.Error("the panel does not say that it is copying")
				}
				turn := h.turn(p, ipc.ID{1})
				if o := h.now(state(turn)); o.Status != 1 {
					t.Errorf("a call during a copy: %+v", o)
				}
				k := h.propose(h.gateway, search(turn, query))
				if o := h.approve(k); o.Status != 1 {
					t.Errorf("a card during a copy: %+v", o)
				}
				c.end(h, m, pull)
				h.hands.Wait(10 * time.Second)
				if c.code == "pulled_out" && !h.idle(h.status().HeadCode, "pulled out too early", "nothing is lost", 1) {
					t.Error("the panel does not say that it was pulled out too early")
				}
				pull()
				exports, _ := h.exports()
				if len(exports) != 1 || exports[0].OK != (c.code == "") || exports[0].Code != c.code {
					t.Errorf("%d: %+v", len(exports), *exports[0])
				}
			})
		})
	}
}

func TestTwoSticks(t *testing.T) {
	live(t, t.TempDir(), func(t *testing.T, h *house) {
		one, two := blankStick(t), blankStick(t)
		pullOne := h.insert(one)
		pullTwo := h.insert(two)
		if !h.notes("two sticks are in:", "leave only one in") {
			t.Error("the panel does not say that there are two")
		}
		h.agree()
		if one.Writes()+two.Writes() != 0 {
			t.Error("one of two was picked")
		}
		h.hands.Wait(3 * time.Minute)
		pullOne()
		h.agree()
		if len(copies(t, two)) != 1 || one.Writes() != 0 {
			t.Error("the one that is left has no copy")
		}
		pullTwo()
	})
}

// A stick that was in when the guard starts, or starts again, is there: its exporter comes back.
func TestGuardRestartsWithAStickIn(t *testing.T) {
	live(t, t.TempDir(), func(t *testing.T, h *house) {
		m := blankStick(t)
		pull := h.insert(m)
		h.restart()
		pull()
		pull = h.insert(m)
		h.agree()
		if len(copies(t, m)) != 1 {
			t.Error("no copy")
		}
		pull()
	})
}

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
