package audit

import (
	"bytes"
	"crypto/ed25519"
	"crypto/sha256"
	"errors"
	"reflect"

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

// signed is a tagged COSE_Sign1 (RFC 9052 section 4.2) with EdDSA, taken apart:
//
//	18([<< {1: -8, 3: content type} >>, {}, payload: bstr, signature: bstr .size 64])
//
// Nothing varies but the payload and the signature, so it is read and written by its bytes: there is one encoding, and
// nothing can be added to the unprotected header, which no signature covers. Tests hold it against a COSE library.
type signed struct {
	protected []byte // the protected header, encoded
	payload   []byte
	signature []byte
}

// protectedHeader is {1: -8, 3: contentType} (RFC 9052 section 3.1: algorithm EdDSA, content type).
func protectedHeader(contentType string) []byte {
	h := append(make([]byte, 0, 48), 0xa2, 0x01, 0x27, 0x03)
	return append(appendHead(h, majorText, uint64(len(contentType))), contentType...)
}

// parseSigned takes a COSE_Sign1 apart without believing it. The result shares the input's memory.
func parseSigned(contentType string, sign1 []byte) (signed, error) {
	s := signed{protected: protectedHeader(contentType)}
	rest, ok := bytes.CutPrefix(sign1, []byte{0xd2, 0x84})
	d := cursor{rest: rest}
	if ok = ok && bytes.Equal(d.string(majorBytes), s.protected); ok {
		ok = d.head(majorMap) == 0
	}
	s.payload = d.string(majorBytes)
	s.signature = d.string(majorBytes)
	if d.end() != nil || !ok || len(s.signature) != ed25519.SignatureSize {
		return signed{}, errors.New("no cose_sign1 of its type, or not in its one encoding")
	}
	return s, nil
}

// toBeSigned is the Sig_structure (RFC 9052 section 4.4).
func (s signed) toBeSigned(aad string) []byte {
	b := make([]byte, 0, 32+len(s.protected)+len(aad)+len(s.payload))
	b = append(b, 0x84, 0x6a)
	b = append(b, "Signature1"...)
	b = appendString(b, s.protected)
	b = appendString(b, aad)
	return appendString(b, s.payload)
}

func (s signed) verify(key Digest, aad string) error {
	if !ed25519.Verify(key[:], s.toBeSigned(aad), s.signature) {
		return errSignature
	}
	return nil
}

// sign1 returns a tagged COSE_Sign1 over payload.
func sign1(key ed25519.PrivateKey, contentType, aad string, payload []byte) []byte {
	s := signed{protected: protectedHeader(contentType), payload: payload}
	s.signature = ed25519.Sign(key, s.toBeSigned(aad))
	b := append(make([]byte, 0, 16+len(s.protected)+len(payload)+len(s.signature)), 0xd2, 0x84)
	b = appendString(b, s.protected)
	b = appendString(append(b, 0xa0), payload)
	return appendString(b, s.signature)
}

// open1 verifies what sign1 made and returns the payload.
func open1(key Digest, contentType, aad string, sign1 []byte) ([]byte, error) {
	s, err := parseSigned(contentType, sign1)
	if err != nil {
		return nil, err
	}
	return s.payload, s.verify(key, aad)
}

// press is a receipt whose signature was verified: which bytes, with which key, and what they say.
type press struct {
	key    Digest
	digest Digest // SHA-256 of the COSE_Sign1
	claims receipt.Claims
}

// openReceipt verifies a receipt against a key.
func openReceipt(key Digest, sign1 []byte) (press, error) {
	payload, err := open1(key, receipt.ContentType, receipt.AAD, sign1)
	if err != nil {
		return press{}, err
	}
	claims, err := receipt.Decode(payload)
	return press{key: key, digest: sha256.Sum256(sign1), claims: claims}, err
}

// openSeal returns the claims of a seal that was signed with key.
func (c codec) openSeal(key Digest, s *Seal) (SealClaims, error) {
	claims, err := c.peekSeal(s)
	if err != nil {
		return SealClaims{}, err
	}
	_, err = open1(key, sealType, sealAAD, s.Sign1)
	return claims, err
}

// peekSeal reads the claims of a seal without believing them.
func (c codec) peekSeal(s *Seal) (SealClaims, error) {
	signed, err := parseSigned(sealType, s.Sign1)
	if err != nil {
		return SealClaims{}, err
	}
	var claims SealClaims
	d := cursor{rest: signed.payload}
	if err := c.layouts.claims.read(&d, reflect.ValueOf(&claims).Elem(), false); err != nil {
		return SealClaims{}, err
	}
	return claims, d.end()
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
