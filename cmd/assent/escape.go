package main

import (
	"strconv"
	"strings"
	"unicode"
)

// escape makes text from a model or the web safe for a terminal: what would move the cursor, colour or copy is printed as
// an escape sequence in the way of Go's string literals. Line feeds stay where lines are wanted.
func escape(s string, lines bool) string {
	var b strings.Builder
	for _, r := range s {
		switch {
		case r == '\n' && lines, unicode.IsPrint(r):
			b.WriteRune(r)
		default:
			q := strconv.QuoteRuneToASCII(r)
			b.WriteString(q[1 : len(q)-1])
		}
	}
	return b.String()
}
