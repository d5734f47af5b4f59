package board_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"assent.home.arpa/appliance/config"
	"assent.home.arpa/device/board"
	"assent.home.arpa/device/board/boardtest"
)

// TestWiringSaysWhatTheDriverWants opens a Pi with the configuration, and one with the overlay's names, that WIRING.md gives.
func TestWiringSaysWhatTheDriverWants(t *testing.T) {
	doc, err := os.ReadFile(filepath.Join("..", "WIRING.md"))
	if err != nil {
		t.Fatal(err)
	}
	block := func(kind string) string {
		m := regexp.MustCompile("(?s)```" + kind + "\n(.*?)```").FindSubmatch(doc)
		if m == nil {
			t.Fatalf("no %s", kind)
		}
		return string(m[1])
	}
	file := filepath.Join(t.TempDir(), "assent.toml")
	if err := os.WriteFile(file, []byte(block("toml")), 0o600); err != nil {
		t.Fatal(err)
	}
	c, err := config.Load(file)
	if err != nil {
		t.Fatal(err)
	}
	_, names, _ := strings.Cut(block("dts"), "gpio-line-names =")
	var overlay, plain []*boardtest.Line
	for i, m := range regexp.MustCompile(`"([^"]*)"`).FindAllStringSubmatch(names, -1) {
		overlay = append(overlay, &boardtest.Line{Name: m[1]})
		given := m[1]
		if pin, ok := map[int]string{17: "GPIO17", 22: "GPIO22", 23: "GPIO23", 27: "GPIO27"}[i]; ok {
			given = pin
		}
		plain = append(plain, &boardtest.Line{Name: given})
	}
	withLamp := config.Default().Panel
	withLamp.Lamp, withLamp.Buzzer = "assent-lamp", "assent-buzzer"
	for name, tc := range map[string]struct {
		lines []*boardtest.Line
		panel config.Panel
		pins  map[int]string
	}{
		"the names of the Pi": {plain, c.Panel, nil},
		"the overlay":         {overlay, withLamp, map[int]string{17: withLamp.Approve, 27: withLamp.Deny, 22: withLamp.Lamp, 23: withLamp.Buzzer}},
	} {
		if len(tc.lines) != 28 {
			t.Fatalf("%s: %d lines, the header has 28", name, len(tc.lines))
		}
		for pin, want := range tc.pins {
			if got := tc.lines[pin].Name; got != want {
				t.Errorf("%s: GPIO%d is %q, want %q", name, pin, got, want)
			}
		}
		k := boardtest.NewKernel(t)
		k.AddBus(1, headerBus)
		k.AddChip(0, headerPins, tc.lines...)
		var b *board.Board
		if b, err = open(k, tc.panel, boardtest.NewSSD1306()); err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if err := b.Close(); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}
