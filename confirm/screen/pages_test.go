package screen_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"assent.home.arpa/confirm/screen"
	"assent.home.arpa/device"
)

// onPage is what one page of text holds: three rows of sixteen half-width columns.
const onPage = 48

func TestTextFillsPages(t *testing.T) {
	tests := []struct {
		event string
		text  string
		pages int
	}{
		{"no text", "", 0},
		{"one character", "a", 1},
		{"one full page", strings.Repeat("a", onPage), 1},
		{"one character more", strings.Repeat("a", onPage+1), 2},
		{"one full page of words", strings.TrimSuffix(strings.Repeat("fifteen--letter ", 3), " "), 1},
		{"one full page and a space", strings.Repeat("a", onPage) + " ", 2},
		{"one full page and a line feed", strings.Repeat("a", onPage) + "\n", 2},
		{"spaces alone", strings.Repeat(" ", onPage), 1},
		{"one box in a full page", strings.Repeat("a", onPage-5) + "\u00a0", 1},
		{"a tail behind sixty line feeds", "weather" + strings.Repeat("\n", 60) + "and alarm code 4471", 2},
		{"four thousand characters", strings.Repeat("a", 4000), 84},
	}
	for _, tt := range tests {
		t.Run(tt.event, func(t *testing.T) {
			pages := mustPages(t, screen.Card{Title: "Look up", Text: tt.text, Destination: "wikipedia.org"})
			text, n, codePoints, err := readBack(pages)
			if err != nil {
				t.Fatal(err)
			}
			if n != tt.pages || text != tt.text || codePoints != utf8.RuneCountInString(tt.text) {
				t.Errorf("%d pages of text with %d code points, want %d with %d", n, codePoints, tt.pages, utf8.RuneCountInString(tt.text))
			}
		})
	}
}

func TestTailBehindLineFeedsIsOnALaterPage(t *testing.T) {
	pages := mustPages(t, screen.Card{Text: "weather" + strings.Repeat("\n", 60) + "and alarm code 4471"})
	first, err := screen.Decode(pages[0])
	if err != nil {
		t.Fatal(err)
	}
	if want := "weather" + strings.Repeat("\n", onPage-len("weather")); first != want {
		t.Errorf("first page says %q, want %q", first, want)
	}
	if ink(&pages[0].Frame, 7*8, 8, 8, 16) == 0 {
		t.Error("the first line feed has no ink")
	}
}

// ink counts the lit pixels of a rectangle.
func ink(f *device.Frame, x, y, w, h int) int {
	n := 0
	for py := y; py < y+h; py++ {
		for px := x; px < x+w; px++ {
			if f.At(px, py) {
				n++
			}
		}
	}
	return n
}

// textPage draws a text that fits one page, without anything else.
func textPage(t *testing.T, text string) device.Frame {
	t.Helper()
	pages := mustPages(t, screen.Card{Text: text})
	if len(pages) != 1 {
		t.Fatalf("%q takes %d pages", text, len(pages))
	}
	return pages[0].Frame
}

// difference counts the pixels in which two frames differ.
func difference(a, b device.Frame) int {
	for i := range a {
		a[i] ^= b[i]
	}
	return ink(&a, 0, 0, device.Width, device.Height)
}

func TestSimilarLettersDiffer(t *testing.T) {
	for _, class := range [][]string{{"l", "I", "1", "|", "i"}, {"O", "0", "o", "Q", "D"}, {"rn", "m", "nn"}, {"5", "S"}, {"2", "Z"}, {"8", "B"}, {"vv", "w"}} {
		for i, a := range class {
			for _, b := range class[:i] {
				if d := difference(textPage(t, a), textPage(t, b)); d < 3 {
					t.Errorf("%q and %q differ in %d pixels", a, b, d)
				}
			}
		}
	}
}

func TestTwinsAreBoxed(t *testing.T) {
	const boxColumns, tagColumns = 5, 3
	for _, twin := range []struct {
		text string
		cols int
	}{
		{"а", tagColumns + boxColumns}, // CYRILLIC SMALL LETTER A
		{"О", tagColumns + boxColumns}, // CYRILLIC CAPITAL LETTER O
		{"Ѕ", tagColumns + boxColumns},
		{"Α", tagColumns + boxColumns}, // GREEK CAPITAL LETTER ALPHA
		{"ο", tagColumns + boxColumns}, // GREEK SMALL LETTER OMICRON
		{"ж", tagColumns + 1},          // no twin
		{"θ", tagColumns + 1},
		{"ǃ", boxColumns}, // LATIN LETTER RETROFLEX CLICK
		{"‐", boxColumns}, // HYPHEN
		{"⁄", boxColumns}, // FRACTION SLASH
		{"\u00a0", boxColumns},
		{"a", 1},
	} {
		// A page holds 48 columns: the count of columns is what still fits before it.
		fits := strings.Repeat("x", 16-twin.cols) + twin.text
		f, g := textPage(t, fits), textPage(t, "x"+fits)
		if ink(&f, 0, 24, device.Width, 16) != 0 {
			t.Errorf("%+q takes more than %d columns", twin.text, twin.cols)
		}
		if ink(&g, 0, 24, device.Width, 16) == 0 {
			t.Errorf("%+q takes less than %d columns", twin.text, twin.cols)
		}
	}
}

// TestNoTwoCodePointsShareAPicture asks it of every accepted code point.
func TestNoTwoCodePointsShareAPicture(t *testing.T) {
	seen := make(map[device.Frame]rune)
	for _, r := range accepted() {
		f := textPage(t, string(r))
		if other, ok := seen[f]; ok {
			t.Errorf("%U and %U look the same", other, r)
		}
		seen[f] = r
	}
}

func TestScriptIsTaggedAgainOnEveryPage(t *testing.T) {
	pages := mustPages(t, screen.Card{Text: strings.Repeat("ж", 100)})
	tag := func(f *device.Frame) (bits []bool) {
		for y := 8; y < 24; y++ {
			for x := range 24 {
				bits = append(bits, f.At(x, y))
			}
		}
		return bits
	}
	if len(pages) != 3 {
		t.Fatalf("%d pages", len(pages))
	}
	for i := range pages {
		if ink(&pages[i].Frame, 0, 8, 24, 16) < 200 || !slices.Equal(tag(&pages[i].Frame), tag(&pages[0].Frame)) {
			t.Errorf("page %d does not begin with the tag", i+1)
		}
	}
}

func TestSpacesAreVisibleWhereTheyCouldHide(t *testing.T) {
	plain := textPage(t, "a b")
	if ink(&plain, 8, 8, 8, 16) != 0 {
		t.Error("a single space inside a row has ink")
	}
	for _, text := range []string{"a  b", " ab", "ab ", "a \nb", "a\n b", "a\u00a0b", "a\tb"} {
		with, without := textPage(t, text), textPage(t, strings.NewReplacer(" ", "", "\n", "", "\t", "", "\u00a0", "").Replace(text))
		if ink(&with, 0, 8, device.Width, 48) <= ink(&without, 0, 8, device.Width, 48) {
			t.Errorf("%q hides a space", text)
		}
	}
}

func TestPagesAreNumberedAndLeaveTheStripDark(t *testing.T) {
	c := search()
	c.Taint = "written after reading evil.example"
	pages := mustPages(t, c)
	if len(pages) != 6 {
		t.Fatalf("%d pages, want caution, request, two of text, details, destination", len(pages))
	}
	headers := make(map[string]int)
	for i := range pages {
		f := &pages[i].Frame
		if ink(f, 0, 56, device.Width, 8) != 0 {
			t.Errorf("page %d draws in the strip", i+1)
		}
		if pages[i].CodePoints == 0 {
			t.Errorf("page %d shows nothing", i+1)
		}
		headers[string(f[100:128])]++
	}
	if len(headers) != len(pages) {
		t.Error("two pages have the same number")
	}
	more := c
	more.Text += " and much more of it than before, so that there is one page more"
	if a, b := pages[0].Frame, mustPages(t, more)[0].Frame; a == b {
		t.Error("the first page does not say how many there are")
	}
}

func TestDigestCoversEveryPageAndNothingElse(t *testing.T) {
	c := screen.Card{Title: "Look up", Text: strings.Repeat("a", 4000), Destination: "wikipedia.org", Phone: "Kitchen", Note: "GET"}
	pages := mustPages(t, c)
	want := screen.Digest(pages)
	if screen.Digest(mustPages(t, c)) != want {
		t.Fatal("the same card has two digests")
	}
	for i := range pages {
		changed := slices.Clone(pages)
		changed[i].Frame.Set(127, 55, !changed[i].Frame.At(127, 55))
		if screen.Digest(changed) == want {
			t.Errorf("digest does not cover page %d", i+1)
		}
	}
	if screen.Digest(pages[:len(pages)-1]) == want {
		t.Error("digest does not cover the last page")
	}
	overlaid := slices.Clone(pages)
	overlaid[0].Frame = screen.DrawReading(pages[0], time.Minute, false, false, 0, "LET GO")
	if screen.Digest(overlaid) != want {
		t.Error("the time left changes the digest")
	}
	for name, other := range map[string]screen.Card{
		"title":       {Title: "Look up!", Text: c.Text, Destination: c.Destination, Phone: c.Phone, Note: c.Note},
		"text":        {Title: c.Title, Text: c.Text[1:] + "b", Destination: c.Destination, Phone: c.Phone, Note: c.Note},
		"destination": {Title: c.Title, Text: c.Text, Destination: "wikipedia.com", Phone: c.Phone, Note: c.Note},
		"phone":       {Title: c.Title, Text: c.Text, Destination: c.Destination, Phone: "Kitchin", Note: c.Note},
		"note":        {Title: c.Title, Text: c.Text, Destination: c.Destination, Phone: c.Phone, Note: "PUT"},
		"taint":       {Title: c.Title, Text: c.Text, Destination: c.Destination, Phone: c.Phone, Note: c.Note, Taint: "x"},
	} {
		if screen.Digest(mustPages(t, other)) == want {
			t.Errorf("another %s has the same digest", name)
		}
	}
}

func TestDigestGolden(t *testing.T) {
	// The definition, made with sha256sum: of "assent/screen/v3" alone, and followed by 896 dark bytes.
	const (
		digestOfNothing = "103600197d394df6b6051d36e02e37fb768740010f29a44e41e522c4ce55c84b"
		digestOfDark    = "b47e037abf2949870c02eed1ff42c0c10b1b54829b3ea0887220ce512b6d6813"
	)
	if got := fmt.Sprintf("%x", screen.Digest(nil)); got != digestOfNothing {
		t.Errorf("digest of no pages is %s", got)
	}
	if got := fmt.Sprintf("%x", screen.Digest(make([]screen.Page, 1))); got != digestOfDark {
		t.Errorf("digest of a dark page is %s", got)
	}
}

func TestDestination(t *testing.T) {
	last := func(destination string) (screen.Page, int) {
		pages := mustPages(t, screen.Card{Destination: destination})
		return pages[len(pages)-1], len(pages)
	}
	for _, tt := range []struct {
		event, destination string
		pages              int
	}{
		{"twice as wide", "pi.hole", 1},
		{"twice as high", "wikipedia.org", 1},
		{"in rows", "encyclopedia.example.org", 1},
		{"internationalised", "bücher.example", 1},
		{"longer than a page", strings.Repeat("subdomain.", 10) + "example", 3},
	} {
		if _, n := last(tt.destination); n != tt.pages {
			t.Errorf("%s: %d pages, want %d", tt.event, n, tt.pages)
		}
	}
	small, _ := last("wikipedia.org")
	capital, _ := last("WIKIPEDIA.ORG")
	if small.Frame != capital.Frame {
		t.Error("ascii is not drawn in capitals")
	}
	ulabel, _ := last("bücher.example")
	alabel, _ := last("xn--bcher-kva.example")
	if ulabel != alabel {
		t.Error("the two forms of one name differ")
	}
	if ulabel.CodePoints != len("xn--bcher-kva.example")+utf8.RuneCountInString("bücher.example") {
		t.Errorf("%d code points: both forms must be drawn", ulabel.CodePoints)
	}
	// аpple.example with a Cyrillic а is xn--pple-43d.example on the wire, and so on the panel.
	twin, _ := last("аpple.example")
	wire, _ := last("xn--pple-43d.example")
	if twin != wire {
		t.Error("a look-alike is not shown by its A-label")
	}
}

func TestFieldsWithoutContentHaveNoPage(t *testing.T) {
	if n := len(mustPages(t, screen.Card{Title: "Pause the ad blocker"})); n != 1 {
		t.Errorf("%d pages, want one", n)
	}
	if _, err := screen.Pages(screen.Card{}); !errors.Is(err, screen.ErrEmpty) {
		t.Errorf("empty card: %v", err)
	}
}
