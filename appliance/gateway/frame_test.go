package gateway_test

import (
	"encoding/json"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"assent.home.arpa/appliance/gateway"
	"assent.home.arpa/appliance/wire"
)

// What is accepted has one meaning: written down again it is accepted as the same.
func FuzzFrame(f *testing.F) {
	for _, s := range []string{
		`{"v":1,"id":"a","type":"ping"}`, `{"v":1,"id":"a","type":"ask","data":{"text":"x"}}`, `{"v":1,"v":1,"id":"","type":""}`,
		`{"V":1,"id":"a","type":"ping"}`, `{"v":1,"id":"\ud800","type":"ping"}`, "{\"v\":1,\"id\":\"\xff\"}", `[{}]`, `{"v":1} {"v":1}`, `{`,
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		got, err := gateway.DecodeFrame(b)
		if len(got.ID) > wire.MaxID {
			t.Fatalf("an id of %d bytes is passed on", len(got.ID))
		}
		if err != nil {
			return
		}
		if !utf8.Valid(b) || got.V != wire.Version {
			t.Fatalf("accepted %q", b)
		}
		again, err := json.Marshal(got)
		if err != nil {
			t.Fatal(err)
		}
		second, err := gateway.DecodeFrame(again)
		if err != nil {
			t.Fatalf("%s was accepted and %s is not: %v", b, again, err)
		}
		a, errA := json.Marshal(second)
		if errA != nil || string(a) != string(again) {
			t.Errorf("(-once +twice)\n%s", cmp.Diff(string(again), string(a)))
		}
	})
}
