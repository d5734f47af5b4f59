// Package font holds the glyphs of GNU Unifont that the panel may draw.
//
// GNU Unifont gives every code point a bitmap of its own cell, 8×16 (half width) or 16×16 (full width), drawn by hand
// for exactly this size. Only the accepted ranges are embedded. The glyphs are used under the SIL Open Font License 1.1,
// see OFL.txt and NOTICE.txt in this directory.
package font

import (
	"bufio"
	"bytes"
	"compress/gzip"
	_ "embed"
	"encoding/binary"
	"fmt"
	"io"
	"sync"
)

//go:generate go run ./gen -hex unifont.hex -out glyphs.gz

// Height is the height of every glyph in pixels.
const Height = 16

// maxBlob bounds the decompressed glyphs; the whole BMP would need about 2 MiB.
const maxBlob = 4 << 20

// Glyph is one bitmap. Bit 15 of each row is the leftmost pixel; a half-width glyph uses bits 15–8.
type Glyph struct {
	Wide bool
	Rows [Height]uint16
}

//go:embed glyphs.gz
var blob []byte

// glyphs is decoded once: a few thousand glyphs take about a millisecond, and most programs never draw.
var glyphs = sync.OnceValue(func() map[rune]Glyph {
	m, err := Decode(blob)
	if err != nil {
		panic("font: embedded glyphs: " + err.Error())
	}
	return m
})

// Lookup returns the glyph of r, if r is in an accepted range and assigned.
func Lookup(r rune) (Glyph, bool) {
	g, ok := glyphs()[r]
	return g, ok
}

// Encode writes glyphs in the embedded form. It is gzip over one record a code point, ascending: the difference to the
// code point before as an unsigned varint, a byte 1 (half width) or 2 (full width), then the sixteen rows from the top,
// one or two bytes each, leftmost pixel in the highest bit.
func Encode(w io.Writer, runes []rune, lookup func(rune) Glyph) error {
	z, err := gzip.NewWriterLevel(w, gzip.BestCompression)
	if err != nil {
		return err
	}
	last := rune(0)
	for _, r := range runes {
		g := lookup(r)
		rec := binary.AppendUvarint(nil, uint64(r-last))
		last = r
		if g.Wide {
			rec = append(rec, 2)
		} else {
			rec = append(rec, 1)
		}
		for _, row := range g.Rows {
			rec = append(rec, byte(row>>8))
			if g.Wide {
				rec = append(rec, byte(row))
			}
		}
		if _, err := z.Write(rec); err != nil {
			return err
		}
	}
	return z.Close()
}

// Decode is the inverse of Encode. Records out of order, cut off or of another width are errors.
func Decode(data []byte) (map[rune]Glyph, error) {
	z, err := gzip.NewReader(bytes.NewReader(data))
	if err != nil {
		return nil, err
	}
	in := bufio.NewReader(io.LimitReader(z, maxBlob))
	m := make(map[rune]Glyph)
	for r := rune(0); ; {
		delta, err := binary.ReadUvarint(in)
		if err == io.EOF {
			return m, nil
		}
		if err != nil {
			return nil, err
		}
		if delta == 0 || delta > 0x10FFFF {
			return nil, fmt.Errorf("code points out of order after %U", r)
		}
		r += rune(delta)
		width, err := in.ReadByte()
		if err != nil || width != 1 && width != 2 {
			return nil, fmt.Errorf("%U: bad width", r)
		}
		g := Glyph{Wide: width == 2}
		var rec [2 * Height]byte
		if _, err := io.ReadFull(in, rec[:Height*int(width)]); err != nil {
			return nil, fmt.Errorf("%U: %w", r, err)
		}
		for y := range g.Rows {
			if g.Wide {
				g.Rows[y] = binary.BigEndian.Uint16(rec[2*y:])
			} else {
				g.Rows[y] = uint16(rec[y]) << 8
			}
		}
		m[r] = g
	}
}
