package font

// Range is a block of accepted code points, bounds included.
type Range struct {
	Lo, Hi rune
	Name   string
}

// Ranges lists what is accepted, in order of precedence: where two accepted code points have one bitmap, the earlier
// owns it and the later is drawn as a box with its number, unless both are letters of different scripts; so is what is nearly ASCII
// and rare. ASCII comes first, then what the languages of Europe write
// every day, then the rare letters. A code point listed twice counts where it is first.
//
// Only assigned letters, numbers, punctuation and symbols of these blocks have a glyph here; marks, spaces and controls
// among them do not. Box-drawing and block elements are left out on purpose: they could imitate the panel's own bars.
func Ranges() []Range {
	return []Range{
		{0x0021, 0x007E, "Basic Latin"},
		{0x00A1, 0x00FF, "Latin-1 Supplement"},
		{0x0100, 0x017F, "Latin Extended-A"},
		{0x018F, 0x018F, "schwa, capital"},
		{0x0259, 0x0259, "schwa"},
		{0x0218, 0x021B, "Romanian"},
		{0x1E9E, 0x1E9E, "sharp s, capital"},
		{0x1EA0, 0x1EF9, "Vietnamese"},
		{0x2013, 0x2014, "dashes"},
		{0x2018, 0x2027, "General Punctuation, quotes and dots"},
		{0x20A0, 0x20C0, "Currency Symbols"},
		{0x0370, 0x03E1, "Greek, without the Coptic letters"},
		{0x03F0, 0x03FF, "Greek, variants"},
		{0x0400, 0x045F, "Cyrillic"},
		{0x048A, 0x052F, "Cyrillic of other living languages, and Supplement"},
		{0x0460, 0x0482, "Cyrillic, historic"},
		{0x1F00, 0x1FFF, "Greek Extended"},
		{0x0180, 0x024F, "Latin Extended-B"},
		{0x0250, 0x02AF, "IPA Extensions"},
		{0x02BB, 0x02BC, "okina and modifier apostrophe"},
		{0x1E00, 0x1EFF, "Latin Extended Additional"},
		{0x2010, 0x205E, "General Punctuation"},
		{0x2070, 0x209C, "Superscripts and Subscripts"},
		{0x2100, 0x214F, "Letterlike Symbols"},
		{0x2150, 0x218B, "Number Forms"},
		{0x2190, 0x21FF, "Arrows"},
		{0x2200, 0x22FF, "Mathematical Operators"},
	}
}
