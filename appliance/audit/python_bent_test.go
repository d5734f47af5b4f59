package audit_test

import (
	"bytes"
	"fmt"
	"maps"
	"math"
	"slices"
	"testing"

	"github.com/fxamacker/cbor/v2"

	"assent.home.arpa/appliance/audit"
)

type bentFrame struct {
	name  string
	bytes []byte
}

// values are of every type and just within and beyond every limit.
func values() []any {
	text := func(n int) string { return string(bytes.Repeat([]byte("x"), n)) }
	digest, id := bytes.Repeat([]byte{7}, 32), bytes.Repeat([]byte{7}, 16)
	all := []any{
		false, true, nil, 1.5,
		cbor.Tag{Number: 1, Content: 1},
		cbor.SimpleValue(99),
		map[int]any{},
		map[int]any{1: 1},
		[]any{},
		[]any{1},
		"", "x", "a.b", "A", "a..b", "a.b.c.d.e", "é", "tab\t", "bidi\u202e", "line\u2028", "private\ue000", "\u00ad", text(64), text(65), text(1024), text(1025),
		[]any{digest},
		[]any{digest, digest},
		[]any{id},
		[]any{digest, id},
		[]any{[]byte{}},
		[]any{[]byte("x")},
		[]any{[]any{1, id}},
		[]any{[]any{1, digest}},
		[]any{[]any{1}},
		[]any{map[int]any{1: 1, 2: 1, 3: 1, 4: 1}},
		[]any{map[int]any{1: 1, 2: 3, 3: 1, 4: 1}},
		[]any{map[int]any{1: 1, 2: 1, 3: 1, 4: 0}},
		[]any{map[int]any{1: 1, 2: 1, 3: 1 << 32, 4: 1}},
		[]any{map[int]any{1: -1, 2: 1, 3: 1, 4: 1}},
		[]any{map[int]any{1: 1, 2: 1, 3: 1}},
		[]any{map[int]any{1: 1, 2: 14, 3: 1}},
		[]any{map[int]any{1: 1, 2: 1, 3: 46}},
		[]any{map[int]any{1: 1, 2: 1, 3: 1, 4: 1 << 16}},
		-1, int64(math.MinInt64),
		uint64(math.MaxInt64), uint64(math.MaxInt64) + 1, uint64(math.MaxUint64),
	}
	for _, n := range []int{0, 1, 2, 3, 4, 5, 6, 8, 9, 10, 11, 12, 17, 18, 24, 25, 45, 46, 255, 256, 65535, 65536, math.MaxUint32, math.MaxUint32 + 1} {
		all = append(all, n)
	}
	for _, n := range []int{0, 1, 15, 16, 17, 31, 32, 33, 256, 257, 512, 513, 1024, 1025, audit.MaxBlob + 1} {
		all = append(all, make([]byte, n), bytes.Repeat([]byte{7}, n))
	}
	for _, n := range []int{8, 9, 48, 49, 257} {
		digests, ids, presses, steps, open, names := []any{}, []any{}, []any{}, []any{}, []any{}, []any{}
		for range n {
			digests, ids = append(digests, digest), append(ids, id)
			presses, open = append(presses, map[int]any{1: 1, 2: 1, 3: 1, 4: 1}), append(open, []any{1, id})
			names, steps = append(names, "x"), append(steps, map[int]any{1: 1, 2: 13, 3: 45})
		}
		all = append(all, digests, ids, presses, steps, open, names)
	}
	return all
}

// bent takes the golden record of each kind and gives each field each value of its CBOR type and some of the others, leaves it
// out, and adds one that there is not.
func bent(t *testing.T) []bentFrame {
	t.Helper()
	mode, err := cbor.CoreDetEncOptions().EncMode()
	if err != nil {
		t.Fatal(err)
	}
	var all [][]byte
	for _, v := range values() {
		b, err := mode.Marshal(v)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, b)
	}
	// What no encoder writes: numbers and lengths that are longer than need be, no UTF-8, indefinite lengths, too long, cut.
	for _, b := range []string{"\x18\x01", "\x58\x01x", "\x78\x01x", "\x98\x00", "\x61\xff", "\x5f\x41x\xff", "\x9f\xff", "\xbf\xff", "\x41", "\x3b\xff\xff\xff\xff\xff\xff\xff\xff", "\xf8\x14", "\xf7", "\xff", "\xa2\x02\x01\x01\x01", "\xa2\x01\x01\x01\x01"} {
		all = append(all, []byte(b))
	}
	var frames []bentFrame
	for k := audit.Kind(1); k <= audit.Kinds; k++ {
		_, body, err := audit.EncodeFrame(sample(k), prev())
		if err != nil {
			t.Fatal(err)
		}
		class := byte(0)
		if k == audit.KindBlob {
			class = 1
		}
		var top map[int]cbor.RawMessage
		if err := cbor.Unmarshal(body, &top); err != nil {
			t.Fatal(err)
		}
		var payload map[int]cbor.RawMessage
		if err := cbor.Unmarshal(top[8], &payload); err != nil {
			t.Fatal(err)
		}
		add := func(name string, top map[int]cbor.RawMessage) {
			frames = append(frames, bentFrame{fmt.Sprintf("%s %s", k, name), audit.RawFrame(prev(), class, mapOf(top))})
		}
		bend := func(of string, from map[int]cbor.RawMessage, put func(map[int]cbor.RawMessage) map[int]cbor.RawMessage, values [][]byte) {
			keys := append(slices.Sorted(maps.Keys(from)), len(from)+1)
			for _, key := range keys {
				with := maps.Clone(from)
				delete(with, key)
				add(fmt.Sprintf("without %s %d", of, key), put(with))
				for i, v := range values {
					if was := from[key]; was != nil && was[0]>>5 != v[0]>>5 && (i+key)%6 != 0 {
						continue
					}
					with[key] = v
					add(fmt.Sprintf("with %s %d = %.60x", of, key, with[key]), put(with))
				}
			}
		}
		bend("field", payload, func(p map[int]cbor.RawMessage) map[int]cbor.RawMessage {
			with := maps.Clone(top)
			with[8] = mapOf(p)
			return with
		}, all)
		if k == audit.KindFreeze {
			bend("key", top, func(m map[int]cbor.RawMessage) map[int]cbor.RawMessage { return m }, all)
		}
		frames = append(frames, bentFrame{k.String() + " in the other class", audit.RawFrame(prev(), 1-class, body)})
	}
	return frames
}

// mapOf joins encoded values under number keys.
func mapOf(m map[int]cbor.RawMessage) []byte {
	b := []byte{0xb8, byte(len(m))}
	if len(m) < 24 {
		b = []byte{0xa0 | byte(len(m))}
	}
	for _, key := range slices.Sorted(maps.Keys(m)) {
		if key >= 24 {
			b = append(b, 0x18)
		}
		b = append(append(b, byte(key)), m[key]...)
	}
	return b
}
