package font_test

import (
	"bytes"
	"maps"
	"slices"
	"testing"

	"assent.home.arpa/confirm/screen/font"
)

func TestLookup(t *testing.T) {
	a, ok := font.Lookup('A')
	if !ok || a.Wide || a.Rows[4] != 0x18<<8 || a.Rows[13] != 0x42<<8 {
		t.Fatalf("A = %+v, %v", a, ok)
	}
	for _, r := range []rune{' ', '\n', 0x00AD, 0x0301, 0x0378, 0x202E, 0x2588, 0x5929, 0xE000, 0x1F44D, -1} {
		if _, ok := font.Lookup(r); ok {
			t.Errorf("%U has a glyph", r)
		}
	}
}

func TestRangesAreComplete(t *testing.T) {
	for r := rune(0x21); r < 0x7F; r++ {
		if _, ok := font.Lookup(r); !ok {
			t.Errorf("%q has no glyph", r)
		}
	}
	listed := make(map[rune]bool)
	for _, b := range font.Ranges() {
		found := false
		for r := b.Lo; r <= b.Hi; r++ {
			_, ok := font.Lookup(r)
			found = found || ok
			listed[r] = true
		}
		if !found {
			t.Errorf("%s: no glyphs", b.Name)
		}
	}
	for r := rune(0); r <= 0x10FFFF; r++ {
		if _, ok := font.Lookup(r); ok && !listed[r] {
			t.Errorf("%U has a glyph outside the accepted ranges; generate glyphs.gz again", r)
		}
	}
}

// TestEncodeDecode writes the embedded glyphs again and reads them back.
func TestEncodeDecode(t *testing.T) {
	glyphs := make(map[rune]font.Glyph)
	for r := rune(0); r <= 0xFFFF; r++ {
		if g, ok := font.Lookup(r); ok {
			glyphs[r] = g
		}
	}
	var buf bytes.Buffer
	if err := font.Encode(&buf, slices.Sorted(maps.Keys(glyphs)), func(r rune) font.Glyph { return glyphs[r] }); err != nil {
		t.Fatal(err)
	}
	back, err := font.Decode(buf.Bytes())
	if err != nil {
		t.Fatal(err)
	}
	if !maps.Equal(back, glyphs) {
		t.Fatal("glyphs differ after encoding and decoding")
	}
}

func TestDecodeRefuses(t *testing.T) {
	var buf bytes.Buffer
	if err := font.Encode(&buf, []rune{'a', 'b'}, func(rune) font.Glyph { return font.Glyph{} }); err != nil {
		t.Fatal(err)
	}
	for name, data := range map[string][]byte{
		"empty":   nil,
		"no gzip": []byte("glyphs"),
		"cut":     buf.Bytes()[:buf.Len()-12],
	} {
		if _, err := font.Decode(data); err == nil {
			t.Errorf("%s: accepted", name)
		}
	}
	var twice bytes.Buffer
	if err := font.Encode(&twice, []rune{'a', 'a'}, func(rune) font.Glyph { return font.Glyph{} }); err != nil {
		t.Fatal(err)
	}
	if _, err := font.Decode(twice.Bytes()); err == nil {
		t.Error("one code point twice: accepted")
	}
}
