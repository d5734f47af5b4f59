package board_test

import (
	"testing"

	"pgregory.net/rapid"

	"assent.home.arpa/device/board"
	"assent.home.arpa/device/board/boardtest"
)

// TestDrawCost pins what a new picture costs, whatever was there before: all of it, and less than a tenth more.
func TestDrawCost(t *testing.T) {
	const state, page, status = 2 + 25, 7 + 128, 2
	for name, want := range map[string]int{"ssd1306": state + 8*page + status, "sh1106": state - 4 + 8*page + status} {
		for _, c := range controllers {
			if c.name != name {
				continue
			}
			part := c.make()
			d := board.NewDisplay(part, name, false, 0x7f)
			mustDraw(t, d, picture(1))
			for _, seed := range []byte{1, 2} { // the same picture, and another
				part.Traffic()
				mustDraw(t, d, picture(seed))
				if got, _ := part.Traffic(); got != want || got > 1024*11/10 {
					t.Errorf("%s: a new picture cost %d bytes, want %d", name, got, want)
				}
			}
		}
	}
}

// TestNoiseEndsWithTheNextPicture turns bits on the bus, in addresses, commands and data, while pictures are drawn and updated:
// all of it is acknowledged, and once it is quiet the next Draw leaves nothing of it on the glass.
func TestNoiseEndsWithTheNextPicture(t *testing.T) {
	for _, c := range controllers {
		for _, mute := range []bool{false, true} {
			t.Run(c.name, func(t *testing.T) {
				rapid.Check(t, func(t *rapid.T) {
					part := c.make()
					if mute {
						part.Mute()
					}
					checkNoise(t, part, c.name)
				})
			})
		}
	}
}

func checkNoise(t *rapid.T, part *boardtest.OLED, name string) {
	d := board.NewDisplay(part, name, false, 0x7f)
	if err := d.Draw(picture(0)); err != nil {
		t.Fatal(err)
	}
	show := d.Update
	if rapid.Bool().Draw(t, "whole") {
		show = d.Draw
	}
	write, hit := 0, rapid.IntRange(0, 17).Draw(t, "write")
	at, bit := rapid.IntRange(0, 140).Draw(t, "byte"), rapid.IntRange(0, 7).Draw(t, "bit")
	part.Noise(func(w []byte) {
		if write++; write == hit+1 {
			w[1+at%(len(w)-1)] ^= 1 << bit
		}
	})
	for seed := range byte(2) { // an error is fine: that bit darkened the display
		_ = show(picture(seed + 1))
	}
	part.Noise(nil)
	if err := d.Draw(picture(3)); err != nil {
		if err = d.Draw(picture(3)); err != nil {
			t.Fatal(err)
		}
	}
	if got, lit := part.Glass(false); !lit || got != *picture(3) {
		t.Fatalf("acknowledged, but the glass shows something else (lit: %v)", lit)
	}
}

// TestNoiseStaysThroughUpdates is why a page of a card is never an update: the part acknowledges what it has wrong.
func TestNoiseStaysThroughUpdates(t *testing.T) {
	part := boardtest.NewSSD1306()
	d := board.NewDisplay(part, "ssd1306", false, 0x7f)
	mustDraw(t, d, picture(1))
	part.Noise(func(w []byte) { w[len(w)-1] ^= 1 })
	if err := d.Update(picture(2)); err != nil {
		t.Fatal(err)
	}
	part.Noise(nil)
	if err := d.Update(picture(2)); err != nil {
		t.Fatal(err)
	}
	if got, _ := part.Glass(false); got == *picture(2) {
		t.Fatal("an update sends more than what changed; this test is in vain")
	}
	mustDraw(t, d, picture(2))
	mustShow(t, part, picture(2))
}
