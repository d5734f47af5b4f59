package phone_test

import (
	"encoding/base64"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"assent.home.arpa/appliance/audit"
	"assent.home.arpa/appliance/audit/audittest"
	"assent.home.arpa/appliance/phone"
	"assent.home.arpa/appliance/wire"
)

func shown(record uint64, seal string) wire.Welcome {
	b := audittest.KeptSeal(audit.Seq(record), seal[len(seal)-1])
	return wire.Welcome{HeadSeq: record, Seal: base64.RawURLEncoding.EncodeToString(b)}
}

// lie is a seal that is not of the record that the box names.
func lie(record, named uint64) wire.Welcome {
	w := shown(record, "x")
	w.HeadSeq = named
	return w
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
		{"bytes that are no seal", wire.Welcome{Seal: "AAAA", HeadSeq: 903}, "is not the seal of the record that it names"},
		{"a seal of an earlier record", lie(901, 904), "what was remembered is kept as it was"},
		{"no seal at all", wire.Welcome{Seal: "*", HeadSeq: 902}, "cannot be read"},
		{"shorter than what it went on to", shown(900, "\xd2one"), "902 records then"},
	} {
		err := phone.KeepAnchor(path, step.now, day)
		if (err == nil) != (step.want == "") || (err != nil && !strings.Contains(err.Error(), step.want)) {
			t.Errorf("%s: %v", step.name, err)
		}
		var changed *phone.ChangedError
		if step.want != "" && !strings.Contains(step.name, "seal") && !errors.As(err, &changed) {
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
	if got := lines[len(lines)-1]; got != base64.RawURLEncoding.EncodeToString(audittest.KeptSeal(901, 'w')) {
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

// A seal that nobody made can look like one. What it takes the place of is still there to hold the record against.
func TestAForgedSealDoesNotEndWhatWasRemembered(t *testing.T) {
	path := filepath.Join(t.TempDir(), "anchor.txt")
	day := time.Date(2026, 11, 3, 12, 0, 0, 0, time.UTC)
	for i, w := range []wire.Welcome{shown(900, "honest"), shown(901, "a"), shown(902, "b"), shown(1<<40, "c"), shown(1<<40+1, "d")} {
		if err := phone.KeepAnchor(path, w, day.Add(time.Duration(i)*time.Hour)); err != nil {
			t.Fatal(err)
		}
	}
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(b), shown(900, "honest").Seal) || strings.Count(string(b), "# record ") != 2 {
		t.Errorf("kept is %s", b)
	}
	for i := range 20 {
		if err := phone.KeepAnchor(path, shown(1<<41+uint64(i), "e"), day.AddDate(0, 0, i+1)); err != nil {
			t.Fatal(err)
		}
	}
	if b, err = os.ReadFile(path); err != nil || strings.Count(string(b), "# record ") != 8 {
		t.Errorf("%v, kept is %s", err, b)
	}
}
