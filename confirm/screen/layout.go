package screen

import (
	"slices"
	"unicode/utf8"
)

// cell is one drawn unit of a row.
type cell struct {
	shape
	r rune // the code point it shows, or noRune
}

// row is one line of cells.
type row struct {
	cells []cell
	last  bool // ends its paragraph
	name  bool // begins with the mark of a name
}

// first is where the text begins in a row.
func (r *row) first() int {
	if r.name {
		return 1
	}
	return 0
}

// face is how large text is set, and how much of it a page holds.
type face struct {
	pageRows, columns int
	scale             int // pixels for each of a glyph's
	top               int // of the first row, on the grid of RAM pages
}

// plainFace is three rows of sixteen columns.
func plainFace() face { return face{textRows, columns, 1, textTop} }

// largeFace is one row of eight columns, twice as wide and high, in the middle of the page.
func largeFace() face { return face{1, columns / 2, 2, textTop + line/2} }

// label is what the header calls a page of this face that begins in a script. The difference matters: without it, pixels could be
// read in two ways. A large page has no room for the tag of a script in every row, so its header has it.
func (f face) label(label string, begins script) string {
	if f.scale > 1 {
		return label + largeMarks()[begins]
	}
	return label
}

// largeMarks end the labels of large pages, by the script that they begin in.
func largeMarks() map[script]string {
	return map[script]string{latin: " X2", greek: " GRE", cyrillic: " CYR"}
}

// flow sets text in rows.
type flow struct {
	face
	rows   []row
	script script
	mixed  bool // the word at hand is of several scripts
	col    int
	// paged says that rows fill pages: a run of another script is tagged again at the top of each. On a large page the script that
	// it begins in is known from its header, so it has no tag.
	paged  bool
	begins []script // by page, of a paged flow in a large face: common where nothing on the page has a script
	// lenient draws what Check refuses as a box with its number. It is for screens that approve nothing.
	lenient bool
	name    bool // what is set is a name that somebody else chose
}

// foreign sets a name that somebody else chose, in rows of its own. Each begins with a mark that no text has, and so does none of
// the product's: whatever somebody calls a phone, nobody takes that for the box's own words. The mark at the end is left out where
// the row is full.
func (f *flow) foreign(name string) {
	if name == "" {
		return
	}
	f.name = true
	f.paragraph(name)
	f.name = false
	if end := allMarks().close; f.col+end.cols <= f.columns {
		f.add(cell{end, noRune})
	}
}

// paragraph sets text from the start of a new row.
func (f *flow) paragraph(text string) {
	if text == "" {
		return
	}
	if len(f.rows) == 0 {
		f.script = latin
	}
	f.newRow()
	runes := []rune(text)
	for i := 0; i < len(runes); {
		end := i + wordLen(runes[i:])
		f.mixed = mixed(runes[i:end])
		// Keep a word whole if a row can hold it at all, together with the mark of a space that would end the row.
		width := f.width(runes[i:end])
		need := width
		if end < len(runes) && runes[end] == ' ' && runes[i] != ' ' {
			need++
		}
		if f.col > f.indent() && f.col+need > f.columns && f.fits(runes[i:end], width) {
			f.newRow()
		}
		for _, r := range runes[i:end] {
			f.put(r)
		}
		i = end
	}
	f.rows[len(f.rows)-1].last = true
}

// wordLen is the length of the first unbreakable piece: one space, line feed or tab, or all up to the next of them.
func wordLen(runes []rune) int {
	for i, r := range runes {
		if r == ' ' || r == '\n' || r == '\t' {
			return max(i, 1)
		}
	}
	return len(runes)
}

// mixed reports whether a word is of several scripts.
func mixed(word []rune) bool {
	seen := common
	for _, r := range word {
		s := scriptOf(r)
		if s != common && seen != common && s != seen {
			return true
		}
		seen = max(s, seen)
	}
	return false
}

// width is how many columns a word takes from here, script tags included.
func (f *flow) width(word []rune) int { return f.widthIn(f.script, word) }

// fits reports whether a row can hold a word at all; width is what it takes from here.
func (f *flow) fits(word []rune, width int) bool {
	if f.marksHeaders() {
		width = f.widthIn(common, word)
	}
	return width <= f.columns-f.indent()
}

// indent is how much of each row the mark of a name takes.
func (f *flow) indent() int {
	if f.name {
		return allMarks().open.cols
	}
	return 0
}

func (f *flow) widthIn(run script, word []rune) int {
	cols := 0
	for _, r := range word {
		s := f.symbol(r)
		if s.script != common && s.script != run {
			if run != common {
				cols += tables().tags[s.script].cols
			}
			run = s.script
		}
		cols += s.cols
	}
	return cols
}

// marksHeaders reports whether the header says in which script a page begins.
func (f *flow) marksHeaders() bool { return f.paged && f.scale > 1 }

// put sets one code point, with a tag before it if its script is another than the run's.
func (f *flow) put(r rune) {
	s := f.symbol(r)
	if f.col+f.tagFor(s.script).cols+s.cols > f.columns {
		f.newRow() // may end the run, if it begins a page
	}
	if t := f.tagFor(s.script); t.cols > 0 {
		f.script = s.script
		f.add(cell{t, noRune})
	}
	if f.script == common {
		f.script, f.begins[len(f.begins)-1] = s.script, s.script
	}
	f.add(cell{s.shape, r})
}

// tagFor is the tag that a code point of this script needs before it: none, of no width, inside a run, or where its page begins
// with it.
func (f *flow) tagFor(script script) shape {
	if script == common || script == f.script || f.script == common {
		return shape{}
	}
	return tables().tags[script]
}

func (f *flow) add(c cell) {
	r := &f.rows[len(f.rows)-1]
	r.cells = append(r.cells, c)
	f.col += c.cols
}

func (f *flow) newRow() {
	if f.paged && len(f.rows)%f.pageRows == 0 {
		f.script = latin
		if f.marksHeaders() {
			f.script, f.begins = common, append(f.begins, common)
		}
	}
	f.rows = append(f.rows, row{name: f.name})
	f.col = 0
	if f.name {
		f.add(cell{allMarks().open, noRune})
	}
}

// symbol is how a code point is drawn here.
func (f *flow) symbol(r rune) symbol {
	s, ok := tables().symbols[r]
	switch {
	case ok && s.twin && f.mixed:
		return symbol{shape: box(r), script: s.script}
	case ok:
		return s
	case f.lenient:
		return symbol{shape: box(r)}
	}
	panic("screen: internal error: layout of unchecked text")
}

// set returns the rows with their spaces drawn. A single space is blank inside a row, and at the end of a row if the next
// row of the page goes on with the text. Anywhere else it would be invisible or uncountable, and gets a mark. A row that
// ends early although no space follows gets a mark too, so that none is read into it.
func (f *flow) set() [][]cell {
	set := make([][]cell, len(f.rows))
	for n := range f.rows {
		cells := slices.Clone(f.rows[n].cells)
		goesOn := !f.rows[n].last && (!f.paged || (n+1)%f.pageRows != 0)
		isSpace := func(i int) bool {
			switch {
			case i < f.rows[n].first() || i == len(cells) && !goesOn:
				return true
			case i == len(cells):
				next := &f.rows[n+1]
				return next.cells[next.first()].r == ' ' || !impliesSpace(cells[max(i-2, 0)].r)
			}
			return cells[i].r == ' '
		}
		for i := range cells {
			if cells[i].r == ' ' && (isSpace(i-1) || isSpace(i+1)) {
				cells[i].shape = allMarks().space
			}
		}
		if goesOn && columnsOf(cells) < f.columns && impliesSpace(cells[len(cells)-1].r) {
			cells = append(cells, cell{allMarks().join, noRune})
		}
		set[n] = cells
	}
	return set
}

// impliesSpace reports whether a dark rest of a row after this code point stands for one space. After line feeds, tabs
// and marked spaces a row may break without one.
func impliesSpace(r rune) bool { return r >= 0 && r != ' ' && r != '\n' && r != '\t' }

// columnsOf is the width of a row.
func columnsOf(row []cell) int {
	n := 0
	for _, c := range row {
		n += c.cols
	}
	return n
}

// shorten is a single row of the text for screens that approve nothing, ending in a mark if the text is longer.
func shorten(text string, width int) []cell { return shortened((*flow).paragraph, text, width) }

// shortenName is shorten for a name that somebody else chose.
func shortenName(name string, width int) []cell { return shortened((*flow).foreign, name, width) }

func shortened(set func(*flow, string), text string, width int) []cell {
	const plenty = 4 * columns
	if utf8.RuneCountInString(text) > plenty {
		text = string([]rune(text)[:plenty])
	}
	f := flow{face: plainFace(), lenient: true}
	set(&f, text)
	rows := f.set()
	if len(rows) == 0 {
		return nil
	}
	row := rows[0]
	if len(rows) == 1 && columnsOf(row) <= width {
		return row
	}
	for len(row) > 0 && (columnsOf(row) >= width || row[len(row)-1].r == ' ') {
		row = row[:len(row)-1]
	}
	return append(row, cell{allMarks().more, reserved})
}

// clipped sets a text in at most as many rows as a page has, for screens that approve nothing. One that is longer ends in a mark, as
// half an address would look like a whole one.
func clipped(text string, width int) [][]cell {
	f := flow{face: face{pageRows: textRows, columns: width, scale: 1}, lenient: true}
	f.paragraph(text)
	rows := f.set()
	if len(rows) <= textRows {
		return rows
	}
	last := rows[textRows-1]
	for columnsOf(last) >= width {
		last = last[:len(last)-1]
	}
	rows[textRows-1] = append(last, cell{allMarks().more, reserved})
	return rows[:textRows]
}
