package scripted

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"fmt"
	"io"
	"math"
)

// The GGUF format, version 3 (ggml's docs/gguf.md): a header of typed keys and tensor descriptions, and then the tensors,
// each at a multiple of alignment.
const (
	ggufVersion = 3
	alignment   = 32
)

// pair is one key of the header.
type pair struct {
	key   string
	value any
}

func metadata(name string, v *vocabulary, width int) []pair {
	return []pair{
		{"general.architecture", "llama"},
		{"general.name", "scripted: " + name},
		{"general.file_type", uint32(1)}, // mostly 16-bit floats
		{"llama.context_length", uint32(Context)},
		{"llama.embedding_length", uint32(width)},
		{"llama.block_count", uint32(1)},
		{"llama.feed_forward_length", uint32(feed)},
		{"llama.attention.head_count", uint32(heads)},
		{"llama.attention.head_count_kv", uint32(heads)},
		{"llama.attention.key_length", uint32(headSize)},
		{"llama.attention.value_length", uint32(headSize)},
		{"llama.attention.layer_norm_rms_epsilon", float32(1e-12)},
		{"llama.rope.dimension_count", uint32(headSize)},
		{"llama.rope.freq_base", ropeBase()},
		{"llama.vocab_size", uint32(len(v.texts))},
		{"tokenizer.ggml.model", "gpt2"},
		{"tokenizer.ggml.pre", "gpt-2"},
		{"tokenizer.ggml.tokens", v.texts},
		{"tokenizer.ggml.token_type", v.types},
		{"tokenizer.ggml.merges", v.merges},
		{"tokenizer.ggml.bos_token_id", uint32(v.ids["<|endoftext|>"])},
		{"tokenizer.ggml.eos_token_id", uint32(v.ids[turnEnd])},
		{"tokenizer.ggml.padding_token_id", uint32(v.ids["<|endoftext|>"])},
		{"tokenizer.ggml.add_bos_token", false},
	}
}

// header builds the part before the tensors. Types are those of enum gguf_metadata_value_type.
type header struct{ bytes.Buffer }

func (h *header) number(v any) {
	if err := binary.Write(h, binary.LittleEndian, v); err != nil {
		panic("scripted: internal error: " + err.Error())
	}
}

func (h *header) text(s string) {
	h.number(uint64(len(s)))
	h.WriteString(s)
}

func (h *header) pair(p pair) {
	h.text(p.key)
	switch v := p.value.(type) {
	case uint32:
		h.number(uint32(4))
		h.number(v)
	case float32:
		h.number(uint32(6))
		h.number(v)
	case bool:
		h.number(uint32(7))
		h.number(v)
	case string:
		h.number(uint32(8))
		h.text(v)
	case []string:
		h.number([]uint32{9, 8})
		h.number(uint64(len(v)))
		for _, s := range v {
			h.text(s)
		}
	case []int32:
		h.number([]uint32{9, 5})
		h.number(uint64(len(v)))
		h.number(v)
	default:
		panic(fmt.Sprintf("scripted: internal error: key of type %T", v))
	}
}

func writeGGUF(w io.Writer, pairs []pair, tensors []tensor) error {
	var h header
	h.WriteString("GGUF")
	h.number(uint32(ggufVersion))
	h.number([]uint64{uint64(len(tensors)), uint64(len(pairs))})
	for _, p := range pairs {
		h.pair(p)
	}
	var offset uint64
	for _, t := range tensors {
		h.text(t.name)
		if t.rows == 0 {
			h.number(uint32(1))
			h.number(uint64(t.columns))
			h.number(uint32(0)) // vectors are 32-bit floats
		} else {
			h.number(uint32(2))
			h.number([]uint64{uint64(t.columns), uint64(t.rows)}) // the fastest dimension first
			h.number(uint32(1))                                   // matrices are 16-bit floats
		}
		h.number(offset)
		offset += uint64(aligned(t.size()))
	}
	h.Write(make([]byte, aligned(h.Len())-h.Len()))
	out := bufio.NewWriterSize(w, 1<<20)
	out.Write(h.Bytes())
	for _, t := range tensors {
		t.write(out)
	}
	return out.Flush()
}

func aligned(n int) int { return (n + alignment - 1) / alignment * alignment }

func (t tensor) size() int {
	if t.rows == 0 {
		return 4 * t.columns
	}
	return 2 * t.rows * t.columns
}

// write leaves errors to the Writer, which keeps the first.
func (t tensor) write(w *bufio.Writer) {
	buf := make([]byte, aligned(t.size()))
	if t.rows == 0 {
		for i := range t.columns {
			binary.LittleEndian.PutUint32(buf[4*i:], math.Float32bits(t.fill))
		}
	}
	for at, x := range t.set {
		binary.LittleEndian.PutUint16(buf[2*(at[0]*t.columns+at[1]):], half(x))
	}
	w.Write(buf)
}

// half rounds to a 16-bit float (IEEE 754 binary16). The weights here are zero or of a size that it holds exactly or
// nearly; nothing underflows or overflows.
func half(f float32) uint16 {
	if f == 0 {
		return 0
	}
	b := math.Float32bits(f)
	exponent := int(b>>23&0xff) - 127 + 15
	mantissa := b & 0x7fffff
	return uint16(b>>16)&0x8000 + uint16(exponent)<<10 + uint16((mantissa+0x1000)>>13)
}
