package board_test

import (
	"bytes"
	"errors"
	"fmt"
	"testing"

	"periph.io/x/conn/v3/i2c/i2ctest"
	"pgregory.net/rapid"

	"assent.home.arpa/device"
	"assent.home.arpa/device/board"
	"assent.home.arpa/device/board/boardtest"
)

// controllers are the displays that the box may have.
var controllers = []struct {
	name string
	make func() *boardtest.OLED
}{
	{"ssd1306", boardtest.NewSSD1306},
	{"sh1106", boardtest.NewSH1106},
}

// picture is a frame in which no row, column or page looks like another.
func picture(seed byte) *device.Frame {
	var f device.Frame
	for i := range f {
		f[i] = byte(i*7) ^ byte(i/device.Width*31) ^ seed
	}
	return &f
}

func mustDraw(t *testing.T, d device.Display, f *device.Frame) {
	t.Helper()
	if err := d.Draw(f); err != nil {
		t.Fatal(err)
	}
}

func mustShow(t *testing.T, o *boardtest.OLED, want *device.Frame) {
	t.Helper()
	got, lit := o.Glass(false)
	if !lit {
		t.Fatal("the display is off")
	}
	if got != *want {
		t.Fatal("the glass shows something else")
	}
}

// TestFirstDraw is the conversation with each controller, byte by byte, in the order of its data sheet.
func TestFirstDraw(t *testing.T) {
	begin := map[string][]byte{
		"ssd1306": {
			0x00,       // commands follow
			0xae,       // display off
			0xe3,       // nothing
			0xd5, 0x80, // clock
			0xa8, 0x3f, // 64 rows
			0xd3, 0x00, // no offset
			0x40,       // start line 0
			0x8d, 0x14, // charge pump on
			0x20, 0x02, // page addressing
			0xda, 0x12, // COM pins
			0xd9, 0xf1, // precharge
			0xdb, 0x20, // deselect level
			0x2e, 0xa4, 0xa6, // no scrolling, show RAM, 1 is lit
			0xa1, 0xc8, // segments and scan: upright
			0x81, 0x7f, // contrast
		},
		"sh1106": {
			0x00,       // commands follow
			0xae,       // display off
			0xad, 0x8b, // converter on
			0xe3,       // nothing
			0xd5, 0x80, // clock
			0xa8, 0x3f, // 64 rows
			0xd3, 0x00, // no offset
			0x40,       // start line 0
			0x32,       // pump voltage
			0xda, 0x12, // COM pads
			0xd9, 0x22, // precharge
			0xdb, 0x35, // deselect level
			0xa4, 0xa6, // show RAM, 1 is lit
			0xa1, 0xc8, // segments and scan: upright
			0x81, 0x7f, // contrast
		},
	}
	low := map[string]byte{"ssd1306": 0x00, "sh1106": 0x02} // the first column that is wired to the glass
	f := picture(1)
	for name, commands := range begin {
		t.Run(name, func(t *testing.T) {
			ops := []i2ctest.IO{{Addr: 0x3c, W: commands}}
			for page := range 8 {
				ops = append(ops,
					i2ctest.IO{Addr: 0x3c, W: []byte{0x00, 0xb0 + byte(page), low[name], 0x10}},
					i2ctest.IO{Addr: 0x3c, W: append([]byte{0x40}, f[page*128:page*128+128]...)})
			}
			ops = append(ops,
				i2ctest.IO{Addr: 0x3c, R: []byte{0x43}}, // off
				i2ctest.IO{Addr: 0x3c, W: []byte{0x00, 0xaf}},
				i2ctest.IO{Addr: 0x3c, R: []byte{0x03}}, // on
				i2ctest.IO{Addr: 0x3c, R: []byte{0x03}}) // still on
			bus := &i2ctest.Playback{Ops: ops, DontPanic: true}
			if err := board.NewDisplay(bus, name, false, 0x7f).Draw(f); err != nil {
				t.Error(err)
			}
			if err := bus.Close(); err != nil {
				t.Error(err)
			}
		})
	}
}

// TestGlass lets each controller, either way up, show any sequence of pictures, with failures between them: whenever Draw
// says nil, the glass shows that picture, and no picture costs the bus more than a tenth over its 1,024 bytes.
func TestGlass(t *testing.T) {
	for _, c := range controllers {
		for _, rotate := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s rotated %v", c.name, rotate), func(t *testing.T) {
				rapid.Check(t, func(t *rapid.T) { checkGlass(t, c.name, c.make(), rotate) })
			})
		}
	}
}

func checkGlass(t *rapid.T, name string, part *boardtest.OLED, rotate bool) {
	d := board.NewDisplay(part, name, rotate, 0x7f)
	fresh := true
	f := *picture(0)
	for range rapid.IntRange(1, 8).Draw(t, "pictures") {
		for range rapid.IntRange(0, 20).Draw(t, "changes") {
			f[rapid.IntRange(0, len(f)-1).Draw(t, "at")] ^= rapid.Byte().Draw(t, "flip")
		}
		if rapid.IntRange(0, 9).Draw(t, "invert") == 0 {
			f.Invert()
		}
		part.Heal()
		if rapid.IntRange(0, 3).Draw(t, "fault") == 0 {
			part.FailAfter(rapid.IntRange(0, 30).Draw(t, "transactions"))
		}
		part.Traffic()
		show := d.Draw
		if rapid.Bool().Draw(t, "update") {
			show = d.Update
		}
		err := show(&f)
		cost, _ := part.Traffic()
		if err != nil {
			if !errors.Is(err, device.ErrBus) {
				t.Fatalf("error %v is not the bus's", err)
			}
			fresh = true
			continue
		}
		if got, lit := part.Glass(rotate); !lit || got != f {
			t.Fatalf("acknowledged, but the glass shows something else (lit: %v)", lit)
		}
		if !fresh && cost > 1024*11/10 {
			t.Fatalf("a picture cost %d bytes", cost)
		}
		fresh = false
	}
}

// TestUpdateCost pins what goes over the bus, addresses included: nothing but the changed columns, and close changes as one.
func TestUpdateCost(t *testing.T) {
	const status = 2 // address and status byte
	full := picture(1)
	flipped := *full
	flipped.Invert()
	near, far, pages, comb := *full, *full, *full, *full
	near[10], near[17] = ^near[10], ^near[17]
	far[10], far[19] = ^far[10], ^far[19]
	pages[127], pages[128] = ^pages[127], ^pages[128]
	for i := 0; i < len(comb); i += 2 {
		comb[i] = ^comb[i]
	}
	for _, tt := range []struct {
		name  string
		frame *device.Frame
		want  int
	}{
		{"same picture", full, status},
		{"every byte", &flipped, 8*(7+128) + status},
		{"every second column", &comb, 8*(7+127) + status},
		{"two near columns", &near, 7 + 8 + status},
		{"two far columns", &far, 2*(7+1) + status},
		{"neighbours in RAM on two pages", &pages, 2*(7+1) + status},
	} {
		for _, c := range controllers {
			t.Run(tt.name+" "+c.name, func(t *testing.T) {
				part := c.make()
				d := board.NewDisplay(part, c.name, false, 0x7f)
				mustDraw(t, d, full)
				part.Traffic()
				if err := d.Update(tt.frame); err != nil {
					t.Fatal(err)
				}
				if got, _ := part.Traffic(); got != tt.want {
					t.Errorf("%d bytes on the bus, want %d", got, tt.want)
				}
				mustShow(t, part, tt.frame)
			})
		}
	}
}

// TestBusFails cuts the bus at each transaction of a change in turn (W11): Draw must not claim the picture, and whatever comes
// next must come out whole, be it the picture from before the failure, of which the part may have lost some.
func TestBusFails(t *testing.T) {
	for _, c := range controllers {
		for _, cycled := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s supply lost %v", c.name, cycled), func(t *testing.T) {
				for cut := range 18 { // the state, two transactions a page, and the status
					part := c.make()
					d := board.NewDisplay(part, c.name, false, 0x7f)
					mustDraw(t, d, picture(1))
					part.FailAfter(cut)
					if err := d.Draw(picture(2)); !errors.Is(err, device.ErrBus) {
						t.Fatalf("cut at %d: error is %v", cut, err)
					}
					part.Heal()
					if cycled {
						part.PowerCycle()
					}
					mustDraw(t, d, picture(1))
					mustShow(t, part, picture(1))
				}
			})
		}
	}
}

// TestBusFailsAtFirst does the same to the first picture.
func TestBusFailsAtFirst(t *testing.T) {
	for _, c := range controllers {
		t.Run(c.name, func(t *testing.T) {
			part := c.make()
			mustDraw(t, board.NewDisplay(part, c.name, false, 0x7f), picture(1))
			_, transactions := part.Traffic()
			for cut := range transactions {
				part := c.make()
				d := board.NewDisplay(part, c.name, false, 0x7f)
				part.FailAfter(cut)
				err := d.Draw(picture(1))
				if err == nil && cut == transactions-2 { // the first status read while on: parts that refuse it are used without
					mustShow(t, part, picture(1))
					continue
				}
				if !errors.Is(err, device.ErrBus) {
					t.Fatalf("cut at %d of %d: error is %v", cut, transactions, err)
				}
				part.Heal()
				mustDraw(t, d, picture(1))
				mustShow(t, part, picture(1))
			}
		})
	}
}

// TestSupplyLost takes the supply away between two pictures: the part acknowledges all, and shows nothing.
func TestSupplyLost(t *testing.T) {
	for _, c := range controllers {
		t.Run(c.name, func(t *testing.T) {
			part := c.make()
			d := board.NewDisplay(part, c.name, false, 0x7f)
			mustDraw(t, d, picture(1))
			part.PowerCycle()
			if err := d.Draw(picture(1)); !errors.Is(err, device.ErrBus) {
				t.Fatalf("a dark display says %v", err)
			}
			mustDraw(t, d, picture(1))
			mustShow(t, part, picture(1))
		})
	}
}

// TestNoStatus draws on a part that refuses status reads.
func TestNoStatus(t *testing.T) {
	part := boardtest.NewSSD1306()
	part.Mute()
	d := board.NewDisplay(part, "ssd1306", false, 0x7f)
	for seed := range byte(3) {
		mustDraw(t, d, picture(seed))
		mustShow(t, part, picture(seed))
	}
}

// TestFirstPictureHidesNoise sees that nobody sees RAM as it is after power-on.
func TestFirstPictureHidesNoise(t *testing.T) {
	part := boardtest.NewSSD1306()
	d := board.NewDisplay(part, "ssd1306", false, 0x7f)
	part.FailAfter(10) // in the middle of the pages
	if err := d.Draw(picture(1)); err == nil {
		t.Fatal("no error")
	}
	if _, lit := part.Glass(false); lit {
		t.Error("the display was on before its picture was whole")
	}
}

func TestDim(t *testing.T) {
	part := boardtest.NewSH1106()
	d := board.NewDisplay(part, "sh1106", false, 160)
	mustDraw(t, d, picture(1))
	if part.Contrast() != 160 {
		t.Fatalf("contrast is %d", part.Contrast())
	}
	if err := d.Dim(true); err != nil || part.Contrast() != 10 {
		t.Fatalf("dim is %d, %v", part.Contrast(), err)
	}
	part.FailAfter(0)
	if err := d.Dim(false); !errors.Is(err, device.ErrBus) {
		t.Fatalf("dim on a dead bus says %v", err)
	}
	part.Heal()
	part.PowerCycle()
	mustDraw(t, d, picture(1))
	mustShow(t, part, picture(1))
	if part.Contrast() != 160 {
		t.Errorf("after the failure the display has contrast %d", part.Contrast())
	}
}

// TestErrorsNameTheDisplay sees that a person can tell what to look at.
func TestErrorsNameTheDisplay(t *testing.T) {
	part := boardtest.NewSSD1306()
	part.FailAfter(0)
	d := board.NewDisplay(part, "ssd1306", false, 0x7f)
	err := d.Draw(picture(1))
	if err == nil || !bytes.Contains([]byte(err.Error()), []byte("display at address 0x3c")) {
		t.Errorf("error is %q", err)
	}
	if !d.ReadsBack() {
		t.Error("I2C does not acknowledge")
	}
}
