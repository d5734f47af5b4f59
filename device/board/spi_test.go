package board_test

import (
	"errors"
	"strings"
	"testing"

	"periph.io/x/conn/v3/spi"

	"assent.home.arpa/appliance/config"
	"assent.home.arpa/device"
	"assent.home.arpa/device/board"
	"assent.home.arpa/device/board/boardtest"
)

// Where a Raspberry Pi 4 has its header's SPI, and another.
const (
	headerSPI = "platform/soc/fe204000.spi/spi_master/spi0"
	otherSPI  = "platform/soc/fe204800.spi/spi_master/spi4"
)

// spiMachine is a Pi whose display is on SPI.
func spiMachine(t *testing.T, display *boardtest.OLED) (*boardtest.Kernel, *boardtest.SPI, config.Panel) {
	k, p := machine(t)
	k.AddSPI(0, 1, headerSPI)
	bus := &boardtest.SPI{Display: display, Kernel: k, Data: &boardtest.Line{Name: "GPIO24"}, Reset: &boardtest.Line{Name: "GPIO25"}}
	k.AddChip(1, expander, bus.Data, bus.Reset)
	p.Data, p.Reset = "GPIO24", "GPIO25"
	return k, bus, p
}

func openSPI(k *boardtest.Kernel, bus *boardtest.SPI, p config.Panel) (*board.Board, error) {
	return board.OpenSPI(k.Root, k, func(n, cs int) (spi.PortCloser, error) {
		if n != 0 || cs != 1 {
			return nil, errors.New("the display is not on that bus")
		}
		bus.Display.Open()
		return bus, nil
	}, p)
}

func TestDisplayOnSPI(t *testing.T) {
	for _, c := range controllers {
		t.Run(c.name, func(t *testing.T) {
			display := c.make()
			k, bus, p := spiMachine(t, display)
			k.AddSPI(4, 0, otherSPI)
			p.Display, p.Bus = c.name, "fe204000.spi"
			b, err := openSPI(k, bus, p)
			if err != nil {
				t.Fatal(err)
			}
			if b.Display.ReadsBack() {
				t.Error("a bus without a way back says that it was acknowledged")
			}
			for seed := range byte(3) {
				mustDraw(t, b.Display, picture(seed))
				mustShow(t, display, picture(seed))
			}
			if err := b.Display.Dim(true); err != nil || display.Contrast() != byte(p.Contrast)/16 {
				t.Errorf("dimmed to %d, %v", display.Contrast(), err)
			}
			// Nobody can notice, which is why such a display arms by challenge.
			display.FailAfter(0)
			mustDraw(t, b.Display, picture(7))
			display.Heal()
			if err := b.Close(); err != nil {
				t.Error(err)
			}
			if _, lit := display.Glass(false); lit || !display.Closed() {
				t.Error("a closed board still shows a request, or has its bus")
			}
		})
	}
}

// TestSPIFails loses the data line: the next picture begins with everything afresh.
func TestSPIFails(t *testing.T) {
	display := boardtest.NewSSD1306()
	k, bus, p := spiMachine(t, display)
	b, err := openSPI(k, bus, p)
	if err != nil {
		t.Fatal(err)
	}
	mustDraw(t, b.Display, picture(1))
	k.LoseOutput(bus.Data)
	if err := b.Display.Draw(picture(2)); !errors.Is(err, device.ErrBus) {
		t.Errorf("draw says %v", err)
	}
	if !display.Closed() {
		t.Error("a bus that failed is kept open")
	}
	k.FindOutput(bus.Data)
	display.PowerCycle()
	mustDraw(t, b.Display, picture(2))
	mustShow(t, display, picture(2))
	if err := b.Close(); err != nil {
		t.Error(err)
	}
}

func TestSPIRefuses(t *testing.T) {
	for _, tt := range []struct {
		name   string
		change func(k *boardtest.Kernel, p *config.Panel)
		want   []string
	}{
		{"two buses", func(k *boardtest.Kernel, _ *config.Panel) { k.AddSPI(4, 0, otherSPI) }, []string{"2 spi buses", "set panel.bus", headerSPI, otherSPI}},
		{"no such bus", func(_ *boardtest.Kernel, p *config.Panel) { p.Bus = "fe204" }, []string{`no spi bus is at panel.bus "fe204"`, headerSPI}},
		{"a bus that does not open", func(k *boardtest.Kernel, p *config.Panel) {
			k.AddSPI(4, 0, otherSPI)
			p.Bus = "fe204800.spi"
		}, []string{"not on that bus"}},
		{"no data line", func(_ *boardtest.Kernel, p *config.Panel) { p.Data = "GPIO26" }, []string{`no gpio line is named "GPIO26"`, "panel.data"}},
		{"no reset line", func(_ *boardtest.Kernel, p *config.Panel) { p.Reset = "GPIO26" }, []string{`no gpio line is named "GPIO26"`, "panel.reset"}},
		{"one line for both", func(_ *boardtest.Kernel, p *config.Panel) { p.Reset = p.Data }, []string{"in use", "panel.reset"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			k, bus, p := spiMachine(t, boardtest.NewSSD1306())
			tt.change(k, &p)
			b, err := openSPI(k, bus, p)
			if err == nil {
				b.Close()
				t.Fatal("opened")
			}
			for _, want := range tt.want {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("error %q does not say %q", err, want)
				}
			}
		})
	}
	k, p := machine(t)
	p.Data = "GPIO24"
	if _, err := openSPI(k, &boardtest.SPI{}, p); err == nil || !strings.Contains(err.Error(), "dtparam=spi=on") {
		t.Errorf("a machine without spi says %v", err)
	}
}
