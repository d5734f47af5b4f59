package audit

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
)

// The anchors file holds the genesis record and, for each epoch, the record that announced its key with the seal that
// vouches for it. Since the link that the seal signs is made of that record's body and the link before, the two prove the
// new key to whoever believes the old one, even when the segment that held them is gone.
const (
	anchorsFile = "anchors.cborseq"
	anchorsTemp = "anchors.tmp"
)

// anchor is one entry. The genesis entry has a genesis and nothing else.
type anchor struct {
	genesis []byte // body of record 0
	prev    Digest // link of the record before epoch
	epoch   []byte // body of the epoch record
	seal    []byte // body of the seal after it
}

// maxAnchor bounds an entry: heads, a link, two bodies.
const maxAnchor = 1 + 1 + 34 + 2*(3+MaxBody)

func appendAnchor(dst []byte, a anchor) []byte {
	if a.genesis != nil {
		dst = append(dst, 0x82, 0)
		return appendString(dst, a.genesis)
	}
	dst = append(dst, 0x84, 1)
	for _, part := range [][]byte{a.prev[:], a.epoch, a.seal} {
		dst = appendString(dst, part)
	}
	return dst
}

// parseAnchor takes the first entry of b apart. errShort means that b ends within it, and that what is there may have been
// the beginning of one: a power cut leaves nothing else.
func parseAnchor(b []byte) (a anchor, size int, err error) {
	if len(b) == 0 || len(b) == 1 && (b[0] == 0x82 || b[0] == 0x84) {
		return anchor{}, 0, errShort
	}
	var prev []byte
	var parts []*[]byte
	switch {
	case bytes.HasPrefix(b, []byte{0x82, 0}):
		parts = []*[]byte{&a.genesis}
	case bytes.HasPrefix(b, []byte{0x84, 1}):
		parts = []*[]byte{&prev, &a.epoch, &a.seal}
	default:
		return anchor{}, 0, fmt.Errorf("%w: no anchor begins with %x", ErrMalformed, b[:min(2, len(b))])
	}
	size = 2
	for _, part := range parts {
		most := uint64(MaxBody)
		if part == &prev {
			most = uint64(len(a.prev))
		}
		content, n, err := parseBytes(b[size:], most)
		if err != nil {
			return anchor{}, 0, err
		}
		*part, size = content, size+n
		if part == &prev {
			if len(prev) != len(a.prev) {
				return anchor{}, 0, fmt.Errorf("%w: a link is %d bytes", ErrMalformed, len(prev))
			}
			a.prev = Digest(prev)
		}
	}
	return a, size, nil
}

// anchorReader walks an anchors file from the root key to ever later epochs.
type anchorReader struct {
	codec   codec
	in      *bufio.Reader
	genesis Digest // of the genesis record's body
	root    Digest
	epoch   Epoch  // in force after the entries that were read
	entry   Digest // of the bodies of the last entry, see digest
	end     int64  // offset after the last entry that verified
}

// errAnchorsEnd says that there is no further whole entry.
var errAnchorsEnd = errors.New("the anchors end")

func (c codec) anchors(r io.Reader) *anchorReader {
	return &anchorReader{codec: c, in: bufio.NewReaderSize(r, maxAnchor)}
}

// next verifies one more entry. It fails with errAnchorsEnd at the end, also where the last entry was cut.
func (r *anchorReader) next() error {
	b, err := r.in.Peek(maxAnchor)
	if err != nil && err != io.EOF {
		return fmt.Errorf("audit: reading: %w", err)
	}
	a, size, err := parseAnchor(b)
	if errors.Is(err, errShort) {
		return errAnchorsEnd
	}
	if err != nil {
		return err
	}
	if (r.end == 0) != (a.genesis != nil) {
		return errors.New("the genesis is the first anchor, and only that")
	}
	if a.genesis != nil {
		err = r.begin(a)
	} else {
		err = r.turn(a)
	}
	if err != nil {
		return err
	}
	r.end, r.entry = r.end+int64(size), a.digest()
	_, err = r.in.Discard(size)
	return err
}

func (r *anchorReader) begin(a anchor) error {
	rec, err := r.codec.decodeBody(a.genesis)
	if err != nil {
		return err
	}
	g, ok := rec.Payload.(*Genesis)
	if !ok || rec.Seq != 0 {
		return errors.New("not a genesis")
	}
	claims, err := r.codec.openGenesis(g)
	if err != nil {
		return err
	}
	r.genesis, r.root, r.epoch = sha256.Sum256(a.genesis), g.Root, Epoch{SealKey: claims.SealKey}
	return nil
}

func (r *anchorReader) turn(a anchor) error {
	er, err := r.codec.decodeBody(a.epoch)
	if err != nil {
		return err
	}
	sr, err := r.codec.decodeBody(a.seal)
	if err != nil {
		return err
	}
	e, ok := er.Payload.(*Epoch)
	s, sealed := sr.Payload.(*Seal)
	if !ok || !sealed || e.N != r.epoch.N+1 || sr.Seq != er.Seq+1 {
		return fmt.Errorf("not the anchor of epoch %d", r.epoch.N+1)
	}
	claims, err := r.codec.openSeal(r.epoch.SealKey, s)
	if err != nil {
		return err
	}
	want := SealClaims{
		Size: sr.Seq, Link: link(a.prev, classRecord, sha256.Sum256(a.epoch)), Epoch: r.epoch.N, First: claims.First, Header: sealHeader(sr), Tree: claims.Tree,
	}
	if claims != want {
		return fmt.Errorf("the seal does not vouch for the key of epoch %d", e.N)
	}
	r.epoch = *e
	return nil
}

// digest names an entry, to compare it with what the log says.
func (a anchor) digest() Digest {
	if a.genesis != nil {
		return sha256.Sum256(a.genesis)
	}
	return entryDigest(sha256.Sum256(a.epoch), sha256.Sum256(a.seal))
}

func entryDigest(epochBody, sealBody Digest) Digest {
	return sha256.Sum256(append(epochBody[:], sealBody[:]...))
}

// turns notes the anchors of the log that is walked: what walk's visit sees goes in, entries come out.
type turns struct {
	emit  func(anchor) error
	prev  Digest // link of the last record
	epoch []byte // body of an epoch record whose seal is due
	at    Digest // link before it
}

func (t *turns) visit(f found) error {
	switch f.Payload.(type) {
	case *Genesis:
		if err := t.emit(anchor{genesis: clone(f.frame.body)}); err != nil {
			return err
		}
	case *Segment:
		t.prev = f.Payload.(*Segment).PrevLink
	case *Epoch:
		t.epoch, t.at = clone(f.frame.body), t.prev
	case *Seal:
		if t.epoch != nil {
			if err := t.emit(anchor{prev: t.at, epoch: t.epoch, seal: clone(f.frame.body)}); err != nil {
				return err
			}
			t.epoch = nil
		}
	}
	t.prev = f.frame.link
	return nil
}

func clone(b []byte) []byte { return append([]byte(nil), b...) }
