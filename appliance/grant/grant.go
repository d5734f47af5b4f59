// Package grant is the permission that crosses from guard to courier: the exact bytes of one call, signed, for one use.
//
// A grant is a COSE_Sign1 (RFC 9052 section 4.2) with EdDSA, content type ContentType and external data AAD, over the
// deterministic CBOR of Claims. It names the challenge of the courier's present connection, the boot and a deadline on
// the boot clock, so that it dies with the connection, with its first use or with time, whichever comes first. Only the
// executor signs; only the courier verifies. Automatic calls carry grants too: they differ in having no receipt.
package grant

import (
	"bytes"
	"crypto/ed25519"
	"crypto/rand"
	"crypto/sha256"
	"errors"
	"fmt"
	"time"

	"github.com/fxamacker/cbor/v2"
	"github.com/veraison/go-cose"

	"assent.home.arpa/capabilities"
)

// ContentType and AAD separate grants from everything else that the guard signs.
const (
	ContentType = "application/assent-grant+cbor"
	AAD         = "assent/grant/v1"
)

// MaxBytes bounds a signed grant.
const MaxBytes = 128 << 10

// Claims is what a grant allows.
type Claims struct {
	Inv        capabilities.InvocationID `cbor:"1,keyasint"`
	Capability capabilities.Name         `cbor:"2,keyasint"`
	Version    capabilities.Version      `cbor:"3,keyasint"`
	Revision   string                    `cbor:"4,keyasint"` // adapter revision: picks the worker's parser
	Class      capabilities.Class        `cbor:"5,keyasint"`
	Args       []byte                    `cbor:"6,keyasint"` // normalised arguments
	ArgsDigest [32]byte                  `cbor:"7,keyasint"`
	Request    *capabilities.Request     `cbor:"8,keyasint,omitempty"` // nil unless Class is ClassNet
	Receipt    [32]byte                  `cbor:"9,keyasint"`           // digest of the receipt; zero for automatic calls
	Intent     uint64                    `cbor:"10,keyasint"`          // audit record that promised this call
	Challenge  [32]byte                  `cbor:"11,keyasint"`
	BootID     [16]byte                  `cbor:"12,keyasint"`
	Deadline   time.Duration             `cbor:"13,keyasint"` // on CLOCK_BOOTTIME
	Body       int                       `cbor:"14,keyasint"` // bound of the result body in bytes
	Nonce      [16]byte                  `cbor:"15,keyasint"`
}

// ErrInvalid marks bytes that are not a grant: wrong signature, type, encoding or contents.
var ErrInvalid = errors.New("grant: not a valid grant")

// Sign issues a grant. The caller has checked everything that it says.
func Sign(key ed25519.PrivateKey, c Claims) ([]byte, error) {
	if _, err := rand.Read(c.Nonce[:]); err != nil {
		return nil, fmt.Errorf("grant: nonce: %w", err)
	}
	if err := c.check(); err != nil {
		return nil, err
	}
	signer, err := cose.NewSigner(cose.AlgorithmEdDSA, key)
	if err != nil {
		return nil, fmt.Errorf("grant: signer: %w", err)
	}
	msg := cose.NewSign1Message()
	msg.Headers.Protected.SetAlgorithm(cose.AlgorithmEdDSA)
	msg.Headers.Protected[cose.HeaderLabelContentType] = ContentType
	msg.Payload = mustEncode(&c)
	if err := msg.Sign(rand.Reader, []byte(AAD), signer); err != nil {
		return nil, fmt.Errorf("grant: sign: %w", err)
	}
	out, err := msg.MarshalCBOR()
	if err != nil {
		return nil, fmt.Errorf("grant: encode: %w", err)
	}
	if len(out) > MaxBytes {
		return nil, fmt.Errorf("grant: %d bytes are over the bound of %d", len(out), MaxBytes)
	}
	return out, nil
}

// Verify checks the signature, type and encoding of a grant and returns its claims with their exact bytes. It knows
// nothing of time, boot, challenge or reuse: those are the courier's to check.
func Verify(key ed25519.PublicKey, signed []byte) (Claims, []byte, error) {
	if len(signed) > MaxBytes {
		return Claims{}, nil, fmt.Errorf("%w: %d bytes", ErrInvalid, len(signed))
	}
	verifier, err := cose.NewVerifier(cose.AlgorithmEdDSA, key)
	if err != nil {
		return Claims{}, nil, fmt.Errorf("%w: %v", ErrInvalid, err)
	}
	var msg cose.Sign1Message
	if err := msg.UnmarshalCBOR(signed); err != nil {
		return Claims{}, nil, fmt.Errorf("%w: %v", ErrInvalid, err)
	}
	if ct, _ := msg.Headers.Protected[cose.HeaderLabelContentType].(string); ct != ContentType || len(msg.Headers.Unprotected) != 0 {
		return Claims{}, nil, fmt.Errorf("%w: headers", ErrInvalid)
	}
	if err := msg.Verify([]byte(AAD), verifier); err != nil {
		return Claims{}, nil, fmt.Errorf("%w: %v", ErrInvalid, err)
	}
	c, err := Decode(msg.Payload)
	return c, msg.Payload, err
}

// Decode reads claims whose signature somebody else has checked: a worker reads what its courier verified.
func Decode(payload []byte) (Claims, error) {
	dec, err := cbor.DecOptions{
		DupMapKey: cbor.DupMapKeyEnforcedAPF, IndefLength: cbor.IndefLengthForbidden, TagsMd: cbor.TagsForbidden,
		ExtraReturnErrors: cbor.ExtraDecErrorUnknownField, MaxNestedLevels: 4, UTF8: cbor.UTF8RejectInvalid,
	}.DecMode()
	if err != nil {
		panic("grant: internal error: " + err.Error())
	}
	var c Claims
	if err := dec.Unmarshal(payload, &c); err != nil {
		return Claims{}, fmt.Errorf("%w: %v", ErrInvalid, err)
	}
	if !bytes.Equal(mustEncode(&c), payload) {
		return Claims{}, fmt.Errorf("%w: not the deterministic encoding", ErrInvalid)
	}
	return c, c.check()
}

func (c *Claims) check() error {
	switch {
	case c.Inv == capabilities.InvocationID{}, c.Capability == "", c.Version == 0, c.Revision == "":
		return fmt.Errorf("%w: it names no call", ErrInvalid)
	case c.Intent == 0:
		return fmt.Errorf("%w: no intent was recorded", ErrInvalid)
	case c.Challenge == [32]byte{}, c.BootID == [16]byte{}, c.Deadline <= 0, c.Nonce == [16]byte{}:
		return fmt.Errorf("%w: it is bound to no connection, boot or time", ErrInvalid)
	case sha256.Sum256(c.Args) != c.ArgsDigest:
		return fmt.Errorf("%w: arguments and their digest differ", ErrInvalid)
	case (c.Class == capabilities.ClassNet) != (c.Request != nil):
		return fmt.Errorf("%w: class %s with%s a request", ErrInvalid, c.Class, map[bool]string{true: "", false: "out"}[c.Request != nil])
	case c.Class < capabilities.ClassNone || c.Class > capabilities.ClassNet:
		return fmt.Errorf("%w: %s", ErrInvalid, c.Class)
	case c.Class == capabilities.ClassNet && c.Receipt == [32]byte{}:
		return fmt.Errorf("%w: a call that leaves the box has no receipt", ErrInvalid)
	case c.Body <= 0 || c.Body > 64<<10:
		return fmt.Errorf("%w: body bound %d", ErrInvalid, c.Body)
	}
	return nil
}

func mustEncode(v any) []byte {
	mode, err := cbor.CoreDetEncOptions().EncMode()
	if err != nil {
		panic("grant: internal error: " + err.Error())
	}
	b, err := mode.Marshal(v)
	if err != nil {
		panic("grant: internal error: " + err.Error())
	}
	return b
}
