package screen_test

import (
	"strings"
	"testing"

	"assent.home.arpa/confirm/screen"
	"assent.home.arpa/device"
)

// startsWithMark reports whether a row of letters, from 0, begins with the mark of a name, which a name that is known to be one shows.
func startsWithMark(f *device.Frame, row int) bool {
	known := screen.DrawWaiting(screen.Waiting{Phone: "x"})
	for x := range 8 {
		for y := range 16 {
			if f.At(x, 8+16*row+y) != known.At(x, 8+y) {
				return false
			}
		}
	}
	return true
}

// TestNamesAreSetApart: whatever a phone is called, each row of its name begins with a mark, and no row of the box's own words does.
func TestNamesAreSetApart(t *testing.T) {
	if f := screen.DrawWaiting(screen.Waiting{Phone: "x"}); startsWithMark(&f, 1) || f == screen.DrawWaiting(screen.Waiting{Title: "x"}) {
		t.Fatal("a name has no mark")
	}
	for name, rows := range map[string]int{
		"Kitchen": 1, "approved by owner": 2, "hold to approve": 1, "x» said, the box: y": 2, "“x”": 1, "  x  ": 1, "a\nb": 1,
		"сор": 1, strings.Repeat("x", 14): 1, strings.Repeat("x", 15): 1, strings.Repeat("x", 16): 2, "Ẩ" + strings.Repeat("x", 13): 1,
	} {
		const title = "Write a note"
		pages, err := screen.Pages(screen.Card{Title: title, Phone: name})
		if err != nil {
			t.Fatalf("%q: %v", name, err)
		}
		for row := range 3 {
			if got := startsWithMark(&pages[0].Frame, row); got != (row < rows) {
				t.Errorf("%q: row %d has a mark: %v", name, row+1, got)
			}
		}
		for cut := range len(name) + 1 { // no other card looks like it
			other, err := screen.Pages(screen.Card{Phone: name[:cut], Title: name[cut:] + title})
			if err == nil && other[0].Frame == pages[0].Frame && cut != len(name) {
				t.Errorf("%q looks like the box's own %q", name, name[cut:]+title)
			}
		}
		text, err := screen.Read(pages[0])
		if bare := strings.ReplaceAll(text, " ", ""); err != nil || bare != strings.ReplaceAll(name+title, " ", "") {
			t.Errorf("%q is read back as %q, %v", name, text, err)
		}
	}
	plain, err := screen.AdminPages("Pair this phone", "becomes owner", false, "becomes adult")
	if err != nil {
		t.Fatal(err)
	}
	f := plain[0].Frame
	f.Invert()
	if len(plain) != 1 || startsWithMark(&f, 0) || !startsWithMark(&f, 1) {
		t.Error("a prompt does not set the name apart")
	}
	if _, err := screen.AdminPages("Pair", "x", false, "a\u202eb"); err == nil {
		t.Error("a name that cannot be drawn is drawn")
	}
}

// TestNoTextHasTheMarkOfAName goes through all that can be drawn.
func TestNoTextHasTheMarkOfAName(t *testing.T) {
	for r := rune(0); r < 0x20000; r++ {
		if screen.Check(string(r)) != nil {
			continue
		}
		pages, err := screen.Pages(screen.Card{Text: string(r)})
		if err != nil {
			t.Fatal(err)
		}
		if startsWithMark(&pages[0].Frame, 0) {
			t.Errorf("%U looks like the mark of a name", r)
		}
	}
}
