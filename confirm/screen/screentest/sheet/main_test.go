package main

import (
	"bytes"
	"image/png"
	"os"
	"path/filepath"
	"testing"

	"assent.home.arpa/confirm/screen"
	"assent.home.arpa/confirm/screen/font"
	"assent.home.arpa/confirm/screen/screentest"
	"assent.home.arpa/device"
)

func TestSheetShowsEveryScreenPixelByPixel(t *testing.T) {
	file := filepath.Join(t.TempDir(), "panels.png")
	var errs bytes.Buffer
	if status := run([]string{"-scale", "1", file}, &errs); status != 0 {
		t.Fatalf("status %d: %s", status, &errs)
	}
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	m, err := png.Decode(bytes.NewReader(data))
	if err != nil {
		t.Fatal(err)
	}
	screens, err := screentest.Gallery()
	if err != nil {
		t.Fatal(err)
	}
	for i, s := range screens {
		want := screen.Image(s.Frame, 1)
		left, top := gap+i%across*(device.Width+gap), gap+i/across*(device.Height+font.Height+gap)
		for y := range device.Height {
			for x := range device.Width {
				r, g, b, _ := m.At(left+x, top+font.Height+y).RGBA()
				wr, wg, wb, _ := want.At(x, y).RGBA()
				if r != wr || g != wg || b != wb {
					t.Fatalf("%s differs at %d, %d", s.Name, x, y)
				}
			}
		}
	}
}

func TestSheetSaysWhatIsWrong(t *testing.T) {
	for name, tc := range map[string]struct {
		args   []string
		status int
	}{
		"no file":            {nil, 3},
		"a scale of nothing": {[]string{"-scale", "0", "x.png"}, 3},
		"no such directory":  {[]string{filepath.Join(t.TempDir(), "none", "x.png")}, 1},
	} {
		var errs bytes.Buffer
		if status := run(tc.args, &errs); status != tc.status || errs.Len() == 0 {
			t.Errorf("%s: status %d, %q", name, status, &errs)
		}
	}
}
