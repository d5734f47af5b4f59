package guard_test

import (
	"path/filepath"
	"runtime"
	"sync"
	"testing"
	"time"

	"assent.home.arpa/appliance/guard"
	"assent.home.arpa/appliance/ipc"
	"assent.home.arpa/appliance/notice"
	"assent.home.arpa/confirm"
	"assent.home.arpa/confirm/screen"
	"assent.home.arpa/device"
)

// says reports whether the glass shows the first page of a notice's text.
func (h *house) says(text string) bool {
	h.t.Helper()
	pages, err := screen.Bulletin(text, h.large)
	if err != nil {
		h.t.Fatal(err)
	}
	return h.panel.Glass() == pages[0].Frame
}

func (h *house) notice(text string) {
	h.t.Helper()
	if err := notice.Write(h.opts.Notices, "settings", text); err != nil {
		h.t.Fatal(err)
	}
	h.hands.Wait(4 * time.Second)
}

func (h *house) want1(text string, shown bool, when string) {
	h.t.Helper()
	if h.says(text) != shown {
		h.t.Errorf("%s: %q on the glass is %v, want %v", when, text, !shown, shown)
	}
}

// TestNoticesComeOnTheGlass follows one from its file over the glass to the press that closes it.
func TestNoticesComeOnTheGlass(t *testing.T) {
	live(t, t.TempDir(), func(t *testing.T, h *house) {
		const text, other = "assent.toml: line 3", "assent.toml: line 4"
		h.want1(text, false, "before there is one")
		h.notice(text)
		h.want1(text, true, "once it was written")
		h.hands.Tap(device.Approve)
		h.hands.Wait(time.Minute)
		h.want1(text, false, "after a press")
		h.notice(other)
		h.want1(other, true, "when it says something else")
		h.hands.Tap(device.Deny)
		h.hands.Wait(10 * time.Second)
		if err := notice.Remove(h.opts.Notices, "settings"); err != nil {
			t.Fatal(err)
		}
		h.hands.Wait(4 * time.Second)
		h.notice(other)
		h.want1(other, true, "when it was over and came back")
		if err := notice.Remove(h.opts.Notices, "settings"); err != nil {
			t.Fatal(err)
		}
		h.hands.Wait(4 * time.Second)
		h.want1(other, false, "when it is over")
	})
}

// TestNoticesFromBeforeTheStart is the usual case: what prepares the box runs before the guard.
func TestNoticesFromBeforeTheStart(t *testing.T) {
	dir := t.TempDir()
	if err := notice.Write(filepath.Join(dir, "notices"), "import", "model: bad checksum"); err != nil {
		t.Fatal(err)
	}
	live(t, dir, func(t *testing.T, h *house) {
		h.want1("model: bad checksum", true, "at the start")
	})
}

// TestNoticesKnownLastAreShownLast has one closed while another comes, which two goroutines of the guard do.
func TestNoticesKnownLastAreShownLast(t *testing.T) {
	a, b := notice.Notice{Name: "a", Text: "A"}, notice.Notice{Name: "b", Text: "New"}
	for range 50 {
		var shown []confirm.Bulletin
		showing := make(chan struct{})
		replace, closeIt := guard.Bulletins(func(all []confirm.Bulletin) {
			if len(all) == 2 { // whoever can overtake is given the time to
				close(showing)
				for range 1000 {
					runtime.Gosched()
				}
			}
			shown = all
		})
		replace([]notice.Notice{a})
		var wg sync.WaitGroup
		wg.Go(func() { replace([]notice.Notice{a, b}) })
		wg.Go(func() {
			<-showing
			closeIt(a.Digest())
		})
		wg.Wait()
		if len(shown) != 1 || shown[0].ID != b.Digest() {
			t.Fatalf("the panel was left with %d notices that are not those that are open", len(shown))
		}
	}
}

// TestStickThatFlaps has a bad stick come and go without end: it takes the glass once a minute.
func TestStickThatFlaps(t *testing.T) {
	live(t, t.TempDir(), func(t *testing.T, h *house) {
		_, _, full := guard.StickWords(ipc.StickDamaged)
		shown, was := 0, false
		for range 60 { // four minutes
			conn, err := h.slot.dial(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			c := ipc.NewClient(ipc.NewConn(conn), func(ipc.Message) {})
			c.Tell(&ipc.StickHello{Size: 1 << 30, Problem: ipc.StickDamaged})
			h.hands.Wait(2 * time.Second)
			if is := h.says(full); is && !was {
				shown++
			}
			c.Close()
			h.hands.Wait(2 * time.Second)
			was = h.says(full)
		}
		if shown < 3 || shown > 5 {
			t.Errorf("in four minutes the glass said it %d times", shown)
		}
	})
}
