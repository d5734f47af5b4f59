package model

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"strings"
)

// Header is what a GGUF file (version 2 or 3, llama.cpp's format) says of itself before its data.
type Header struct {
	Architecture string // general.architecture
	Name         string // general.name; somebody else's text
	Licence      string // general.license; often missing
	Context      uint64 // tokens, from <architecture>.context_length; 0 where it is missing
	Tensors      int
	MinSize      int64 // the file is whole only if it has at least so many bytes
}

// Bounds of a header. The largest that real models have are below a tenth of each.
const (
	maxEntries = 1 << 16
	maxString  = 1 << 20
	maxArray   = 1 << 22
	maxHeader  = 1 << 28
	maxDims    = 8
)

var errFormat = errors.New("damaged header")

// ReadHeader reads the header of a GGUF file and nothing after it. The error is errors.Is(io.ErrUnexpectedEOF) where r ends
// inside the header.
func ReadHeader(r io.Reader) (Header, error) {
	g := &ggufReader{r: bufio.NewReaderSize(io.LimitReader(r, maxHeader), 1<<16)}
	h := g.header()
	if g.err != nil {
		return Header{}, g.err
	}
	return h, nil
}

// ggufReader reads little-endian values; the first error stays and turns everything after it into zeros.
type ggufReader struct {
	r   *bufio.Reader
	n   int64 // bytes read
	err error
}

func (g *ggufReader) fail(format string, args ...any) {
	if g.err == nil {
		g.err = fmt.Errorf("%w: %s", errFormat, fmt.Sprintf(format, args...))
	}
}

func (g *ggufReader) bytes(n int64) []byte {
	if g.err != nil {
		return make([]byte, min(n, 8))
	}
	b := make([]byte, n)
	got, err := io.ReadFull(g.r, b)
	g.n += int64(got)
	if err != nil {
		g.ended(err)
	}
	return b
}

func (g *ggufReader) ended(err error) {
	if errors.Is(err, io.EOF) {
		err = io.ErrUnexpectedEOF
	}
	g.err = err
}

func (g *ggufReader) skip(n int64) {
	if g.err != nil {
		return
	}
	for n > 0 && g.err == nil {
		step, err := g.r.Discard(int(min(n, 1<<20)))
		g.n += int64(step)
		n -= int64(step)
		if err != nil {
			g.ended(err)
		}
	}
}

func (g *ggufReader) u32() uint32 { return binary.LittleEndian.Uint32(g.bytes(4)) }
func (g *ggufReader) u64() uint64 { return binary.LittleEndian.Uint64(g.bytes(8)) }

func (g *ggufReader) count(what string, limit uint64) uint64 {
	n := g.u64()
	if n > limit {
		g.fail("%d %s", n, what)
		return 0
	}
	return n
}

func (g *ggufReader) text() string {
	return strings.ToValidUTF8(string(g.bytes(int64(g.count("bytes in a string", maxString)))), "\uFFFD")
}

func (g *ggufReader) header() Header {
	if magic := g.bytes(4); g.err == nil && string(magic) != "GGUF" {
		g.fail("it begins with %q instead of %q", magic, "GGUF")
		return Header{}
	}
	if v := g.u32(); v < 2 || v > 3 {
		g.fail("version %d", v)
	}
	tensors := g.count("tensors", maxEntries)
	entries := g.count("metadata entries", maxEntries)
	texts, numbers := map[string]string{}, map[string]uint64{}
	for range entries {
		if g.err != nil {
			return Header{}
		}
		key := g.text()
		g.value(g.u32(), key, texts, numbers)
	}
	h := Header{
		Architecture: texts["general.architecture"],
		Name:         texts["general.name"],
		Licence:      texts["general.license"],
		Tensors:      int(tensors),
	}
	h.Context = numbers[h.Architecture+".context_length"]
	h.MinSize = g.extent(tensors, numbers["general.alignment"])
	if h.Architecture == "" {
		g.fail("no architecture")
	}
	return h
}

// widths are the sizes of the scalar metadata types, by their numbers in the format.
func width(kind uint32) int64 {
	switch kind {
	case 0, 1, 7: // uint8, int8, bool
		return 1
	case 2, 3: // uint16, int16
		return 2
	case 4, 5, 6: // uint32, int32, float32
		return 4
	case 10, 11, 12: // uint64, int64, float64
		return 8
	}
	return 0
}

const (
	kindString = 8
	kindArray  = 9
)

// value reads one metadata value and keeps strings and whole numbers. Arrays are skipped.
func (g *ggufReader) value(kind uint32, key string, texts map[string]string, numbers map[string]uint64) {
	switch {
	case kind == kindString:
		texts[key] = g.text()
	case kind == kindArray:
		elem := g.u32()
		n := g.count("array elements", maxArray)
		switch {
		case elem == kindString:
			for range n {
				if g.err != nil {
					return
				}
				g.skip(int64(g.count("bytes in a string", maxString)))
			}
		case width(elem) > 0:
			g.skip(int64(n) * width(elem))
		default:
			g.fail("an array of type %d", elem)
		}
	case width(kind) > 0:
		var wide [8]byte
		copy(wide[:], g.bytes(width(kind)))
		numbers[key] = binary.LittleEndian.Uint64(wide[:])
	default:
		g.fail("a value of type %d", kind)
	}
}

// extent reads the tensor list and returns where the data of the last tensor ends.
func (g *ggufReader) extent(tensors, alignment uint64) int64 {
	if alignment == 0 {
		alignment = 32
	}
	if alignment > 1<<20 {
		g.fail("alignment %d", alignment)
		return 0
	}
	var end uint64
	for range tensors {
		if g.err != nil {
			return 0
		}
		g.skip(int64(g.count("bytes in a name", maxString)))
		dims := g.u32()
		if dims > maxDims {
			g.fail("a tensor of %d dimensions", dims)
			return 0
		}
		elements := uint64(1)
		for range dims {
			d := g.u64()
			if d != 0 && elements > math.MaxInt64/d {
				g.fail("a tensor without end")
				return 0
			}
			elements *= d
		}
		kind, offset := g.u32(), g.u64()
		block, size := blockSize(kind)
		if elements/block > math.MaxInt64/4/size || offset > math.MaxInt64/4 {
			g.fail("a tensor without end")
			return 0
		}
		end = max(end, offset+elements/block*size)
	}
	start := (uint64(g.n) + alignment - 1) / alignment * alignment
	return int64(start + end)
}

// blockSize returns how many elements of a tensor type share a block, and the block's bytes (ggml's type table). Of a type
// that it does not know it claims next to nothing, so that a newer quantisation is not mistaken for a short file.
func blockSize(kind uint32) (elements, bytes uint64) {
	switch kind {
	case 0, 26: // F32, I32
		return 1, 4
	case 1, 25, 30: // F16, I16, BF16
		return 1, 2
	case 24: // I8
		return 1, 1
	case 27, 28: // I64, F64
		return 1, 8
	case 2, 20: // Q4_0, IQ4_NL
		return 32, 18
	case 3: // Q4_1
		return 32, 20
	case 6: // Q5_0
		return 32, 22
	case 7: // Q5_1
		return 32, 24
	case 8: // Q8_0
		return 32, 34
	case 10: // Q2_K
		return 256, 84
	case 11, 21: // Q3_K, IQ3_S
		return 256, 110
	case 12: // Q4_K
		return 256, 144
	case 13: // Q5_K
		return 256, 176
	case 14: // Q6_K
		return 256, 210
	case 23: // IQ4_XS
		return 256, 136
	}
	return 1 << 32, 1
}
