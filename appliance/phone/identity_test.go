package phone_test

import (
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"errors"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"assent.home.arpa/appliance/phone"
	"assent.home.arpa/appliance/phone/phonetest"
	"assent.home.arpa/appliance/wire"
)

// paired returns a box that pairs and welcomes everybody, a connection to it and a phone that it paired.
func paired(t *testing.T) (*phonetest.Box, *phone.Client, *phone.Identity) {
	t.Helper()
	box := &phonetest.Box{Nonce: [32]byte{1, 2, 3}, Name: "Kitchen box", Replies: map[wire.Type][]wire.Downstream{
		wire.TypePair:  {{Type: wire.TypePaired, Data: wire.Paired{Slot: 7, Name: "Anna"}}},
		wire.TypeHello: {{Type: wire.TypeWelcome, Data: wire.Welcome{Counter: 41}}},
		wire.TypeAsk:   {{Type: wire.TypeTurnEnd, Data: wire.TurnEnd{Reason: "complete"}}},
		wire.TypeCable: {{Type: wire.TypeCable, Data: wire.CableOffer{Seconds: 300}}},
	}}
	server := httptest.NewServer(box)
	t.Cleanup(server.Close)
	client, err := phone.Dial(t.Context(), server.URL, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { client.Close() })
	var compared string
	who, err := client.Pair(t.Context(), "123456", "Anna", func(keyCode string) { compared = keyCode })
	if err != nil {
		t.Fatal(err)
	}
	var sent wire.Pair
	heard(t, box, wire.TypePair, &sent)
	if point, err := base64.RawURLEncoding.DecodeString(sent.Key); err != nil || compared != wire.KeyCode("123456", point) {
		t.Errorf("%q is to be compared, which is not of the key that was sent (%v)", compared, err)
	}
	return box, client, who
}

func TestSavedIdentityIsTheSameAndItsOwnersAlone(t *testing.T) {
	box, client, who := paired(t)
	if who.Slot != 7 || who.Name != "Anna" {
		t.Errorf("paired as %d, %q", who.Slot, who.Name)
	}
	who.Address, who.Counter = "https://assent.local:8443", 40
	dir := filepath.Join(t.TempDir(), "new", "assent")
	path := filepath.Join(dir, "identity.json")
	for range 2 { // a new file, and one that is replaced
		if err := who.Save(path); err != nil {
			t.Fatal(err)
		}
	}
	for name, want := range map[string]os.FileMode{path: 0o600, dir: 0o700} {
		if info, err := os.Stat(name); err != nil || info.Mode().Perm() != want {
			t.Errorf("%s: %v, %v; want %o", filepath.Base(name), info.Mode(), err, want)
		}
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) != 1 {
		t.Errorf("saving left %v, %v", left, err)
	}
	again, err := phone.LoadIdentity(path)
	if err != nil {
		t.Fatal(err)
	}
	if again.Slot != who.Slot || again.Name != who.Name || again.Counter != 40 || again.Address != who.Address {
		t.Errorf("saved %+v, loaded %+v", who, again)
	}
	// It is the same key: what the loaded one signs, the key that was paired verifies.
	if _, err := client.Hello(t.Context(), again, "", 0); err != nil {
		t.Fatal(err)
	}
	var hello wire.Hello
	heard(t, box, wire.TypeHello, &hello)
	verify(t, box, wire.AuthBytes(7, box.Nonce), hello.Sig)
}

func TestIdentityThatCannotBeLoaded(t *testing.T) {
	_, _, who := paired(t)
	path := filepath.Join(t.TempDir(), "identity.json")
	if _, err := phone.LoadIdentity(path); !errors.Is(err, phone.ErrNotPaired) {
		t.Errorf("without a file: %v", err)
	}
	if err := who.Save(path); err != nil {
		t.Fatal(err)
	}
	whole, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	p384, err := ecdsa.GenerateKey(elliptic.P384(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	_, edwards, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name string
		file []byte
	}{
		{"empty", nil},
		{"cut short", whole[:len(whole)/2]},
		{"no key", []byte(`{"slot":7}`)},
		{"key that is none", []byte(`{"slot":7,"key":"AAAA"}`)},
		{"key of another curve", withKey(t, p384)},
		{"key of another kind", withKey(t, edwards)},
	} {
		t.Run(c.name, func(t *testing.T) {
			if err := os.WriteFile(path, c.file, 0o600); err != nil {
				t.Fatal(err)
			}
			who, err := phone.LoadIdentity(path)
			if err == nil || errors.Is(err, phone.ErrNotPaired) || !strings.Contains(err.Error(), "pair again") {
				t.Errorf("%+v, %v", who, err)
			}
		})
	}
}

func withKey(t *testing.T, key any) []byte {
	t.Helper()
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	b, err := json.Marshal(map[string]any{"slot": 7, "key": der})
	if err != nil {
		t.Fatal(err)
	}
	return b
}
