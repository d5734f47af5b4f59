package screen

import (
	"fmt"
	"sync"
	"unicode"

	"golang.org/x/text/unicode/bidi"
	"golang.org/x/text/unicode/norm"

	"assent.home.arpa/confirm/screen/font"
)

// Reason says why a code point cannot be shown. The zero value means that it can.
type Reason uint8

// The reasons. Do not renumber: the numbers are in the audit.
const (
	Displayable       Reason = 0
	InvalidUTF8       Reason = 1  // bytes that are no UTF-8 (RFC 3629), surrogates included
	NotNFC            Reason = 2  // the text is not in Unicode NFC
	Noncharacter      Reason = 3  // U+FDD0–FDEF and the last two of each plane
	BidiControl       Reason = 4  // marks, embeddings, overrides and isolates that reorder what is read
	Tag               Reason = 5  // U+E0000–E007F, invisible text
	VariationSelector Reason = 6  // changes the glyph before it
	ZeroWidth         Reason = 7  // joiners, fillers, soft hyphens and other format characters without ink
	Control           Reason = 8  // C0 and C1 other than line feed and tab
	PrivateUse        Reason = 9  // means what a font likes
	NeedsShaping      Reason = 10 // scripts whose letters join, stack, reorder or run from right to left
	CombiningMark     Reason = 11 // a mark with no precomposed form
	Emoji             Reason = 12 // pictographs, which a bitmap of this size cannot tell apart
	Unassigned        Reason = 13 // no character of the Unicode version that the program knows
	NoGlyph           Reason = 14 // assigned, but in no accepted range of the font
	TooLong           Reason = 15 // beyond MaxCodePoints, or more than the screen in question holds
)

func (r Reason) String() string {
	switch r {
	case Displayable:
		return "displayable"
	case InvalidUTF8:
		return "not valid utf-8"
	case NotNFC:
		return "not in unicode nfc; send the composed form"
	case Noncharacter:
		return "not a character"
	case BidiControl:
		return "changes the direction of the text around it"
	case Tag:
		return "invisible tag character"
	case VariationSelector:
		return "variation selector"
	case ZeroWidth:
		return "has no visible form"
	case Control:
		return "control character"
	case PrivateUse:
		return "private use, without a fixed meaning"
	case NeedsShaping:
		return "the panel cannot draw this script"
	case CombiningMark:
		return "combining mark without a composed form"
	case Emoji:
		return "emoji or pictograph"
	case Unassigned:
		return "unassigned code point"
	case NoGlyph:
		return "the panel has no glyph for it"
	case TooLong:
		return "too long to show"
	}
	return fmt.Sprintf("reason(%d)", uint8(r))
}

// rule is one line of the table: the first that matches a code point decides.
type rule struct {
	match  func(rune) bool
	reason Reason  // why it is refused, or Displayable
	draw   drawing // how it is shown if it is displayable
}

// drawing is the form in which a code point is shown.
type drawing uint8

const (
	asNewline drawing = iota + 1
	asTab
	asSpace // blank inside a row, a mark anywhere else
	asBox
	asGlyph // its own glyph, or a box where an earlier code point owns the bitmap
)

// rules is the table that decides for every code point.
//
//	U+000A, U+0009, U+0020      marks and the plain space
//	noncharacters … private use refused: invisible, deceptive or without a meaning
//	singletons                  refused: not in NFC, whatever stands around them
//	other spaces and separators a box with the number, so that U+00A0 never passes for a space
//	accepted ranges of the font the glyph, or a box if the bitmap has an owner already
//	everything else             refused, with the most helpful reason
func rules() []rule {
	return []rule{
		{only('\n'), Displayable, asNewline},
		{only('\t'), Displayable, asTab},
		{only(' '), Displayable, asSpace},
		{nonchar, Noncharacter, 0},
		{in(unicode.Bidi_Control), BidiControl, 0},
		{between(0xE0000, 0xE007F), Tag, 0},
		{in(unicode.Variation_Selector), VariationSelector, 0},
		{in(unicode.Cf, unicode.Other_Default_Ignorable_Code_Point), ZeroWidth, 0},
		{in(unicode.Cc), Control, 0},
		{in(unicode.Co), PrivateUse, 0},
		{singleton, NotNFC, 0},
		{in(unicode.Zs, unicode.Zl, unicode.Zp), Displayable, asBox},
		{hasGlyph, Displayable, asGlyph},
		{needsShaping, NeedsShaping, 0},
		{in(unicode.M), CombiningMark, 0},
		{emoji, Emoji, 0},
		{in(unicode.L, unicode.N, unicode.P, unicode.S), NoGlyph, 0},
		{func(rune) bool { return true }, Unassigned, 0},
	}
}

func only(want rune) func(rune) bool { return func(r rune) bool { return r == want } }

func between(lo, hi rune) func(rune) bool {
	return func(r rune) bool { return lo <= r && r <= hi }
}

func in(tables ...*unicode.RangeTable) func(rune) bool {
	return func(r rune) bool { return unicode.In(r, tables...) }
}

func nonchar(r rune) bool { return r&0xFFFE == 0xFFFE || 0xFDD0 <= r && r <= 0xFDEF }

// singleton covers what NFC replaces by another code point, such as U+212B ANGSTROM SIGN.
func singleton(r rune) bool { return !norm.NFC.IsNormalString(string(r)) }

func hasGlyph(r rune) bool {
	_, ok := font.Lookup(r)
	return ok
}

// needsShaping covers what runs from right to left (UAX #9) and the scripts of South and South-East Asia, Mongolian and
// Tibetan, whose glyphs depend on their neighbours.
func needsShaping(r rune) bool {
	switch p, _ := bidi.LookupRune(r); p.Class() {
	case bidi.R, bidi.AL, bidi.AN:
		return unicode.In(r, unicode.L, unicode.M, unicode.N, unicode.P, unicode.S)
	}
	return unicode.In(r,
		unicode.Devanagari, unicode.Bengali, unicode.Gurmukhi, unicode.Gujarati, unicode.Oriya, unicode.Tamil,
		unicode.Telugu, unicode.Kannada, unicode.Malayalam, unicode.Sinhala, unicode.Thai, unicode.Lao, unicode.Tibetan,
		unicode.Myanmar, unicode.Khmer, unicode.Mongolian, unicode.Tagalog, unicode.Hanunoo, unicode.Buhid,
		unicode.Tagbanwa, unicode.Limbu, unicode.Tai_Le, unicode.New_Tai_Lue, unicode.Tai_Tham, unicode.Tai_Viet,
		unicode.Buginese, unicode.Balinese, unicode.Sundanese, unicode.Batak, unicode.Lepcha, unicode.Javanese,
		unicode.Cham, unicode.Meetei_Mayek, unicode.Saurashtra, unicode.Kayah_Li, unicode.Rejang, unicode.Syloti_Nagri,
		unicode.Phags_Pa)
}

// emoji covers the blocks of pictographs: Miscellaneous Symbols and Dingbats, and plane 1 from Mahjong Tiles to Symbols
// and Pictographs Extended-A. It only chooses the reason; none of these has an accepted glyph.
func emoji(r rune) bool {
	return 0x2600 <= r && r <= 0x27BF || 0x1F000 <= r && r <= 0x1FAFF
}

// script is what a run of text is written in.
type script uint8

const (
	common script = iota // digits, punctuation, symbols: belongs to the run around it
	latin
	greek
	cyrillic
)

func scriptOf(r rune) script {
	switch {
	case unicode.Is(unicode.Latin, r):
		return latin
	case unicode.Is(unicode.Greek, r):
		return greek
	case unicode.Is(unicode.Cyrillic, r):
		return cyrillic
	}
	return common
}

// decision is what the table says about one code point.
type decision struct {
	reason Reason
	draw   drawing
	script script
}

func decide(r rune) decision {
	for _, rule := range tables().rules {
		if rule.match(r) {
			d := decision{rule.reason, rule.draw, scriptOf(r)}
			if d.draw == asGlyph && tables().boxed[r] {
				d.draw = asBox
			}
			return d
		}
	}
	panic("screen: internal error: no rule matches")
}

// atlas is the table together with who owns which bitmap.
type atlas struct {
	rules []rule
	// boxed holds the accepted code points whose bitmap belongs to another.
	boxed map[rune]bool
	// owners maps each cell that can be drawn back to its code point, noRune for script tags.
	owners map[shape]rune
	tags   map[script]shape
}

// What a cell shows when it shows no code point: a tag, or a mark that never stands in literal text.
const (
	noRune   rune = -1
	reserved rune = -2
)

var tables = sync.OnceValue(func() *atlas {
	a := &atlas{
		rules:  rules(),
		boxed:  make(map[rune]bool),
		owners: make(map[shape]rune),
		tags:   map[script]shape{latin: tag("LAT"), greek: tag("GRE"), cyrillic: tag("CYR")},
	}
	for _, s := range a.tags {
		a.owners[s] = noRune
	}
	m := allMarks()
	a.owners[shape{cols: 1}] = ' '
	a.owners[m.space] = ' '
	a.owners[m.newline] = '\n'
	a.owners[m.tab] = '\t'
	a.owners[m.join] = noRune
	a.owners[m.more] = reserved
	// Half-width glyphs first: a full-width one whose left half is a glyph too would be read as two.
	a.own(false)
	a.own(true)
	for r := rune(0x80); r <= 0x3000; r++ {
		if unicode.In(r, unicode.Zs, unicode.Zl, unicode.Zp) {
			a.owners[box(r)] = r
		}
	}
	return a
})

// own gives each bitmap of one width to the first code point of the ranges that has it.
func (a *atlas) own(wide bool) {
	for _, block := range font.Ranges() {
		for r := block.Lo; r <= block.Hi; r++ {
			g, ok := font.Lookup(r)
			if !ok || g.Wide != wide {
				continue
			}
			s := glyphShape(g)
			owner, taken := a.owners[s]
			if taken && owner == r {
				continue // listed twice
			}
			_, halfTaken := a.owners[s.left()]
			if taken || wide && halfTaken {
				a.boxed[r] = true
				s = box(r)
			}
			a.owners[s] = r
		}
	}
}

// left is the left half of a full-width cell.
func (s shape) left() shape {
	h := shape{cols: 1}
	for y, row := range s.rows {
		h.rows[y] = row &^ (^uint64(0) >> column)
	}
	return h
}

// mustGlyph is the glyph of a code point that the table has accepted.
func mustGlyph(r rune) font.Glyph {
	g, ok := font.Lookup(r)
	if !ok {
		panic("screen: internal error: accepted without a glyph")
	}
	return g
}
