package receipt_test

import (
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"assent.home.arpa/confirm/receipt"
)

func claims() receipt.Claims {
	return receipt.Claims{
		Inv: [16]byte{1}, ArgsDigest: [32]byte{2}, ScreenDigest: [32]byte{3}, RequestDigest: [32]byte{4},
		Capability: "web.search", Version: 1, Revision: "mediawiki/1", SchemaDigest: [32]byte{5}, NonceDigest: [32]byte{6},
		BootID: [16]byte{7}, Shown: time.Minute, Pressed: time.Minute + time.Second, Completed: time.Minute + 2500*time.Millisecond,
		Expires: 3 * time.Minute, Slot: 2, Registry: "r7",
	}
}

func TestClaimsHaveOneEncoding(t *testing.T) {
	want := claims()
	b, err := receipt.Encode(want)
	if err != nil {
		t.Fatal(err)
	}
	got, err := receipt.Decode(b)
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
	// 0xb0 is a map of 16 pairs; the same map with a longer head is valid CBOR and must still be refused.
	if b[0] != 0xb0 {
		t.Fatalf("head is %#x", b[0])
	}
	for name, bad := range map[string][]byte{
		"longer head":   append([]byte{0xb8, 16}, b[1:]...),
		"trailing byte": append(append([]byte{}, b...), 0),
		"cut":           b[:len(b)-1],
		"empty":         nil,
		"too long":      make([]byte, receipt.MaxBytes+1),
		"missing pair":  append([]byte{0xaf}, b[1:len(b)-4]...),
	} {
		if _, err := receipt.Decode(bad); !errors.Is(err, receipt.ErrMalformed) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestClaimsThatNobodyCouldHaveAgreedToAreRefused(t *testing.T) {
	for name, change := range map[string]func(*receipt.Claims){
		"press before the draw":     func(c *receipt.Claims) { c.Pressed = c.Shown - 1 },
		"completed before pressed":  func(c *receipt.Claims) { c.Completed = c.Pressed - 1 },
		"no expiry":                 func(c *receipt.Claims) { c.Expires = 0 },
		"no invocation":             func(c *receipt.Claims) { c.Inv = [16]byte{} },
		"no boot":                   func(c *receipt.Claims) { c.BootID = [16]byte{} },
		"no screen":                 func(c *receipt.Claims) { c.ScreenDigest = [32]byte{} },
		"no nonce":                  func(c *receipt.Claims) { c.NonceDigest = [32]byte{} },
		"name that cannot resolve":  func(c *receipt.Claims) { c.Capability = "Web.Search" },
		"version zero":              func(c *receipt.Claims) { c.Version = 0 },
		"revision that is too long": func(c *receipt.Claims) { c.Revision = string(make([]byte, 65)) },
	} {
		c := claims()
		change(&c)
		if _, err := receipt.Encode(c); !errors.Is(err, receipt.ErrMalformed) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func FuzzDecode(f *testing.F) {
	b, err := receipt.Encode(claims())
	if err != nil {
		f.Fatal(err)
	}
	f.Add(b)
	f.Add([]byte{0xa0})
	f.Fuzz(func(t *testing.T, b []byte) {
		c, err := receipt.Decode(b)
		if err != nil {
			return
		}
		again, err := receipt.Encode(c)
		if err != nil {
			t.Fatalf("accepted claims do not encode: %v", err)
		}
		if string(again) != string(b) {
			t.Fatal("two encodings of the same claims")
		}
	})
}
