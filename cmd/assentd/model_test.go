package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func TestModelIsTheNamedOneOrTheNewest(t *testing.T) {
	dir := t.TempDir()
	when := time.Date(2026, 5, 1, 0, 0, 0, 0, time.UTC)
	for i, name := range []string{"old.gguf", "new.gguf", "a.gguf.part", ".copying.gguf", "notes.txt"} {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte("x"), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Chtimes(path, when, when.AddDate(0, 0, i)); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Mkdir(filepath.Join(dir, "z.gguf"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("/etc/passwd", filepath.Join(dir, "y.gguf")); err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct{ name, dir, file, want, err string }{
		{"the newest", dir, "", "new.gguf", ""},
		{"the named one", dir, "old.gguf", "old.gguf", ""},
		{"a named one that is not there", dir, "none.gguf", "", "choose one that is there"},
		{"a link", dir, "y.gguf", "", "not a regular file"},
		{"a box without models", t.TempDir(), "", "", ""},
		{"a box without the folder", filepath.Join(dir, "none"), "", "", ""},
	} {
		got, err := chooseModel(tc.dir, tc.file)
		if got != "" {
			got = filepath.Base(got)
		}
		if got != tc.want || (err == nil) != (tc.err == "") || err != nil && !strings.Contains(err.Error(), tc.err) {
			t.Errorf("%s: %q %v, want %q %q", tc.name, got, err, tc.want, tc.err)
		}
	}
}

// Without a model the role ends well, and leaves no socket behind that would look like an engine that is about to answer.
func TestNoModelYet(t *testing.T) {
	dir := t.TempDir()
	meet := filepath.Join(dir, "run", "gateway-model")
	if err := os.MkdirAll(meet, 0o700); err != nil {
		t.Fatal(err)
	}
	stale := filepath.Join(meet, "llama.sock")
	file := filepath.Join(dir, "assent.toml")
	text := "[paths]\nstate = \"" + dir + "\"\nruntime = \"" + filepath.Join(dir, "run") + "\"\n"
	for name, set := range map[string]string{"none at all": "", "one that is not there": "[model]\nfile = \"none.gguf\"\n"} {
		if err := os.WriteFile(stale, nil, 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(text+set), 0o600); err != nil {
			t.Fatal(err)
		}
		var out, errs strings.Builder
		want := 0
		if set != "" {
			want = 1
		}
		if status := run([]string{"model", "-config", file}, os.Stdin, &out, &errs); status != want {
			t.Errorf("%s: status %d\n%s", name, status, &errs)
		}
		if _, err := os.Stat(stale); err == nil {
			t.Errorf("%s: a socket is left behind", name)
		}
	}
}
