package board_test

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"testing"

	"github.com/google/go-cmp/cmp"
	"periph.io/x/conn/v3/spi"

	"assent.home.arpa/appliance/config"
	"assent.home.arpa/device/board"
	"assent.home.arpa/device/board/boardtest"
)

// TestWiringSaysWhatTheDriverWants opens a Pi with the configurations that WIRING.md gives, and demands that the box's own is the first of them.
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
	const pi4 = "raspberrypi,4-model-b\x00brcm,bcm2711\x00"
	if diff := cmp.Diff(config.On(pi4).Panel, settings(0)); diff != "" {
		t.Errorf("the box's own (-), and what is written (+):\n%s", diff)
	}
	header := func() []*boardtest.Line {
		var lines []*boardtest.Line
		for pin := range 28 {
			lines = append(lines, &boardtest.Line{Name: fmt.Sprintf("GPIO%d", pin)})
		}
		return lines
	}
	t.Run("a display on I2C", func(t *testing.T) {
		k := boardtest.NewKernel(t)
		k.AddBus(1, headerBus)
		k.AddChip(0, headerPins, header()...)
		b, err := open(k, settings(0), boardtest.NewSSD1306())
		if err != nil {
			t.Fatal(err)
		}
		if err := b.Close(); err != nil {
			t.Error(err)
		}
	})
	t.Run("a display on SPI", func(t *testing.T) {
		k := boardtest.NewKernel(t)
		for cs, place := range []string{headerSPI + "/spi0.0/spidev", headerSPI + "/spi0.1/spidev"} {
			k.AddSPI(0, cs, place)
		}
		pins := header()
		k.AddChip(0, headerPins, pins...)
		bus := &boardtest.SPI{Display: boardtest.NewSSD1306(), Kernel: k, Data: pins[24], Reset: pins[25]}
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
