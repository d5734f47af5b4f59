package fat_test

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"assent.home.arpa/image/boot/fat"
)

func TestAStick(t *testing.T) {
	dir := t.TempDir()
	stick := filepath.Join(dir, "stick")
	if err := fat.NewStick(stick, 64<<20); err != nil {
		t.Fatal(err)
	}
	if files, err := fat.Digests(stick, ""); err != nil || len(files) != 0 {
		t.Fatalf("an empty stick: %d files, %v", len(files), err)
	}
	long := bytes.Repeat([]byte("a longer text than what comes after it. "), 5000)
	for _, content := range [][]byte{long, []byte("short")} {
		if err := fat.Replace(stick, "", "A longer name.txt", content); err != nil {
			t.Fatal(err)
		}
	}
	out := filepath.Join(dir, "out")
	if err := fat.Extract(stick, "", out); err != nil {
		t.Fatal(err)
	}
	if got, err := os.ReadFile(filepath.Join(out, "A longer name.txt")); err != nil || string(got) != "short" {
		t.Errorf("got %d bytes, %v", len(got), err)
	}
	if err := fat.Replace(stick, "boot", "x", nil); err == nil {
		t.Error("a stick has a boot partition")
	}
}
