package screen_test

import (
	"bytes"
	"flag"
	"fmt"
	"image"
	"image/png"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"assent.home.arpa/confirm/screen"
	"assent.home.arpa/device"
)

var update = flag.Bool("update", false, "rewrite the pictures in testdata/panel")

const goldens = "../../testdata/panel"

// goldenScale makes the pictures large enough to look at.
const goldenScale = 4

func mustPages(t *testing.T, c screen.Card) []screen.Page {
	t.Helper()
	pages, err := screen.Pages(c)
	if err != nil {
		t.Fatal(err)
	}
	return pages
}

// search is the everyday card.
func search() screen.Card {
	return screen.Card{
		Title:       "Search Wikipedia for",
		Text:        "opening hours of the town library in 1O0 Il1 rn m",
		Destination: "wikipedia.org",
		Note:        "GET, 0 bytes sent beyond the text",
		Phone:       "Kitchen",
	}
}

func TestGoldenScreens(t *testing.T) {
	frames := map[string]device.Frame{
		"idle":          screen.DrawIdle(screen.Idle{Today: 3, HeadCode: "7F3A-09C", Phones: 2, Note: "clock is unset"}),
		"idle-unknown":  screen.DrawIdle(screen.Idle{Today: 3, HeadCode: "7F3A-09C", Phones: 2, Note: "1 unknown outcome", Hint: "see it on a phone"}),
		"idle-full":     screen.DrawIdle(screen.Idle{Today: 3, HeadCode: "7F3A-09C", Phones: 2, Note: "the record is full:", Hint: "export it"}),
		"idle-damaged":  screen.DrawIdle(screen.Idle{Today: 3, Note: "record is damaged:", Hint: "hold both buttons 3s"}),
		"idle-unpaired": screen.DrawIdle(screen.Idle{HeadCode: "7F3A-09C", Shift: 40}),
		"idle-frozen":   screen.DrawIdle(screen.Idle{Today: 12, HeadCode: "7F3A-09C", Phones: 2, Frozen: true, Scripted: true, Shift: 80}),
		"waiting": screen.DrawWaiting(screen.Waiting{
			Phone: "Kitchen", Title: "Web search", Destination: "wikipedia.org", Pages: 3, Left: 161 * time.Second, Queue: 2,
		}),
		"waiting-long": screen.DrawWaiting(screen.Waiting{
			Phone: "The old phone in the cellar", Title: "Web search", Destination: "encyclopedia.example.org", Pages: 84, Left: 180 * time.Second,
		}),
		"next":          screen.DrawNext(),
		"pairing":       screen.DrawPairing("482 913", "https://192.168.178.23:8443", 9*time.Minute+41*time.Second),
		"pairing-qr":    screen.DrawPairing("482 913", "https://192.168.178.23:8443", 9*time.Minute+46*time.Second),
		"notice":        screen.DrawNotice("APPROVED", "Kitchen", "wikipedia.org"),
		"notice-denied": screen.DrawNotice("DENIED"),
		"notice-panic":  screen.DrawNotice("FROZEN", "all requests", "were dropped"),
		"notice-failed": screen.DrawNotice("DISK FULL", "nothing runs", "until it is not"),
	}
	add := func(name string, c screen.Card) {
		for i, p := range mustPages(t, c) {
			frames[fmt.Sprintf("%s-%d", name, i+1)] = p.Frame
		}
	}
	add("card", search())
	tainted := search()
	tainted.Taint = "written after reading evil.example"
	tainted.Text = "weather\n\n\tand  alarm code 4471 "
	tainted.Destination = "evil.example.co.uk"
	add("tainted", tainted)
	scripts := search()
	scripts.Text = "pаypal.com Привет Αθήνα\u00a0x"
	scripts.Destination = "bücher.example"
	add("scripts", scripts)
	short := search()
	short.Destination = "pi.hole"
	pages := mustPages(t, short)
	last := pages[len(pages)-1]
	frames["reading-next"] = screen.DrawReading(pages[0], 52*time.Second, false, false, 0)
	frames["reading-last"] = screen.DrawReading(last, 31*time.Second, true, false, 0)
	frames["reading-armed"] = screen.DrawReading(last, 30*time.Second, true, true, 0)
	frames["reading-hold"] = screen.DrawReading(last, 29*time.Second, true, true, 0.6)
	for name, args := range map[string]struct {
		title, text string
		hold        float64
	}{
		"admin":      {"Pair a phone", "Anna's phone as administrator", 0},
		"admin-hold": {"Release the freeze", "requests wait for a press again", 0.4},
		"admin-long": {"Add a tool (review)", "pi.hole", 0},
	} {
		f, err := screen.DrawAdmin(args.title, args.text, 55*time.Second, args.hold)
		if err != nil {
			t.Fatal(err)
		}
		frames[name] = f
	}

	for name, f := range frames {
		t.Run(name, func(t *testing.T) { golden(t, name, f) })
	}
	if *update {
		return
	}
	files, err := filepath.Glob(filepath.Join(goldens, "*.png"))
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		if _, ok := frames[strings.TrimSuffix(filepath.Base(file), ".png")]; !ok {
			t.Errorf("%s shows a screen that does not exist", file)
		}
	}
}

func golden(t *testing.T, name string, f device.Frame) {
	t.Helper()
	file := filepath.Join(goldens, name+".png")
	got := screen.Image(f, goldenScale)
	if *update {
		var buf bytes.Buffer
		if err := png.Encode(&buf, got); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, buf.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	want, err := png.Decode(bytes.NewReader(data))
	if err != nil {
		t.Fatal(err)
	}
	g, w := got.(*image.Paletted), want.(*image.Paletted)
	if g.Bounds() != w.Bounds() || !slices.Equal(g.Palette, w.Palette) || !bytes.Equal(g.Pix, w.Pix) {
		t.Fatal("differs from the golden picture; look at it, then run with -update")
	}
}
