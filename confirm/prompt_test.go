package confirm_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"assent.home.arpa/confirm"
	"assent.home.arpa/confirm/screen"
)

const longPrompt = "to the stick KITCHEN, with the texts of all requests since March"

func largeLetters(cfg *confirm.Config, _ *box) { cfg.Large = true }

// prompt asks with a text that takes several pages.
func (b *box) prompt(text string, large bool) (*prompting, []screen.Page) {
	b.Helper()
	pages, err := screen.AdminPages("Export?", text, large)
	if err != nil {
		b.Fatal(err)
	}
	p := &prompting{b: b, cancel: func() {}, done: make(chan struct{})}
	go func() {
		defer close(p.done)
		p.out, p.err = b.desk.AskAdmin(context.Background(), confirm.AdminRequest{Kind: confirm.AdminExport, Title: "Export?", Text: text})
	}()
	synctest.Wait()
	return p, pages
}

// TestPromptIsReadToTheEnd: a hold of both buttons counts on the last page alone, after each page had its time (W3).
func TestPromptIsReadToTheEnd(t *testing.T) {
	for name, c := range map[string]struct {
		large   bool
		options []option
		hold    func(b *box, d time.Duration)
	}{
		"two buttons": {false, nil, func(b *box, d time.Duration) { b.hands.HoldBoth(d) }},
		"large":       {true, []option{largeLetters}, func(b *box, d time.Duration) { b.hands.HoldBoth(d) }},
	} {
		t.Run(name, func(t *testing.T) {
			inBox(t, func(b *box) {
				b.gesture()
				p, pages := b.prompt(longPrompt, c.large)
				if len(pages) < 2 {
					t.Fatal("one page is no test")
				}
				for i, page := range pages {
					if !b.shows(page) {
						t.Fatalf("page %d is not on the glass", i+1)
					}
					b.hands.Tap(approve) // too early: it stays
					if !b.shows(page) {
						t.Fatalf("page %d was turned before it could be read", i+1)
					}
					b.hands.Wait(onGlass(page))
					if i == len(pages)-1 {
						break
					}
					c.hold(b, 3200*time.Millisecond)
					if p.answered() {
						t.Fatalf("a hold on page %d of %d counts", i+1, len(pages))
					}
					b.hands.Wait(50 * time.Millisecond)
					b.hands.Tap(approve)
				}
				c.hold(b, 3200*time.Millisecond)
				p.want(confirm.AdminConfirmed)
				if len(p.out.Pages) != len(pages) || p.out.ScreenDigest != screen.Digest(pages) {
					t.Error("the decision tells of other pages")
				}
			}, c.options...)
		})
	}
}

// TestPromptOfManyPages: a tap on the last page reads it again, deny refuses on any, and its window is long enough.
func TestPromptOfManyPages(t *testing.T) {
	inBox(t, func(b *box) {
		b.gesture()
		p, pages := b.prompt(longPrompt, false)
		for range 2 * len(pages) {
			b.hands.Wait(2 * time.Second)
			b.hands.Tap(approve)
		}
		if !b.shows(pages[0]) {
			t.Error("the last page's tap does not lead back to the first")
		}
		b.hands.Wait(50 * time.Millisecond)
		b.hands.Tap(deny)
		p.want(confirm.AdminDenied)
	})
	inBox(t, func(b *box) {
		b.gesture()
		p, pages := b.prompt(words(200), true)
		least := 60*time.Second + time.Duration(len(pages)-2)*6*time.Second
		b.hands.Wait(least - time.Second)
		if p.answered() {
			t.Errorf("answered %v, although %d pages were to be read", p.out.Outcome, len(pages))
		}
		b.hands.Wait(2 * time.Second)
		p.want(confirm.AdminExpired)
	}, largeLetters)
}

// TestPromptOfManyPagesWithOneButton: the only button turns the pages by taps and confirms by its hold.
func TestPromptOfManyPagesWithOneButton(t *testing.T) {
	inBox(t, func(b *box) {
		for range 5 {
			b.hands.Tap(approve)
		}
		b.hands.Wait(time.Second)
		p, pages := b.prompt(longPrompt, false)
		b.hands.Wait(500 * time.Millisecond)
		b.passChallenge()
		for i, page := range pages {
			if !b.shows(page) {
				t.Fatalf("page %d is not on the glass", i+1)
			}
			b.hands.Wait(onGlass(page))
			if i < len(pages)-1 {
				b.hands.Tap(approve)
			}
		}
		b.hands.Hold(approve, 3200*time.Millisecond)
		p.want(confirm.AdminConfirmed)
	}, oneButton)
}
