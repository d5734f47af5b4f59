// Package mint makes and checks the signed receipt of a press. It is the only place in the product that signs one, and it is
// internal to confirm, so that no other package can: the panel calls it when a hold completes, and at no other moment.
package mint

import (
	"bytes"
	"crypto/ed25519"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"

	"github.com/veraison/go-cose"

	"assent.home.arpa/confirm/receipt"
)

// ErrInvalid says that bytes are not a receipt signed by the given key.
var ErrInvalid = errors.New("mint: not a receipt of this box")

// Token is a fresh receipt. The nonce makes it spendable and exists nowhere else; the receipt names it only by digest.
type Token struct {
	Nonce [32]byte
	COSE  []byte // COSE_Sign1 (RFC 9052 section 4.2), tagged, over receipt.Claims
}

// Mint signs claims under key. It draws the nonce from rand and fills in its digest. It fails if rand does, or if claims are
// not encodable.
func Mint(rand io.Reader, key ed25519.PrivateKey, claims receipt.Claims) (Token, error) {
	var t Token
	if _, err := io.ReadFull(rand, t.Nonce[:]); err != nil {
		return Token{}, fmt.Errorf("mint: drawing a nonce: %w", err)
	}
	claims.NonceDigest = sha256.Sum256(t.Nonce[:])
	payload, err := receipt.Encode(claims)
	if err != nil {
		return Token{}, err
	}
	signer, err := cose.NewSigner(cose.AlgorithmEdDSA, key)
	if err != nil {
		return Token{}, fmt.Errorf("mint: signing key: %w", err)
	}
	t.COSE, err = cose.Sign1(rand, signer, cose.Headers{Protected: protected()}, payload, []byte(receipt.AAD))
	if err != nil {
		return Token{}, fmt.Errorf("mint: signing: %w", err)
	}
	return t, nil
}

// Verify returns the claims of signed, if key made it. Every failure wraps ErrInvalid.
func Verify(key ed25519.PublicKey, signed []byte) (receipt.Claims, error) {
	if len(signed) > receipt.MaxSigned {
		return receipt.Claims{}, fmt.Errorf("%w: %d bytes", ErrInvalid, len(signed))
	}
	var m cose.Sign1Message
	if err := m.UnmarshalCBOR(signed); err != nil {
		return receipt.Claims{}, fmt.Errorf("%w: %v", ErrInvalid, err)
	}
	verifier, err := cose.NewVerifier(cose.AlgorithmEdDSA, key)
	if err != nil {
		return receipt.Claims{}, fmt.Errorf("%w: %v", ErrInvalid, err)
	}
	if err := m.Verify([]byte(receipt.AAD), verifier); err != nil {
		return receipt.Claims{}, fmt.Errorf("%w: %v", ErrInvalid, err)
	}
	// One receipt has one encoding: the unprotected header, which the signature leaves open, must be empty.
	m.Headers = cose.Headers{Protected: protected()}
	again, err := m.MarshalCBOR()
	if err != nil || !bytes.Equal(again, signed) {
		return receipt.Claims{}, fmt.Errorf("%w: headers are not those of a receipt", ErrInvalid)
	}
	claims, err := receipt.Decode(m.Payload)
	if err != nil {
		return receipt.Claims{}, fmt.Errorf("%w: %v", ErrInvalid, err)
	}
	return claims, nil
}

func protected() cose.ProtectedHeader {
	return cose.ProtectedHeader{
		cose.HeaderLabelAlgorithm:   cose.AlgorithmEdDSA,
		cose.HeaderLabelContentType: receipt.ContentType,
	}
}
