package config_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"assent.home.arpa/appliance/config"
)

func write(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "assent.toml")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestDefaultsAreValidAndSurviveTheirOwnFile(t *testing.T) {
	want := config.Default()
	if err := want.Validate(); err != nil {
		t.Fatal(err)
	}
	got, err := config.Load(write(t, string(want.Encode())))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Fatal(diff)
	}
	if want.Digest() != got.Digest() {
		t.Fatal("equal configurations have different digests")
	}
}

func TestDefaultsGolden(t *testing.T) {
	path := filepath.Join("..", "..", "testdata", "contracts", "config.golden.toml")
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), string(config.Default().Encode())); diff != "" {
		t.Fatalf("the contract changed (-golden +now):\n%s", diff)
	}
}

func TestBadFilesAreRefusedWithWhatToDo(t *testing.T) {
	for _, tc := range []struct{ name, text, want string }{
		{"unknown key", "[panel]\nauto_approve = true\n", "unknown key panel.auto_approve; run assentd check-config"},
		{"unknown table", "[remote]\nx = 1\n", "unknown key remote"},
		{"not toml", "[panel\n", "line 2"},
		{"wrong type", "[turn]\nproposals = \"six\"\n", "turn.proposals"},
		{"out of range", "[turn]\nproposals = 0\n", "turn.proposals must be 1 to 32"},
		{"a negative time", "[audit]\nliteral_days = -1\n", "audit.literal_days must be 0"},
		{"a model's path", "[model]\nfile = \"../guard/phones.gguf\"\n", "model.file must be the name of a .gguf file"},
		{"a hidden model", "[model]\nfile = \".new.gguf\"\n", "model.file must be the name of a .gguf file"},
		{"a model that is none", "[model]\nfile = \"tls.pem\"\n", "model.file must be the name of a .gguf file"},
		{"no port", "[gateway]\nlisten = \"0.0.0.0\"\n", "gateway.listen must be address:port"},
		{"user in url", "[search]\nurl = \"https://wikipedia.org@evil.example/\"\n", "search.url must be"},
		{"backslash in url", "[search]\nurl = 'https://wikipedia.org\\.evil.example/'\n", "search.url must be"},
		{"file url", "[search]\nurl = \"file:///etc/passwd\"\n", "search.url must be"},
		{"huge", "# " + strings.Repeat("x", config.MaxBytes), "over the bound"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			_, err := config.Load(write(t, tc.text))
			if err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Fatalf("got %v, want %q", err, tc.want)
			}
		})
	}
}
