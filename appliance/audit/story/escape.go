package story

import (
	"encoding/hex"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Printable makes bytes that somebody else chose safe to show: what would move a cursor, colour, reorder or hide is
// escaped as in Go's string literals, and so is the backslash, so that the result can be read back. Bytes that are not
// UTF-8 are shown in hexadecimal.
func Printable(b []byte) string {
	if !utf8.Valid(b) {
		return "hex " + hex.EncodeToString(b)
	}
	return escape(string(b))
}

func escape(s string) string {
	var b strings.Builder
	for _, r := range s {
		if r != '\\' && visible(r) {
			b.WriteRune(r)
			continue
		}
		q := strconv.QuoteRuneToASCII(r)
		b.WriteString(q[1 : len(q)-1])
	}
	return b.String()
}

// visible reports whether a character shows itself. unicode.IsPrint leaves out controls (Cc) and format characters (Cf:
// bidi, zero-width, tags), but lets through letters and marks that are drawn as nothing.
func visible(r rune) bool {
	return unicode.IsPrint(r) && !unicode.In(r, unicode.Other_Default_Ignorable_Code_Point, unicode.Variation_Selector)
}

// quoted is other people's text inside a sentence of ours: printable, short, and in marks that cannot be ended from within.
func quoted(b []byte) string {
	s := Printable(b)
	s = strings.ReplaceAll(s, "“", `\u201c`)
	s = strings.ReplaceAll(s, "”", `\u201d`)
	return "“" + shorten(s, maxQuoted) + "”"
}

// maxQuoted is how many characters of somebody else's text a sentence quotes; a Literal has all of it.
const maxQuoted = 120

func shorten(s string, most int) string {
	runes := []rune(s)
	if len(runes) <= most {
		return s
	}
	return string(runes[:most-1]) + "…"
}
