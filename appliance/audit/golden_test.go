package audit_test

import (
	"bytes"
	"crypto/sha256"
	"flag"
	"os"
	"path/filepath"
	"reflect"
	"testing"
	"time"

	"github.com/fxamacker/cbor/v2"
	"github.com/google/go-cmp/cmp"

	"assent.home.arpa/appliance/audit"
	"assent.home.arpa/appliance/clock"
	"assent.home.arpa/capabilities"
)

var update = flag.Bool("update", false, "write the golden files anew; never do this to a format that is in use")

const golden = "../../testdata/audit/golden"

// prev is the link before each golden frame.
func prev() audit.Digest { return sha256.Sum256([]byte("previous link")) }

// sample is a record of kind k in which every field says something, so that a key that moves changes the golden bytes.
func sample(k audit.Kind) audit.Record {
	p := audit.Blank(k)
	v := reflect.ValueOf(p).Elem()
	for i := range v.NumField() {
		if v.Type().Field(i).IsExported() {
			fill(v.Field(i), v.Type().Field(i).Name, i+1)
		}
	}
	switch p := p.(type) {
	case *audit.Proposal:
		p.Capability = "web.search"
	case *audit.Decision:
		p.Stage, p.Verdict, p.Status, p.Code = capabilities.StageConfirm, audit.Refuse, capabilities.Denied, capabilities.CodeBusy
	case *audit.Blob:
		p.Digest = sha256.Sum256(p.Bytes)
	}
	return audit.Record{
		Kind: k, Seq: 1000 + audit.Seq(k), BootID: audit.ID{0: 0xb0}, Boot: 90 * time.Minute, Wall: 1_796_040_000_000, Clock: clock.Synced,
		Salt: audit.ID{0: 0x5a}, Inv: audit.ID{0: 0x1f}, Payload: p,
	}
}

func fill(v reflect.Value, name string, n int) {
	switch v.Interface().(type) {
	case audit.Bytes:
		v.SetBytes([]byte(name))
		return
	case audit.Seq:
		v.SetUint(uint64(100 + n))
		return
	}
	switch v.Kind() {
	case reflect.String:
		v.SetString(name)
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Uint8:
		v.SetUint(1)
	case reflect.Uint16, reflect.Uint32, reflect.Uint64:
		v.SetUint(uint64(n))
	case reflect.Int64:
		v.SetInt(int64(time.Duration(n) * time.Second))
	case reflect.Array:
		for i := range v.Len() {
			v.Index(i).SetUint(uint64(n))
		}
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 2, 2))
		for i := range v.Len() {
			fill(v.Index(i), name, n+i)
		}
	case reflect.Struct:
		for i := range v.NumField() {
			if v.Type().Field(i).IsExported() {
				fill(v.Field(i), v.Type().Field(i).Name, n+i)
			}
		}
	default:
		panic("no sample for " + v.Type().String())
	}
}

func TestEveryKindHasItsGoldenBytes(t *testing.T) {
	for k := audit.Kind(1); k <= audit.Kinds; k++ {
		t.Run(k.String(), func(t *testing.T) {
			want := sample(k)
			frame, body, err := audit.EncodeFrame(want, prev())
			if err != nil {
				t.Fatal(err)
			}
			diag, err := cbor.Diagnose(body)
			if err != nil {
				t.Fatal(err)
			}
			compare(t, k.String()+".cbor", frame)
			compare(t, k.String()+".diag", []byte(diag+"\n"))
			got, size, _, err := audit.DecodeFrame(frame, prev())
			if err != nil {
				t.Fatal(err)
			}
			if size != len(frame) {
				t.Errorf("frame of %d bytes, of which %d were read", len(frame), size)
			}
			if d := cmp.Diff(want, got, cmp.Exporter(func(reflect.Type) bool { return true })); d != "" {
				t.Error(d)
			}
		})
	}
	if audit.Blank(0) != nil || audit.Blank(audit.Kinds+1) != nil {
		t.Error("there is a kind without a golden file")
	}
}

func compare(t *testing.T, name string, got []byte) {
	t.Helper()
	path := filepath.Join(golden, name)
	if *update {
		if err := os.WriteFile(path, got, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(want, got) {
		t.Errorf("%s differs: the format on people's flash was changed\nwant %x\ngot  %x", name, want, got)
	}
}

// Any bit of any kind of frame: each flip is seen.
func TestEveryFlippedBitOfAFrameIsSeen(t *testing.T) {
	for k := audit.Kind(1); k <= audit.Kinds; k++ {
		frame, _, err := audit.EncodeFrame(sample(k), prev())
		if err != nil {
			t.Fatal(err)
		}
		for i := range frame {
			bit := byte(1) << (i % 8)
			frame[i] ^= bit
			if _, _, _, err := audit.DecodeFrame(frame, prev()); err == nil {
				t.Errorf("%s: bit %#x of byte %d", k, bit, i)
			}
			frame[i] ^= bit
		}
	}
}

// The same value in other bytes is refused, even under a link that covers those bytes: there is one encoding.
func TestOtherEncodingsOfTheSameRecordAreRefused(t *testing.T) {
	_, body, err := audit.EncodeFrame(sample(audit.KindFreeze), prev())
	if err != nil {
		t.Fatal(err)
	}
	if body[0] != 0xa9 || body[1] != 0x00 || body[2] != 21 {
		t.Fatalf("body begins with %x", body[:3])
	}
	for name, other := range map[string][]byte{
		"longer map head":       append([]byte{0xb8, 9}, body[1:]...),
		"longer key":            append([]byte{0xa9, 0x18, 0x00}, body[2:]...),
		"longer value":          append([]byte{0xa9, 0x00, 0x18, 21}, body[3:]...),
		"unsorted keys":         append(append([]byte{0xa9}, body[3:8]...), append(body[1:3:3], body[8:]...)...),
		"duplicate key":         append([]byte{0xaa, 0x00, 21}, body[1:]...),
		"unknown key":           append(append([]byte{0xaa}, body[1:]...), 0x09, 0x00),
		"float":                 append([]byte{0xa9, 0x00, 0xf9, 0x4d, 0x40}, body[3:]...),
		"indefinite map":        append(append([]byte{0xbf}, body[1:]...), 0xff),
		"trailing byte":         append(bytes.Clone(body), 0),
		"kind that is not":      append([]byte{0xa9, 0x00, 0x18, 25}, body[3:]...),
		"null payload":          append(bytes.Clone(body[:len(body)-40]), 0xf6),
		"another kind's fields": append([]byte{0xa9, 0x00, 24 - 2}, body[3:]...),
	} {
		frame := audit.RawFrame(prev(), 0, other)
		if r, _, _, err := audit.DecodeFrame(frame, prev()); err == nil {
			t.Errorf("%s was read as %+v", name, r)
		}
	}
	if _, _, _, err := audit.DecodeFrame(audit.RawFrame(prev(), 1, body), prev()); err == nil {
		t.Error("a record in a blob's frame, where it could be redacted away")
	}
}

func FuzzFrame(f *testing.F) {
	for k := audit.Kind(1); k <= audit.Kinds; k++ {
		frame, _, err := audit.EncodeFrame(sample(k), prev())
		if err != nil {
			f.Fatal(err)
		}
		f.Add(frame[3 : len(frame)-34])
	}
	// The body is fuzzed and framed here, since no fuzzer finds a SHA-256.
	f.Fuzz(func(t *testing.T, body []byte) {
		for class := range byte(2) {
			frame := audit.RawFrame(prev(), class, body)
			r, size, _, err := audit.DecodeFrame(frame, prev())
			if err != nil {
				continue
			}
			again, _, err := audit.EncodeFrame(r, prev())
			if err != nil {
				t.Fatalf("accepted and cannot be encoded: %v", err)
			}
			if !bytes.Equal(frame[:size], again) {
				t.Fatalf("two encodings of one record:\n%x\n%x", frame, again)
			}
		}
	})
}

func FuzzFrameGrammar(f *testing.F) {
	frame, _, err := audit.EncodeFrame(sample(audit.KindBlob), prev())
	if err != nil {
		f.Fatal(err)
	}
	f.Add(frame)
	f.Add([]byte{0x83, 1, 0x81, 0x58, 32})
	f.Fuzz(func(t *testing.T, b []byte) {
		content, class, redacted, size, ok := audit.ParseFrame(b)
		if !ok {
			return
		}
		var parts []any
		rest, err := cbor.UnmarshalFirst(b, &parts)
		if err != nil || len(b)-len(rest) != size || len(parts) != 3 {
			t.Fatalf("accepted what is no cbor array of three: %v", err)
		}
		var body []byte
		if redacted {
			body = parts[1].([]any)[0].([]byte)
		} else {
			body = parts[1].([]byte)
		}
		if parts[0].(uint64) != uint64(class) || !bytes.Equal(body, content) {
			t.Fatal("read other content than a cbor decoder")
		}
	})
}
