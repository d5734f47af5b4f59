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
	// twin says that an earlier code point of another script has the same glyph. Such a glyph is drawn where the whole word is of its
	// own script, with the script's tag before it; in a word of several scripts, the usual deception, it is a box.
	twin bool
}

// atlas is what the table decides, worked out once for every code point that can be shown.
type atlas struct {
	symbols map[rune]symbol
	// owners maps each cell that can be drawn in a run of a script back to its code point; those under common are drawn in
	// every run. In one run no cell is the beginning of another, so a row of cells can be read in one way only.
	owners map[script]map[shape]rune
	tags   map[script]shape
	opens  map[shape]script // what a tag says
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
		owners:  map[script]map[shape]rune{common: {}, latin: {}, greek: {}, cyrillic: {}},
		tags:    map[script]shape{latin: tag("LAT"), greek: tag("GRE"), cyrillic: tag("CYR")},
		opens:   make(map[shape]script),
	}
	always := a.owners[common]
	for script, s := range a.tags {
		always[s] = noRune
		a.opens[s] = script
	}
	m := allMarks()
	always[m.join], always[m.open], always[m.close] = noRune, noRune, noRune
	always[m.more] = reserved
	always[m.space] = ' '
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

// add accepts a code point, if the table does and it is new, as the given cell, or as a box if the cell means something else
// already in a run of its script, or nearly does and is not familiar.
func (a *atlas) add(r rune, s shape) {
	reason, boxed := classify(r)
	if _, known := a.symbols[r]; known || reason != Displayable {
		return
	}
	own, twin := scriptOf(r), false
	if r > unicode.MaxASCII && !familiar(r) && a.nearASCII(own, s) {
		boxed = true
	}
	for script := range a.owners {
		switch {
		case !a.taken(script, s):
		case script == own || script == common || own == common:
			boxed = true
		default:
			twin = true
		}
	}
	if boxed {
		s, twin = box(r), false
		a.owners[common][s] = r
	} else {
		a.owners[own][s] = r
	}
	if twin {
		a.owners[common][box(r)] = r
	}
	a.symbols[r] = symbol{s, own, twin}
}

// taken reports whether a cell, or the left half of a full-width one, has an owner among those of a script.
func (a *atlas) taken(script script, s shape) bool {
	_, whole := a.owners[script][s]
	_, half := a.owners[script][s.left()]
	return whole || s.cols == 2 && half
}

// owner is the code point that a cell shows in a run of a script.
func (a *atlas) owner(script script, s shape) (rune, bool) {
	if r, ok := a.owners[common][s]; ok {
		return r, true
	}
	r, ok := a.owners[script][s]
	return r, ok
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
