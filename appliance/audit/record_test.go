package audit_test

import (
	"bytes"
	"maps"
	"reflect"
	"slices"
	"testing"

	"github.com/fxamacker/cbor/v2"
	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"assent.home.arpa/appliance/audit"
)

// twin is the reader of records and the rule that the format gives, side by side.
type twin struct {
	quick, slow func([]byte) (audit.Record, error)
}

func newTwin() (r twin) {
	r.quick, r.slow = audit.Readers()
	return r
}

// agree demands that the two say the same of a body, and returns whether it is a record.
func (r twin) agree(t interface{ Fatalf(string, ...any) }, body []byte) bool {
	quick, err := r.quick(body)
	slow, slowErr := r.slow(body)
	if (err == nil) != (slowErr == nil) {
		t.Fatalf("%x\nread in one pass: %v\ndecoded, encoded, compared: %v", body, err, slowErr)
	}
	if err == nil && !reflect.DeepEqual(slow, quick) {
		t.Fatalf("%x is read as two records:\n%s", body, cmp.Diff(slow, quick, cmp.Exporter(func(reflect.Type) bool { return true })))
	}
	return err == nil
}

// bodies are one valid body of each kind, with every field set and with as few as can be.
func bodies(t interface{ Fatal(...any) }) [][]byte {
	var all [][]byte
	for k := audit.Kind(1); k <= audit.Kinds; k++ {
		r := sample(k)
		for range 2 {
			if _, body, err := audit.EncodeFrame(r, prev()); err == nil {
				all = append(all, body)
			}
			r.Wall, r.Clock, r.Inv = 0, 0, audit.ID{}
			v := reflect.ValueOf(r.Payload).Elem()
			for i := range v.NumField() {
				if tag := v.Type().Field(i).Tag.Get("cbor"); len(tag) > 9 && tag[len(tag)-8:] == "omitzero" {
					v.Field(i).SetZero()
				}
			}
		}
	}
	if len(all) < int(audit.Kinds)*3/2 {
		t.Fatal("there are too few bodies to try")
	}
	return all
}

// lacking is a body with each field of its payload left out, and with each there and empty, in deterministic encoding.
func lacking(t *testing.T, body []byte) (all [][]byte) {
	t.Helper()
	mode, err := cbor.CoreDetEncOptions().EncMode()
	if err != nil {
		t.Fatal(err)
	}
	var record, payload map[uint64]cbor.RawMessage
	if err := cbor.Unmarshal(body, &record); err != nil {
		t.Fatal(err)
	}
	if err := cbor.Unmarshal(record[8], &payload); err != nil {
		t.Fatal(err)
	}
	empty := [][]byte{nil, {0x00}, {0x40}, {0x60}, {0x80}, {0xf4}, append([]byte{0x58, 32}, make([]byte, 32)...), append([]byte{0x50}, make([]byte, 16)...)}
	for key := range payload {
		for _, item := range empty {
			changed := maps.Clone(payload)
			if changed[key] = item; item == nil {
				delete(changed, key)
			}
			if record[8], err = mode.Marshal(changed); err != nil {
				t.Fatal(err)
			}
			b, err := mode.Marshal(record)
			if err != nil {
				t.Fatal(err)
			}
			all = append(all, b)
		}
	}
	return all
}

// FuzzRecord: reading in one pass is exactly as strict as decoding, encoding again and comparing, and reads the same.
func FuzzRecord(f *testing.F) {
	for _, b := range bodies(f) {
		f.Add(b)
	}
	r := newTwin()
	f.Fuzz(func(t *testing.T, body []byte) { r.agree(t, body) })
}

// The same for what a fuzzer takes long to find: each byte of each kind of record changed in the ways that matter in CBOR,
// left out, doubled, or with another item in its place.
func TestReadingInOnePassIsAsStrictAsTheRule(t *testing.T) {
	t.Parallel()
	items := [][]byte{
		{0x00},
		{0x18, 0x00},
		{0x20},
		{0x40},
		{0x60},
		{0x80},
		{0xa0},
		{0xf4},
		{0xf5},
		{0xf6},
		{0xf7},
		{0xf9, 0, 0},
		{0xc0, 0x60},
		{0x5f, 0xff},
		{0x58, 0x00},
		{0x78, 0x01, 'a'},
		{0x1b, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff},
		{0x3b, 0x7f, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff},
		{0x9a, 0xff, 0xff, 0xff, 0xff},
	}
	r, accepted := newTwin(), 0
	try := func(b []byte) {
		if r.agree(t, b) {
			accepted++
		}
	}
	for _, body := range bodies(t) {
		if !r.agree(t, body) {
			t.Fatalf("%x is refused", body)
		}
		// Every byte, and at each some of the ways, in turn: neighbours and other kinds get the others.
		for at := range body {
			switch at % 3 {
			case 0:
				try(body[:at])
			case 1:
				try(slices.Delete(bytes.Clone(body), at, at+1))
			case 2:
				try(slices.Insert(bytes.Clone(body), at, body[at]))
			}
			for n := range 2 {
				changed := bytes.Clone(body)
				changed[at] ^= 1 << ((2*at + n) % 8)
				try(changed)
				try(slices.Replace(bytes.Clone(body), at, at+1, items[(2*at+n)%len(items)]...))
			}
		}
	}
	for _, body := range bodies(t) {
		for _, b := range lacking(t, body) {
			try(b)
		}
	}
	if accepted == 0 {
		t.Error("not one changed body was a record: the changes say little")
	}
}

// A record's own fields are encoded by hand; the library has the last word on how.
func TestARecordIsEncodedAsTheLibraryWould(t *testing.T) {
	readers := newTwin()
	rapid.Check(t, func(t *rapid.T) {
		r := sample(audit.Kind(rapid.IntRange(1, audit.Kinds).Draw(t, "kind")))
		r.Seq = audit.Seq(rapid.Uint64().Draw(t, "seq"))
		if rapid.Bool().Draw(t, "clock unset") {
			r.Wall, r.Clock = 0, 0
		}
		if rapid.Bool().Draw(t, "no invocation") {
			r.Inv = audit.ID{}
		}
		_, body, err := audit.EncodeFrame(r, prev())
		if err != nil {
			t.Fatal(err)
		}
		want, err := audit.EncodeSlowly(r)
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(want, body) {
			t.Fatalf("want %x\ngot  %x", want, body)
		}
		if !readers.agree(t, body) {
			t.Fatal("and cannot be read")
		}
	})
}
