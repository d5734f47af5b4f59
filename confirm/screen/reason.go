package screen

import "fmt"

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
