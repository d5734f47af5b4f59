package notice_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"

	"assent.home.arpa/appliance/notice"
)

func write(t *testing.T, dir, name, text string) {
	t.Helper()
	if err := notice.Write(dir, name, text); err != nil {
		t.Fatal(err)
	}
}

func read(t *testing.T, dir string) []notice.Notice {
	t.Helper()
	all, err := notice.Read(dir)
	if err != nil {
		t.Fatal(err)
	}
	return all
}

func TestWrittenNoticesAreReadWordForWord(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "notices")
	if all := read(t, dir); len(all) != 0 {
		t.Errorf("no directory holds %v", all)
	}
	write(t, dir, "settings", "assent.toml, line 3:\nunknown key \"pannel\"")
	write(t, dir, "model-import", "Modell für Küche: Prüfsumme falsch")
	want := []notice.Notice{
		{Name: "model-import", Text: "Modell für Küche: Prüfsumme falsch"},
		{Name: "settings", Text: "assent.toml, line 3:\nunknown key \"pannel\""},
	}
	if diff := cmp.Diff(want, read(t, dir)); diff != "" {
		t.Error(diff)
	}
}

func TestNoticeIsReplacedAndTakenBack(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, "settings", "line 3")
	before := read(t, dir)[0]
	write(t, dir, "settings", "line 4")
	after := read(t, dir)
	if len(after) != 1 || after[0].Text != "line 4" || after[0].Digest() == before.Digest() {
		t.Errorf("replaced by %v", after)
	}
	for range 2 { // the second finds nothing, and that is no error
		if err := notice.Remove(dir, "settings"); err != nil {
			t.Fatal(err)
		}
	}
	left, err := os.ReadDir(dir)
	if err != nil || len(left) != 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
}

func TestDigestTellsNameFromText(t *testing.T) {
	a, b := notice.Notice{Name: "ab", Text: "c"}, notice.Notice{Name: "a", Text: "bc"}
	if a.Digest() == b.Digest() {
		t.Error("two notices, one digest")
	}
}

func TestWhatThePanelCannotShowIsRefused(t *testing.T) {
	for name, c := range map[string]struct {
		name, text string
		want       error
	}{
		"no name":           {"", "x", notice.ErrName},
		"a path":            {"../settings", "x", notice.ErrName},
		"a name with a dot": {".settings", "x", notice.ErrName},
		"capitals":          {"Settings", "x", notice.ErrName},
		"a long name":       {strings.Repeat("a", 33), "x", notice.ErrName},
		"no text":           {"settings", "", notice.ErrText},
		"too long":          {"settings", strings.Repeat("ä", 257), notice.ErrText},
		"right to left":     {"settings", "a\u202eb", notice.ErrText},
		"an escape":         {"settings", "a\x1b[2J", notice.ErrText},
		"no UTF-8":          {"settings", "a\xff", notice.ErrText},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			if err := notice.Write(dir, c.name, c.text); !errors.Is(err, c.want) {
				t.Errorf("got %v, want %v", err, c.want)
			}
			if left, _ := os.ReadDir(dir); len(left) != 0 {
				t.Errorf("left behind: %v", left)
			}
		})
	}
	if err := notice.Write(t.TempDir(), strings.Repeat("a", 32), strings.Repeat("ä", 256)); err != nil {
		t.Errorf("at the bounds: %v", err)
	}
}

// TestReaderIsNotMisled: whatever else lies in the directory, the notices beside it are read, and nothing is waited for.
func TestReaderIsNotMisled(t *testing.T) {
	for name, disturb := range map[string]func(dir string) error{
		"a link": func(dir string) error { return os.Symlink("/etc/hostname", filepath.Join(dir, "a.notice")) },
		"a pipe": func(dir string) error { return syscall.Mkfifo(filepath.Join(dir, "a.notice"), 0o644) },
		"a directory": func(dir string) error {
			return os.Mkdir(filepath.Join(dir, "a.notice"), 0o755)
		},
		"control bytes": func(dir string) error {
			return os.WriteFile(filepath.Join(dir, "a.notice"), []byte("a\x00b"), 0o644)
		},
		"a huge file": func(dir string) error {
			return os.WriteFile(filepath.Join(dir, "a.notice"), make([]byte, 1<<20), 0o644)
		},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			if err := disturb(dir); err != nil {
				t.Fatal(err)
			}
			write(t, dir, "b", "still here")
			all, err := notice.Read(dir)
			if err == nil || len(all) != 1 || all[0].Text != "still here" {
				t.Errorf("read %v, %v", all, err)
			}
		})
	}
	dir := t.TempDir()
	for _, other := range []string{"README", ".a-123", "A.notice", "a.notice.tmp"} {
		if err := os.WriteFile(filepath.Join(dir, other), []byte("x"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if all := read(t, dir); len(all) != 0 {
		t.Errorf("taken for notices: %v", all)
	}
}

func TestNoticesAreBounded(t *testing.T) {
	dir := t.TempDir()
	for i := range notice.MaxNotices + 1 {
		write(t, dir, fmt.Sprintf("n%02d", i), "x")
	}
	all, err := notice.Read(dir)
	if !errors.Is(err, notice.ErrTooMany) || len(all) != notice.MaxNotices {
		t.Errorf("read %d, %v", len(all), err)
	}
}
