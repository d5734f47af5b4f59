package phone_test

import (
	"testing"

	"pgregory.net/rapid"

	"assent.home.arpa/appliance/phone"
)

func TestPrintable(t *testing.T) {
	for _, c := range []struct{ name, in, want string }{
		{"words of the world", "Zürich 東京 한글 हिन्दी 330 m – “yes” 🗼", "Zürich 東京 한글 हिन्दी 330 m – “yes” 🗼"},
		{"clipboard and colour", "\x1b]52;c;ZXZpbA==\a\x1b[31m", `\x1b]52;c;ZXZpbA==\a\x1b[31m`},
		{"eight-bit controls", "\u009b2J\u0085\x7f", `\u009b2J\u0085\x7f`},
		{"return over a line", "good\rbad\ttab", `good\rbad\ttab`},
		{"bidi override", "a\u202etxt.exe\u202c", `a\u202etxt.exe\u202c`},
		{"bidi isolate", "\u2066a\u2069", `\u2066a\u2069`},
		{"zero-width", "pay\u200bpal\u200d\ufeff\u2060", `pay\u200bpal\u200d\ufeff\u2060`},
		{"soft hyphen", "pay\u00adpal", `pay\u00adpal`},
		{"letters drawn as nothing", "a\u3164b\u115fc\u034fd", `a\u3164b\u115fc\u034fd`},
		{"selectors and tags", "a\ufe0fb\U000e0101c\U000e0041", `a\ufe0fb\U000e0101c\U000e0041`},
		{"line and paragraph separators", "a\u2028b\u2029c", `a\u2028b\u2029c`},
		{"not UTF-8", "a\xffb", "a\ufffdb"},
	} {
		t.Run(c.name, func(t *testing.T) {
			for _, lines := range []bool{false, true} {
				if got := phone.Printable(c.in, lines); got != c.want {
					t.Errorf("lines %t: %q, want %q", lines, got, c.want)
				}
			}
		})
	}
	if got, want := phone.Printable("a\nb", true), "a\nb"; got != want {
		t.Errorf("lines wanted: %q", got)
	}
	if got, want := phone.Printable("a\nb", false), `a\nb`; got != want {
		t.Errorf("no lines wanted: %q", got)
	}
}

func TestPrintableTwiceIsPrintableOnce(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		once := phone.Printable(rapid.String().Draw(t, "text"), false)
		if twice := phone.Printable(once, false); twice != once {
			t.Fatalf("%q became %q", once, twice)
		}
	})
}
