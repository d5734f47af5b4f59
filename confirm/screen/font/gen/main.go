// Command gen extracts the accepted glyphs from GNU Unifont's .hex file.
//
// Usage:
//
//	go run ./confirm/screen/font/gen -hex unifont.hex -out confirm/screen/font/glyphs.gz
//
// The .hex file is in Debian's package unifont, as /usr/share/unifont/unifont.hex. Each of its lines is a code point in
// hexadecimal, a colon, and 32 (half width) or 64 (full width) hexadecimal digits, row by row from the top.
package main

import (
	"bufio"
	"bytes"
	"encoding/hex"
	"flag"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"golang.org/x/text/unicode/norm"

	"assent.home.arpa/confirm/screen/font"
)

func main() {
	os.Exit(run(os.Args[1:], os.Stderr))
}

func run(args []string, stderr io.Writer) int {
	flags := flag.NewFlagSet("gen", flag.ContinueOnError)
	flags.SetOutput(stderr)
	in := flags.String("hex", "", "GNU Unifont .hex `file` to read")
	out := flags.String("out", "glyphs.gz", "`file` to write")
	if err := flags.Parse(args); err != nil {
		return 3
	}
	if err := generate(*in, *out); err != nil {
		fmt.Fprintln(stderr, "gen:", err)
		return 1
	}
	return 0
}

func generate(in, out string) error {
	f, err := os.Open(in)
	if err != nil {
		return err
	}
	defer f.Close()
	glyphs, err := readHex(f)
	if err != nil {
		return fmt.Errorf("%s: %w", in, err)
	}
	var buf bytes.Buffer
	runes := slices.Sorted(maps.Keys(glyphs))
	if err := font.Encode(&buf, runes, func(r rune) font.Glyph { return glyphs[r] }); err != nil {
		return err
	}
	return os.WriteFile(out, buf.Bytes(), 0o644)
}

// readHex keeps the accepted glyphs of a .hex file.
func readHex(r io.Reader) (map[rune]font.Glyph, error) {
	glyphs := make(map[rune]font.Glyph)
	lines := bufio.NewScanner(r)
	for n := 1; lines.Scan(); n++ {
		code, digits, ok := strings.Cut(lines.Text(), ":")
		cp, err := strconv.ParseUint(code, 16, 21)
		if !ok || err != nil {
			return nil, fmt.Errorf("line %d: want CODE:BITMAP", n)
		}
		if !accepted(rune(cp)) {
			continue
		}
		raw, err := hex.DecodeString(digits)
		if err != nil || len(raw) != font.Height && len(raw) != 2*font.Height {
			return nil, fmt.Errorf("line %d: want 32 or 64 hexadecimal digits", n)
		}
		g := font.Glyph{Wide: len(raw) == 2*font.Height}
		for y := range g.Rows {
			if g.Wide {
				g.Rows[y] = uint16(raw[2*y])<<8 | uint16(raw[2*y+1])
			} else {
				g.Rows[y] = uint16(raw[y]) << 8
			}
		}
		glyphs[rune(cp)] = g
	}
	return glyphs, lines.Err()
}

// accepted reports whether r is in an accepted range, visible by itself, and its own NFC form.
func accepted(r rune) bool {
	in := slices.ContainsFunc(font.Ranges(), func(b font.Range) bool { return b.Lo <= r && r <= b.Hi })
	return in && unicode.In(r, unicode.L, unicode.N, unicode.P, unicode.S) && norm.NFC.IsNormalString(string(r))
}
