package guard

import (
	"testing"

	"assent.home.arpa/appliance/audit/export"
	"assent.home.arpa/appliance/ipc"
	"assent.home.arpa/confirm/screen"
)

// What does not fit is cut to one row without its hint, and then neither a code nor what to do about a stick can be read.
func TestWordsOfAStickFitTheIdleScreen(t *testing.T) {
	all := map[string]words{"copied": wordsOfCopy(export.Report{})}
	for p := range ipc.StickFull + 2 {
		all[wordsOf(p).full] = wordsOf(p)
	}
	if len(all) < 10 {
		t.Fatal("only", len(all), "words were found")
	}
	for full, w := range all {
		if !screen.FitsIdle(w.note, w.hint) {
			t.Errorf("%s: %q and %q do not fit", full, w.note, w.hint)
		}
	}
}
