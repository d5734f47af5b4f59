package phone_test

import (
	"encoding/base64"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"assent.home.arpa/appliance/phone"
	"assent.home.arpa/appliance/wire"
)

func shown(record uint64, seal string) wire.Welcome {
	return wire.Welcome{HeadSeq: record, Seal: base64.RawURLEncoding.EncodeToString([]byte(seal))}
}

func TestARecordThatShrankIsSaid(t *testing.T) {
	path := filepath.Join(t.TempDir(), "assent", "anchor.txt")
	day := time.Date(2026, 11, 3, 12, 0, 0, 0, time.UTC)
	for _, step := range []struct {
		name string
		now  wire.Welcome
		want string // in the warning; empty for none
	}{
		{"first", shown(900, "\xd2one"), ""},
		{"the same", shown(900, "\xd2one"), ""},
		{"no record at the moment", wire.Welcome{}, ""},
		{"shorter", shown(500, "\xd2two"), "shorter than it was on 3 November 2026: it had 901 records then, and 501 now"},
		{"another seal at the same place", shown(900, "\xd2two"), "not the one that it was on 3 November 2026: record 900"},
		{"still shorter", shown(899, "\xd2two"), "remove " + path},
		{"goes on", shown(901, "\xd2new"), ""},
		{"no seal at all", wire.Welcome{Seal: "*", HeadSeq: 902}, "cannot be read"},
		{"shorter than what it went on to", shown(900, "\xd2one"), "902 records then"},
	} {
		err := phone.KeepAnchor(path, step.now, day)
		if (err == nil) != (step.want == "") || (err != nil && !strings.Contains(err.Error(), step.want)) {
			t.Errorf("%s: %v", step.name, err)
		}
		var changed *phone.ChangedError
		if step.want != "" && step.name != "no seal at all" && !errors.As(err, &changed) {
			t.Errorf("%s: %T", step.name, err)
		}
	}
	info, err := os.Stat(path)
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Fatalf("%v, %v", info.Mode(), err)
	}
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSpace(string(b)), "\n")
	if got := lines[len(lines)-1]; got != base64.RawURLEncoding.EncodeToString([]byte("\xd2new")) {
		t.Errorf("kept is %q", b)
	}
}

func TestADamagedAnchorIsNotReplaced(t *testing.T) {
	for name, text := range map[string]string{
		"empty": "", "no seal": "# record 4 2026-11-03T12:00:00Z\n", "no number": "0oQ\n", "no date": "# record 4 now\n0oQ\n", "no base64": "# record 4 2026-11-03T12:00:00Z\n*\n",
	} {
		path := filepath.Join(t.TempDir(), "anchor.txt")
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := phone.KeepAnchor(path, shown(9, "\xd2"), time.Now()); err == nil || !strings.Contains(err.Error(), "damaged") {
			t.Errorf("%s: %v", name, err)
		}
		if b, err := os.ReadFile(path); err != nil || string(b) != text {
			t.Errorf("%s: now it holds %q, %v", name, b, err)
		}
	}
}
