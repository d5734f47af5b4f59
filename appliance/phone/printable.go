package phone

import (
	"strconv"
	"strings"
	"unicode"
)

// Printable makes text that a box, a model or the web wrote safe for a terminal: what would move the cursor, colour, copy,
// reorder or hide is written as an escape sequence in the way of Go's string literals. Line feeds stay where lines are wanted.
func Printable(s string, lines bool) string {
	var b strings.Builder
	for _, r := range s {
		if visible(r) || r == '\n' && lines {
			b.WriteRune(r)
			continue
		}
		q := strconv.QuoteRuneToASCII(r)
		b.WriteString(q[1 : len(q)-1])
	}
	return b.String()
}

// visible reports whether a character shows itself. unicode.IsPrint leaves out the controls (Cc) and the format characters (Cf:
// bidi, zero-width, tags), but lets through letters and marks that are drawn as nothing.
func visible(r rune) bool {
	return unicode.IsPrint(r) && !unicode.In(r, unicode.Other_Default_Ignorable_Code_Point, unicode.Variation_Selector)
}
