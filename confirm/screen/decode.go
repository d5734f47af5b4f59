package screen

import (
	"errors"
	"fmt"
	"strings"

	"assent.home.arpa/device"
)

// ErrNotText says that a page is not one of literal text.
var ErrNotText = errors.New("screen: not a page of literal text")

// Decode reads the literal text of one page back from its pixels, and nothing but the pixels. The texts of a card's
// TEXT pages, one after the other, are the card's text. It fails with ErrNotText on other pages, and on any picture that
// Pages does not draw.
func Decode(p Page) (string, error) {
	if !isText(&p.Frame) {
		return "", ErrNotText
	}
	return Read(p)
}

// Read reads the rows of any page that is set in plain rows back from its pixels, whatever its header says: who asks, the
// text, the details, and a destination that was too long to be drawn large.
func Read(p Page) (string, error) {
	run := latin // a plain page begins with Latin, tag or no tag
	if begins, large := isLarge(&p.Frame); large {
		small, ok := halve(&p.Frame, largeFace())
		if !ok {
			return "", errors.New("screen: a large page with pixels between its letters' own")
		}
		p.Frame, run = small, begins
	}
	var text strings.Builder
	for n := range textRows {
		y := textTop + n*line
		x, last := 0, noRune
		for ; x < device.Width && !dark(&p.Frame, x, y); x += column {
			s, r, ok := read(&p.Frame, run, x, y)
			if opened, tag := tables().opens[s]; tag {
				run = opened
			}
			if !ok {
				return "", fmt.Errorf("screen: row %d column %d: no such glyph", n, x/column)
			}
			if r != noRune {
				text.WriteRune(r)
			}
			if x += (s.cols - 1) * column; s != allMarks().close { // which ends a name, as a gap would
				last = r
			}
		}
		if x < device.Width && impliesSpace(last) && n+1 < textRows && !dark(&p.Frame, 0, y+line) {
			text.WriteByte(' ')
		}
	}
	return text.String(), nil
}

// isText compares the header with the one that text pages have.
func isText(f *device.Frame) bool { return hasLabel(f, labelText) }

// isLarge looks for the mark of large pages in the header, which says in which script the page begins.
func isLarge(f *device.Frame) (begins script, large bool) {
	for _, label := range []string{labelCaution, labelRequest, labelText, labelDetails, labelGoesTo} {
		for script, mark := range largeMarks() {
			if hasLabel(f, label+mark) {
				return script, true
			}
		}
	}
	return latin, false
}

// halve draws a large page as a plain one. It fails if a pixel is not part of a block as large as the face makes them, or is lit
// beside the rows.
func halve(f *device.Frame, size face) (device.Frame, bool) {
	var small device.Frame
	for y := headerHeight; y < stripTop; y++ {
		for x := range device.Width {
			lit := f.At(x, y)
			dx, dy := x/size.scale, (y-size.top)/size.scale
			switch {
			case y < size.top || dy >= size.pageRows*line:
				if lit {
					return small, false
				}
			case x%size.scale == 0 && (y-size.top)%size.scale == 0:
				small.Set(dx, textTop+dy, lit)
			case lit != small.At(dx, textTop+dy):
				return small, false
			}
		}
	}
	return small, true
}

func hasLabel(f *device.Frame, label string) bool {
	var want device.Frame
	header(&want, label, "")
	for x := range 2 + smallSize(label) {
		for y := range headerHeight {
			if f.At(x, y) != want.At(x, y) {
				return false
			}
		}
	}
	return true
}

// read finds the cell at a place in a run of a script. No cell is the beginning of another, so the first that matches is the
// only one.
func read(f *device.Frame, run script, x, y int) (shape, rune, bool) {
	for cols := 1; cols <= boxColumns(4) && x+cols*column <= device.Width; cols++ {
		s := grab(f, x, y, cols)
		if r, ok := tables().owner(run, s); ok && r != reserved {
			return s, r, true
		}
	}
	return shape{}, 0, false
}

// grab copies a cell from a frame. x and y lie on the grid of columns and RAM pages.
func grab(f *device.Frame, x, y, cols int) shape {
	s := shape{cols: cols}
	for dx := range cols * column {
		top := f[y/8*device.Width+x+dx]
		bottom := f[(y/8+1)*device.Width+x+dx]
		for dy := range 8 {
			s.rows[dy] |= uint64(top>>dy&1) << (63 - dx)
			s.rows[dy+8] |= uint64(bottom>>dy&1) << (63 - dx)
		}
	}
	return s
}

// dark reports whether the rest of a row is empty.
func dark(f *device.Frame, x, y int) bool {
	rest := device.Width - x
	for page := y / 8; page < (y+line)/8; page++ {
		for _, b := range f[page*device.Width+x:][:rest] {
			if b != 0 {
				return false
			}
		}
	}
	return true
}
