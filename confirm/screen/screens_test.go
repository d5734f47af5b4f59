package screen_test

import (
	"errors"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"assent.home.arpa/confirm/screen"
	"assent.home.arpa/device"
)

func TestOverlayStaysInItsStrip(t *testing.T) {
	const strip = device.Width * 7
	for _, p := range mustPages(t, search()) {
		for _, last := range []bool{false, true} {
			for _, hold := range []float64{0, 0.01, 0.5, 1, 7} {
				f := screen.DrawReading(p, 5*time.Minute, last, last, hold, "LET GO")
				if [strip]byte(f[:strip]) != [strip]byte(p.Frame[:strip]) {
					t.Fatalf("last %v, hold %v: a pixel of the page changed", last, hold)
				}
			}
		}
	}
}

func TestReadingSaysWhatAHoldWouldDo(t *testing.T) {
	p := mustPages(t, search())[0]
	seen := make(map[device.Frame]string)
	for name, f := range map[string]device.Frame{
		"next page":      screen.DrawReading(p, time.Minute, false, false, 0, "LET GO"),
		"last, not yet":  screen.DrawReading(p, time.Minute, true, false, 0, "LET GO"),
		"armed":          screen.DrawReading(p, time.Minute, true, true, 0, "LET GO"),
		"a second later": screen.DrawReading(p, 59*time.Second, true, true, 0, "LET GO"),
		"holding":        screen.DrawReading(p, time.Minute, true, true, 0.3, "LET GO"),
	} {
		if other, ok := seen[f]; ok {
			t.Errorf("%q and %q look the same", name, other)
		}
		seen[f] = name
	}
}

func TestBarIsFullOnlyAtTheEnd(t *testing.T) {
	p := mustPages(t, search())[0]
	before := -1
	for _, hold := range []float64{0.001, 0.25, 0.5, 0.75, 0.999} {
		f := screen.DrawReading(p, time.Minute, true, true, hold, "LET GO")
		n := ink(&f, 0, 56, device.Width, 8)
		if n <= before {
			t.Errorf("bar does not grow at %v", hold)
		}
		before = n
	}
	full := screen.DrawReading(p, time.Minute, true, true, 1, "LET GO")
	if !full.At(125, 60) {
		t.Error("bar is not full at 1")
	}
	if almost := screen.DrawReading(p, time.Minute, true, true, 0.999, "LET GO"); almost.At(125, 60) {
		t.Error("bar is full before the hold is complete")
	}
}

func TestIdleWandersAndLosesNothing(t *testing.T) {
	for _, large := range []bool{false, true} {
		idleWanders(t, screen.Idle{Today: 12, HeadCode: "8PMZ6TD9", Phones: 2, Note: "clock is unset", Large: large})
	}
}

func idleWanders(t *testing.T, i screen.Idle) {
	t.Helper()
	still := screen.DrawIdle(i)
	want := ink(&still, 0, 0, device.Width, device.Height)
	places := make(map[device.Frame]bool)
	for i.Shift = -5; i.Shift < 200; i.Shift++ {
		f := screen.DrawIdle(i)
		places[f] = true
		if got := ink(&f, 0, 0, device.Width, device.Height); got != want {
			t.Fatalf("shift %d: %d lit pixels, want %d", i.Shift, got, want)
		}
	}
	if len(places) != 81 {
		t.Errorf("%d places, want 81", len(places))
	}
}

func TestIdleSaysWhatMatters(t *testing.T) {
	for _, large := range []bool{false, true} {
		idleSaysWhatMatters(t, screen.Idle{Today: 1, HeadCode: "8PMZ6TD9", Phones: 1, Large: large})
	}
}

func idleSaysWhatMatters(t *testing.T, base screen.Idle) {
	t.Helper()
	plain := screen.DrawIdle(base)
	for name, change := range map[string]func(*screen.Idle){
		"count":    func(i *screen.Idle) { i.Today++ },
		"code":     func(i *screen.Idle) { i.HeadCode = "7F3B" },
		"phones":   func(i *screen.Idle) { i.Phones++ },
		"unpaired": func(i *screen.Idle) { i.Phones = 0 },
		"frozen":   func(i *screen.Idle) { i.Frozen = true },
		"scripted": func(i *screen.Idle) { i.Scripted = true },
		"note":     func(i *screen.Idle) { i.Note = "disk full" },
		"large":    func(i *screen.Idle) { i.Large = !i.Large },
		"hint":     func(i *screen.Idle) { i.Phones, i.Note, i.Hint = 0, "disk full", "export it" },
	} {
		i := base
		change(&i)
		if screen.DrawIdle(i) == plain {
			t.Errorf("%s does not show (large: %v)", name, base.Large)
		}
	}
}

// TestLargeWaitingShowsAllInTurn: phone, title and destination, each twice as high, and each for as long as the others (W12).
func TestLargeWaitingShowsAllInTurn(t *testing.T) {
	w := screen.Waiting{Phone: "Kitchen", Title: "Web search", Destination: "wikipedia.org", Pages: 3, Large: true}
	seen := make(map[device.Frame]int)
	for s := range 60 {
		w.Left = time.Duration(s) * time.Second
		f := screen.DrawWaiting(w)
		clear(f[device.Width*7:])
		seen[f]++
	}
	if len(seen) != 3 {
		t.Errorf("%d pictures in turn, want 3", len(seen))
	}
	for _, n := range seen {
		if n != 20 {
			t.Errorf("one of three is shown in %d of 60 seconds", n)
		}
	}
}

func TestAdminIsInverseAndCutsNothing(t *testing.T) {
	for _, large := range []bool{false, true} {
		for _, text := range []string{"Anna's phone", strings.Repeat("a", 48), "three rows\u00a0with a box", strings.Repeat("more words ", 8) + "."} {
			pages, err := screen.AdminPages("Pair a phone", text, large)
			if err != nil {
				t.Fatalf("%q: %v", text, err)
			}
			n := 0
			for i, p := range pages {
				f := screen.DrawAdmin(p, "HOLD BOTH 3 S", time.Minute, 0)
				if ink(&f, 0, 0, device.Width, device.Height) < device.Width*device.Height/2 {
					t.Errorf("%q: page %d is not inverse", text, i+1)
				}
				n += p.CodePoints
			}
			if want := utf8.RuneCountInString("Pair a phone" + text); n != want {
				t.Errorf("%q: %d code points on its pages, want %d", text, n, want)
			}
		}
	}
	for name, c := range map[string]struct {
		title, text string
		large       bool
		pages       int
	}{
		"title in the header":   {"Pair a phone", strings.Repeat("a", 48), false, 1},
		"title takes a row":     {"Add: tool (review)", strings.Repeat("a", 16), false, 1},
		"title above two pages": {"Pair a phone", strings.Repeat("a", 49), false, 2},
		"large":                 {"Pair", "a phone", true, 2},
	} {
		if pages, err := screen.AdminPages(c.title, c.text, c.large); err != nil || len(pages) != c.pages {
			t.Errorf("%s: %d pages, %v; want %d", name, len(pages), err, c.pages)
		}
	}
	for name, args := range map[string][2]string{
		"text too long":       {"Pair a phone", strings.Repeat("a ", 1000)},
		"title cannot appear": {"Pair\u202e", "x"},
		"text cannot appear":  {"Pair", "x\u200b"},
	} {
		pages, err := screen.AdminPages(args[0], args[1], false)
		var u *screen.UndisplayableError
		if !errors.As(err, &u) || pages != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestPairingShowsTextAndQR(t *testing.T) {
	const address = "https://192.168.178.23:8443"
	text := screen.DrawPairing("482 913", address, 4*time.Second, false)
	qr := screen.DrawPairing("482 913", address, 9*time.Second, false)
	if difference(text, qr) < 1000 {
		t.Error("the QR code never shows")
	}
	if ink(&qr, 0, 0, 64, 5) != 64*5 {
		t.Error("the QR code has no quiet zone")
	}
	if a, b := screen.DrawPairing("482 914", address, 9*time.Second, false), qr; a == b {
		t.Error("the code is not beside the QR code")
	}
	// Half an address must not look like a whole one: up to three rows all of it shows, beyond that a mark ends it.
	before := make(map[device.Frame]int)
	for n := 1; n <= 60; n++ {
		f := screen.DrawPairing("482 913", "https://"+strings.Repeat("a", n-1)+"b", 4*time.Second, false)
		if other, ok := before[f]; ok && n <= 40 {
			t.Errorf("addresses of %d and %d letters look the same", n, other)
		}
		before[f] = n
		if n > 40 && ink(&f, 120, 40, 8, 16) < 40 {
			t.Errorf("an address of %d letters is cut without a mark", n)
		}
	}
	long := "https://" + strings.Repeat("a", 60)
	if a, b := screen.DrawPairing("1", long, 4*time.Second, false), screen.DrawPairing("1", long, 9*time.Second, false); difference(a, b) > 100 {
		t.Error("an address that is too long for a QR code is not shown as text")
	}
}

// TestUncheckedTextIsNeverDrawnAsSomethingElse gives the screens that approve nothing what Check refuses: they show it
// by number.
func TestUncheckedTextIsNeverDrawnAsSomethingElse(t *testing.T) {
	for _, bad := range []string{"\u202e", "\u200b", "\U0001f44d", "\U0010fffd", "ش", "\x00", "\xff"} {
		plain, with := screen.DrawNotice("DENIED", "ab"), screen.DrawNotice("DENIED", "a"+bad+"b")
		if plain == with {
			t.Errorf("%+q disappears from a notice", bad)
		}
		w := screen.Waiting{Phone: bad, Title: bad, Destination: bad, Pages: 100, Queue: 1000, Left: time.Hour}
		if screen.DrawWaiting(w) == screen.DrawWaiting(screen.Waiting{Pages: 100, Queue: 1000, Left: time.Hour}) {
			t.Errorf("%+q disappears from the announcement", bad)
		}
	}
}

func TestWaitingShortensWithAMark(t *testing.T) {
	long := screen.DrawWaiting(screen.Waiting{Phone: strings.Repeat("a", 17)})
	cut := screen.DrawWaiting(screen.Waiting{Phone: strings.Repeat("a", 15)})
	if long == cut || ink(&long, 120, 8, 8, 16) < 40 {
		t.Error("a name that is too long does not end in a mark")
	}
	huge := screen.Waiting{Phone: strings.Repeat("a ", 1<<20), Title: "x"}
	if screen.DrawWaiting(huge) == (device.Frame{}) {
		t.Error("nothing drawn")
	}
}

func TestNoticeBoundsItsLines(t *testing.T) {
	many := screen.DrawNotice("APPROVED", "a", "b", "c", "d", "e")
	if many == (device.Frame{}) || many == screen.DrawNotice("APPROVED") {
		t.Error("lines do not show")
	}
}

// TestBarsKeepTheirEdges: no letter of a header or of an inverse strip touches the row where its bar ends, or it would lose it.
func TestBarsKeepTheirEdges(t *testing.T) {
	const all = "ABCDEFGHIJKLMNOPQRSTUVWXYZ 0123456789/:+.,-!"
	for i := 0; i < len(all); i += 20 {
		title := all[i:min(i+20, len(all))]
		pages, err := screen.AdminPages(title, "x", false)
		if err != nil {
			t.Fatal(err)
		}
		f := screen.DrawAdmin(pages[0], "HOLD BOTH 3 S", 8*time.Minute+8*time.Second, 0)
		for _, y := range []int{0, 7} {
			if n := ink(&f, 0, y, device.Width, 1); n != 0 {
				t.Errorf("%q: %d pixels in row %d of the header", title, n, y)
			}
		}
		for _, y := range []int{56, 63} {
			if n := ink(&f, 0, y, device.Width, 1); n != device.Width {
				t.Errorf("row %d of the strip has %d dark pixels", y, device.Width-n)
			}
		}
		if ink(&f, 0, 1, device.Width, 1)+ink(&f, 0, 6, device.Width, 1) == 0 {
			t.Errorf("%q does not fill its bar", title)
		}
	}
}
