// Package finger is somebody at a panel: it sees pixels and moves buttons, and knows nothing else. It reads a pairing code from the
// glass, reads a card to its end and holds the button, as people do.
//
// Programs that show or test the whole box without people use it, over a drawn panel or over simulated contacts. It can do
// nothing that a hand at the box could not, and is not in the box's program.
package finger

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"assent.home.arpa/confirm/screen"
	"assent.home.arpa/device"
)

// How long a finger does things. A person is slower.
const (
	BothHold    = 3300 * time.Millisecond // opens pairing mode, and accepts an administrative prompt
	ApproveHold = 1800 * time.Millisecond
	slowHold    = 3 * time.Second // for a box that is slow to see it; at 6 s it would be withdrawn
	tap         = 80 * time.Millisecond
	readPage    = 1600 * time.Millisecond // longer than a full page must be on screen: 700 ms + 48 × 15 ms
	gaze        = 3 * time.Second         // for a picture to appear
	glance      = 50 * time.Millisecond   // for all of it to have come
	tries       = 5
	codeGaze    = 8 * time.Second // the pairing screen takes turns between the code and a picture for cameras
)

// Panel is what there is to see and to press.
type Panel interface {
	// View is what is on the glass; lit is false where nobody knows, since what draws it is gone.
	View() (frame device.Frame, lit bool)
	// Watch returns a channel that gets a value after each change of what View returns, until stop.
	Watch() (changes <-chan struct{}, stop func())
	// Hold presses buttons together, waits, and lets go.
	Hold(d time.Duration, buttons ...device.Button) error
}

// Finger is somebody at a panel.
type Finger struct {
	Panel Panel
	// Slow is by how much longer than on a PC it takes for a picture to appear; 0 means 1.
	Slow int
}

func (f Finger) patience(d time.Duration) time.Duration { return d * time.Duration(max(1, f.Slow)) }

// See waits until the panel shows what it looks for, and shows it for a moment: a picture comes on the glass piece by piece.
func (f Finger) See(ctx context.Context, wait time.Duration, what string, found func(device.Frame) bool) (device.Frame, error) {
	ctx, cancel := context.WithTimeout(ctx, wait)
	defer cancel()
	changes, stop := f.Panel.Watch()
	defer stop()
	var before device.Frame
	for twice := false; ; {
		frame, lit := f.Panel.View()
		good := lit && found(frame)
		if good && twice && frame == before {
			return frame, nil
		}
		before = frame
		again := changes
		var later <-chan time.Time
		if twice = good; twice {
			again, later = nil, time.After(f.patience(glance))
		}
		select {
		case <-again:
		case <-later:
		case <-ctx.Done():
			return device.Frame{}, fmt.Errorf("the panel did not show %s in %s", what, wait)
		}
	}
}

// Read looks at what is shown for as long as a full page must be on screen before anything counts.
func (f Finger) Read(ctx context.Context) error {
	select {
	case <-time.After(readPage):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// OpenPairing holds both buttons until the panel shows a pairing code: a hold that begins before the panel has drawn its
// first picture counts for nothing.
func (f Finger) OpenPairing(ctx context.Context, address string) (code string, err error) {
	for range tries {
		if err := f.Panel.Hold(BothHold, device.Approve, device.Deny); err != nil {
			return "", err
		}
		_, err = f.See(ctx, max(codeGaze, f.patience(gaze)), "a pairing code", func(shown device.Frame) (found bool) {
			code, found = ReadCode(shown, address)
			return found
		})
		if err == nil {
			return code, nil
		}
	}
	return "", err
}

// codeLength is how many digits a pairing code has.
const codeLength = 6

// otherPixels bounds how far the pairing screen may be from one drawn with the code that was read: the time left differs.
const otherPixels = 100

// ReadCode reads a pairing code from the pixels: of all digits, the one whose picture at each place differs least. It
// reports false for a picture that is not the pairing screen.
func ReadCode(shown device.Frame, address string) (string, bool) {
	code := slices.Repeat([]byte{'0'}, codeLength)
	least := 0
	for i := range code {
		best := byte(0)
		least = device.Width * device.Height
		for _, c := range []byte("0123456789") {
			code[i] = c
			if d := differs(shown, screen.DrawPairing(string(code), address, time.Minute, false)); d < least {
				best, least = c, d
			}
		}
		code[i] = best
	}
	return string(code), least < otherPixels
}

func differs(a, b device.Frame) int {
	n := 0
	for x := range device.Width {
		for y := range device.Height {
			if a.At(x, y) != b.At(x, y) {
				n++
			}
		}
	}
	return n
}

// content is the part of a card's page that its digest covers: everything but the strip at the bottom.
func content(f device.Frame) [device.Width * device.Height / 8 * 7 / 8]byte {
	return [device.Width * device.Height / 8 * 7 / 8]byte(f[:])
}

// Approve opens the waiting card, reads every page and then holds the button. It returns the pages as they were shown.
func (f Finger) Approve(ctx context.Context, pages int) ([]screen.Page, error) {
	shown, err := f.ReadOn(ctx, 0, pages)
	if err != nil {
		return shown, err
	}
	return shown, f.HoldArmed(ctx)
}

// HoldArmed holds the button when the panel says that a hold counts now.
func (f Finger) HoldArmed(ctx context.Context) error {
	if _, err := f.See(ctx, f.patience(gaze), "that a hold counts", Armed); err != nil {
		return err
	}
	hold := ApproveHold
	if f.Slow > 1 {
		hold = slowHold
	}
	return f.Panel.Hold(hold, device.Approve)
}

// ReadOn reads the pages of a card from page on, where 0 opens the card that waits. It returns them as they were shown.
func (f Finger) ReadOn(ctx context.Context, page, pages int) ([]screen.Page, error) {
	var shown []screen.Page
	for i := page; i < pages; i++ {
		frame, err := f.turn(ctx, i, pages)
		if err != nil {
			return shown, err
		}
		shown = append(shown, screen.Page{Frame: frame})
		if err := f.Read(ctx); err != nil {
			return shown, err
		}
	}
	return shown, nil
}

// turn taps until page i is on the glass: a tap that comes before the card does nothing.
func (f Finger) turn(ctx context.Context, i, pages int) (device.Frame, error) {
	var err error
	for range tries {
		if err := f.Panel.Hold(tap, device.Approve); err != nil {
			return device.Frame{}, err
		}
		var frame device.Frame
		frame, err = f.See(ctx, f.patience(gaze), fmt.Sprintf("page %d of %d", i+1, pages), func(now device.Frame) bool { return Numbered(now, i, pages) })
		if err == nil {
			return frame, nil
		}
	}
	return device.Frame{}, err
}

// Numbered recognises a page by the number in its header, with or without the mark of a card that has a caution.
func Numbered(f device.Frame, i, pages int) bool {
	const right = 96 // the number is right of this column of RAM page 0
	for _, taint := range []string{"", "x"} {
		card := screen.Card{Title: "x", Text: strings.Repeat("x ", 24*pages), Taint: taint}
		like, err := screen.Pages(card)
		if err != nil {
			return false
		}
		for n := len(like); n > pages; n = len(like) {
			card.Text = card.Text[48:]
			if like, err = screen.Pages(card); err != nil {
				return false
			}
		}
		if len(like) == pages && slices.Equal(f[right:device.Width], like[i].Frame[right:device.Width]) {
			return true
		}
	}
	return false
}

// Waiting recognises the picture that announces a request of so many pages.
func Waiting(f device.Frame, pages int) bool {
	const left = 96 // how many wait behind it is right of this column of RAM page 0
	like := screen.DrawWaiting(screen.Waiting{Phone: "x", Title: "x", Pages: pages})
	return slices.Equal(f[:left], like[:left])
}

// Armed recognises the last page of a card that has been read: its strip asks for the hold.
func Armed(f device.Frame) bool {
	const strip, left = (device.Height/8 - 1) * device.Width, 96 // the time is right of this column of RAM page 7
	like := screen.DrawReading(screen.Page{}, time.Minute, true, true, 0, "")
	return slices.Equal(f[strip:strip+left], like[strip:strip+left])
}

// Words reads one shown page back from its pixels. Large destinations are recognised by drawing them again.
func Words(p screen.Page, destination string) string {
	if again, err := screen.Pages(screen.Card{Title: "x", Destination: destination}); err == nil {
		body := content(again[len(again)-1].Frame)
		if now := content(p.Frame); slices.Equal(now[device.Width:], body[device.Width:]) {
			return "goes to: " + destination
		}
	}
	text, err := screen.Read(p)
	if err != nil {
		return "(a picture that cannot be read back: " + err.Error() + ")"
	}
	return text
}

// Inverted recognises an administrative prompt: dark on light.
func Inverted(f device.Frame) bool {
	lit := 0
	for x := range device.Width {
		for y := range device.Height {
			if f.At(x, y) {
				lit++
			}
		}
	}
	return lit > device.Width*device.Height/2
}
