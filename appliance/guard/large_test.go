package guard_test

import (
	"strings"
	"testing"
	"unicode/utf8"

	"assent.home.arpa/appliance/ipc"
	"assent.home.arpa/capabilities"
	"assent.home.arpa/confirm/screen"
	"assent.home.arpa/device"
)

// TestLargeLetters: what the configuration asks for is on the glass, can be read back, and is what the press approves (W12).
func TestLargeLetters(t *testing.T) {
	live(t, t.TempDir(), func(t *testing.T, h *house) {
		h.large = true
		h.restart()
		p := h.pair("Kitchen")
		before := len(h.panel.Frames())
		h.want(h.approve(h.propose(h.gateway, search(h.turn(p, ipc.ID{1}), query))), capabilities.Done, "")
		var text strings.Builder
		var last string
		for _, f := range h.panel.Frames()[before:] {
			clear(f[device.Width*7:]) // time, hint and bar
			page, err := screen.Decode(screen.Page{Frame: f})
			if err != nil || page == last {
				continue
			}
			if n := utf8.RuneCountInString(page); n > 8 {
				t.Errorf("a page shows %d code points", n)
			}
			text.WriteString(page)
			last = page
		}
		if text.String() != "tall towers" {
			t.Errorf("the glass said %q", &text)
		}
	})
}
