package grant_test

import (
	"crypto/ed25519"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/veraison/go-cose"

	"assent.home.arpa/appliance/grant"
	"assent.home.arpa/capabilities"
)

func key(seed byte) (ed25519.PrivateKey, ed25519.PublicKey) {
	s := make([]byte, ed25519.SeedSize)
	s[0] = seed
	k := ed25519.NewKeyFromSeed(s)
	return k, k.Public().(ed25519.PublicKey)
}

func claims() grant.Claims {
	args := []byte(`{"query":"tea"}`)
	return grant.Claims{
		Inv: capabilities.InvocationID{1}, Capability: "web.search", Version: 1, Revision: "mediawiki/1", Class: capabilities.ClassNet,
		Args: args, ArgsDigest: sha256.Sum256(args),
		Request: &capabilities.Request{Scheme: "https", Host: "en.wikipedia.org", Port: 443, Address: capabilities.AddressPublic, Bytes: []byte("GET / HTTP/1.1\r\n\r\n")},
		Receipt: [32]byte{2}, Intent: 9, Challenge: [32]byte{3}, BootID: [16]byte{4}, Deadline: time.Minute, Body: 4096,
	}
}

func TestGrantCrosses(t *testing.T) {
	sk, pk := key(1)
	signed, err := grant.Sign(sk, claims())
	if err != nil {
		t.Fatal(err)
	}
	got, payload, err := grant.Verify(pk, signed)
	if err != nil {
		t.Fatal(err)
	}
	want := claims()
	want.Nonce = got.Nonce
	if diff := cmp.Diff(want, got); diff != "" {
		t.Fatal(diff)
	}
	again, err := grant.Decode(payload)
	if err != nil || !cmp.Equal(again, got) {
		t.Fatalf("a worker reads something else: %v", err)
	}
	other, err := grant.Sign(sk, claims())
	if err != nil || string(other) == string(signed) {
		t.Fatal("two grants for the same call are the same grant")
	}
}

func TestEveryChangedByteIsCaught(t *testing.T) {
	sk, pk := key(1)
	signed, err := grant.Sign(sk, claims())
	if err != nil {
		t.Fatal(err)
	}
	for i := range signed {
		bad := append([]byte(nil), signed...)
		bad[i] ^= 1
		if _, _, err := grant.Verify(pk, bad); !errors.Is(err, grant.ErrInvalid) {
			t.Fatalf("byte %d changed: %v", i, err)
		}
	}
	if _, _, err := grant.Verify(pk, append(signed, 0)); !errors.Is(err, grant.ErrInvalid) {
		t.Fatalf("a byte added: %v", err)
	}
	_, wrong := key(2)
	if _, _, err := grant.Verify(wrong, signed); !errors.Is(err, grant.ErrInvalid) {
		t.Fatalf("another guard's key: %v", err)
	}
}

func TestIncompleteClaimsAreNeverSigned(t *testing.T) {
	sk, _ := key(1)
	for name, spoil := range map[string]func(*grant.Claims){
		"no invocation":           func(c *grant.Claims) { c.Inv = capabilities.InvocationID{} },
		"no intent":               func(c *grant.Claims) { c.Intent = 0 },
		"no challenge":            func(c *grant.Claims) { c.Challenge = [32]byte{} },
		"no boot":                 func(c *grant.Claims) { c.BootID = [16]byte{} },
		"no deadline":             func(c *grant.Claims) { c.Deadline = 0 },
		"no receipt":              func(c *grant.Claims) { c.Receipt = [32]byte{} },
		"no request":              func(c *grant.Claims) { c.Request = nil },
		"request without network": func(c *grant.Claims) { c.Class = capabilities.ClassNone },
		"no class":                func(c *grant.Claims) { c.Class, c.Request = 0, nil },
		"other arguments":         func(c *grant.Claims) { c.Args = []byte(`{"query":"coffee"}`) },
		"no body bound":           func(c *grant.Claims) { c.Body = 0 },
		"body bound too large":    func(c *grant.Claims) { c.Body = 1 << 20 },
	} {
		t.Run(name, func(t *testing.T) {
			c := claims()
			spoil(&c)
			if _, err := grant.Sign(sk, c); !errors.Is(err, grant.ErrInvalid) {
				t.Fatalf("got %v", err)
			}
		})
	}
}

func TestAnotherKindOfSignatureIsNoGrant(t *testing.T) {
	sk, pk := key(1)
	signed, err := grant.Sign(sk, claims())
	if err != nil {
		t.Fatal(err)
	}
	var msg cose.Sign1Message
	if err := msg.UnmarshalCBOR(signed); err != nil {
		t.Fatal(err)
	}
	signer, err := cose.NewSigner(cose.AlgorithmEdDSA, sk)
	if err != nil {
		t.Fatal(err)
	}
	for name, forge := range map[string]func(*cose.Sign1Message) []byte{
		"another content type": func(m *cose.Sign1Message) []byte {
			m.Headers.Protected[cose.HeaderLabelContentType] = "application/assent-receipt+cbor"
			return []byte(grant.AAD)
		},
		"another external data": func(*cose.Sign1Message) []byte { return []byte("assent/receipt/v1") },
		"an unprotected header": func(m *cose.Sign1Message) []byte {
			m.Headers.Unprotected[cose.HeaderLabelKeyID] = []byte("k")
			return []byte(grant.AAD)
		},
		"payload of other shape": func(m *cose.Sign1Message) []byte { m.Payload = []byte{0xa0}; return []byte(grant.AAD) },
	} {
		t.Run(name, func(t *testing.T) {
			m := cose.NewSign1Message()
			m.Headers.Protected.SetAlgorithm(cose.AlgorithmEdDSA)
			m.Headers.Protected[cose.HeaderLabelContentType] = grant.ContentType
			m.Payload = msg.Payload
			aad := forge(m)
			if err := m.Sign(nil, aad, signer); err != nil {
				t.Fatal(err)
			}
			b, err := m.MarshalCBOR()
			if err != nil {
				t.Fatal(err)
			}
			if _, _, err := grant.Verify(pk, b); !errors.Is(err, grant.ErrInvalid) {
				t.Fatalf("got %v", err)
			}
		})
	}
}

// TestGrantGolden fixes the bytes: a grant signed by an earlier build of the same contract must verify.
func TestGrantGolden(t *testing.T) {
	_, pk := key(1)
	text, err := os.ReadFile(filepath.Join("..", "..", "testdata", "contracts", "grant.golden"))
	if err != nil {
		t.Fatal(err)
	}
	signed, err := hex.DecodeString(strings.TrimSpace(string(text)))
	if err != nil {
		t.Fatal(err)
	}
	got, _, err := grant.Verify(pk, signed)
	if err != nil {
		t.Fatal(err)
	}
	want := claims()
	want.Nonce = got.Nonce
	if diff := cmp.Diff(want, got); diff != "" {
		t.Fatal(diff)
	}
	if d := hex.EncodeToString(digest(got.Request)); d != requestDigest {
		t.Fatalf("request digest %s, contract says %s", d, requestDigest)
	}
}

const requestDigest = "82e3ad7aec13650cd886938b83cf3d1093e245c5d5dbcca40cb5c99523873803"

func digest(r *capabilities.Request) []byte { d := r.Digest(); return d[:] }
