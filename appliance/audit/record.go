package audit

import (
	"bytes"
	"crypto/rand"
	"errors"
	"fmt"
	"time"

	"github.com/fxamacker/cbor/v2"

	"assent.home.arpa/appliance/clock"
)

// ErrMalformed says that bytes are no record or no frame of this format, or that a payload may not be written.
var ErrMalformed = errors.New("audit: malformed")

// Record is one record of the log as a reader sees it.
type Record struct {
	Kind   Kind
	Seq    Seq
	BootID ID
	// Boot is the time on CLOCK_BOOTTIME. Within a boot it never runs backwards, but only Seq orders records.
	Boot time.Duration
	// Wall is Unix milliseconds, 0 where Clock is clock.Unset.
	Wall  int64
	Clock clock.State
	// Salt keeps a body with few possible contents from being guessed once it is redacted to its hash.
	Salt    ID
	Inv     ID
	Payload Payload // nil in a redacted record
}

// body is a record as it is encoded. Keys 0 to 8 are never renumbered.
type body struct {
	Kind    Kind            `cbor:"0,keyasint"`
	Seq     Seq             `cbor:"1,keyasint"`
	BootID  ID              `cbor:"2,keyasint"`
	Boot    time.Duration   `cbor:"3,keyasint"`
	Wall    int64           `cbor:"4,keyasint,omitzero"`
	Clock   clock.State     `cbor:"5,keyasint"`
	Salt    ID              `cbor:"6,keyasint"`
	Inv     ID              `cbor:"7,keyasint,omitzero"`
	Payload cbor.RawMessage `cbor:"8,keyasint"`
}

// codec holds the two CBOR modes. Encoding is Core Deterministic (RFC 8949 section 4.2.1). CBOR and not JSON, since the
// records are signed and hold digests: one encoding for each value, and bytes that stay bytes.
type codec struct {
	enc cbor.EncMode
	dec cbor.DecMode
}

func newCodec() codec {
	enc := cbor.CoreDetEncOptions()
	// An empty list is an empty list. null is not in the format.
	enc.NilContainers = cbor.NilContainerAsEmpty
	enc.TagsMd = cbor.TagsForbidden
	em, err := enc.EncMode()
	if err != nil {
		panic("audit: internal error: " + err.Error())
	}
	dm, err := cbor.DecOptions{
		DupMapKey:         cbor.DupMapKeyEnforcedAPF,
		IndefLength:       cbor.IndefLengthForbidden,
		TagsMd:            cbor.TagsForbidden,
		ExtraReturnErrors: cbor.ExtraDecErrorUnknownField,
		UTF8:              cbor.UTF8RejectInvalid,
		MaxNestedLevels:   8,
		MaxArrayElements:  maxList,
		MaxMapPairs:       32,
	}.DecMode()
	if err != nil {
		panic("audit: internal error: " + err.Error())
	}
	return codec{enc: em, dec: dm}
}

func (c codec) encode(v any) ([]byte, error) {
	b, err := c.enc.Marshal(v)
	if err != nil {
		return nil, fmt.Errorf("%w: %v", ErrMalformed, err)
	}
	return b, nil
}

// decode fills v and refuses any other encoding of the same value: the decoder accepts integers that are longer than need
// be and keys in any order, and a log in which a record has two encodings is one in which bytes can change unseen.
func (c codec) decode(b []byte, v any) error {
	if err := c.dec.Unmarshal(b, v); err != nil {
		return fmt.Errorf("%w: %v", ErrMalformed, err)
	}
	again, err := c.enc.Marshal(v)
	if err != nil {
		return fmt.Errorf("%w: %v", ErrMalformed, err)
	}
	if !bytes.Equal(again, b) {
		return fmt.Errorf("%w: not in deterministic encoding", ErrMalformed)
	}
	return nil
}

// encodeBody returns the bytes of a record whose payload keeps all limits.
func (c codec) encodeBody(r Record) ([]byte, error) {
	if err := checkPayload(r.Payload); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrMalformed, err)
	}
	payload, err := c.encode(r.Payload)
	if err != nil {
		return nil, err
	}
	b, err := c.encode(body{
		Kind: r.Kind, Seq: r.Seq, BootID: r.BootID, Boot: r.Boot, Wall: r.Wall, Clock: r.Clock, Salt: r.Salt, Inv: r.Inv, Payload: payload,
	})
	if err != nil {
		return nil, err
	}
	if len(b) > bodyLimit(r.Kind) {
		return nil, fmt.Errorf("%w: %s: %d bytes, at most %d are allowed", ErrMalformed, r.Kind, len(b), bodyLimit(r.Kind))
	}
	return b, nil
}

func (c codec) decodeBody(b []byte) (Record, error) {
	var raw body
	if err := c.decode(b, &raw); err != nil {
		return Record{}, err
	}
	p := blank(raw.Kind)
	switch {
	case p == nil:
		return Record{}, fmt.Errorf("%w: no such kind of record: %d", ErrMalformed, raw.Kind)
	case len(b) > bodyLimit(raw.Kind):
		return Record{}, fmt.Errorf("%w: %s: %d bytes, at most %d are allowed", ErrMalformed, raw.Kind, len(b), bodyLimit(raw.Kind))
	case raw.Clock > clock.Synced, raw.Boot < 0, (raw.Clock == clock.Unset) != (raw.Wall == 0):
		return Record{}, fmt.Errorf("%w: %s: times or clock state are out of range", ErrMalformed, raw.Kind)
	}
	if err := c.decode(raw.Payload, p); err != nil {
		return Record{}, fmt.Errorf("%s: %w", raw.Kind, err)
	}
	if err := checkPayload(p); err != nil {
		return Record{}, fmt.Errorf("%w: %w", ErrMalformed, err)
	}
	return Record{
		Kind: raw.Kind, Seq: raw.Seq, BootID: raw.BootID, Boot: raw.Boot, Wall: raw.Wall, Clock: raw.Clock, Salt: raw.Salt, Inv: raw.Inv, Payload: p,
	}, nil
}

func bodyLimit(k Kind) int {
	if k == KindBlob {
		return MaxBlob + 512
	}
	return MaxBody
}

func newSalt() (s ID) {
	rand.Read(s[:]) // never fails: crypto/rand ends the program instead
	return s
}
