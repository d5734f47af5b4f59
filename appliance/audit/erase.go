package audit

import (
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
)

// whole is one segment in memory, read and checked from its first record to its end.
type whole struct {
	content []byte
	frames  []piece
	next    Seq    // of the record after it
	link    Digest // of its last record
	// Of the times that its records carry, in Unix milliseconds; 0 where there is none.
	newest int64
}

// piece is a frame of a segment.
type piece struct {
	from, to int
	seq      Seq
	kind     Kind
	purpose  Purpose // of a blob that has its body
	redacts  Seq     // of a redact record
	redacted bool
	body     Digest
	link     Digest
}

// readSegment fails with ErrCorrupt where anything in the segment is not as it was written.
func (w *writer) readSegment(index uint32) (*whole, error) {
	content, err := w.segmentContent(index)
	if err != nil {
		return nil, fmt.Errorf("audit: reading segment %d: %w", index, err)
	}
	start, err := w.chainAt(index)
	if err != nil {
		return nil, err
	}
	return readWhole(start, index, content)
}

func readWhole(start chain, index uint32, content []byte) (*whole, error) {
	s := &whole{content: content}
	_, err := start.walk(segment{content: content}, index, func(f found) error {
		p := piece{
			from: int(f.offset), to: int(f.offset) + f.frame.size, seq: f.seq, kind: f.Kind,
			redacted: f.frame.redacted, body: f.frame.digest, link: f.frame.link,
		}
		switch r := f.Payload.(type) {
		case *Blob:
			p.purpose = r.Purpose
		case *Redact:
			p.redacts = r.Seq
		}
		s.frames, s.newest = append(s.frames, p), max(s.newest, f.Wall)
		return nil
	})
	var d *damage
	if errors.As(err, &d) {
		return nil, fmt.Errorf("%w: %w", ErrCorrupt, d)
	}
	s.next, s.link = start.next, start.link
	return s, err
}

func (w *writer) segmentContent(index uint32) ([]byte, error) {
	f, err := w.disk.Open(segmentName(index))
	if err != nil {
		return nil, err
	}
	defer f.Close()
	size, err := f.Size()
	if err != nil {
		return nil, err
	}
	if size != SegmentSize {
		return nil, fmt.Errorf("%w: segment %d is %d bytes", ErrCorrupt, index, size)
	}
	content := make([]byte, SegmentSize)
	if _, err := f.ReadAt(content, 0); err != nil && err != io.EOF {
		return nil, err
	}
	return content, nil
}

// chainAt is what is known where a segment begins.
func (w *writer) chainAt(index uint32) (chain, error) {
	c := newChain(w.chain.codec)
	if index == 0 {
		return c, nil
	}
	s, err := w.segmentRecord(index)
	if err != nil {
		return chain{}, err
	}
	c.resume(s)
	return c, nil
}

// segmentStart is the sequence number of a segment's first record.
func (w *writer) segmentStart(index uint32) (Seq, error) {
	c, err := w.chainAt(index)
	return c.next, err
}

// redactedSince lists the blobs of which a redact record at or after a record says that they are gone.
func (w *writer) redactedSince(at Seq) (map[Seq]bool, error) {
	gone := map[Seq]bool{}
	for index := w.index; ; index-- {
		s, err := w.readSegment(index)
		if err != nil {
			return nil, err
		}
		for _, p := range s.frames {
			if p.kind == KindRedact && p.seq >= at {
				gone[p.redacts] = true
			}
		}
		if s.frames[0].seq <= at || index == w.first {
			return gone, nil
		}
	}
}

// selection is what is being chosen for a redaction, while nothing is promised.
type selection struct {
	before     int64 // Unix milliseconds; 0 for none
	at         Seq   // where the log ended when choosing began
	closed     uint32
	named      map[uint32][]Seq
	candidates []uint32 // segments to look at, newest first

	dated    bool // a segment was looked at that has times, all of them old
	gone     int
	ranges   []seqRange
	segments []uint32 // in which something is to go
}

// selectBlobs finds the segments in which there may be something to remove.
func (w *writer) selectBlobs(o RedactOptions) (selection, error) {
	if err := w.flush(); err != nil {
		return selection{}, err
	}
	s := selection{at: w.chain.next, closed: w.index, named: map[uint32][]Seq{}}
	seqs := slices.Compact(slices.Sorted(slices.Values(o.Seqs)))
	if n := len(seqs); n > 0 && seqs[n-1] >= s.at {
		return selection{}, fmt.Errorf("%w: record %d is not in the log yet", ErrMalformed, seqs[n-1])
	}
	for index := w.index; len(seqs) > 0; index-- {
		start, err := w.segmentStart(index)
		if err != nil {
			return selection{}, err
		}
		i, _ := slices.BinarySearch(seqs, start)
		if i < len(seqs) {
			s.named[index], seqs = seqs[i:], seqs[:i]
		}
		if index == w.first {
			s.gone = len(seqs) // pruned
			break
		}
	}
	candidates := maps.Clone(s.named)
	if !o.Before.IsZero() {
		s.before = o.Before.UnixMilli()
		for index := w.first; index < w.index; index++ {
			candidates[index] = nil
		}
	}
	s.candidates = slices.Sorted(maps.Keys(candidates))
	// Whether a segment without times is old, a later one says.
	slices.Reverse(s.candidates)
	return s, nil
}

// look chooses what is to go from one segment.
func (s *selection) look(w *writer, index uint32) error {
	if index < w.first {
		s.gone += len(s.named[index])
		return nil
	}
	seg, err := w.readSegment(index)
	if err != nil {
		return err
	}
	first := seg.frames[0].seq
	present := 0
	for _, p := range seg.frames {
		if p.kind == KindBlob && !p.redacted {
			present++
		}
	}
	n := len(s.ranges)
	for _, seq := range s.named[index] {
		switch p := seg.frames[seq-first]; {
		case p.kind != KindBlob:
			return fmt.Errorf("%w: record %d is %s; only the bodies of blobs can be removed", ErrMalformed, seq, p.kind)
		case p.redacted:
			s.gone++
		default:
			s.ranges = append(s.ranges, seqRange{seq, seq})
		}
	}
	if s.old(seg, index) && present > 0 {
		s.ranges = append(s.ranges[:n], seqRange{first, seg.next - 1})
	}
	if len(s.ranges) > n {
		s.segments = append(s.segments, index)
	}
	return nil
}

func (s *selection) old(seg *whole, index uint32) bool {
	if s.before == 0 || index >= s.closed || seg.newest >= s.before || (seg.newest == 0 && !s.dated) {
		return false
	}
	s.dated = true
	return true
}

// erase records and then removes the bodies in one segment that r names. recorded are those of which a record is sealed
// already. It returns how many bodies went.
func (w *writer) erase(r redaction, index uint32, recorded map[Seq]bool) (int, error) {
	if index < w.first {
		return 0, nil // pruned meanwhile
	}
	seg, err := w.readSegment(index)
	if err != nil {
		return 0, err
	}
	gone := map[Seq]bool{}
	var entries []Entry
	for _, p := range seg.frames {
		if p.kind != KindBlob || p.redacted || !r.Ranges.contains(p.seq) {
			continue
		}
		gone[p.seq] = true
		if !recorded[p.seq] {
			entries = append(entries, Entry{Payload: Redact{Seq: p.seq, Body: p.body, By: r.By, Purpose: p.purpose, Reason: r.Reason, Admin: r.Admin}})
		}
	}
	if len(gone) == 0 {
		return 0, nil
	}
	writing := w.index
	for batch := range slices.Chunk(entries, redactBatch) {
		if err := w.ready(); err != nil {
			return 0, err
		}
		if _, err := w.add(batch); err != nil {
			return 0, err
		}
		if err := w.flush(); err != nil {
			return 0, err
		}
	}
	if index < w.first { // to make room for them
		return len(gone), nil
	}
	if index == writing { // where some of those records are now
		if seg, err = w.readSegment(index); err != nil {
			return 0, err
		}
	}
	if err := w.rewrite(index, seg, gone); err != nil {
		return 0, err
	}
	return len(gone), nil
}

// rewrite puts a segment without the bodies of gone in the place of the old one. The batch must be empty.
func (w *writer) rewrite(index uint32, old *whole, gone map[Seq]bool) error {
	content, end := old.without(gone)
	start, err := w.chainAt(index)
	if err != nil {
		return err
	}
	// What takes the old one's place must lead where the old one led: there is no way back.
	back, err := readWhole(start, index, content)
	if err == nil && (back.next != old.next || back.link != old.link) {
		err = errors.New("it leads elsewhere")
	}
	if err != nil {
		return fmt.Errorf("audit: internal error: segment %d would not verify without the bodies: %w", index, err)
	}
	if err := w.replace(segmentName(index), content); err != nil || index != w.index {
		return err
	}
	f, err := w.disk.Open(segmentName(index))
	if err != nil {
		return w.fail(err)
	}
	before := w.file
	w.file, w.offset = f, int64(end)
	if err := before.Close(); err != nil {
		return w.fail(err)
	}
	return nil
}

// without returns the segment's bytes with the bodies of gone replaced by their digests, and where the next batch goes.
func (s *whole) without(gone map[Seq]bool) (content []byte, end int) {
	content = make([]byte, 0, SegmentSize)
	for _, p := range s.frames {
		if gone[p.seq] {
			content = appendRedacted(content, p.body, p.link)
		} else {
			content = append(content, s.content[p.from:p.to]...)
		}
		for p.kind == KindSeal && len(content)%Block != 0 {
			content = append(content, 0)
		}
	}
	return append(content, make([]byte, SegmentSize-len(content))...), len(content)
}
