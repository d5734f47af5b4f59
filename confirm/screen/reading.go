package screen

import (
	"fmt"
	"time"

	"assent.home.arpa/device"
)

// stripTop is the first pixel row of the strip, RAM page 7.
const stripTop = device.Height - headerHeight

// DrawReading shows a page with the time left, a hint and, during a hold (0 < hold ≤ 1), a filling bar, all in the strip
// at the bottom; every other pixel is the page's. At the full bar it says done, what is to be done then. last says that this is the last page, armed that a hold would count.
func DrawReading(p Page, left time.Duration, last, armed bool, hold float64, done string) device.Frame {
	hint := "TAP: NEXT PAGE"
	switch {
	case last && armed:
		hint = "HOLD TO APPROVE"
	case last:
		hint = "READ, THEN HOLD"
	}
	f := p.Frame
	footer(&f, hint, left, hold)
	if hold >= 1 {
		barWords(&f, done)
	}
	return f
}

// footer draws the strip: a hint and the time left, or the bar during a hold.
func footer(f *device.Frame, hint string, left time.Duration, hold float64) {
	// Drawn apart and copied, so that nothing above the strip can change.
	var overlay device.Frame
	lit := func(x, y int) { overlay.Set(x, y, true) }
	if hold > 0 {
		bar(&overlay, hold)
	} else {
		time := clockFace(left)
		low(hint, 1, stripTop+1, lit)
		low(time, device.Width-1-smallSize(time), stripTop+1, lit)
	}
	copy(f[strip:], overlay[strip:])
}

// bar draws a frame across the strip, filled from the left; it is full only when the hold is complete.
func bar(f *device.Frame, part float64) {
	const inner = device.Width - 4
	filled := int(min(part, 1) * inner)
	for y := stripTop; y < device.Height; y++ {
		for x := range device.Width {
			edge := y == stripTop || y == device.Height-1 || x == 0 || x == device.Width-1
			inside := y > stripTop+1 && y < device.Height-2 && x >= 2 && x < 2+filled
			if edge || inside {
				f.Set(x, y, true)
			}
		}
	}
}

// barWords writes in the middle of a full bar, in a gap of it.
func barWords(f *device.Frame, words string) {
	const gap = 3
	width := smallSize(words)
	left := (device.Width - width) / 2
	for y := stripTop; y < device.Height; y++ {
		for x := left - gap; x < left+width+gap; x++ {
			f.Set(x, y, false)
		}
	}
	low(words, left, stripTop+1, func(x, y int) { f.Set(x, y, true) })
}

// clockFace is a span as minutes and seconds, rounded up, so that 0:00 means that nothing is left.
func clockFace(left time.Duration) string {
	left = min(max(left, 0), 99*time.Minute+59*time.Second)
	s := int((left + time.Second - 1) / time.Second)
	return fmt.Sprintf("%d:%02d", s/60, s%60)
}

// DrawWaiting announces the front request: who, what, where, how long, and that a tap opens it.
func DrawWaiting(w Waiting) device.Frame {
	var f device.Frame
	header(&f, "REQUEST, "+length(w.Pages), queueLength(w.Queue))
	rows := [][]cell{shortenName(w.Phone, columns), shorten(w.Title, columns)}
	if w.Destination != "" {
		rows = append(rows, shorten("→ "+w.Destination, columns))
	}
	if w.Large {
		tallRow(&f, rows[int(w.Left/largeTurn)%len(rows)], textTop)
		centred(&f, "Tap to read", textTop+2*line, 1, 1)
		footer(&f, "", w.Left, 0)
		return f
	}
	for i, row := range rows {
		drawRow(&f, row, 0, textTop+i*line, 1, 1)
	}
	footer(&f, "TAP TO READ", w.Left, 0)
	return f
}

// largeTurn is how long each thing stands on a large screen that shows several in turn.
const largeTurn = 2 * time.Second

// tall draws one row twice as high, and twice as wide where that fits.
func tall(f *device.Frame, text string, y int) { tallRow(f, shorten(text, columns), y) }

func tallRow(f *device.Frame, row []cell, y int) {
	wide := 1
	if columnsOf(row)*2 <= columns {
		wide = 2
	}
	drawRow(f, row, (device.Width-columnsOf(row)*column*wide)/2, y, wide, 2)
}

// length says how much there is to read, in at most eight characters.
func length(pages int) string {
	switch {
	case pages == 1:
		return "1 PAGE"
	case pages > 99:
		return "LONG"
	}
	return fmt.Sprintf("%d PAGES", pages)
}

// queueLength says how many requests wait behind this one, in at most three characters.
func queueLength(n int) string {
	if n <= 0 {
		return ""
	}
	return fmt.Sprintf("+%d", min(n, 99))
}

// DrawNext is the blank between two requests, in which every press is thrown away.
func DrawNext() device.Frame {
	var f device.Frame
	centred(&f, "NEXT", 0, 2, 2)
	centred(&f, "REQUEST", line*2, 2, 2)
	return f
}

// DrawStop covers whatever is on the panel while deny is held on its way to a panic, which the bar counts down to.
func DrawStop(held float64) device.Frame {
	f := DrawNotice("KEEP HOLDING", "STOPS EVERYTHING")
	bar(&f, held)
	return f
}

// centred draws one row of the product's words in the middle, each pixel sx×sy large.
func centred(f *device.Frame, text string, y, sx, sy int) {
	row := shorten(text, columns/sx)
	drawRow(f, row, (device.Width-columnsOf(row)*column*sx)/2, y, sx, sy)
}

// DrawNotice tells an outcome: the title twice as high, and twice as wide where it fits, then lines. A text that is longer
// than its row ends in a mark; nothing can be approved from a notice.
func DrawNotice(title string, lines ...string) device.Frame {
	var f device.Frame
	height := line * (2 + len(lines))
	y := max(0, (device.Height-height)/2)
	tall(&f, title, y)
	y += line * 2
	for _, text := range lines {
		if y+line > device.Height {
			break
		}
		centred(&f, text, y, 1, 1)
		y += line
	}
	return f
}
