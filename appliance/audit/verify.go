package audit

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
)

// Status is the verdict on a log. The zero value is not a verdict.
type Status uint8

// The verdicts.
const (
	Intact     Status = 1 // everything that was sealed is there, as it was written
	Altered    Status = 2 // something is not as it was written
	Incomplete Status = 3 // torn, cut short, rolled back, or withheld: nothing proves that it was altered
)

func (s Status) String() string {
	return name(uint8(s), "no verdict", "intact", "altered", "incomplete")
}

// ExitCode is the verdict as a command's exit status: 0 intact, 1 altered, 2 incomplete.
func (s Status) ExitCode() int {
	switch s {
	case Intact:
		return 0
	case Altered:
		return 1
	}
	return 2
}

// VerifyOptions says what to hold a log against.
type VerifyOptions struct {
	AllSeals bool   // check every seal's signature, not only the last of each epoch, which vouches for all before it
	Root     Digest // the device root key that a phone or a paper remembers; zero for none
	Head     string // a head code that somebody wrote down; the log must hold that head; empty for none
	Withheld bool   // a copy from which blobs were left out counts as intact
	// Anchors are seals that somebody kept elsewhere (COSE_Sign1, as in Head.Seal); the log must hold them.
	Anchors [][]byte
	Pruned  bool // a seal that was kept elsewhere may be of a part that was pruned since
	// Visit sees each record in order, before anybody knows whether a seal vouches for it. An error ends the walk.
	Visit func(Entered) error
}

// Entered is a record with its place in the log.
type Entered struct {
	Record
	Segment  uint32
	Offset   int64
	Link     Digest
	Redacted bool // the body was replaced by its hash
}

// Report is what verifying found.
type Report struct {
	Status   Status
	Problem  *Problem // nil where Status is Intact
	Stopped  bool     // reading ended at the problem: everything below is of what is before it
	Root     Digest   // the root key that began the log; compare it with the one that you know
	First    Seq      // the first record that is there; those before were pruned
	Pruned   uint32   // segments that were pruned, as the log says
	Anchors  []AnchorReport
	Segments int
	Records  uint64
	Seals    uint64
	Epochs   uint32 // the last
	Boots    int
	Kinds    [Kinds + 1]uint64
	Redacted int          // blobs whose body was removed, as a later record says
	Withheld int          // blobs whose body is missing, and no record says why
	Unproven uint64       // records after the last seal
	Open     []OpenIntent // effects that nobody recorded
	Head     Head         // the last seal
}

// verifier carries a report through the segments.
type verifier struct {
	ctx    context.Context
	fsys   fs.FS
	o      VerifyOptions
	chain  chain
	report Report
	// missing holds the seq and body digest of redacted blobs that no redact record has explained yet.
	missing  map[Seq]Digest
	lost     bool // there were more of them than are remembered
	sawHead  bool
	segments []uint32
	ahead    *readAhead
	keys     *keyChain
	begin    *Segment // where the log begins with another segment than 0
	pruned   *Prune   // the record about the segment before it
	kept     []keptSeal
}

// maxMissing bounds how many redacted blobs are remembered until a record explains them. Where there were more, nobody can
// say any more whether all were explained, and the log is incomplete whatever was asked for.
const maxMissing = 1 << 16

// Verify reads the log in fsys (the directory with the segments, or one with a log directory in it) and judges it. It
// needs no key but what is in the log, and the same memory for any length. It uses as many processors as there are, and
// fsys from another goroutine than the caller's; Visit is called from the caller's. Its error means that there is nothing
// to judge, or that reading failed.
func Verify(ctx context.Context, fsys fs.FS, o VerifyOptions) (Report, error) {
	v := &verifier{ctx: ctx, fsys: fsys, o: o, chain: newChain(newCodec()), missing: map[Seq]Digest{}, sawHead: o.Head == ""}
	v.chain.every = o.AllSeals
	var err error
	if v.kept, err = v.chain.codec.keptSeals(o.Anchors); err != nil {
		return Report{}, err
	}
	if err := v.find(); err != nil {
		return Report{}, err
	}
	if v.keys, err = v.chain.codec.openKeyChain(v.fsys); err != nil {
		return Report{}, err
	}
	defer v.keys.close()
	if err := v.walk(); err != nil {
		return Report{}, err
	}
	r := &v.report
	r.Root, r.Epochs, r.Head, r.Seals = v.chain.root, v.chain.epoch.N, v.chain.sealed, v.chain.seals
	r.Unproven = uint64(v.chain.next - v.chain.first)
	r.Open, r.Pruned = v.chain.calls.openIntents(), v.chain.keeping.pruned
	if err := v.chain.checkLastSeal(); err != nil && r.Status != Altered {
		v.problem(Altered, AboutLog, place{segment: v.segments[len(v.segments)-1], seq: r.Head.Seq}, "the last seal: "+reasonOf(err))
	}
	if r.Problem == nil {
		v.finish()
	}
	if r.Problem == nil {
		r.Status = Intact
	}
	return *r, nil
}

func (v *verifier) find() error {
	for _, dir := range []string{".", "log"} {
		sub, err := fs.Sub(v.fsys, dir)
		if err != nil {
			return fmt.Errorf("audit: %w", err)
		}
		entries, err := fs.ReadDir(sub, ".")
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return fmt.Errorf("audit: %w", err)
		}
		var names []string
		for _, e := range entries {
			names = append(names, e.Name())
		}
		if v.segments = indexes(names, segmentSuffix); len(v.segments) > 0 {
			v.fsys = sub
			return nil
		}
	}
	return fmt.Errorf("audit: no segments here: %w", fs.ErrNotExist)
}

func (v *verifier) walk() error {
	v.ahead = startAhead(v.ctx, v.fsys, v.chain.codec, v.segments)
	defer v.ahead.stop()
	due := v.segments[0]
	if due > 0 {
		if err := v.beginAt(due); err != nil {
			var d *damage
			if errors.As(err, &d) {
				return v.judge(d)
			}
			return err
		}
	}
	for _, index := range v.segments {
		if index != due {
			v.report.Stopped = true
			v.problem(Incomplete, AboutLog, place{segment: due, seq: v.chain.next}, "the file "+segmentName(due)+" is missing")
			return nil
		}
		due++
		err := v.segment(index)
		var d *damage
		switch {
		case errors.As(err, &d):
			return v.judge(d)
		case err != nil:
			return err
		}
		v.report.Segments++
	}
	return nil
}

func (v *verifier) segment(index uint32) error {
	s, err := v.ahead.next(v.ctx)
	if err != nil {
		return err
	}
	defer v.ahead.release(s)
	at, before := place{segment: index, offset: s.size, seq: v.chain.next}, v.chain.seals
	if _, err := v.chain.walk(s.segment, index, v.visit); err != nil {
		return err
	}
	if s.size != SegmentSize {
		at.seq = v.chain.next
		return &damage{place: at, err: fmt.Errorf("the file is %d bytes, where segments have %d", s.size, SegmentSize)}
	}
	// Power may have gone after a segment was begun and before its first batch, so the last one may be all zeros.
	if last := v.segments[len(v.segments)-1]; v.chain.seals == before && (before == 0 || index != last) {
		return &damage{place: at, err: errors.New("nothing was sealed")}
	}
	return nil
}

func (v *verifier) visit(f found) error {
	if err := v.ctx.Err(); err != nil {
		return err
	}
	r := &v.report
	r.Records++
	r.Kinds[f.Kind]++
	if f.frame.redacted {
		if len(v.missing) < maxMissing {
			v.missing[f.seq] = f.frame.digest
		} else {
			v.lost = true
		}
	}
	if err := v.keys.visit(f); err != nil {
		return &damage{place: f.place, err: err, written: true, about: AboutAnchors}
	}
	switch p := f.Payload.(type) {
	case *Boot:
		r.Boots++
	case *Prune:
		if v.begin != nil && p.LastSegment+1 == v.begin.Index {
			v.pruned = p
		}
	case *Redact:
		if d, ok := v.missing[p.Seq]; ok && d == p.Body {
			delete(v.missing, p.Seq)
			r.Redacted++
		}
	case *Seal:
		v.sawHead = v.sawHead || v.chain.sealed.Code() == v.o.Head
		if err := v.compare(f.seq, p); err != nil {
			return &damage{place: f.place, err: err, written: true, about: AboutKept}
		}
	}
	if v.o.Visit == nil {
		return nil
	}
	return v.o.Visit(Entered{Record: f.Record, Segment: f.segment, Offset: f.offset, Link: f.frame.link, Redacted: f.frame.redacted})
}

// judge tells damage that a power cut leaves from damage that it does not: batches are written one after the other, each
// with its seal last, into zeros. A seal after the damaged frame says that it was whole once, and a link that follows says
// that the frame is as somebody wrote it.
func (v *verifier) judge(d *damage) error {
	status := Incomplete
	if d.written || d.segment != v.segments[len(v.segments)-1] {
		status = Altered
	} else {
		f, _, err := openRegular(v.fsys, segmentName(d.segment))
		if err != nil {
			return err
		}
		defer f.Close()
		b := make([]byte, SegmentSize)
		n, err := io.ReadFull(f, b)
		if err != nil && !errors.Is(err, io.ErrUnexpectedEOF) && !errors.Is(err, io.EOF) {
			return fmt.Errorf("audit: reading: %w", err)
		}
		b = b[:n]
		// No key is asked for: if the genesis is damaged there is none.
		if len(v.chain.codec.sealsIn(b[min(d.offset+1, int64(len(b))):], nil)) > 0 {
			status = Altered
		}
	}
	v.report.Stopped = true
	v.problem(status, max(d.about, AboutRecord), d.place, reasonOf(d.err))
	return nil
}

// finish asks what can only be asked at the end.
func (v *verifier) finish() {
	end := place{segment: v.segments[len(v.segments)-1], seq: v.chain.next}
	if !v.front(end) {
		return
	}
	if v.o.Root != (Digest{}) && v.o.Root != v.chain.root {
		v.problem(Altered, AboutKept, place{}, "the log was begun by another root key than the one given: it is another box's, or forged")
		return
	}
	if !v.anchored(end) {
		return
	}
	if !v.sawHead {
		v.problem(Incomplete, AboutKept, end, fmt.Sprintf("no record has the code %s: check that it was copied rightly; if it was, the log was rolled back or is another box's", v.o.Head))
		return
	}
	v.report.Withheld = len(v.missing)
	if v.lost {
		v.problem(Incomplete, AboutTexts, end, fmt.Sprintf("more than %d blobs are missing at one time, and not all can be accounted for", maxMissing))
		return
	}
	if len(v.missing) > 0 && !v.o.Withheld {
		v.problem(Incomplete, AboutTexts, end, fmt.Sprintf("literal texts were left out of this copy, %d in all, and no record says why", len(v.missing)))
	}
}
