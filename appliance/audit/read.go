package audit

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// Names of files in a log's directory.
const (
	spareTemp        = "spare.tmp" // a spare that is not finished
	segmentSuffix    = ".cborseq"
	spareSuffix      = ".spare"
	quarantinePrefix = "torn-"
	indexDigits      = 8 // of a segment's name
)

func segmentName(index uint32) string { return fmt.Sprintf("seg-%08d%s", index, segmentSuffix) }
func spareName(index uint32) string   { return fmt.Sprintf("seg-%08d%s", index, spareSuffix) }

// indexes picks the files named by index and suffix out of a directory's names, in order.
func indexes(names []string, suffix string) []uint32 {
	var found []uint32
	for _, n := range names {
		digits, ok := strings.CutSuffix(n, suffix)
		if !ok {
			continue
		}
		digits, ok = strings.CutPrefix(digits, "seg-")
		i, err := strconv.ParseUint(digits, 10, 32)
		if !ok || err != nil || len(digits) != indexDigits {
			continue
		}
		found = append(found, uint32(i))
	}
	slices.Sort(found)
	return found
}

// place is where in the log something was found.
type place struct {
	segment uint32
	offset  int64
	seq     Seq
}

// damage is the first thing in a log that cannot be what was written.
type damage struct {
	place
	err error
	// written says that the frame there has the link that follows: whatever is wrong with it was not left by a power cut.
	written bool
	about   About // zero for AboutRecord
}

func (d *damage) Error() string {
	return fmt.Sprintf("audit: segment %d offset %d: record %d: %v", d.segment, d.offset, d.seq, d.err)
}

func (d *damage) Unwrap() error { return d.err }

// found is one record with its place and its frame.
type found struct {
	Record
	place
	frame rawFrame
}

// walk takes the chain through one segment. It returns nil where the last batch is followed by zeros to the end, and the
// damage where it cannot go on. end is the offset after the last whole batch with its padding.
func (c *chain) walk(s segment, index uint32, visit func(found) error) (end int64, err error) {
	c.index = index
	offset := 0
	damaged := func(err error) (int64, error) {
		return end, &damage{place: place{segment: index, offset: int64(offset), seq: c.next}, err: err}
	}
	for {
		between := c.next == c.first
		if between && offset > 0 {
			rest := s.content[offset:]
			pad := (Block - offset%Block) % Block
			if i := firstNonZero(rest[:min(pad, len(rest))]); i >= 0 {
				offset += i
				return damaged(errors.New("padding is not zero"))
			}
			if len(rest) < pad {
				return damaged(errors.New("the file ends within padding"))
			}
			offset += pad
			if end = int64(offset); len(rest) == pad {
				return end, nil
			}
		}
		if between && offset < len(s.content) && s.content[offset] == 0 {
			if i := firstNonZero(s.content[offset:]); i >= 0 {
				offset += i
				return damaged(errors.New("bytes after the last seal"))
			}
			return end, nil
		}
		e, err := s.entry(c.codec, offset)
		refused := func(err error) (int64, error) {
			f := e.frame
			written := f.size > 0 && f.link == link(c.link, f.class, f.digest)
			return end, &damage{place: place{segment: index, offset: int64(offset), seq: c.next}, err: err, written: written}
		}
		if err != nil {
			return refused(err)
		}
		r := e.record
		if e.frame.redacted {
			r.Seq = c.next
		}
		if err := opens(r, index, int64(offset)); err != nil {
			return refused(err)
		}
		c.calls.opened = e.press
		if err := c.step(r, e.frame.digest, e.frame.link, e.frame.class); err != nil {
			return refused(err)
		}
		if visit != nil {
			f := found{Record: r, place: place{segment: index, offset: int64(offset), seq: r.Seq}, frame: e.frame}
			if err := visit(f); err != nil {
				return end, err
			}
		}
		offset += e.frame.size
	}
}

// opens checks that a segment begins with its own segment record, and the log with its genesis.
func opens(r Record, index uint32, offset int64) error {
	s, ok := r.Payload.(*Segment)
	switch {
	case ok && (offset != 0 || s.Index != index):
		return fmt.Errorf("the record of segment %d", s.Index)
	case !ok && offset == 0 && index > 0:
		return errors.New("the segment does not begin with its record")
	}
	return nil
}

// firstNonZero compares long runs of bytes, which is what the machine does fast: most of a segment is zeros.
func firstNonZero(b []byte) int {
	var zero [Block]byte
	for at := 0; at < len(b); {
		run := b[at:min(at+Block, len(b))]
		if bytes.Equal(run, zero[:len(run)]) {
			at += len(run)
			continue
		}
		for i, c := range run {
			if c != 0 {
				return at + i
			}
		}
	}
	return -1
}

var errNoSeal = errors.New("no seal")

// sealsIn finds the seals in bytes that cannot be read as a log any more, at any offset, and yields their claims. With
// keys, only those that one of the keys signed: a blob may hold anything, such as a forged seal.
func (c codec) sealsIn(b []byte, keys []Digest) []SealClaims {
	var all []SealClaims
	for at := 0; ; at++ {
		i := bytes.Index(b[at:], []byte{0x83, classRecord})
		if i < 0 {
			return all
		}
		at += i
		if claims, err := c.sealAt(b[at:], keys); err == nil {
			all = append(all, claims)
		}
	}
}

func (c codec) sealAt(b []byte, keys []Digest) (SealClaims, error) {
	f, err := parseFrame(b[:min(len(b), MaxBody)])
	if err != nil || len(f.body) < 3 || f.body[1] != 0 || f.body[2] != byte(KindSeal) {
		return SealClaims{}, errNoSeal
	}
	r, err := c.record(f)
	if err != nil {
		return SealClaims{}, err
	}
	s, ok := r.Payload.(*Seal)
	if !ok {
		return SealClaims{}, errNoSeal
	}
	if keys == nil {
		return c.peekSeal(s)
	}
	for _, k := range keys {
		if claims, err := c.openSeal(k, s); err == nil {
			return claims, nil
		}
	}
	return SealClaims{}, errNoSeal
}
