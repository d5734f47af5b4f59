package screen

import (
	"math/bits"
	"unicode"
)

// everydayLetters are those beyond ASCII, in the scripts that the panel draws.
func everydayLetters() *unicode.RangeTable {
	return &unicode.RangeTable{R16: []unicode.Range16{
		{0x00C0, 0x00D6, 1}, // Latin-1 Supplement, without its signs
		{0x00D8, 0x00F6, 1},
		{0x00F8, 0x0137, 1}, // Latin Extended-A, without kra, n with an apostrophe and long s
		{0x0139, 0x0148, 1},
		{0x014A, 0x017E, 1},
		{0x018F, 0x018F, 1}, // schwa
		{0x01A0, 0x01A1, 1}, // horned o and u
		{0x01AF, 0x01B0, 1},
		{0x0218, 0x021B, 1}, // Romanian
		{0x0259, 0x0259, 1},
		{0x0386, 0x0386, 1}, // Greek
		{0x0388, 0x03CE, 1},
		{0x0400, 0x045F, 1}, // Cyrillic
		{0x0490, 0x0491, 1}, // Ukrainian
		{0x1E80, 0x1E85, 1}, // Welsh
		{0x1E9E, 0x1E9E, 1}, // capital sharp s
		{0x1EA0, 0x1EF9, 1}, // Vietnamese
	}}
}

// Everyday reports whether r is a letter of an alphabet that people write every day: of ASCII, or of the languages of Europe, of
// Turkey, Azerbaijan and Viet Nam. Everything else is rare enough that nobody knows it from its neighbours by sight.
func Everyday(r rune) bool {
	return unicode.IsLetter(r) && (r < unicode.MaxASCII || unicode.Is(everydayLetters(), r))
}

// familiar reports whether r is drawn although it is nearly a sign of ASCII: an everyday letter, or a sign that everyday Spanish,
// English and French have at every turn.
func familiar(r rune) bool { return Everyday(r) || r == '¡' || r == '’' }

// nearby is how many pixels make two cells different at a glance.
const nearby = 3

// nearASCII reports whether a cell of a run of this script is nearly one of ASCII that may stand in the same run.
func (a *atlas) nearASCII(own script, s shape) bool {
	for r := rune('!'); r < unicode.MaxASCII; r++ {
		plain, ok := a.symbols[r]
		if !ok || plain.cols != s.cols || own != plain.script && own != common && plain.script != common {
			continue
		}
		if apart(plain.shape, s) <= nearby {
			return true
		}
	}
	return false
}

// apart counts the pixels in which two cells differ.
func apart(s, t shape) int {
	n := 0
	for y := range line {
		n += bits.OnesCount64(s.rows[y] ^ t.rows[y])
	}
	return n
}
