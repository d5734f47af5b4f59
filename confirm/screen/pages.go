package screen

import (
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"

	"golang.org/x/net/idna"

	"assent.home.arpa/device"
)

// ErrEmpty says that a card shows nothing, so that nobody could know what it approves.
var ErrEmpty = errors.New("screen: card is empty; give it at least a title")

const (
	headerHeight = 8
	textTop      = headerHeight
	textRows     = 3
)

// The kinds of page, as the header names them.
const (
	labelCaution = "CAUTION"
	labelRequest = "ASKED BY"
	labelText    = "TEXT"
	labelDetails = "DETAILS"
	labelGoesTo  = "GOES TO"
)

// Pages draws a card: the taint banner, who asks for what, the literal text, the details, and last the destination, so
// that it is what the person sees while holding. Parts that are empty have no page. An error wraps *UndisplayableError
// and names the field, or is ErrEmpty.
func Pages(c Card) ([]Page, error) {
	for _, field := range []struct{ name, text string }{
		{"text", c.Text},
		{"destination", c.Destination},
		{"title", c.Title},
		{"note", c.Note},
		{"phone", c.Phone},
		{"taint", c.Taint},
	} {
		if err := Check(field.text); err != nil {
			return nil, fmt.Errorf("%s: %w", field.name, err)
		}
	}
	size := plainFace()
	if c.Large {
		size = largeFace()
	}
	var drawn []draft
	drawn = append(drawn, textDrafts(size, labelCaution, c.Taint)...)
	drawn = append(drawn, namedDrafts(size, labelRequest, c.Phone, c.Title)...)
	drawn = append(drawn, textDrafts(size, labelText, c.Text)...)
	drawn = append(drawn, textDrafts(size, labelDetails, c.Note)...)
	drawn = append(drawn, destinationDrafts(size, c.Destination)...)
	if len(drawn) == 0 {
		return nil, ErrEmpty
	}
	pages := make([]Page, len(drawn))
	for i, d := range drawn {
		number := fmt.Sprintf("%d/%d", i+1, len(drawn))
		if c.Taint != "" {
			number = "! " + number
		}
		header(&d.page.Frame, d.label, number)
		pages[i] = d.page
	}
	return pages, nil
}

// draft is a page before the count of pages is known.
type draft struct {
	label string
	page  Page
}

// textDrafts sets paragraphs, page by page.
func textDrafts(size face, label string, paragraphs ...string) []draft {
	f := flow{face: size, paged: true}
	for _, p := range paragraphs {
		f.paragraph(p)
	}
	return f.drafts(label)
}

// namedDrafts sets a name that somebody else chose, and the product's words about it.
func namedDrafts(size face, label, name, words string) []draft {
	f := flow{face: size, paged: true}
	f.foreign(name)
	f.paragraph(words)
	return f.drafts(label)
}

// drafts puts the rows on pages.
func (f *flow) drafts(label string) []draft {
	size := f.face
	var drafts []draft
	for i, row := range f.set() {
		if page := i / size.pageRows; page == len(drafts) {
			begins := latin
			if f.marksHeaders() && f.begins[page] != common {
				begins = f.begins[page]
			}
			drafts = append(drafts, draft{label: size.label(label, begins)})
		}
		p := &drafts[len(drafts)-1].page
		drawRow(&p.Frame, row, 0, size.top+i%size.pageRows*line*size.scale, size.scale, size.scale)
		p.CodePoints += codePoints(row)
	}
	return drafts
}

// destinationDrafts draws where the bytes go as large as it fits: twice as wide and high up to eight columns, twice as
// high up to sixteen, else in rows of the face. An internationalised name is shown in both forms, the A-label first; in a large
// face its second form has room only in rows.
func destinationDrafts(size face, destination string) []draft {
	if destination == "" {
		return nil
	}
	wire, local := labels(destination)
	set := func(size face) (f *flow, first int) {
		f = &flow{face: size, paged: true, lenient: true}
		f.paragraph(wire)
		first = len(f.rows)
		f.paragraph(local)
		return f, first
	}
	plain, first := set(plainFace())
	rows := plain.set()
	if first > 1 || len(rows) > 2 || len(rows) == 2 && size.scale > 1 {
		f, _ := set(size)
		return f.drafts(labelGoesTo)
	}
	d := draft{label: labelGoesTo}
	scale, width := 1, columnsOf(rows[0])*column
	if 2*width <= device.Width {
		scale = 2
	}
	top := textTop + line/2
	if len(rows) == 2 {
		top = textTop
		drawRow(&d.page.Frame, rows[1], (device.Width-columnsOf(rows[1])*column)/2, textTop+2*line, 1, 1)
	}
	drawRow(&d.page.Frame, rows[0], (device.Width-scale*width)/2, top, scale, 2)
	for _, row := range rows {
		d.page.CodePoints += codePoints(row)
	}
	return []draft{d}
}

// labels gives the two forms of a host name (RFC 5890): the A-label form that goes on the wire, with ASCII letters as
// capitals, and the U-label form if it differs. The U-label is drawn without refusing anything, since what it contains
// is decided by the A-label: what the panel lacks a glyph for is a box with its number.
func labels(host string) (wire, local string) {
	ascii, err := idna.Punycode.ToASCII(host)
	if err != nil {
		ascii = host // not a name of the DNS; shown as it is
	}
	ulabel, err := idna.Punycode.ToUnicode(ascii)
	if err == nil && ulabel != ascii {
		local = ulabel
	}
	return upper(ascii), local
}

// upper makes ASCII letters capitals, which are easier to tell apart than small ones, and leaves all others alone.
func upper(s string) string {
	return strings.Map(func(r rune) rune {
		if 'a' <= r && r <= 'z' {
			return r - 'a' + 'A'
		}
		return r
	}, s)
}

// header draws the inverse bar at the top: a label at the left, a word at the right.
func header(f *device.Frame, label, right string) {
	for x := range device.Width {
		f[x] = 0xFF // RAM page 0
	}
	dark := func(x, y int) { f.Set(x, y, false) }
	low(label, 2, 1, dark)
	low(right, device.Width-1-smallSize(right), 1, dark)
}

func drawRow(f *device.Frame, row []cell, x, y, sx, sy int) {
	for i := range row {
		row[i].draw(f, x, y, sx, sy)
		x += row[i].cols * column * sx
	}
}

func codePoints(row []cell) int {
	n := 0
	for _, c := range row {
		if c.r >= 0 {
			n++
		}
	}
	return n
}

// smallColumns is how many characters of the small face stand beside each other.
const smallColumns = (device.Width - 2) / smallPitch

// fitsSmall reports whether text can be drawn in the small face in n characters.
func fitsSmall(text string, n int) bool {
	if utf8.RuneCountInString(text) > n {
		return false
	}
	for _, r := range strings.ToUpper(text) {
		if _, ok := smallFace()[string(r)]; !ok && r != ' ' {
			return false
		}
	}
	return true
}
