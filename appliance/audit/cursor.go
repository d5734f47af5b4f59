package audit

import (
	"encoding/binary"
	"fmt"
)

// The major types of CBOR that the format uses (RFC 8949 section 3.1).
const (
	majorUint     = 0
	majorNegative = 1
	majorBytes    = 2
	majorText     = 3
	majorArray    = 4
	majorMap      = 5
)

// cursor reads CBOR front to back and accepts the shortest head of every item and nothing else: no indefinite lengths, no
// tags, no floats, no null. After the first item that is not as asked for it stays failed and returns zeros, so that a
// reader looks at err once and not after each item.
type cursor struct {
	rest []byte
	err  error
}

func (d *cursor) fail(format string, args ...any) {
	if d.err == nil {
		d.err = fmt.Errorf("%w: "+format, append([]any{ErrMalformed}, args...)...)
	}
	d.rest = nil
}

// head reads an item's head, which must be of the major type.
func (d *cursor) head(major byte) uint64 {
	if len(d.rest) == 0 {
		d.fail("the bytes end where an item was expected")
		return 0
	}
	first := d.rest[0]
	if first>>5 != major {
		d.fail("%#02x where an item of major type %d was expected", first, major)
		return 0
	}
	info := first & 31
	if info < 24 {
		d.rest = d.rest[1:]
		return uint64(info)
	}
	if info > 27 {
		d.fail("%#02x is not a head of this format", first)
		return 0
	}
	width := 1 << (info - 24)
	if len(d.rest) < 1+width {
		d.fail("the bytes end within a head")
		return 0
	}
	var n, least uint64
	switch width {
	case 1:
		n, least = uint64(d.rest[1]), 24
	case 2:
		n, least = uint64(binary.BigEndian.Uint16(d.rest[1:])), 1<<8
	case 4:
		n, least = uint64(binary.BigEndian.Uint32(d.rest[1:])), 1<<16
	case 8:
		n, least = binary.BigEndian.Uint64(d.rest[1:]), 1<<32
	}
	if n < least {
		d.fail("a head that is not in its shortest form")
		return 0
	}
	d.rest = d.rest[1+width:]
	return n
}

// uint reads an unsigned integer of at most most.
func (d *cursor) uint(most uint64) uint64 {
	n := d.head(majorUint)
	if n > most {
		d.fail("number %d, at most %d is possible", n, most)
		return 0
	}
	return n
}

// int reads an integer that fits in 64 bits with its sign.
func (d *cursor) int() int64 {
	if len(d.rest) > 0 && d.rest[0]>>5 == majorNegative {
		n := d.head(majorNegative)
		if n > 1<<63-1 {
			d.fail("number -1-%d is too small", n)
			return 0
		}
		return -1 - int64(n)
	}
	return int64(d.uint(1<<63 - 1))
}

// bool reads true or false (RFC 8949 section 3.3).
func (d *cursor) bool() bool {
	if len(d.rest) == 0 || d.rest[0]&^1 != 0xf4 {
		d.fail("no boolean where one was expected")
		return false
	}
	b := d.rest[0] == 0xf5
	d.rest = d.rest[1:]
	return b
}

// string reads a byte string or a text string, without looking at what it holds. The result shares the input's memory.
func (d *cursor) string(major byte) []byte {
	n := d.head(major)
	if n > uint64(len(d.rest)) {
		d.fail("the bytes end within a string")
		return nil
	}
	b := d.rest[:n]
	d.rest = d.rest[n:]
	return b
}

// fixed reads a byte string of exactly the length of dst into it.
func (d *cursor) fixed(dst []byte) {
	b := d.string(majorBytes)
	if d.err == nil && len(b) != len(dst) {
		d.fail("%d bytes where %d were expected", len(b), len(dst))
	}
	copy(dst, b)
}

// key reads a map's next key, which must be the given one.
func (d *cursor) key(want uint64) {
	if got := d.head(majorUint); d.err == nil && got != want {
		d.fail("key %d where %d was due", got, want)
	}
}

// end fails where bytes are left.
func (d *cursor) end() error {
	if d.err == nil && len(d.rest) > 0 {
		d.fail("%d bytes too many", len(d.rest))
	}
	return d.err
}

// appendHead appends the shortest head of an item.
func appendHead(dst []byte, major byte, n uint64) []byte {
	major <<= 5
	switch {
	case n < 24:
		return append(dst, major|byte(n))
	case n < 1<<8:
		return append(dst, major|24, byte(n))
	case n < 1<<16:
		return binary.BigEndian.AppendUint16(append(dst, major|25), uint16(n))
	case n < 1<<32:
		return binary.BigEndian.AppendUint32(append(dst, major|26), uint32(n))
	}
	return binary.BigEndian.AppendUint64(append(dst, major|27), n)
}

// appendInt appends an integer with its sign.
func appendInt(dst []byte, n int64) []byte {
	if n < 0 {
		return appendHead(dst, majorNegative, uint64(-1-n))
	}
	return appendHead(dst, majorUint, uint64(n))
}

// appendString appends a byte string.
func appendString[T ~[]byte | ~string](dst []byte, b T) []byte {
	return append(appendHead(dst, majorBytes, uint64(len(b))), b...)
}
