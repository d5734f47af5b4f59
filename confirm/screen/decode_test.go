package screen_test

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
	"pgregory.net/rapid"

	"assent.home.arpa/confirm/screen"
	"assent.home.arpa/confirm/screen/font"
)

// readBack puts together what the text pages of a card say.
func readBack(pages []screen.Page) (text string, textPages, codePoints int, err error) {
	var b strings.Builder
	for i, p := range pages {
		s, err := screen.Decode(p)
		if errors.Is(err, screen.ErrNotText) {
			continue
		}
		if err != nil {
			return "", 0, 0, fmt.Errorf("page %d: %w", i+1, err)
		}
		if n := utf8.RuneCountInString(s); n != p.CodePoints {
			return "", 0, 0, fmt.Errorf("page %d counts %d code points and shows %d", i+1, p.CodePoints, n)
		}
		b.WriteString(s)
		textPages++
		codePoints += p.CodePoints
	}
	return b.String(), textPages, codePoints, nil
}

// roundTrip draws a text in both sizes, and reads it back from the pixels of each.
func roundTrip(text string) error {
	if err := roundTripOf(screen.Card{Title: "?", Text: text}); err != nil {
		return err
	}
	if err := roundTripOf(screen.Card{Title: "?", Text: text, Large: true}); err != nil {
		return fmt.Errorf("large: %w", err)
	}
	return nil
}

func roundTripOf(c screen.Card) error {
	text := c.Text
	pages, err := screen.Pages(c)
	if err != nil {
		return err
	}
	got, _, n, err := readBack(pages)
	if err != nil {
		return err
	}
	if got != text {
		return fmt.Errorf("drew %q, pixels say %q", text, got)
	}
	if want := utf8.RuneCountInString(text); n != want {
		return fmt.Errorf("pages count %d code points, text has %d", n, want)
	}
	return nil
}

// reasons is what Check says of every code point by itself. Surrogates, which cannot stand in a string, are InvalidUTF8.
var reasons = sync.OnceValue(func() []screen.Reason {
	all := make([]screen.Reason, unicode.MaxRune+1)
	for r := range all {
		var u *screen.UndisplayableError
		switch err := screen.Check(string(rune(r))); {
		case !utf8.ValidRune(rune(r)):
			all[r] = screen.InvalidUTF8
		case errors.As(err, &u):
			all[r] = u.Reason
		}
	}
	return all
})

// accepted lists every code point that Check accepts by itself.
var accepted = sync.OnceValue(func() []rune {
	var runes []rune
	for r, reason := range reasons() {
		if reason == screen.Displayable {
			runes = append(runes, rune(r))
		}
	}
	return runes
})

func TestEveryAcceptedCodePointReadsBack(t *testing.T) {
	all := accepted()
	if len(all) < 2000 {
		t.Fatalf("only %d code points are accepted", len(all))
	}
	var whole strings.Builder
	for _, r := range all {
		// Alone, beside itself, inside a word, after a space, and in a run of another script.
		s := string(r)
		for _, c := range []screen.Card{{Text: s + s + " a" + s + "b  " + s + " ж" + s}, {Text: s + "a", Large: true}} {
			if err := roundTripOf(c); err != nil {
				t.Fatalf("%U: %v", r, err)
			}
		}
		whole.WriteRune(r)
	}
	if err := roundTrip(whole.String()); err != nil {
		t.Fatal(err)
	}
}

// TestOwnScripts holds the rule that a run in another script is tagged: no accepted code point may belong to a script
// that has no tag.
func TestOwnScripts(t *testing.T) {
	for _, r := range accepted() {
		if unicode.IsControl(r) || unicode.In(r, unicode.Latin, unicode.Greek, unicode.Cyrillic, unicode.Common) {
			continue
		}
		if r == 0x1680 { // ogham space mark, always a box
			continue
		}
		t.Errorf("%U belongs to a script without a tag", r)
	}
}

// texts draws from what makes layout hard: spaces in every place, line feeds, twins, boxes, wide glyphs, long words.
func texts() *rapid.Generator[string] {
	wide := []rune{}
	for _, r := range accepted() {
		if g, ok := font.Lookup(r); ok && g.Wide {
			wide = append(wide, r)
		}
	}
	r := rapid.OneOf(
		rapid.SampledFrom([]rune("  \n\t\u00a0\u2003")),
		rapid.SampledFrom([]rune("ab1.,-lI0O")),
		rapid.SampledFrom([]rune("жпαπаеΑЕ")),
		rapid.SampledFrom(wide),
		rapid.SampledFrom(accepted()),
	)
	return rapid.Custom(func(t *rapid.T) string {
		var b strings.Builder
		for _, piece := range rapid.SliceOfN(rapid.SliceOfN(r, 1, 18), 0, 12).Draw(t, "pieces") {
			b.WriteString(string(piece))
			b.WriteString(strings.Repeat(" ", rapid.IntRange(0, 2).Draw(t, "spaces")))
		}
		return norm.NFC.String(b.String())
	})
}

func TestPixelsSayTheText(t *testing.T) {
	gen := texts()
	rapid.Check(t, func(t *rapid.T) {
		text := gen.Draw(t, "text")
		if err := roundTrip(text); err != nil {
			t.Fatal(err)
		}
	})
}

func TestDecodeRefusesWhatPagesDoesNotDraw(t *testing.T) {
	pages := mustPages(t, screen.Card{Title: "x", Text: "hello", Destination: "wikipedia.org"})
	for _, i := range []int{0, len(pages) - 1} {
		if _, err := screen.Decode(pages[i]); !errors.Is(err, screen.ErrNotText) {
			t.Errorf("page %d: %v, want ErrNotText", i+1, err)
		}
	}
	p := pages[1]
	if got, err := screen.Decode(p); err != nil || got != "hello" {
		t.Fatalf("Decode = %q, %v", got, err)
	}
	p.Frame.Set(3, 9, !p.Frame.At(3, 9)) // one pixel in the cell of the h
	if got, err := screen.Decode(p); err == nil {
		t.Fatalf("one pixel changed, and Decode still reads %q", got)
	}
}

// FuzzText states the package's promise: a text is refused, or its pixels say exactly that text.
func FuzzText(f *testing.F) {
	for _, s := range []string{
		"weather", "a  b ", "pаypal", "x\u202ey", "a\u00a0b", "\n\n\t", "Привет Αθήνα", strings.Repeat("ab ", 40), "é", "e\u0301", "\xff",
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		err := roundTrip(text)
		if check := screen.Check(text); check != nil {
			var u *screen.UndisplayableError
			if !errors.As(err, &u) {
				t.Fatalf("Check refuses (%v), Pages does not (%v)", check, err)
			}
			return
		}
		if err != nil {
			t.Fatal(err)
		}
	})
}
