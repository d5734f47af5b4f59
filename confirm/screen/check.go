package screen

import (
	"fmt"
	"strings"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
)

// MaxCodePoints bounds each field of a card. Capabilities have far lower bounds of their own; this one only keeps the
// work and the page count finite.
const MaxCodePoints = 8192

// UndisplayableError says which code point of a text cannot be shown faithfully, so that the text cannot be approved.
type UndisplayableError struct {
	// Offset is the byte offset of the code point in the text.
	Offset int
	// Rune is the code point, or U+FFFD for bytes that are not UTF-8.
	Rune rune
	// Reason says why.
	Reason Reason
}

// Error names the code point by number, never by drawing it: it may be one that deceives in a terminal too.
func (e *UndisplayableError) Error() string {
	return fmt.Sprintf("screen: cannot show %U at byte %d: %s", e.Rune, e.Offset, e.Reason)
}

// Code is the outcome's code in the audit and on the wire.
func (e *UndisplayableError) Code() string { return "undisplayable_text" }

// Check reports whether every code point of text can be shown faithfully: nil, or an *UndisplayableError for the first
// one that cannot.
func Check(text string) error {
	n, prev := 0, rune(-1)
	for i, r := range text {
		if n++; n > MaxCodePoints {
			return &UndisplayableError{i, r, TooLong}
		}
		reason := decide(r)
		if r == utf8.RuneError && !strings.HasPrefix(text[i:], string(utf8.RuneError)) {
			reason = InvalidUTF8
		}
		if reason == CombiningMark && composes(prev, r) {
			reason = NotNFC
		}
		if reason != Displayable {
			return &UndisplayableError{i, r, reason}
		}
		prev = r
	}
	// The rules above know nothing that would get here. Ask the whole text all the same: the press is bound to it.
	if !norm.NFC.IsNormalString(text) {
		i := norm.NFC.QuickSpanString(text)
		r, _ := utf8.DecodeRuneInString(text[i:])
		return &UndisplayableError{i, r, NotNFC}
	}
	return nil
}

// composes reports whether a base and a mark have a precomposed form, so that the text was merely not normalised.
func composes(base, mark rune) bool {
	return base >= 0 && utf8.RuneCountInString(norm.NFC.String(string([]rune{base, mark}))) == 1
}
