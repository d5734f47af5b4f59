package audit

import (
	"bytes"
	"crypto/ed25519"
	"crypto/rand"
	"errors"
	"fmt"

	"github.com/veraison/go-cose"

	"assent.home.arpa/confirm/receipt"
)

// Each thing that is signed has a content type, which is in the protected header, and external data of its own, so that
// a signature over one can never be taken for a signature over another (RFC 9052 section 4.3).
const (
	sealType    = "application/assent-seal+cbor"
	sealAAD     = "assent/seal/v1"
	genesisType = "application/assent-genesis+cbor"
	genesisAAD  = "assent/genesis/v1"
)

var errSignature = errors.New("signature does not verify")

// sign1 returns a tagged COSE_Sign1 (RFC 9052 section 4.2) with EdDSA over payload.
func sign1(key ed25519.PrivateKey, contentType, aad string, payload []byte) ([]byte, error) {
	signer, err := cose.NewSigner(cose.AlgorithmEdDSA, key)
	if err != nil {
		return nil, fmt.Errorf("audit: signing: %w", err)
	}
	b, err := cose.Sign1(rand.Reader, signer, headers(contentType), payload, []byte(aad))
	if err != nil {
		return nil, fmt.Errorf("audit: signing: %w", err)
	}
	return b, nil
}

func headers(contentType string) cose.Headers {
	return cose.Headers{Protected: cose.ProtectedHeader{
		cose.HeaderLabelAlgorithm:   cose.AlgorithmEdDSA,
		cose.HeaderLabelContentType: contentType,
	}}
}

// open1 verifies what sign1 made and returns the payload. It accepts one encoding only: nothing may be added to the
// unprotected header, which no signature covers.
func open1(key Digest, contentType, aad string, sign1 []byte) ([]byte, error) {
	var m cose.Sign1Message
	if err := m.UnmarshalCBOR(sign1); err != nil {
		return nil, fmt.Errorf("not a cose_sign1: %w", err)
	}
	verifier, err := cose.NewVerifier(cose.AlgorithmEdDSA, ed25519.PublicKey(key[:]))
	if err != nil {
		return nil, err
	}
	again := cose.Sign1Message{Headers: headers(contentType), Payload: m.Payload, Signature: m.Signature}
	b, err := again.MarshalCBOR()
	if err != nil || !bytes.Equal(b, sign1) {
		return nil, errors.New("cose_sign1 is of another type, or not in deterministic encoding")
	}
	if err := again.Verify([]byte(aad), verifier); err != nil {
		return nil, errSignature
	}
	return m.Payload, nil
}

// openReceipt verifies a receipt against the key of its epoch.
func openReceipt(key Digest, sign1 []byte) (receipt.Claims, error) {
	payload, err := open1(key, receipt.ContentType, receipt.AAD, sign1)
	if err != nil {
		return receipt.Claims{}, err
	}
	return receipt.Decode(payload)
}

// openSeal returns the claims of a seal that was signed with key.
func (c codec) openSeal(key Digest, s *Seal) (SealClaims, error) {
	payload, err := open1(key, sealType, sealAAD, s.Sign1)
	if err != nil {
		return SealClaims{}, err
	}
	var claims SealClaims
	return claims, c.decode(payload, &claims)
}

// peekSeal reads the claims of a seal without believing them.
func (c codec) peekSeal(s *Seal) (SealClaims, error) {
	var m cose.Sign1Message
	if err := m.UnmarshalCBOR(s.Sign1); err != nil {
		return SealClaims{}, fmt.Errorf("not a cose_sign1: %w", err)
	}
	var claims SealClaims
	return claims, c.decode(m.Payload, &claims)
}

// openGenesis checks a genesis against the root key that it names.
func (c codec) openGenesis(g *Genesis) (GenesisClaims, error) {
	payload, err := open1(g.Root, genesisType, genesisAAD, g.Statement)
	if err != nil {
		return GenesisClaims{}, err
	}
	var claims GenesisClaims
	if err := c.decode(payload, &claims); err != nil {
		return GenesisClaims{}, err
	}
	if claims.Version != g.Version || claims.Root != g.Root {
		return GenesisClaims{}, errors.New("the statement is about another log")
	}
	return claims, nil
}
