package audit

import (
	"crypto/sha256"
	"errors"
	"fmt"
)

// A frame is one item of the CBOR sequence (RFC 8742):
//
//	record frame   [0, body: bstr, link: bstr .size 32]
//	blob frame     [1, body: bstr, link: bstr .size 32]
//	redacted frame [1, [digest: bstr .size 32], link: bstr .size 32]
//
// with link = SHA-256("assent/audit/v1" 00 || previous link || class || SHA-256(body)). The link covers the body through
// its hash, so a blob's body can be replaced by that hash and every link stays true; and it covers the class, so that
// nothing but a blob can be.
const (
	classRecord byte = 0
	classBlob   byte = 1
)

// domain keeps a link from being a hash of anything else.
const domain = "assent/audit/v1\x00"

var (
	errShort   = errors.New("the bytes end within a frame")
	errPadding = errors.New("zero byte where a frame was expected")
)

func link(prev Digest, class byte, bodyDigest Digest) Digest {
	b := make([]byte, 0, len(domain)+32+1+32)
	b = append(b, domain...)
	b = append(b, prev[:]...)
	b = append(b, class)
	b = append(b, bodyDigest[:]...)
	return sha256.Sum256(b)
}

func classOf(k Kind) byte {
	if k == KindBlob {
		return classBlob
	}
	return classRecord
}

// appendFrame appends the frame of a body with the given digest to dst and returns its link.
func appendFrame(dst []byte, prev Digest, class byte, body []byte, digest Digest) ([]byte, Digest) {
	l := link(prev, class, digest)
	dst = append(dst, 0x83, class)
	dst = appendString(dst, body)
	return appendString(dst, l[:]), l
}

// appendRedacted appends the frame of a blob whose body is gone.
func appendRedacted(dst []byte, body, link Digest) []byte {
	dst = append(dst, 0x83, classBlob, 0x81)
	dst = appendString(dst, body[:])
	return appendString(dst, link[:])
}

// rawFrame is a frame taken apart, not yet checked against the frame before it.
type rawFrame struct {
	class    byte
	body     []byte // nil where redacted; otherwise shares memory with the input
	digest   Digest // of the body
	link     Digest
	size     int
	redacted bool
}

// parseFrame takes the first frame of b apart. It is written by hand: eight bytes of grammar, of which exactly one
// encoding is right, checked without a decoder's leniency.
func parseFrame(b []byte) (rawFrame, error) {
	if len(b) == 0 {
		return rawFrame{}, errShort
	}
	if b[0] == 0 {
		return rawFrame{}, errPadding
	}
	if b[0] != 0x83 {
		return rawFrame{}, fmt.Errorf("%w: frame begins with %#02x", ErrMalformed, b[0])
	}
	if len(b) < 3 {
		return rawFrame{}, errShort
	}
	f := rawFrame{class: b[1], size: 2}
	if f.class > classBlob {
		return rawFrame{}, fmt.Errorf("%w: no such class of frame: %d", ErrMalformed, f.class)
	}
	if f.class == classBlob && b[2] == 0x81 {
		f.redacted = true
		f.size++
	}
	content, n, err := parseBytes(b[f.size:], MaxBlob+512)
	if err != nil {
		return rawFrame{}, err
	}
	f.size += n
	if f.redacted {
		if len(content) != len(f.digest) {
			return rawFrame{}, fmt.Errorf("%w: a redacted body is %d bytes", ErrMalformed, len(content))
		}
		f.digest = Digest(content)
	} else {
		f.body, f.digest = content, sha256.Sum256(content)
	}
	l, n, err := parseBytes(b[f.size:], MaxBlob+512)
	if err != nil {
		return rawFrame{}, err
	}
	if len(l) != len(f.link) {
		return rawFrame{}, fmt.Errorf("%w: a link is %d bytes", ErrMalformed, len(l))
	}
	f.size += n
	f.link = Digest(l)
	return f, nil
}

// parseBytes reads a byte string of at most most bytes in its shortest form and returns it with the number of bytes that it
// took. errShort means that b ends where one may still have gone on.
func parseBytes(b []byte, most uint64) (content []byte, size int, err error) {
	if len(b) == 0 {
		return nil, 0, errShort
	}
	if b[0]>>5 != 2 {
		return nil, 0, fmt.Errorf("%w: %#02x where a byte string was expected", ErrMalformed, b[0])
	}
	info, width := b[0]&31, 0
	switch {
	case info < 24:
	case info < 27:
		width = 1 << (info - 24)
	default:
		return nil, 0, fmt.Errorf("%w: length of a byte string", ErrMalformed)
	}
	if len(b) < 1+width {
		return nil, 0, errShort
	}
	n, least := uint64(info), uint64(0)
	if width > 0 {
		n = 0
		for _, c := range b[1 : 1+width] {
			n = n<<8 | uint64(c)
		}
		least = [...]uint64{1: 24, 2: 1 << 8, 4: 1 << 16}[width]
	}
	if n < least {
		return nil, 0, fmt.Errorf("%w: length of a byte string is not in its shortest form", ErrMalformed)
	}
	if n > most {
		return nil, 0, fmt.Errorf("%w: byte string of %d bytes", ErrMalformed, n)
	}
	end := 1 + width + int(n)
	if len(b) < end {
		return nil, 0, errShort
	}
	return b[1+width : end], end, nil
}

// record decodes what a frame holds; a redacted frame gives a Record without a payload.
func (c codec) record(f rawFrame) (Record, error) {
	if f.redacted {
		return Record{Kind: KindBlob}, nil
	}
	r, err := c.decodeBody(f.body)
	if err != nil {
		return Record{}, err
	}
	if classOf(r.Kind) != f.class {
		return Record{}, fmt.Errorf("%w: %s in a frame of class %d", ErrMalformed, r.Kind, f.class)
	}
	return r, nil
}
