package audit_test

import (
	"bytes"
	"crypto/ed25519"
	"crypto/rand"
	"errors"
	"slices"
	"testing"

	"github.com/veraison/go-cose"
	"pgregory.net/rapid"

	"assent.home.arpa/appliance/audit"
	"assent.home.arpa/appliance/audit/audittest"
)

const (
	thingType = "application/assent-thing+cbor"
	thingAAD  = "assent/thing/v1"
)

func thingHeaders() cose.Headers {
	return cose.Headers{Protected: cose.ProtectedHeader{
		cose.HeaderLabelAlgorithm: cose.AlgorithmEdDSA, cose.HeaderLabelContentType: thingType,
	}}
}

// signByLibrary is what go-cose makes of a payload.
func signByLibrary(payload []byte) ([]byte, error) {
	signer, err := cose.NewSigner(cose.AlgorithmEdDSA, audittest.GrantKey())
	if err != nil {
		return nil, err
	}
	return cose.Sign1(rand.Reader, signer, thingHeaders(), payload, []byte(thingAAD))
}

// openByLibrary decodes, encodes what may be in it again, compares, and verifies, all with go-cose.
func openByLibrary(key ed25519.PublicKey, sign1 []byte) ([]byte, error) {
	var m cose.Sign1Message
	if err := m.UnmarshalCBOR(sign1); err != nil {
		return nil, err
	}
	again := cose.Sign1Message{Headers: thingHeaders(), Payload: m.Payload, Signature: m.Signature}
	b, err := again.MarshalCBOR()
	if err != nil {
		return nil, err
	}
	if !bytes.Equal(b, sign1) {
		return nil, errors.New("another encoding")
	}
	verifier, err := cose.NewVerifier(cose.AlgorithmEdDSA, key)
	if err != nil {
		return nil, err
	}
	return m.Payload, again.Verify([]byte(thingAAD), verifier)
}

// What is signed here is what a COSE library signs, byte for byte, and each opens what the other made.
func TestSignaturesAreThoseOfACoseLibrary(t *testing.T) {
	public := audittest.GrantKey().Public().(ed25519.PublicKey)
	rapid.Check(t, func(t *rapid.T) {
		payload := rapid.SliceOfN(rapid.Byte(), 0, 700).Draw(t, "payload")
		ours := audit.Sign1(audittest.GrantKey(), thingType, thingAAD, payload)
		theirs, err := signByLibrary(payload)
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(ours, theirs) {
			t.Fatalf("ours   %x\ntheirs %x", ours, theirs)
		}
		if got, err := audit.Open1(audit.Digest(public), thingType, thingAAD, theirs); err != nil || !bytes.Equal(got, payload) {
			t.Fatalf("theirs, opened: %x, %v", got, err)
		}
		if got, err := openByLibrary(public, ours); err != nil || !bytes.Equal(got, payload) {
			t.Fatalf("ours, opened by the library: %x, %v", got, err)
		}
	})
}

// Whatever is done to the bytes, both refuse it or neither does.
func TestWhatIsNotACoseSign1IsRefusedAsALibraryRefusesIt(t *testing.T) {
	public := audittest.GrantKey().Public().(ed25519.PublicKey)
	good, err := signByLibrary([]byte("payload"))
	if err != nil {
		t.Fatal(err)
	}
	refused := 0
	try := func(b []byte) {
		_, err := audit.Open1(audit.Digest(public), thingType, thingAAD, b)
		_, libraryErr := openByLibrary(public, b)
		if (err == nil) != (libraryErr == nil) {
			t.Fatalf("%x\nours: %v\nlibrary: %v", b, err, libraryErr)
		}
		if err != nil {
			refused++
		}
	}
	for at := range good {
		try(good[:at])
		try(slices.Delete(bytes.Clone(good), at, at+1))
		for _, item := range [][]byte{{0x00}, {0x40}, {0x58, 0x07}, {0x5f}, {0xa0}, {0xa1, 0x01, 0x27}, {0xf6}, {0xff}, {0x01, 0x02}} {
			try(slices.Replace(bytes.Clone(good), at, at+1, item...))
			try(slices.Insert(bytes.Clone(good), at, item...))
		}
		for bit := range 8 {
			changed := bytes.Clone(good)
			changed[at] ^= 1 << bit
			try(changed)
		}
	}
	try(append(bytes.Clone(good), 0))
	if refused == 0 {
		t.Error("nothing was refused")
	}
	for name, open := range map[string][2]string{"another type": {"application/assent-other+cbor", thingAAD}, "other external data": {thingType, "assent/other/v1"}} {
		if _, err := audit.Open1(audit.Digest(public), open[0], open[1], good); err == nil {
			t.Errorf("%s: opened", name)
		}
	}
	if _, err := audit.Open1(audit.Digest(audittest.ReceiptKey().Public().(ed25519.PublicKey)), thingType, thingAAD, good); err == nil {
		t.Error("opened with another key")
	}
}
