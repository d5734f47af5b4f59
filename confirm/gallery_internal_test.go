package confirm

import (
	"testing"

	"assent.home.arpa/confirm/screen"
	"assent.home.arpa/confirm/screen/screentest"
	"assent.home.arpa/device"
)

// TestGalleryHasEveryNotice keeps the pictures that people look at from falling behind the machine's words.
func TestGalleryHasEveryNotice(t *testing.T) {
	screens, err := screentest.Gallery()
	if err != nil {
		t.Fatal(err)
	}
	shown := make(map[device.Frame]bool)
	for _, s := range screens {
		shown[s.Frame] = true
	}
	for outcome, words := range resultWords {
		if outcome != 0 && !shown[screen.DrawNotice(words)] {
			t.Errorf("no picture says %q", words)
		}
	}
	m := &machine{buttonsGone: true}
	m.challenge.want = 3
	for _, s := range []State{StateChallenge, StatePanic, StateLost, StateNext} {
		f, err := m.render(look{state: s})
		if err != nil {
			t.Fatal(err)
		}
		if !shown[f] {
			t.Errorf("no picture is that of %v", s)
		}
	}
}

// TestDoubtIsReadable: both of its rows are shown only if both fit the small face.
func TestDoubtIsReadable(t *testing.T) {
	if !screen.FitsIdle(doubtNote, doubtHint) {
		t.Errorf("%q and %q do not fit the idle screen", doubtNote, doubtHint)
	}
}
