package screen

import (
	"fmt"
	"strings"

	"assent.home.arpa/device"
)

// The idle picture is smaller than the panel by the amount that it wanders, so that no pixel is lit for years.
const (
	idleWidth  = device.Width - column
	idleHeight = device.Height - column
)

// DrawIdle shows what the panel shows while nothing waits: the product's name, the audit's head code, the day's count,
// and how to pair the first phone, how to release a freeze, or a note.
func DrawIdle(i Idle) device.Frame {
	if i.Large {
		return drawIdleLarge(i)
	}
	var f device.Frame
	lit := func(x, y int) { f.Set(x, y, true) }
	state := "Assent"
	if i.Frozen {
		state = "FROZEN"
	}
	// The rows overlap where the glyphs of these words have no ink.
	drawRow(&f, shorten(state, columns), 0, -2, 1, 1)
	if i.Scripted {
		const warning = "SCRIPTED"
		small(warning, idleWidth-smallSize(warning), 3, lit)
	}
	head := "no log"
	if i.HeadCode != "" {
		head = "log " + i.HeadCode
	}
	drawRow(&f, shorten(head, idleWidth/column), 0, line-2, 1, 1)
	const small1, small2, small3 = 2*line - 1, 2*line + 8, 2*line + 16
	small(fmt.Sprintf("TODAY %d", i.Today), 0, small1, lit)
	phones := fmt.Sprintf("PHONES %d", i.Phones)
	small(phones, idleWidth-smallSize(phones), small1, lit)

	switch {
	case i.Frozen:
		small("HOLD BOTH BUTTONS", 0, small2, lit)
		small("3 S TO RELEASE", 0, small3, lit)
	case i.Hint != "" && FitsIdle(i.Note, i.Hint):
		small(i.Note, 0, small2, lit)
		small(i.Hint, 0, small3, lit)
	case i.Phones == 0:
		small("HOLD BOTH BUTTONS", 0, small2, lit)
		small("3 S TO PAIR", 0, small3, lit)
	default:
		drawRow(&f, shorten(i.Note, idleWidth/column), 0, small2-1, 1, 1)
	}
	return wander(f, i.Shift)
}

// FitsIdle reports whether a note and its hint can both be drawn on the idle screen. If not, the note alone is, cut to one row.
func FitsIdle(note, hint string) bool {
	const most = idleWidth / smallPitch
	return fitsSmall(note, most) && fitsSmall(hint, most)
}

// drawIdleLarge has room for what matters most: a note with what to do about it, or the state and the head code.
func drawIdleLarge(i Idle) device.Frame {
	const wide = idleWidth / column
	var f device.Frame
	lit := func(x, y int) { f.Set(x, y, true) }
	state, below := "Assent", "no log"
	if i.HeadCode != "" {
		below = "log " + i.HeadCode
	}
	switch {
	case i.Frozen:
		state, below = "FROZEN", "hold both 3 s"
	case i.Note == "" && i.Phones == 0:
		below = "hold both 3 s"
	}
	if i.Scripted {
		below = "scripted model"
	}
	if i.Note != "" && !i.Frozen && !i.Scripted {
		for n, row := range clipped(strings.TrimSpace(i.Note+" "+i.Hint), wide) {
			drawRow(&f, row, 0, n*line, 1, 1)
		}
	} else {
		row := shorten(state, wide/2)
		drawRow(&f, row, (idleWidth-columnsOf(row)*2*column)/2, 0, 2, 2)
		drawRow(&f, shorten(below, wide), 0, 2*line, 1, 1)
	}
	count := fmt.Sprintf("TODAY %d PHONES %d", min(i.Today, 9999), i.Phones)
	low(count, 0, idleHeight-lowHeight, lit)
	return wander(f, i.Shift)
}

// wander moves the picture along a zigzag through every offset up to one column and one RAM page.
func wander(f device.Frame, step int) device.Frame {
	const places = column + 1
	step = (step%(places*places) + places*places) % (places * places)
	dx, dy := step%places, step/places
	if dy%2 == 1 {
		dx = places - 1 - dx
	}
	var moved device.Frame
	for y := range idleHeight {
		for x := range idleWidth {
			if f.At(x, y) {
				moved.Set(x+dx, y+dy, true)
			}
		}
	}
	return moved
}
