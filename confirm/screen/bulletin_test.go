package screen_test

import (
	"errors"
	"strings"
	"testing"

	"assent.home.arpa/confirm/screen"
	"assent.home.arpa/device"
)

// TestBulletinIsShownWordForWord: as the pages of a card, whose marks it uses, but under another header.
func TestBulletinIsShownWordForWord(t *testing.T) {
	for _, large := range []bool{false, true} {
		for _, text := range []string{"x", "two\nlines", "Küche, Привет", strings.Repeat("word ", 50) + "end"} {
			pages, err := screen.Bulletin(text, large)
			if err != nil {
				t.Fatal(err)
			}
			as := mustPages(t, screen.Card{Text: text, Large: large})
			if len(as) != len(pages) {
				t.Fatalf("%q: %d pages, %d as a card", text, len(pages), len(as))
			}
			const head, strip = device.Width, device.Width * 7
			for i := range pages {
				if [strip - head]byte(pages[i].Frame[head:strip]) != [strip - head]byte(as[i].Frame[head:strip]) {
					t.Errorf("%q: page %d is set otherwise", text, i+1)
				}
				if [head]byte(pages[i].Frame[:head]) == [head]byte(as[i].Frame[:head]) {
					t.Errorf("%q: page %d has the header of a request", text, i+1)
				}
			}
		}
	}
}

func TestBulletinSaysWhatAPressDoes(t *testing.T) {
	pages, err := screen.Bulletin(strings.Repeat("word ", 50)+"end", false)
	if err != nil {
		t.Fatal(err)
	}
	const strip = device.Width * 7
	first, last := pages[0].Frame, pages[len(pages)-1].Frame
	if [device.Width]byte(first[strip:]) == [device.Width]byte(last[strip:]) {
		t.Error("turning and closing look the same")
	}
}

func TestBulletinRefusesWhatCannotBeShown(t *testing.T) {
	if _, err := screen.Bulletin("", false); !errors.Is(err, screen.ErrEmpty) {
		t.Errorf("nothing: %v", err)
	}
	var u *screen.UndisplayableError
	if _, err := screen.Bulletin("a\u202eb", false); !errors.As(err, &u) {
		t.Errorf("bidi: %v", err)
	}
}
