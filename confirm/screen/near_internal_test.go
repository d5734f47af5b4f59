package screen

import (
	"testing"
	"unicode"
)

// TestNothingRareIsNearlyASCII goes through all that is drawn plain in a run of ASCII: what is three pixels or fewer from a sign
// of it is a letter of an everyday alphabet, or one of two signs.
func TestNothingRareIsNearlyASCII(t *testing.T) {
	a, familiarOnes := tables(), 0
	for r, s := range a.symbols {
		for plain := rune('!'); plain <= '~'; plain++ {
			p := a.symbols[plain]
			if r <= unicode.MaxASCII || s.cols != p.cols || s.script != p.script && s.script != common && p.script != common || apart(s.shape, p.shape) > 3 {
				continue
			}
			familiarOnes++
			if !unicode.IsLetter(r) && r != '¡' && r != '’' {
				t.Errorf("the sign %U is nearly %q, and drawn", r, plain)
			}
			if in := unicode.In(r, unicode.Latin, unicode.Greek, unicode.Cyrillic); unicode.IsLetter(r) && (!in || r > 0x17E && r < 0x300 && r != 0x218 && r != 0x219 && r != 0x21A && r != 0x21B || r >= 0x1E00 && r < 0x1E80) {
				t.Errorf("the rare letter %U is nearly %q, and drawn", r, plain)
			}
		}
	}
	if familiarOnes < 40 {
		t.Errorf("only %d are near; this test is in vain", familiarOnes)
	}
	for _, r := range "ṅʟƞ⁅⁏ⅼ⋖–ɛȷɼ" {
		if s := a.symbols[r]; s.shape != box(r) {
			t.Errorf("%U is no box", r)
		}
	}
	for _, r := range "éßøłđħŋıİąęėżșțðþẁỳạẹịọụỵ¡’" {
		if s := a.symbols[r]; s.cols != 1 {
			t.Errorf("%U is not drawn", r)
		}
	}
}
