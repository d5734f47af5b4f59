package mint_test

import (
	"bytes"
	"crypto/ed25519"
	"crypto/sha256"
	"errors"
	"testing"
	"testing/iotest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/veraison/go-cose"

	"assent.home.arpa/confirm/internal/mint"
	"assent.home.arpa/confirm/receipt"
)

func key(b byte) ed25519.PrivateKey {
	return ed25519.NewKeyFromSeed(bytes.Repeat([]byte{b}, ed25519.SeedSize))
}

func public(k ed25519.PrivateKey) ed25519.PublicKey {
	pub, ok := k.Public().(ed25519.PublicKey)
	if !ok {
		panic("not an ed25519 key")
	}
	return pub
}

func claims() receipt.Claims {
	return receipt.Claims{
		Inv: [16]byte{1}, ArgsDigest: [32]byte{2}, ScreenDigest: [32]byte{3}, RequestDigest: [32]byte{4}, Capability: "web.search",
		Version: 1, Revision: "mediawiki/1", SchemaDigest: [32]byte{5}, BootID: [16]byte{6}, Shown: time.Second,
		Pressed: 2 * time.Second, Completed: 3500 * time.Millisecond, Expires: time.Minute, Slot: 7, Registry: "r1",
	}
}

func nonce() []byte { return bytes.Repeat([]byte{9}, 32) }

func TestMintVerifies(t *testing.T) {
	tok, err := mint.Mint(bytes.NewReader(nonce()), key(1), claims())
	if err != nil {
		t.Fatal(err)
	}
	got, err := mint.Verify(public(key(1)), tok.COSE)
	if err != nil {
		t.Fatal(err)
	}
	want := claims()
	want.NonceDigest = sha256.Sum256(nonce())
	if diff := cmp.Diff(want, got); diff != "" {
		t.Fatal(diff)
	}
	if bytes.Contains(tok.COSE, nonce()) {
		t.Fatal("the nonce itself is in the receipt")
	}
}

func TestVerifyRefusesAFlippedBit(t *testing.T) {
	tok, err := mint.Mint(bytes.NewReader(nonce()), key(1), claims())
	if err != nil {
		t.Fatal(err)
	}
	for i := range tok.COSE { // one bit of every byte, each place in turn
		flipped := bytes.Clone(tok.COSE)
		flipped[i] ^= 1 << (i % 8)
		if _, err := mint.Verify(public(key(1)), flipped); !errors.Is(err, mint.ErrInvalid) {
			t.Fatalf("bit %d flipped: %v", i, err)
		}
	}
}

func TestVerifyRefuses(t *testing.T) {
	tok, err := mint.Mint(bytes.NewReader(nonce()), key(1), claims())
	if err != nil {
		t.Fatal(err)
	}
	sign := func(contentType, aad string, unprotected cose.UnprotectedHeader) []byte {
		c := claims()
		c.NonceDigest = [32]byte{1}
		payload, err := receipt.Encode(c)
		if err != nil {
			t.Fatal(err)
		}
		signer, err := cose.NewSigner(cose.AlgorithmEdDSA, key(1))
		if err != nil {
			t.Fatal(err)
		}
		b, err := cose.Sign1(nil, signer, cose.Headers{
			Protected: cose.ProtectedHeader{
				cose.HeaderLabelAlgorithm: cose.AlgorithmEdDSA, cose.HeaderLabelContentType: contentType,
			},
			Unprotected: unprotected,
		}, payload, []byte(aad))
		if err != nil {
			t.Fatal(err)
		}
		return b
	}
	if _, err := mint.Verify(public(key(1)), sign(receipt.ContentType, receipt.AAD, nil)); err != nil {
		t.Fatalf("the control of this test does not verify: %v", err)
	}
	for name, signed := range map[string][]byte{
		"nothing":                   nil,
		"cut short":                 tok.COSE[:len(tok.COSE)-1],
		"with a byte behind":        append(bytes.Clone(tok.COSE), 0),
		"too long":                  make([]byte, receipt.MaxSigned+1),
		"of another content type":   sign("application/assent-seal+cbor", receipt.AAD, nil),
		"for another purpose":       sign(receipt.ContentType, "assent/grant/v1", nil),
		"with an unprotected field": sign(receipt.ContentType, receipt.AAD, cose.UnprotectedHeader{int64(99): "x"}),
	} {
		if _, err := mint.Verify(public(key(1)), signed); !errors.Is(err, mint.ErrInvalid) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := mint.Verify(public(key(2)), tok.COSE); !errors.Is(err, mint.ErrInvalid) {
		t.Errorf("of another box: %v", err)
	}
}

func TestMintFails(t *testing.T) {
	if _, err := mint.Mint(iotest.ErrReader(errors.New("no entropy")), key(1), claims()); err == nil {
		t.Error("minted without entropy")
	}
	if _, err := mint.Mint(bytes.NewReader(nonce()[:31]), key(1), claims()); err == nil {
		t.Error("minted with a short nonce")
	}
	c := claims()
	c.Pressed = c.Shown - 1
	if _, err := mint.Mint(bytes.NewReader(nonce()), key(1), c); !errors.Is(err, receipt.ErrMalformed) {
		t.Errorf("minted for a press before the draw: %v", err)
	}
}
