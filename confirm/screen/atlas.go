package screen

import (
	"sync"
	"unicode"

	"assent.home.arpa/confirm/screen/font"
)

// symbol is how an accepted code point is drawn, and the script of the run it belongs to.
type symbol struct {
	shape
	script script
}

// atlas is what the table decides, worked out once for every code point that can be shown.
type atlas struct {
	symbols map[rune]symbol
	// owners maps each cell that can be drawn back to its code point. No cell is the beginning of another, so a row of
	// cells can be read in one way only.
	owners map[shape]rune
	tags   map[script]shape
}

// What a cell shows when it shows no code point: a tag or a joint, or a mark that never stands in literal text.
const (
	noRune   rune = -1
	reserved rune = -2
)

// tables is built on first use: it takes a few milliseconds, and most programs never draw.
var tables = sync.OnceValue(func() *atlas {
	a := &atlas{
		symbols: make(map[rune]symbol),
		owners:  make(map[shape]rune),
		tags:    map[script]shape{latin: tag("LAT"), greek: tag("GRE"), cyrillic: tag("CYR")},
	}
	for _, s := range a.tags {
		a.owners[s] = noRune
	}
	m := allMarks()
	a.owners[m.join] = noRune
	a.owners[m.more] = reserved
	a.owners[m.space] = ' '
	a.add('\n', m.newline)
	a.add('\t', m.tab)
	a.add(' ', shape{cols: 1})
	// Half-width glyphs first: a full-width one whose left half is a glyph too would be read as two.
	for _, wide := range []bool{false, true} {
		for _, block := range font.Ranges() {
			for r := block.Lo; r <= block.Hi; r++ {
				if g, ok := font.Lookup(r); ok && g.Wide == wide {
					a.add(r, glyphShape(g))
				}
			}
		}
	}
	for r := rune(0x80); r <= 0x3000; r++ {
		if unicode.In(r, unicode.Zs, unicode.Zl, unicode.Zp) {
			a.add(r, box(r))
		}
	}
	return a
})

// add accepts a code point, if the table does and it is new, as the given cell, or as a box if the cell is taken.
func (a *atlas) add(r rune, s shape) {
	reason, boxed := classify(r)
	if _, known := a.symbols[r]; known || reason != Displayable {
		return
	}
	_, taken := a.owners[s]
	_, halfTaken := a.owners[s.left()]
	if boxed || taken || s.cols == 2 && halfTaken {
		s = box(r)
	}
	a.symbols[r] = symbol{s, scriptOf(r)}
	a.owners[s] = r
}

// left is the left half of a full-width cell.
func (s shape) left() shape {
	h := shape{cols: 1}
	for y, row := range s.rows {
		h.rows[y] = row &^ (^uint64(0) >> column)
	}
	return h
}

// decide says whether a code point can be shown, and why not.
func decide(r rune) Reason {
	if _, ok := tables().symbols[r]; ok {
		return Displayable
	}
	if reason, _ := classify(r); reason != Displayable {
		return reason
	}
	return NoGlyph
}
