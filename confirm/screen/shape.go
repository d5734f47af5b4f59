package screen

import (
	_ "embed"
	"strconv"
	"strings"
	"sync"

	"assent.home.arpa/confirm/screen/font"
	"assent.home.arpa/device"
)

const (
	column  = 8           // width of a half-width cell
	line    = font.Height // height of a row
	columns = device.Width / column
)

// shape is the bitmap of a cell. Bit 63 of each row is the leftmost pixel. It is comparable, so that a map can tell
// which code point owns it.
type shape struct {
	cols int
	rows [line]uint64
}

// at reports whether a pixel is lit.
func (s *shape) at(x, y int) bool { return s.rows[y]>>(63-x)&1 == 1 }

// set lights a pixel.
func (s *shape) set(x, y int) { s.rows[y] |= 1 << (63 - x) }

// draw puts the cell at (x, y), each pixel sx×sy large.
func (s *shape) draw(f *device.Frame, x, y, sx, sy int) {
	for py := range line * sy {
		if s.rows[py/sy] == 0 {
			continue
		}
		for px := range s.cols * column * sx {
			if s.at(px/sx, py/sy) {
				f.Set(x+px, y+py, true)
			}
		}
	}
}

// glyphShape is a glyph of the font as a cell.
func glyphShape(g font.Glyph) shape {
	s := shape{cols: 1}
	if g.Wide {
		s.cols = 2
	}
	for y, row := range g.Rows {
		s.rows[y] = uint64(row) << 48
	}
	return s
}

// art parses a drawing: a line of names, then h lines of pictures beside each other; blank lines between the blocks.
func art(text string, h int) map[string][]string {
	m := make(map[string][]string)
	for block := range strings.SplitSeq(strings.TrimSpace(text), "\n\n") {
		rows := strings.Split(block, "\n")
		for i, name := range strings.Fields(rows[0]) {
			for _, row := range rows[1 : h+1] {
				m[name] = append(m[name], strings.Fields(row)[i])
			}
		}
	}
	return m
}

const (
	smallWidth  = 5
	smallHeight = 7
	smallPitch  = smallWidth + 1
	lowHeight   = 6
)

//go:embed small.txt
var smallArt string

// smallFace is the 5×7 face of the product's own words. Literal text is never drawn in it.
var smallFace = sync.OnceValue(func() map[string][]string { return art(smallArt, smallHeight) })

//go:embed low.txt
var lowArt string

// lowFace is the small face with a row less, 5×6: in the bars of one RAM page it leaves a row above and below, without which
// letters in an inverse bar would run out into the dark beside it.
var lowFace = sync.OnceValue(func() map[string][]string { return art(lowArt, lowHeight) })

// small calls set for each lit pixel of a text in the small face, its top left corner at (x, y). The face has capitals,
// digits and a little punctuation; lower case is drawn as capitals. Anything else is a mistake in the program.
func small(text string, x, y int, set func(x, y int)) { letter(smallFace(), text, x, y, set) }

// low is small in the low face.
func low(text string, x, y int, set func(x, y int)) { letter(lowFace(), text, x, y, set) }

func letter(face map[string][]string, text string, x, y int, set func(x, y int)) {
	for i, r := range strings.ToUpper(text) {
		if r == ' ' {
			continue
		}
		glyph, ok := face[string(r)]
		if !ok {
			panic("screen: internal error: small face lacks " + strconv.QuoteRune(r))
		}
		for dy, row := range glyph {
			for dx, c := range row {
				if c == '#' {
					set(x+i*smallPitch+dx, y+dy)
				}
			}
		}
	}
}

// smallSize is the width in pixels of a text in the small face.
func smallSize(text string) int { return len(text) * smallPitch }

//go:embed marks.txt
var marksArt string

// marks are the cells that stand for what has no ink of its own.
type marks struct{ newline, tab, space, join, more, open, close shape }

var allMarks = sync.OnceValue(func() marks {
	pictures := art(marksArt, line)
	mark := func(name string) shape {
		s := shape{cols: 1}
		for y, row := range pictures[name] {
			for x, c := range row {
				if c == '#' {
					s.set(x, y)
				}
			}
		}
		return s
	}
	return marks{mark("newline"), mark("tab"), mark("space"), mark("join"), mark("more"), mark("open"), mark("close")}
})

// tag is the inverse cell that opens a run of another script.
func tag(name string) shape {
	s := shape{cols: (smallSize(name) + column) / column}
	small(name, (s.cols*column-smallSize(name)+1)/2, (line-smallHeight)/2, s.set)
	// A dark row above and below keeps it apart from the header and from other tags.
	for y := 1; y < line-1; y++ {
		s.rows[y] ^= ^uint64(0) << (64 - s.cols*column)
	}
	return s
}

// box is the cell that shows a code point by its number.
func box(r rune) shape {
	text := strings.ToUpper(strconv.FormatInt(int64(r), 16))
	text = "U+" + strings.Repeat("0", max(0, 4-len(text))) + text
	s := shape{cols: boxColumns(len(text) - len("U+"))}
	w := s.cols * column
	for x := range w {
		s.set(x, 0)
		s.set(x, line-1)
	}
	for y := range line {
		s.set(0, y)
		s.set(w-1, y)
	}
	small(text, boxInset, (line-smallHeight)/2, s.set)
	return s
}

// boxInset is where the number begins inside its box.
const boxInset = 2

// boxColumns is the width of a box with so many hexadecimal digits.
func boxColumns(digits int) int {
	return (boxInset + (len("U+")+digits)*smallPitch + column) / column
}
