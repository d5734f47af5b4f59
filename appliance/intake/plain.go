package intake

import (
	"strings"
	"unicode/utf8"
)

// maxReason bounds the reason in a text for the panel, in code points, so that what the box does about it fits behind it.
const maxReason = 150

// plain makes one line of printable ASCII out of an error, which may quote somebody's file.
func plain(err error) string {
	text := strings.ReplaceAll(err.Error(), "\n", "; ")
	text = strings.Map(func(r rune) rune {
		if r < ' ' || r >= utf8.RuneSelf || r == 0x7f {
			return '?'
		}
		return r
	}, text)
	if len(text) > maxReason {
		text = text[:maxReason-3] + "..."
	}
	return strings.TrimRight(text, ".")
}
