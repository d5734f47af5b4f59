package export

import (
	"bytes"
	"testing"

	"github.com/fxamacker/cbor/v2"

	"assent.home.arpa/appliance/audit"
)

func marshal(t testing.TB, v any) []byte {
	t.Helper()
	b, err := cbor.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// batch is a blob and a seal, as far as this package looks at them.
func batch(t testing.TB, text string) []byte {
	t.Helper()
	link := make([]byte, 32)
	b := marshal(t, []any{1, []byte(text), link})
	b = append(b, marshal(t, []any{0, []byte{0xa1, 0, byte(audit.KindSeal)}, link})...)
	return append(b, make([]byte, padding(len(b)))...)
}

// Whatever a segment holds, what comes out has a segment's size and none of the blobs' bodies, or nothing comes out.
func FuzzRelay(f *testing.F) {
	text := "what a household wants to forget"
	whole := append(batch(f, text), batch(f, text+text)...)
	f.Add(whole, true)
	f.Add(append(whole, batch(f, text)[:20]...), true)
	f.Add(whole, false)
	f.Add([]byte{0x83, 1, 0x9f, 0x41, 0, 0xff}, true)
	f.Fuzz(func(t *testing.T, segment []byte, torn bool) {
		if len(segment) > audit.SegmentSize {
			t.Skip()
		}
		out, err := relay(segment, torn)
		if err != nil {
			return
		}
		if len(out) != audit.SegmentSize {
			t.Fatalf("%d bytes", len(out))
		}
		rest := out
		for len(rest) > 0 && rest[0] != 0 {
			f, after, err := next(rest)
			if err != nil {
				t.Fatal(err)
			}
			if f.Class == classBlob && f.Body[0]>>5 != 4 {
				t.Fatal("a blob has a body still")
			}
			if rest = after; f.seal() {
				rest = rest[padding(len(out)-len(rest)):]
			}
		}
		if again, err := relay(out, torn); err != nil || !bytes.Equal(again, out) {
			t.Fatalf("laying it anew again changes it: %v", err)
		}
		if !torn && !sealedEnd(out) && len(bytes.Trim(out, "\x00")) > 0 {
			t.Fatal("it does not end with a seal")
		}
	})
}
