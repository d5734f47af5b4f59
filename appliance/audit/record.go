package audit

import (
	"bytes"
	"crypto/rand"
	"errors"
	"fmt"
	"reflect"
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
	// Wall is Unix milliseconds, 0 where Clock is clock.Unset, and MaxWall at most.
	Wall  int64
	Clock clock.State
	// Salt keeps a body with few possible contents from being guessed once it is redacted to its hash.
	Salt    ID
	Inv     ID
	Payload Payload // nil in a redacted record
}

// codec holds the two CBOR modes and the layouts of what is read by the thousand. Encoding is Core Deterministic (RFC 8949
// section 4.2.1). CBOR and not JSON, since the records are signed and hold digests: one encoding for each value, and bytes
// that stay bytes. It never changes, and may be used from several goroutines.
type codec struct {
	enc     cbor.EncMode
	dec     cbor.DecMode
	layouts *layouts
}

type layouts struct {
	payloads [Kinds + 1]*layout
	claims   *layout // SealClaims
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
	l := &layouts{claims: newLayout(reflect.TypeFor[SealClaims]())}
	for k := Kind(1); k <= Kinds; k++ {
		l.payloads[k] = newLayout(reflect.TypeOf(blank(k)).Elem())
	}
	return codec{enc: em, dec: dm, layouts: l}
}

func (c codec) encode(v any) ([]byte, error) {
	b, err := c.enc.Marshal(v)
	if err != nil {
		return nil, fmt.Errorf("%w: %v", ErrMalformed, err)
	}
	return b, nil
}

// decode fills v and refuses any other encoding of the same value: the decoder accepts integers that are longer than need
// be and keys in any order, and a log in which a record has two encodings is one in which bytes can change unseen. What is
// read more often than once in a while has a layout instead, which does the same in one pass.
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

// encodeBody returns the bytes of a record. Whether it keeps the limits is for decodeBody to say, through which everything
// goes that is written: looking twice would make nothing safer.
func (c codec) encodeBody(r Record) ([]byte, error) {
	payload, err := c.encode(r.Payload)
	if err != nil {
		return nil, err
	}
	return appendBody(make([]byte, 0, maxHeader+len(payload)), r, payload), nil
}

// maxHeader is more than a record takes besides its payload.
const maxHeader = 128

// The keys of a record. They are never renumbered.
const (
	keyKind = iota
	keySeq
	keyBootID
	keyBoot
	keyWall
	keyClock
	keySalt
	keyInv
	keyPayload
)

// appendBody appends a record in deterministic encoding, with a payload that is encoded already. It is written by hand, as
// its counterpart is: nine fields that never change.
func appendBody(dst []byte, r Record, payload []byte) []byte {
	pairs := uint64(7)
	if r.Wall != 0 {
		pairs++
	}
	if r.Inv != (ID{}) {
		pairs++
	}
	dst = appendHead(dst, majorMap, pairs)
	dst = appendHead(append(dst, keyKind), majorUint, uint64(r.Kind))
	dst = appendHead(append(dst, keySeq), majorUint, uint64(r.Seq))
	dst = appendString(append(dst, keyBootID), r.BootID[:])
	dst = appendInt(append(dst, keyBoot), int64(r.Boot))
	if r.Wall != 0 {
		dst = appendInt(append(dst, keyWall), r.Wall)
	}
	dst = appendHead(append(dst, keyClock), majorUint, uint64(r.Clock))
	dst = appendString(append(dst, keySalt), r.Salt[:])
	if r.Inv != (ID{}) {
		dst = appendString(append(dst, keyInv), r.Inv[:])
	}
	return append(append(dst, keyPayload), payload...)
}

// readHeader takes a record apart and leaves the payload, which is its last field, in the cursor.
func readHeader(d *cursor) (r Record) {
	pairs := d.head(majorMap)
	d.key(keyKind)
	r.Kind = Kind(d.uint(1<<8 - 1))
	d.key(keySeq)
	r.Seq = Seq(d.uint(1<<64 - 1))
	d.key(keyBootID)
	d.fixed(r.BootID[:])
	d.key(keyBoot)
	r.Boot = time.Duration(d.int())
	due := uint64(7)
	if len(d.rest) > 0 && d.rest[0] == keyWall {
		due++
		d.key(keyWall)
		if r.Wall = d.int(); r.Wall == 0 {
			d.fail("a wall clock that says nothing")
		}
	}
	d.key(keyClock)
	r.Clock = clock.State(d.uint(1<<8 - 1))
	d.key(keySalt)
	d.fixed(r.Salt[:])
	if len(d.rest) > 0 && d.rest[0] == keyInv {
		due++
		d.key(keyInv)
		if d.fixed(r.Inv[:]); r.Inv == (ID{}) {
			d.fail("an invocation that says nothing")
		}
	}
	d.key(keyPayload)
	if pairs != due {
		d.fail("%d fields where %d were expected", pairs, due)
	}
	return r
}

// decodeBody reads a record. It accepts the one encoding of a record that keeps all limits, and nothing else.
func (c codec) decodeBody(b []byte) (Record, error) {
	d := cursor{rest: b}
	r := readHeader(&d)
	if d.err != nil {
		return Record{}, d.err
	}
	p := blank(r.Kind)
	switch {
	case p == nil:
		return Record{}, fmt.Errorf("%w: no such kind of record: %d", ErrMalformed, r.Kind)
	case len(b) > bodyLimit(r.Kind):
		return Record{}, fmt.Errorf("%w: %s: %d bytes, at most %d are allowed", ErrMalformed, r.Kind, len(b), bodyLimit(r.Kind))
	case r.Clock > clock.Synced, r.Boot < 0, r.Wall < 0, r.Wall > MaxWall, (r.Clock == clock.Unset) != (r.Wall == 0):
		return Record{}, fmt.Errorf("%w: %s: times or clock state are out of range", ErrMalformed, r.Kind)
	}
	err := c.layouts.payloads[r.Kind].read(&d, reflect.ValueOf(p).Elem(), true)
	if err == nil {
		err = d.end()
	}
	if err != nil {
		return Record{}, fmt.Errorf("%s: %w", r.Kind, err)
	}
	if err := p.check(); err != nil {
		return Record{}, fmt.Errorf("%w: %s: %w", ErrMalformed, r.Kind, err)
	}
	r.Payload = p
	return r, nil
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
