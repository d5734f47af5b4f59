package board_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"periph.io/x/conn/v3/spi"

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
	block := func(kind string, nth int) string {
		m := regexp.MustCompile("(?s)```"+kind+"\n(.*?)```").FindAllSubmatch(doc, -1)
		if len(m) <= nth {
			t.Fatalf("no %s %d", kind, nth)
		}
		return string(m[nth][1])
	}
	settings := func(nth int) config.Panel {
		file := filepath.Join(t.TempDir(), "assent.toml")
		if err := os.WriteFile(file, []byte(block("toml", nth)), 0o600); err != nil {
			t.Fatal(err)
		}
		c, err := config.Load(file)
		if err != nil {
			t.Fatal(err)
		}
		return c.Panel
	}
	_, names, _ := strings.Cut(block("dts", 0), "gpio-line-names =")
	var overlay, plain []*boardtest.Line
	for i, m := range regexp.MustCompile(`"([^"]*)"`).FindAllStringSubmatch(names, -1) {
		overlay = append(overlay, &boardtest.Line{Name: m[1]})
		given := m[1]
		if pin, ok := map[int]string{17: "GPIO17", 22: "GPIO22", 23: "GPIO23", 24: "GPIO24", 25: "GPIO25", 27: "GPIO27"}[i]; ok {
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
		"the names of the Pi": {plain, settings(0), nil},
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
		b, err := open(k, tc.panel, boardtest.NewSSD1306())
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if err := b.Close(); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	t.Run("a display on SPI", func(t *testing.T) {
		k := boardtest.NewKernel(t)
		for cs, place := range []string{headerSPI + "/spi0.0/spidev", headerSPI + "/spi0.1/spidev"} {
			k.AddSPI(0, cs, place)
		}
		for _, l := range plain {
			l.Used = false
		}
		k.AddChip(0, headerPins, plain...)
		bus := &boardtest.SPI{Display: boardtest.NewSSD1306(), Kernel: k, Data: plain[24], Reset: plain[25]}
		b, err := board.OpenSPI(k.Root, k, func(_, cs int) (spi.PortCloser, error) {
			if cs != 0 {
				t.Errorf("opened chip select %d", cs)
			}
			bus.Display.Open()
			return bus, nil
		}, settings(1))
		if err != nil {
			t.Fatal(err)
		}
		mustDraw(t, b.Display, picture(1))
		mustShow(t, bus.Display, picture(1))
		if err := b.Close(); err != nil {
			t.Error(err)
		}
	})
}
