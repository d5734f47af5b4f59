package audit

import (
	"crypto/ed25519"
	"crypto/sha256"
	"errors"
	"fmt"
	"reflect"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/fxamacker/cbor/v2"

	"assent.home.arpa/appliance/clock"
)

// EncodeFrame and DecodeFrame show the external tests one frame at a time.

func EncodeFrame(r Record, prev Digest) (frame, body []byte, err error) {
	c := newCodec()
	b, err := c.encodeBody(r)
	if err != nil {
		return nil, nil, err
	}
	if _, err := c.decodeBody(b); err != nil { // as the writer does
		return nil, nil, err
	}
	frame, _ = appendFrame(nil, prev, classOf(r.Kind), b, sha256.Sum256(b))
	return frame, b, nil
}

func DecodeFrame(b []byte, prev Digest) (r Record, size int, redacted bool, err error) {
	f, err := parseFrame(b)
	if err != nil {
		return Record{}, 0, false, err
	}
	if f.link != link(prev, f.class, f.digest) {
		return Record{}, 0, false, errors.New("link mismatch")
	}
	r, err = newCodec().record(f)
	return r, f.size, f.redacted, err
}

// Readers returns the reader of a record's body, and one that goes by the rule that the format gives. They must come to
// the same.
func Readers() (quick, slow func([]byte) (Record, error)) {
	c := newCodec()
	return c.decodeBody, c.decodeSlowly
}

// decodeSlowly decodes, encodes again, compares, and then looks at every value.
func (c codec) decodeSlowly(b []byte) (Record, error) {
	var raw struct {
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
	if err := c.decode(b, &raw); err != nil {
		return Record{}, err
	}
	p := blank(raw.Kind)
	if p == nil || len(b) > bodyLimit(raw.Kind) || raw.Clock > clock.Synced || raw.Boot < 0 || raw.Wall < 0 || raw.Wall > MaxWall || (raw.Clock == clock.Unset) != (raw.Wall == 0) {
		return Record{}, errors.New("out of range")
	}
	if err := c.decode(raw.Payload, p); err != nil {
		return Record{}, err
	}
	v := reflect.ValueOf(p).Elem()
	for i := range v.NumField() {
		f := v.Type().Field(i)
		if !f.IsExported() || (raw.Kind == KindBlob && f.Name == "Bytes") {
			continue
		}
		if err := checkSlowly(v.Field(i)); err != nil {
			return Record{}, fmt.Errorf("field %s: %w", f.Name, err)
		}
	}
	if err := p.check(); err != nil {
		return Record{}, err
	}
	return Record{
		Kind: raw.Kind, Seq: raw.Seq, BootID: raw.BootID, Boot: raw.Boot, Wall: raw.Wall, Clock: raw.Clock, Salt: raw.Salt, Inv: raw.Inv, Payload: p,
	}, nil
}

func checkSlowly(v reflect.Value) error {
	if most := lastOf(v.Interface()); most > 0 && v.Uint() > most {
		return errors.New("no such number")
	}
	switch v.Kind() {
	case reflect.String:
		for _, r := range v.String() {
			if unicode.In(r, unicode.Cc, unicode.Cf, unicode.Zl, unicode.Zp, unicode.Co) {
				return errors.New("control or formatting character")
			}
		}
		if v.Len() > MaxText || !utf8.ValidString(v.String()) {
			return errors.New("text")
		}
	case reflect.Int64:
		if v.Type() == reflect.TypeFor[time.Duration]() && v.Int() < 0 {
			return errors.New("a time before the clock began")
		}
	case reflect.Slice:
		if v.Type().Elem().Kind() == reflect.Uint8 {
			if v.Len() > MaxBytes {
				return errors.New("too many bytes")
			}
			return nil
		}
		if v.Len() > maxList {
			return errors.New("too many elements")
		}
		for i := range v.Len() {
			if err := checkSlowly(v.Index(i)); err != nil {
				return err
			}
		}
	}
	return nil
}

// EncodeSlowly is a record's body as the library's encoder makes it.
func EncodeSlowly(r Record) ([]byte, error) {
	c := newCodec()
	payload, err := c.encode(r.Payload)
	if err != nil {
		return nil, err
	}
	m := map[uint64]any{0: r.Kind, 1: r.Seq, 2: r.BootID, 3: r.Boot, 5: r.Clock, 6: r.Salt, 8: cbor.RawMessage(payload)}
	if r.Wall != 0 {
		m[4] = r.Wall
	}
	if r.Inv != (ID{}) {
		m[7] = r.Inv
	}
	return c.encode(m)
}

// Blank is an empty payload of a kind.
func Blank(k Kind) Payload { return blank(k) }

// RawFrame frames any body with a true link.
func RawFrame(prev Digest, class byte, body []byte) []byte {
	frame, _ := appendFrame(nil, prev, class, body, sha256.Sum256(body))
	return frame
}

// ParseFrame is the frame's grammar alone.
func ParseFrame(b []byte) (content []byte, class byte, redacted bool, size int, ok bool) {
	f, err := parseFrame(b)
	if err != nil {
		return nil, 0, false, 0, false
	}
	if f.redacted {
		return f.digest[:], f.class, true, f.size, true
	}
	return f.body, f.class, false, f.size, true
}

// DecodeBody reads a frame's record whatever came before it.
func DecodeBody(b []byte) (Record, int, error) {
	f, err := parseFrame(b)
	if err != nil {
		return Record{}, 0, err
	}
	r, err := newCodec().record(f)
	return r, f.size, err
}

// Kebab is a field's name as readers print it.
func Kebab(name string) string { return kebab(name) }

// Sign1 and Open1 sign and verify any COSE_Sign1.

func Sign1(key ed25519.PrivateKey, contentType, aad string, payload []byte) []byte {
	return sign1(key, contentType, aad, payload)
}

func Open1(key Digest, contentType, aad string, b []byte) ([]byte, error) {
	return open1(key, contentType, aad, b)
}

// Approve takes an approval of a proposal in an epoch whose receipt key is key, where a receipt was verified in advance.
func Approve(p Proposal, r Record, a *Approval, key Digest, verified []byte, with Digest) error {
	opened, err := openReceipt(with, verified)
	if err != nil {
		return err
	}
	k := call{proposal: p, verdict: Confirm}
	return k.approve(r, a, Epoch{ReceiptKey: key}, &opened)
}

// Barred reports whether a character may be in no text.
func Barred(r rune) bool { return barred(r) }

// LinkOf is a frame's link.
func LinkOf(prev Digest, class byte, body Digest) Digest { return link(prev, class, body) }
