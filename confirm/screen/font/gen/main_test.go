package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"assent.home.arpa/confirm/screen/font"
)

const letterA = "0041:0000000018242442427E424242420000\n"

func TestGenerate(t *testing.T) {
	in, out := filepath.Join(t.TempDir(), "unifont.hex"), filepath.Join(t.TempDir(), "glyphs.gz")
	hex := letterA +
		"00AD:" + strings.Repeat("00", 16) + "\n" + // soft hyphen: in a range, but invisible
		"01C4:" + strings.Repeat("F00F", 16) + "\n" + // full width
		"5929:" + strings.Repeat("0000", 16) + "\n" // in no accepted range
	if err := os.WriteFile(in, []byte(hex), 0o644); err != nil {
		t.Fatal(err)
	}
	var stderr strings.Builder
	if code := run([]string{"-hex", in, "-out", out}, &stderr); code != 0 {
		t.Fatalf("exit %d: %s", code, &stderr)
	}
	data, err := os.ReadFile(out)
	if err != nil {
		t.Fatal(err)
	}
	glyphs, err := font.Decode(data)
	if err != nil {
		t.Fatal(err)
	}
	if len(glyphs) != 2 || glyphs['A'].Rows[4] != 0x1800 || !glyphs[0x01C4].Wide || glyphs[0x01C4].Rows[15] != 0xF00F {
		t.Fatalf("glyphs %+v", glyphs)
	}
}

func TestGenerateRefuses(t *testing.T) {
	for name, hex := range map[string]string{
		"no code point": "A\n",
		"no bitmap":     "0041:\n",
		"odd bitmap":    "0041:00\n",
		"not hex":       "0041:" + strings.Repeat("zz", 16) + "\n",
	} {
		in, out := filepath.Join(t.TempDir(), "unifont.hex"), filepath.Join(t.TempDir(), "glyphs.gz")
		if err := os.WriteFile(in, []byte(letterA+hex), 0o644); err != nil {
			t.Fatal(err)
		}
		var stderr strings.Builder
		if code := run([]string{"-hex", in, "-out", out}, &stderr); code != 1 || !strings.Contains(stderr.String(), "line 2") {
			t.Errorf("%s: exit %d: %s", name, code, &stderr)
		}
		if _, err := os.Stat(out); err == nil {
			t.Errorf("%s: wrote a file all the same", name)
		}
	}
	if code := run([]string{"-hex", filepath.Join(t.TempDir(), "absent")}, new(strings.Builder)); code != 1 {
		t.Errorf("absent file: exit %d", code)
	}
}
