// Package receipt is the layout of an approval: what somebody at the box agreed to by holding the button.
//
// A receipt is a COSE_Sign1 (RFC 9052 section 4.2) with EdDSA, content type ContentType in its protected header, and
// external data AAD, over the deterministic CBOR (RFC 8949 section 4.2) of Claims. This package is the payload alone. It
// signs nothing and verifies no signature: the mint signs, and the desk and the audit verify, each for its own reasons.
package receipt

import (
	"bytes"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/fxamacker/cbor/v2"

	"assent.home.arpa/capabilities"
)

// ContentType and AAD separate receipts from everything else that the box signs.
const (
	ContentType = "application/assent-receipt+cbor"
	AAD         = "assent/receipt/v1"
)

// MaxBytes bounds the claims, and MaxSigned the whole COSE_Sign1.
const (
	MaxBytes  = 768
	MaxSigned = 1024
)

// ErrMalformed says that bytes are no receipt: not deterministic CBOR, unknown or missing fields, or values out of range.
var ErrMalformed = errors.New("receipt: malformed claims")

// Claims is what a press agreed to. Every field is required, and no field may ever be renumbered.
type Claims struct {
	Inv           capabilities.InvocationID `cbor:"1,keyasint"`
	ArgsDigest    capabilities.ArgsDigest   `cbor:"2,keyasint"` // of the normalised arguments
	ScreenDigest  [32]byte                  `cbor:"3,keyasint"` // of the pages that were drawn and acknowledged
	RequestDigest [32]byte                  `cbor:"4,keyasint"` // of the exact request; zero where nothing leaves the box
	Capability    capabilities.Name         `cbor:"5,keyasint"`
	Version       capabilities.Version      `cbor:"6,keyasint"`
	Revision      string                    `cbor:"7,keyasint"` // adapter revision
	SchemaDigest  [32]byte                  `cbor:"8,keyasint"`
	NonceDigest   [32]byte                  `cbor:"9,keyasint"`  // of the mint's nonce, which is never written anywhere
	BootID        [16]byte                  `cbor:"10,keyasint"` // the boot whose clocks the times below are of
	Shown         time.Duration             `cbor:"11,keyasint"` // CLOCK_MONOTONIC: last draw acknowledged
	Pressed       time.Duration             `cbor:"12,keyasint"` // CLOCK_MONOTONIC: edge that began the hold
	Completed     time.Duration             `cbor:"13,keyasint"` // CLOCK_MONOTONIC: hold complete
	Expires       time.Duration             `cbor:"14,keyasint"` // CLOCK_BOOTTIME
	Slot          uint32                    `cbor:"15,keyasint"` // the phone that asked
	Registry      string                    `cbor:"16,keyasint"` // registry revision
}

// Encode returns the deterministic CBOR of c, or ErrMalformed where c could not be decoded again.
func Encode(c Claims) ([]byte, error) {
	if err := c.check(); err != nil {
		return nil, err
	}
	b, err := encode(c)
	if err != nil {
		return nil, err
	}
	if len(b) > MaxBytes {
		return nil, fmt.Errorf("%w: %d bytes, at most %d are allowed", ErrMalformed, len(b), MaxBytes)
	}
	return b, nil
}

// Decode reads claims. It accepts exactly what Encode produces, so that one set of claims has one set of bytes.
func Decode(b []byte) (Claims, error) {
	if len(b) > MaxBytes {
		return Claims{}, fmt.Errorf("%w: %d bytes, at most %d are allowed", ErrMalformed, len(b), MaxBytes)
	}
	var c Claims
	if err := decMode().Unmarshal(b, &c); err != nil {
		return Claims{}, fmt.Errorf("%w: %v", ErrMalformed, err)
	}
	// The decoder accepts integers that are longer than need be and keys in any order; one encoding must be the only one.
	again, err := encode(c)
	if err != nil {
		return Claims{}, err
	}
	if !bytes.Equal(again, b) {
		return Claims{}, fmt.Errorf("%w: not in deterministic encoding", ErrMalformed)
	}
	if err := c.check(); err != nil {
		return Claims{}, err
	}
	return c, nil
}

// The modes are made once: each verified press of a log needs both.
var (
	encMode = sync.OnceValue(func() cbor.EncMode { return must(cbor.CoreDetEncOptions().EncMode()) })
	decMode = sync.OnceValue(func() cbor.DecMode {
		return must(cbor.DecOptions{
			DupMapKey:         cbor.DupMapKeyEnforcedAPF,
			IndefLength:       cbor.IndefLengthForbidden,
			TagsMd:            cbor.TagsForbidden,
			ExtraReturnErrors: cbor.ExtraDecErrorUnknownField,
			MaxNestedLevels:   4,
			MaxMapPairs:       16,
			MaxArrayElements:  16,
		}.DecMode())
	})
)

func must[M any](mode M, err error) M {
	if err != nil {
		panic("receipt: internal error: " + err.Error())
	}
	return mode
}

func encode(c Claims) ([]byte, error) {
	b, err := encMode().Marshal(c)
	if err != nil {
		return nil, fmt.Errorf("receipt: encoding claims: %w", err)
	}
	return b, nil
}

func (c Claims) check() error {
	switch {
	case c.Inv == capabilities.InvocationID{}, c.BootID == [16]byte{}, c.ScreenDigest == [32]byte{}, c.NonceDigest == [32]byte{}:
		return fmt.Errorf("%w: invocation, boot, screen or nonce is missing", ErrMalformed)
	case !c.Capability.Valid(), c.Version == 0:
		return fmt.Errorf("%w: no such capability name or version", ErrMalformed)
	case len(c.Revision) > 64, len(c.Registry) > 64:
		return fmt.Errorf("%w: a revision is longer than 64 bytes", ErrMalformed)
	case c.Shown < 0, c.Pressed < c.Shown, c.Completed < c.Pressed, c.Expires <= 0:
		return fmt.Errorf("%w: times are out of order", ErrMalformed)
	}
	return nil
}
