package export

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"

	"github.com/fxamacker/cbor/v2"

	"assent.home.arpa/appliance/audit"
)

// errUnreadable says that bytes are no frames. What cannot be read cannot be redacted.
var errUnreadable = errors.New("export: a segment cannot be read")

// frame is one item of a segment; see FORMAT.md, Frames. Body is a byte string, or in a redacted blob a list of one.
type frame struct {
	_     struct{} `cbor:",toarray"`
	Class uint8
	Body  cbor.RawMessage
	Link  []byte
}

const classBlob = 1

// seal reports whether the frame ends a batch: its body is a map that begins with key 0, the kind.
func (f frame) seal() bool {
	var body []byte
	err := cbor.Unmarshal(f.Body, &body)
	return err == nil && f.Class != classBlob && len(body) > 2 && body[1] == 0 && body[2] == byte(audit.KindSeal)
}

// redact replaces a blob's body by its digest.
func (f frame) redact() (frame, error) {
	if f.Class != classBlob || len(f.Body) == 0 || f.Body[0]>>5 == 4 {
		return f, nil
	}
	var body []byte
	if err := cbor.Unmarshal(f.Body, &body); err != nil {
		return frame{}, fmt.Errorf("%w: %w", errUnreadable, err)
	}
	digest := sha256.Sum256(body)
	raw, err := cbor.Marshal([][]byte{digest[:]})
	if err != nil {
		return frame{}, fmt.Errorf("export: %w", err)
	}
	f.Body = raw
	return f, nil
}

// next takes the first frame of b apart; it judges nothing but the outer form.
func next(b []byte) (f frame, rest []byte, err error) {
	if rest, err = cbor.UnmarshalFirst(b, &f); err != nil {
		return frame{}, nil, fmt.Errorf("%w: %w", errUnreadable, err)
	}
	return f, rest, nil
}

// padding is the number of bytes from n to the next batch.
func padding(n int) int { return (audit.Block - n%audit.Block) % audit.Block }

// sealedEnd reports whether a segment consists of whole batches, and zeros.
func sealedEnd(b []byte) bool {
	rest, sealed := b, false
	for {
		if len(rest) == 0 || rest[0] == 0 {
			if !sealed || len(bytes.Trim(rest[:min(len(rest), padding(len(b)-len(rest)))], "\x00")) > 0 {
				return false
			}
			rest = rest[min(len(rest), padding(len(b)-len(rest))):]
			if len(rest) == 0 || rest[0] == 0 {
				return len(bytes.Trim(rest, "\x00")) == 0
			}
		}
		f, after, err := next(rest)
		if err != nil {
			return false
		}
		rest, sealed = after, f.seal()
	}
}

// relay lays a segment anew with the bodies of all blobs replaced, each batch at the next block. Bytes after the last
// seal are left out where they may be: they were never acknowledged, and what they hold cannot be told.
func relay(segment []byte, mayBeTorn bool) ([]byte, error) {
	out, sealed := make([]byte, 0, audit.SegmentSize), 0
	for at := 0; at < len(segment); {
		if segment[at] == 0 {
			if len(out) != sealed {
				break
			}
			pad := padding(at)
			if pad == 0 {
				break
			}
			at += pad
			continue
		}
		f, rest, err := next(segment[at:])
		if err != nil {
			if mayBeTorn {
				break
			}
			return nil, err
		}
		at = len(segment) - len(rest)
		if f, err = f.redact(); err != nil {
			return nil, err
		}
		b, err := cbor.Marshal(f)
		if err != nil {
			return nil, fmt.Errorf("export: %w", err)
		}
		out = append(out, b...)
		if f.seal() {
			out = append(out, make([]byte, padding(len(out)))...)
			sealed = len(out)
		}
	}
	if len(out) != sealed && !mayBeTorn || len(out) > audit.SegmentSize {
		return nil, fmt.Errorf("%w: a batch without a seal", errUnreadable)
	}
	return append(out[:sealed], make([]byte, audit.SegmentSize-sealed)...), nil
}
