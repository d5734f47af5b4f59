package screen_test

import (
	"bytes"
	"flag"
	"image"
	"image/png"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"assent.home.arpa/confirm/screen"
	"assent.home.arpa/confirm/screen/screentest"
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

func search() screen.Card { return screentest.Search() }

func TestGoldenScreens(t *testing.T) {
	screens, err := screentest.Gallery()
	if err != nil {
		t.Fatal(err)
	}
	names := make(map[string]bool)
	for _, s := range screens {
		if names[s.Name] {
			t.Errorf("two screens are named %s", s.Name)
		}
		names[s.Name] = true
		t.Run(s.Name, func(t *testing.T) { golden(t, s.Name, s.Frame) })
	}
	files, err := filepath.Glob(filepath.Join(goldens, "*.png"))
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		if !names[strings.TrimSuffix(filepath.Base(file), ".png")] {
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
