package finger_test

import (
	"context"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"assent.home.arpa/appliance/finger"
	"assent.home.arpa/confirm/screen"
	"assent.home.arpa/device"
)

// panel shows what a test puts on it.
type panel struct {
	mu      sync.Mutex
	frame   device.Frame
	lit     bool
	changes chan struct{}
	holds   [][]device.Button
	onHold  func(p *panel, buttons []device.Button)
}

func newPanel() *panel { return &panel{lit: true, changes: make(chan struct{}, 64)} }

func (p *panel) show(f device.Frame) {
	p.mu.Lock()
	p.frame = f
	p.mu.Unlock()
	p.changes <- struct{}{}
}

func (p *panel) View() (device.Frame, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.frame, p.lit
}

func (p *panel) Watch() (<-chan struct{}, func()) { return p.changes, func() {} }

func (p *panel) Hold(_ time.Duration, buttons ...device.Button) error {
	p.holds = append(p.holds, buttons)
	if p.onHold != nil {
		p.onHold(p, buttons)
	}
	return nil
}

func TestACodeIsReadFromPixels(t *testing.T) {
	const address = "https://10.0.2.15"
	p := newPanel()
	p.onHold = func(p *panel, buttons []device.Button) {
		if slices.Contains(buttons, device.Approve) && slices.Contains(buttons, device.Deny) {
			p.show(screen.DrawPairing("907519", address, 113*time.Second, false))
		}
	}
	code, err := finger.Finger{Panel: p}.OpenPairing(t.Context(), address)
	if err != nil || code != "907519" {
		t.Errorf("read %q, %v", code, err)
	}
	if _, found := finger.ReadCode(screen.DrawNext(), address); found {
		t.Error("a code was read from another picture")
	}
}

// TestAPictureIsSeenWhenAllOfItIsThere: over a slow bus its upper part is there long before the lower.
func TestAPictureIsSeenWhenAllOfItIsThere(t *testing.T) {
	pages, err := screen.Pages(screen.Card{Title: "Search", Text: "late show", Destination: "wikipedia.org"})
	if err != nil {
		t.Fatal(err)
	}
	whole := pages[1].Frame
	p := newPanel()
	go func() {
		var half device.Frame
		for part := 1; part <= 8; part++ {
			copy(half[:], whole[:part*device.Width])
			p.show(half)
			time.Sleep(20 * time.Millisecond)
		}
	}()
	got, err := finger.Finger{Panel: p}.See(t.Context(), 5*time.Second, "the page", func(f device.Frame) bool { return finger.Numbered(f, 1, len(pages)) })
	if err != nil || got != whole {
		t.Errorf("half a picture was taken for all of it: %v", err)
	}
	p.lit = false
	ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	if _, err := (finger.Finger{Panel: p}).See(ctx, time.Second, "anything", func(device.Frame) bool { return true }); err == nil {
		t.Error("something was seen on a dark panel")
	}
}

func TestACardIsReadToItsEnd(t *testing.T) {
	pages, err := screen.Pages(screen.Card{Title: "Search", Text: strings.Repeat("word ", 12), Destination: "wikipedia.org"})
	if err != nil {
		t.Fatal(err)
	}
	p := newPanel()
	at := -1
	p.onHold = func(p *panel, _ []device.Button) {
		at = min(at+1, len(pages)-1)
		last := at == len(pages)-1
		p.show(screen.DrawReading(pages[at], time.Minute, last, false, 0, ""))
		if last && len(p.holds) == len(pages) { // read by now
			go func() {
				time.Sleep(2 * time.Second)
				if n := len(p.holds); n != len(pages) {
					t.Errorf("%d presses before a hold counted", n)
				}
				p.show(screen.DrawReading(pages[at], time.Minute, true, true, 0, ""))
			}()
		}
	}
	shown, err := finger.Finger{Panel: p}.Approve(t.Context(), len(pages))
	if err != nil {
		t.Fatal(err)
	}
	if len(shown) != len(pages) || len(p.holds) != len(pages)+1 {
		t.Errorf("%d pages of %d, %d presses", len(shown), len(pages), len(p.holds))
	}
	var words []string
	for _, page := range shown {
		words = append(words, finger.Words(page, "wikipedia.org"))
	}
	if all := strings.Join(words, " "); !strings.Contains(all, "word word") || !strings.Contains(all, "goes to: wikipedia.org") {
		t.Errorf("read %q", words)
	}
}

func TestPicturesAreToldApart(t *testing.T) {
	waiting := screen.DrawWaiting(screen.Waiting{Phone: "Kitchen", Title: "Search", Pages: 4, Left: time.Minute})
	pages, err := screen.Pages(screen.Card{Title: "Search", Text: strings.Repeat("word ", 20)})
	if err != nil {
		t.Fatal(err)
	}
	prompt := screen.DrawNext()
	prompt.Invert()
	if !finger.Waiting(waiting, 4) || finger.Waiting(waiting, 3) || finger.Waiting(pages[0].Frame, len(pages)) {
		t.Error("what announces a request is not known from what is one")
	}
	if finger.Numbered(waiting, 0, 4) || !finger.Numbered(pages[1].Frame, 1, len(pages)) || finger.Numbered(pages[1].Frame, 2, len(pages)) {
		t.Error("a page is taken for another")
	}
	if last := pages[len(pages)-1]; !finger.Armed(screen.DrawReading(last, time.Second, true, true, 0, "")) || finger.Armed(screen.DrawReading(last, time.Second, true, false, 0, "")) {
		t.Error("a card that has not been read is taken for one that has")
	}
	if !finger.Inverted(prompt) || finger.Inverted(waiting) {
		t.Error("a prompt is not known from a request")
	}
}
