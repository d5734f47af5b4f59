package guard_test

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"assent.home.arpa/appliance/audit"
	"assent.home.arpa/appliance/guard"
	"assent.home.arpa/appliance/ipc"
	"assent.home.arpa/appliance/stick/fat"
	"assent.home.arpa/appliance/stick/sticktest"
	"assent.home.arpa/confirm/screen"
	"assent.home.arpa/device"
)

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
