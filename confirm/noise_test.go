package confirm_test

import (
	"slices"
	"testing"
	"time"

	"assent.home.arpa/confirm"
	"assent.home.arpa/confirm/screen"
	"assent.home.arpa/device"
)

// TestNoiseIsGoneBeforeItCounts: a bit that noise turned on the bus is acknowledged like any other. Updates of the strip leave
// it, and whatever a press rests on is drawn over it: each page, and the full bar under the finger.
func TestNoiseIsGoneBeforeItCounts(t *testing.T) {
	t.Run("card", func(t *testing.T) {
		inBox(t, func(b *box) {
			r := request(1)
			p := b.ask(r)
			b.reach()
			b.panel.Disturb(5, 20)
			pages := b.pages(r)
			for i, page := range pages {
				b.hands.Tap(approve)
				if !b.shows(page) {
					t.Fatalf("page %d is not on the glass", i+1)
				}
				b.hands.Wait(onGlass(page) + 50*time.Millisecond)
				b.panel.Disturb(5, 20)
				b.hands.Wait(time.Second)
				if b.shows(page) {
					t.Fatal("an update of the time left sends the whole page; this test is in vain")
				}
			}
			b.hands.Hold(approve, fullHold)
			p.want(confirm.Approved)
			last := len(pages) - 1
			b.wantShown(func(left time.Duration) device.Frame {
				return screen.DrawReading(pages[last], left, true, true, 1, "LET GO")
			})
		})
	})
	t.Run("prompt", func(t *testing.T) {
		inBox(t, func(b *box) {
			b.gesture()
			b.panel.Disturb(5, 20)
			p, pages := b.prompt("now", false)
			if !b.shows(pages[0]) {
				t.Fatal("the prompt is not on the glass")
			}
			b.hands.Wait(2 * time.Second)
			b.panel.Disturb(5, 20)
			b.hands.HoldBoth(3100 * time.Millisecond)
			p.want(confirm.AdminConfirmed)
			b.wantShown(func(left time.Duration) device.Frame { return screen.DrawAdmin(pages[0], "", left, 1) })
		})
	})
	t.Run("idle", func(t *testing.T) {
		inBox(t, func(b *box) {
			before := b.panel.Glass()
			b.panel.Disturb(5, 20)
			b.desk.SetAddress("https://box.home.arpa") // changes nothing on it
			b.hands.Wait(time.Second)
			if b.panel.Glass() != before {
				t.Error("what noise did is still there")
			}
		})
	})
}

// wantShown demands that the glass showed a picture at some time, for whichever time left.
func (b *box) wantShown(picture func(left time.Duration) device.Frame) {
	b.Helper()
	shown := b.panel.Frames()
	for left := range 120 {
		if slices.Contains(shown, picture(time.Duration(left)*time.Second)) {
			return
		}
	}
	b.Error("the whole picture was not on the glass under the full bar")
}
