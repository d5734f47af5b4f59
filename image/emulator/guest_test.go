package emulator_test

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"assent.home.arpa/image/emulator"
)

func TestArchiveHoldsWhatAFirstProcessNeeds(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		return path
	}
	var out bytes.Buffer
	modules := []string{write("b_needed.ko", "needed"), write("a_module.ko", "module")}
	if err := emulator.Archive(&out, write("program", "guest"), modules); err != nil {
		t.Fatal(err)
	}
	at := 0
	for _, want := range []string{"dev/console\x00", "init\x00", "guest", "modules/00-b_needed.ko\x00", "modules/01-a_module.ko\x00", "TRAILER!!!"} {
		i := strings.Index(out.String()[at:], want)
		if i < 0 {
			t.Fatalf("no %q where it belongs", want)
		}
		at += i
	}
	if err := emulator.Archive(&out, filepath.Join(dir, "missing"), nil); err == nil {
		t.Error("an archive without a first process was made")
	}
}

func TestTwoRunsDoNotMix(t *testing.T) {
	dir := t.TempDir()
	unlock, err := emulator.Alone(dir)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := emulator.Alone(dir); !errors.Is(err, emulator.ErrUntried) {
		t.Errorf("the second run: %v", err)
	}
	unlock()
	again, err := emulator.Alone(dir)
	if err != nil {
		t.Fatal(err)
	}
	again()
}
