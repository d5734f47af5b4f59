package view

import (
	"encoding/json"
	"fmt"
	"strings"
	"unicode/utf16"
)

// scriptLiteral is v's JSON as a string literal of JavaScript (ECMA-262 section 12.9.4), in printable ASCII, whatever v
// says: the browser need not guess an encoding, and nothing in it can end the literal or the script.
func scriptLiteral(v any) (string, error) {
	b, err := json.Marshal(v) // escapes <, > and &
	if err != nil {
		return "", fmt.Errorf("view: %w", err)
	}
	var s strings.Builder
	s.Grow(len(b) + len(b)/8)
	s.WriteByte('\'')
	for _, r := range string(b) {
		switch {
		case r == '\'' || r == '\\':
			s.WriteByte('\\')
			s.WriteRune(r)
		case r >= ' ' && r <= '~':
			s.WriteRune(r)
		default:
			for _, unit := range utf16.AppendRune(nil, r) {
				fmt.Fprintf(&s, `\u%04x`, unit)
			}
		}
	}
	s.WriteByte('\'')
	return s.String(), nil
}
