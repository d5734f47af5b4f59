package wire_test

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"assent.home.arpa/appliance/wire"
)

var update = flag.Bool("update", false, "rewrite the golden frames")

// whole returns a T with every field set, so that the golden file fixes all names.
func whole(v reflect.Value) reflect.Value {
	switch v.Kind() {
	case reflect.Pointer:
		p := reflect.New(v.Type().Elem())
		p.Elem().Set(whole(p.Elem()))
		return p
	case reflect.Struct:
		out := reflect.New(v.Type()).Elem()
		for i := range out.NumField() {
			out.Field(i).Set(whole(out.Field(i)))
		}
		return out
	case reflect.Slice:
		if v.Type() == reflect.TypeFor[json.RawMessage]() {
			return reflect.ValueOf(json.RawMessage(`{}`))
		}
		s := reflect.MakeSlice(v.Type(), 1, 1)
		if s.Index(0).Kind() != reflect.Interface {
			s.Index(0).Set(whole(s.Index(0)))
		}
		return s
	case reflect.String:
		return reflect.ValueOf("s").Convert(v.Type())
	case reflect.Bool:
		return reflect.ValueOf(true)
	default:
		return reflect.ValueOf(1).Convert(v.Type())
	}
}

func TestFramesGolden(t *testing.T) {
	var got strings.Builder
	enc := json.NewEncoder(&got)
	enc.SetEscapeHTML(false)
	for _, f := range []struct {
		typ  wire.Type
		data any
	}{
		{wire.TypeHello, wire.Hello{}},
		{wire.TypePair, wire.Pair{}},
		{wire.TypeAsk, wire.Ask{}},
		{wire.TypeCancel, wire.Cancel{}},
		{wire.TypeDeny, wire.Deny{}},
		{wire.TypeSeen, wire.Seen{}},
		{wire.TypePing, struct{}{}},
		{wire.TypeChallenge, wire.Challenge{}},
		{wire.TypeWelcome, wire.Welcome{}},
		{wire.TypePaired, wire.Paired{}},
		{wire.TypeError, wire.Error{}},
		{wire.TypePong, struct{}{}},
		{wire.TypeSnapshot, wire.Snapshot{}},
		{wire.TypeTurn, wire.Turn{}},
		{wire.TypeText, wire.Text{}},
		{wire.TypePending, wire.Pending{}},
		{wire.TypeResult, wire.Result{}},
		{wire.TypeTurnEnd, wire.TurnEnd{}},
		{wire.TypeNotice, wire.Notice{}},
		{wire.TypeInbox, wire.Inbox{}},
		{wire.TypeRecord, wire.Record{}},
		{wire.TypeCable, wire.Cable{}},
		{wire.TypeCable, wire.CableOffer{}},
	} {
		data := whole(reflect.ValueOf(f.data)).Interface()
		if err := enc.Encode(wire.Downstream{V: wire.Version, Seq: 1, Re: "c1", Type: f.typ, Data: data}); err != nil {
			t.Fatal(err)
		}
	}
	path := filepath.Join("..", "..", "testdata", "contracts", "wire.golden")
	if *update {
		if err := os.WriteFile(path, []byte(got.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got.String()); diff != "" {
		t.Fatalf("the contract changed (-golden +now):\n%s", diff)
	}
}

func TestSignedBytesGolden(t *testing.T) {
	conv := [16]byte{0: 0xc0, 15: 0x0c}
	// "assent/ask/v1" 00 | slot 00000003 | conversation | counter 0000000000000102 | SHA-256("tea?")
	const ask = "617373656e742f61736b2f763100" + "00000003" + "c000000000000000000000000000000c" + "0000000000000102"
	got := hex.EncodeToString(wire.AskBytes(3, conv, 0x102, wire.TextDigest("tea?")))
	digest := wire.TextDigest("tea?")
	if got != ask+hex.EncodeToString(digest[:]) {
		t.Errorf("ask: %s", got)
	}
	// "assent/auth/v1" 00 | slot 00000003 | nonce
	nonce := [32]byte{0: 0xaa, 31: 0xbb}
	if got := hex.EncodeToString(wire.AuthBytes(3, nonce)); got != "617373656e742f617574682f763100"+"00000003"+hex.EncodeToString(nonce[:]) {
		t.Errorf("auth: %s", got)
	}
	// "assent/seen/v1" 00 | slot 00000003 | invocation
	if got := hex.EncodeToString(wire.SeenBytes(3, conv)); got != "617373656e742f7365656e2f763100"+"00000003"+"c000000000000000000000000000000c" {
		t.Errorf("seen: %s", got)
	}
	// "assent/cable/v1" 00 | slot 00000003 | counter 0000000000000102
	if got := hex.EncodeToString(wire.CableBytes(3, 0x102)); got != "617373656e742f6361626c652f763100"+"00000003"+"0000000000000102" {
		t.Errorf("cable: %s", got)
	}
}

// The numbers were computed with another implementation of RFC 8018.
func TestKeyCodeGolden(t *testing.T) {
	key := make([]byte, 65)
	key[0] = 4
	for i := range key[1:] {
		key[i+1] = byte(i)
	}
	other := bytes.Clone(key)
	other[64]++
	for _, tt := range []struct {
		code string
		key  []byte
		want string
	}{
		{"482913", key, "3890 9418 1055"},
		{"482914", key, "3891 7594 5605"},
		{"482913", other, "3470 3480 5808"},
	} {
		if got := wire.KeyCode(tt.code, tt.key); got != tt.want {
			t.Errorf("pairing code %s, key ending in %d: %s, want %s", tt.code, tt.key[64], got, tt.want)
		}
	}
}

func TestNothingOnTheWireApproves(t *testing.T) {
	b, err := os.ReadFile("wire.go")
	if err != nil {
		t.Fatal(err)
	}
	for _, line := range strings.Split(string(b), "\n") {
		code, _, _ := strings.Cut(line, "//")
		for _, word := range []string{"approve", "Approve", "confirm", "Confirm", "token", "grant"} {
			if strings.Contains(code, word) && !strings.Contains(code, "_tokens") && !strings.Contains(code, `json:"tokens"`) && !strings.Contains(code, "Tokens ") {
				t.Errorf("the envelope knows %q: %s", word, strings.TrimSpace(line))
			}
		}
	}
}
