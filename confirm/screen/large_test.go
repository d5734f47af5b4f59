package screen_test

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"assent.home.arpa/confirm/screen"
	"assent.home.arpa/device"
)

// large is the everyday card for somebody who does not see well.
func large() screen.Card {
	c := search()
	c.Large, c.Taint = true, "written after reading evil.example"
	return c
}

// TestLargePagesReadBack reads every field of a large card from its pixels (W12).
func TestLargePagesReadBack(t *testing.T) {
	c := large()
	c.Destination = "encyclopedia.example.org"
	var all strings.Builder
	for i, p := range mustPages(t, c) {
		text, err := screen.Read(p)
		if err != nil {
			t.Fatalf("page %d: %v", i+1, err)
		}
		if n := utf8.RuneCountInString(text); n != p.CodePoints || n > 8 {
			t.Errorf("page %d says %q and counts %d code points", i+1, text, p.CodePoints)
		}
		all.WriteString(text)
	}
	want := c.Taint + c.Phone + c.Title + c.Text + c.Note + strings.ToUpper(c.Destination)
	if all.String() != want {
		t.Errorf("read back %q, want %q", all.String(), want)
	}
}

// TestLargeLettersAreTwiceAsLarge compares with the same letters on a plain page.
func TestLargeLettersAreTwiceAsLarge(t *testing.T) {
	small, big := literalPage(t, "letters"), mustPages(t, screen.Card{Title: "?", Text: "letters", Large: true})[1]
	const top = 16
	for y := range 16 {
		for x := range 56 {
			for i := range 4 {
				if big.Frame.At(2*x+i%2, top+2*y+i/2) != small.Frame.At(x, textTop+y) {
					t.Fatalf("the pixel %d, %d is not four", x, y)
				}
			}
		}
	}
}

// TestSizesAreNeverConfused: what approves a large card is another screen than what approves the plain one, page for page.
func TestSizesAreNeverConfused(t *testing.T) {
	plain := make(map[device.Frame]bool)
	c := large()
	c.Large = false
	for _, p := range mustPages(t, c) {
		plain[p.Frame] = true
	}
	for i, p := range mustPages(t, large()) {
		if plain[p.Frame] {
			t.Errorf("page %d is also one of the plain card", i+1)
		}
	}
}

func TestLargeDestinationIsInOnePictureOrInLargeRows(t *testing.T) {
	for destination, pages := range map[string]int{
		"pi.hole": 1, "wikipedia.org": 1, // drawn large in any case
		"encyclopedia.example.org": 3,
		"bücher.example":           5, // xn--bcher-kva.example, then the name as people write it
	} {
		if n := len(mustPages(t, screen.Card{Destination: destination, Large: true})); n != pages {
			t.Errorf("%s: %d pages, want %d", destination, n, pages)
		}
	}
}

func TestLargePageWithAPixelTooManyIsNotRead(t *testing.T) {
	for _, at := range [][2]int{{0, 9}, {3, 17}, {127, 52}, {2, 40}} {
		p := mustPages(t, screen.Card{Title: "?", Text: "letters", Large: true})[1]
		p.Frame.Set(at[0], at[1], !p.Frame.At(at[0], at[1]))
		if got, err := screen.Decode(p); err == nil {
			t.Errorf("with the pixel %v, Decode still reads %q", at, got)
		}
	}
	p := mustPages(t, large())[0]
	if _, err := screen.Decode(p); !errors.Is(err, screen.ErrNotText) {
		t.Errorf("a page that is none of text: %v", err)
	}
}

// TestEveryWordFitsLarge: the widest cells, a tag and a box, fill a large row exactly, and still read back.
func TestEveryWordFitsLarge(t *testing.T) {
	for _, text := range []string{
		"\u0430b\u0430b", "b\u0430", "αaα", "Привет, мир", "\u00a0\u00a0\u00a0", strings.Repeat("\u0430b", 40), strings.Repeat("a", 300), "12345678 12345678", "  a  ",
	} {
		if err := roundTrip(text); err != nil {
			t.Errorf("%q: %v", text, err)
		}
	}
}

// TestLargePagesOfAnotherScriptNeedNoTag: the header says in which script a page begins, so that the row is for the word.
func TestLargePagesOfAnotherScriptNeedNoTag(t *testing.T) {
	for text, want := range map[string][]string{
		"Привет":         {"Привет"},
		"Привет Αθήνα":   {"Привет ", "Αθήνα"},
		"ппп aa":         {"ппп ", "aa"}, // the tag would not fit beside both
		"opening Привет": {"opening ", "Привет"},
		"12 привет":      {"12 ", "привет"},
	} {
		var got []string
		for _, p := range mustPages(t, screen.Card{Title: "?", Text: text, Large: true})[1:] {
			said, err := screen.Decode(p)
			if err != nil {
				t.Fatalf("%q: %v", text, err)
			}
			got = append(got, said)
		}
		if !slices.Equal(got, want) {
			t.Errorf("%q is set as %q, want %q", text, got, want)
		}
	}
	latin, other := mustPages(t, screen.Card{Text: "aaa", Large: true})[0], mustPages(t, screen.Card{Text: "ааа", Large: true})[0]
	if latin.Frame == other.Frame || latin.CodePoints != other.CodePoints {
		t.Error("three letters of two scripts look the same")
	}
}
