package screen

import (
	"slices"
	"sync"
	"unicode"

	"golang.org/x/text/unicode/bidi"
	"golang.org/x/text/unicode/norm"

	"assent.home.arpa/confirm/screen/font"
)

// rule is one line of the table: the first that matches a code point decides.
type rule struct {
	match  func(rune) bool
	reason Reason // why it is refused, or Displayable
	boxed  bool   // shown by its number, whatever the font has
}

// rules is the table that decides for every code point.
//
//	U+000A, U+0009, U+0020      marks; the space is blank where that is plain to see
//	noncharacters … private use refused: invisible, deceptive or without a meaning
//	singletons                  refused: not in NFC, whatever stands around them
//	other spaces and separators a box with the number, so that U+00A0 never passes for a space
//	accepted ranges of the font the glyph, or a box if the bitmap has an owner already, or is within three pixels of
//	                            ASCII's and belongs to no everyday alphabet
//	everything else             refused, with the most helpful reason
var rules = sync.OnceValue(func() []rule {
	return []rule{
		{oneOf('\n', '\t', ' '), Displayable, false},
		{nonchar, Noncharacter, false},
		{in(unicode.Bidi_Control), BidiControl, false},
		{between(0xE0000, 0xE007F), Tag, false},
		{in(unicode.Variation_Selector), VariationSelector, false},
		{in(unicode.Cf, unicode.Other_Default_Ignorable_Code_Point), ZeroWidth, false},
		{in(unicode.Cc), Control, false},
		{in(unicode.Co), PrivateUse, false},
		{singleton, NotNFC, false},
		{in(unicode.Zs, unicode.Zl, unicode.Zp), Displayable, true},
		{hasGlyph, Displayable, false},
		{needsShaping, NeedsShaping, false},
		{in(unicode.M), CombiningMark, false},
		{emoji, Emoji, false},
		{in(unicode.L, unicode.N, unicode.P, unicode.S), NoGlyph, false},
		{func(rune) bool { return true }, Unassigned, false},
	}
})

func oneOf(runes ...rune) func(rune) bool {
	return func(r rune) bool { return slices.Contains(runes, r) }
}

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

// classify asks the table.
func classify(r rune) (reason Reason, boxed bool) {
	for _, rule := range rules() {
		if rule.match(r) {
			return rule.reason, rule.boxed
		}
	}
	panic("screen: internal error: no rule matches")
}
