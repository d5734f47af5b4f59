package board_test

import (
	"errors"
	"strings"
	"testing"

	"periph.io/x/conn/v3/i2c"

	"assent.home.arpa/appliance/config"
	"assent.home.arpa/device"
	"assent.home.arpa/device/board"
	"assent.home.arpa/device/board/boardtest"
)

// Where a Raspberry Pi 4 has its header's bus, a monitor's bus, and its pins.
const (
	headerBus  = "platform/soc/fe804000.i2c"
	monitorBus = "platform/soc/fef04500.i2c"
	headerPins = "platform/soc/fe200000.gpio"
	expander   = "platform/soc/fe804000.i2c/i2c-1/1-0020"
)

// machine is a Pi with a display and two buttons.
func machine(t *testing.T) (*boardtest.Kernel, config.Panel) {
	k := boardtest.NewKernel(t)
	k.AddBus(1, headerBus)
	k.AddChip(0, headerPins,
		&boardtest.Line{Name: "ID_SDA"}, &boardtest.Line{Name: "assent-deny"}, &boardtest.Line{}, &boardtest.Line{Name: "assent-approve"})
	p := config.Default().Panel
	return k, p
}

// open opens the board of that machine, with a display on bus 1.
func open(k *boardtest.Kernel, p config.Panel, display *boardtest.OLED) (*board.Board, error) {
	return board.OpenOn(k.Root, k, func(n int) (i2c.BusCloser, error) {
		if n != 1 {
			return nil, errors.New("the display is not on that bus")
		}
		display.Open()
		return display, nil
	}, p)
}

func mustOpen(t *testing.T, k *boardtest.Kernel, p config.Panel) (*board.Board, *boardtest.OLED) {
	t.Helper()
	display := boardtest.NewSSD1306()
	b, err := open(k, p, display)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { b.Close() })
	return b, display
}

func TestOpen(t *testing.T) {
	k, p := machine(t)
	b, display := mustOpen(t, k, p)
	f := picture(1)
	mustDraw(t, b.Display, f)
	mustShow(t, display, f)
	if display.Contrast() != byte(p.Contrast) {
		t.Errorf("contrast is %d, configured is %d", display.Contrast(), p.Contrast)
	}
	for _, button := range []device.Button{device.Approve, device.Deny} {
		if !b.Buttons.Has(button) {
			t.Errorf("no %v button", button)
		}
	}
	if err := b.Lamp.Show(device.Alarm); err != nil {
		t.Error(err)
	}
	if err := b.Close(); err != nil {
		t.Error(err)
	}
	if _, lit := display.Glass(false); lit {
		t.Error("a closed board still shows a request")
	}
	mustEnd(t, b.Buttons)
	if !display.Closed() {
		t.Error("a closed board still has its bus")
	}
}

// TestOpenWithoutDisplay lets the box start while its display is unplugged: everything that needs a press waits, nothing else.
func TestOpenWithoutDisplay(t *testing.T) {
	k, p := machine(t)
	display := boardtest.NewSSD1306()
	display.FailAfter(0)
	b, err := open(k, p, display)
	if err != nil {
		t.Fatal(err)
	}
	if err := b.Display.Draw(picture(1)); !errors.Is(err, device.ErrBus) {
		t.Errorf("draw says %v", err)
	}
	display.Heal()
	mustDraw(t, b.Display, picture(1))
	if err := b.Close(); err != nil {
		t.Error(err)
	}
}

// TestBusGoesAndComes is an adapter that is unplugged, and plugged in again: the kernel gives its bus another number, and can
// do so only after the old one was closed.
func TestBusGoesAndComes(t *testing.T) {
	k, p := machine(t)
	p.Bus = headerBus
	display := boardtest.NewSSD1306()
	number := 1
	b, err := board.OpenOn(k.Root, k, func(n int) (i2c.BusCloser, error) {
		if n != number {
			return nil, errors.New("no such bus")
		}
		display.Open()
		return display, nil
	}, p)
	if err != nil {
		t.Fatal(err)
	}
	mustDraw(t, b.Display, picture(1))

	display.FailAfter(0)
	if err := b.Display.Draw(picture(2)); !errors.Is(err, device.ErrBus) {
		t.Errorf("draw says %v", err)
	}
	if !display.Closed() {
		t.Error("a bus that failed is kept open")
	}
	k.RemoveBus(1, headerBus)
	for range 2 {
		if err := b.Display.Draw(picture(2)); !errors.Is(err, device.ErrBus) {
			t.Errorf("draw without a bus says %v", err)
		}
	}
	k.AddBus(7, headerBus)
	number = 7
	display.Heal()
	display.PowerCycle()
	mustDraw(t, b.Display, picture(2))
	mustShow(t, display, picture(2))

	if err := b.Close(); err != nil {
		t.Error(err)
	}
	display.Traffic()
	err = b.Display.Draw(picture(1))
	if sent, _ := display.Traffic(); !errors.Is(err, device.ErrBus) || sent != 0 {
		t.Errorf("draw on a closed board says %v, and sent %d bytes", err, sent)
	}
}

func TestOpenByPlace(t *testing.T) {
	k, p := machine(t)
	k.AddBus(20, monitorBus)
	k.AddChip(1, expander, &boardtest.Line{Name: "assent-approve"})
	p.Bus = "/sys/devices/" + headerBus
	p.Approve = "assent-approve@fe200000.gpio"
	b, _ := mustOpen(t, k, p)
	mustDraw(t, b.Display, picture(1))
}

// TestOpenRefuses names for each thing that is missing or ambiguous the words that a person needs to put it right.
func TestOpenRefuses(t *testing.T) {
	for _, tt := range []struct {
		name   string
		change func(k *boardtest.Kernel, p *config.Panel)
		want   []string
	}{
		{"unknown display", func(_ *boardtest.Kernel, p *config.Panel) { p.Display = "ssd1309" }, []string{"ssd1309", "ssd1306 or sh1106"}},
		{"contrast out of range", func(_ *boardtest.Kernel, p *config.Panel) { p.Contrast = 256 }, []string{"panel.contrast is 256"}},
		{"two buses", func(k *boardtest.Kernel, _ *config.Panel) { k.AddBus(20, monitorBus) }, []string{"2 i2c buses", "set panel.bus", headerBus, monitorBus}},
		{"no such bus", func(_ *boardtest.Kernel, p *config.Panel) { p.Bus = "1f00074000.i2c" }, []string{`no i2c bus is at panel.bus "1f00074000.i2c"`, headerBus}},
		{"half a path element", func(_ *boardtest.Kernel, p *config.Panel) { p.Bus = "fe804" }, []string{`no i2c bus is at panel.bus "fe804"`}},
		{"bus that does not open", func(k *boardtest.Kernel, p *config.Panel) {
			k.AddBus(20, monitorBus)
			p.Bus = "fef04500.i2c"
		}, []string{"not on that bus", "i2c-dev", "/dev/i2c-20"}},
		{"no line of that name", func(_ *boardtest.Kernel, p *config.Panel) { p.Deny = "GPIO27" }, []string{`no gpio line is named "GPIO27"`, "set panel.deny", "gpio-line-names"}},
		{"no line at that place", func(_ *boardtest.Kernel, p *config.Panel) { p.Approve = "assent-approve@1f000d0000.gpio" }, []string{`no gpio line "assent-approve" at "1f000d0000.gpio"`, "panel.approve"}},
		{"a second chip that claims the name", func(k *boardtest.Kernel, _ *config.Panel) {
			k.AddChip(1, "platform/gpio-sim.0", &boardtest.Line{Name: "assent-approve"})
		}, []string{`2 gpio lines are named "assent-approve"`, headerPins, "gpio-sim.0", "after an @"}},
		{"two lines of one chip with one name", func(k *boardtest.Kernel, p *config.Panel) {
			k.AddChip(1, expander, &boardtest.Line{Name: "twin"}, &boardtest.Line{Name: "twin"})
			p.Approve = "twin"
		}, []string{`2 gpio lines are named "twin"`}},
		{"line in use", func(k *boardtest.Kernel, p *config.Panel) {
			k.AddChip(1, expander, &boardtest.Line{Name: "taken", Used: true, Consumer: "gpio-keys"})
			p.Deny = "taken"
		}, []string{`gpio line "taken" is in use by "gpio-keys"`, "panel.deny"}},
		{"buttons on two chips", func(k *boardtest.Kernel, p *config.Panel) {
			k.AddChip(1, expander, &boardtest.Line{Name: "far"})
			p.Deny = "far"
		}, []string{"two gpio chips", headerPins, expander}},
		{"a lamp that is not there", func(_ *boardtest.Kernel, p *config.Panel) { p.Lamp = "assent-lamp" }, []string{`no gpio line is named "assent-lamp"`, "panel.lamp"}},
		{"a buzzer on a button's line", func(_ *boardtest.Kernel, p *config.Panel) { p.Buzzer = p.Deny }, []string{`gpio line "assent-deny" is in use`, "panel.buzzer"}},
		{"one line for both buttons", func(_ *boardtest.Kernel, p *config.Panel) { p.Deny = p.Approve }, []string{"one and the same line"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			k, p := machine(t)
			tt.change(k, &p)
			display := boardtest.NewSSD1306()
			b, err := open(k, p, display)
			if err == nil {
				b.Close()
				t.Fatal("opened")
			}
			for _, want := range tt.want {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("error %q does not say %q", err, want)
				}
			}
			if bytes, _ := display.Traffic(); bytes != 0 {
				t.Error("something was sent to a display that is not used")
			}
		})
	}
}

// TestOpenTellsEverything sees that somebody who puts a box together is not told of one missing part at a time.
func TestOpenTellsEverything(t *testing.T) {
	k := boardtest.NewKernel(t)
	_, err := open(k, config.Default().Panel, boardtest.NewSSD1306())
	if err == nil {
		t.Fatal("opened a machine without parts")
	}
	for _, want := range []string{"no i2c bus", "dtparam=i2c_arm=on", "no gpio chip", "use assentsim"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("error %q does not say %q", err, want)
		}
	}
}

// TestOpenHere opens the parts of whatever machine runs the test, which has none that are named like that.
func TestOpenHere(t *testing.T) {
	p := config.Default().Panel
	p.Bus, p.Approve, p.Deny = "no-such-bus", "no-such-approve", "no-such-deny"
	b, err := board.Open(p)
	if err == nil {
		b.Close()
		t.Fatal("opened parts that there are not")
	}
}
