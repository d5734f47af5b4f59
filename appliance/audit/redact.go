package audit

import (
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"sort"
	"strings"
	"time"
)

// MaxRedact bounds how many blobs one call of Redact can name.
const MaxRedact = 4096

// redactTodo says what is being removed, from before the first record says so until the last body is gone.
const redactTodo = "redact.todo"

// maxTodo bounds redact.todo: a range for each blob that was named, one for each run of whole segments, and the reason.
const maxTodo = 1 << 20

// redactBatch is how many redact records are sealed together: they fit in a segment whatever their reason.
const redactBatch = 128

// RedactOptions says which blobs lose their bodies, and what is recorded of it. A blob that is in Seqs or before Before goes.
type RedactOptions struct {
	Seqs []Seq // of blobs, at most MaxRedact
	// Before removes every blob of the closed segments in which all times are earlier. A segment in which the clock was
	// never set counts as old once a later one does. Zero removes none.
	Before time.Time
	By     Actor
	Reason string // our words
	Admin  Seq    // of the admin record that confirmed it; 0 for none
}

// RedactReport is what a redaction did.
type RedactReport struct {
	Redacted int // bodies that were removed
	Gone     int // of those named: bodies that had been removed or pruned before
	Segments int // that were written anew
}

// Redact removes the bodies of blobs in place and leaves their digests, so that every link stays true, and records each
// removal. Tails that starts set aside are removed with them, whatever they hold: a piece of a body cannot be told from
// other bytes. Flash keeps the old blocks until it wears on, and exports keep what they have.
//
// What was accepted is finished: after a power cut by the next Open, and where room ran out, which is an error that wraps
// ErrFull, by the next Redact or Open. Whoever else uses the log waits for one segment at a time.
// It fails with ErrMalformed where something named is no blob, and with ErrCorrupt where a segment cannot be read whole;
// then nothing was changed.
func (l *Log) Redact(ctx context.Context, o RedactOptions) (report RedactReport, err error) {
	if err := o.check(); err != nil {
		return RedactReport{}, err
	}
	l.redacting.Lock()
	defer l.redacting.Unlock()
	if err := l.do(ctx, (*writer).resumeRedaction); err != nil {
		return RedactReport{}, err
	}
	var s selection
	if err := l.do(ctx, func(w *writer) (err error) {
		s, err = w.selectBlobs(o)
		return err
	}); err != nil {
		return RedactReport{}, err
	}
	for _, index := range s.candidates {
		if err := l.do(ctx, func(w *writer) error { return s.look(w, index) }); err != nil {
			return RedactReport{}, err
		}
	}
	report.Gone = s.gone
	if len(s.ranges) == 0 {
		return report, nil
	}
	r := redaction{By: o.By, Reason: o.Reason, Admin: o.Admin, At: s.at, Ranges: packRanges(s.ranges)}
	if err := l.do(ctx, func(w *writer) error { return w.promiseRedaction(r) }); err != nil {
		return report, err
	}
	// Promised on flash: from here on nobody can call it off.
	ctx = context.WithoutCancel(ctx)
	for _, index := range s.segments {
		err := l.do(ctx, func(w *writer) error {
			n, err := w.erase(r, index, nil)
			if n > 0 {
				report.Redacted += n
				report.Segments++
			}
			return err
		})
		if err != nil {
			return report, err
		}
	}
	return report, l.do(ctx, (*writer).endRedaction)
}

func (o RedactOptions) check() error {
	switch err := checkText(o.Reason); {
	case err != nil:
		return fmt.Errorf("%w: the reason: %w", ErrMalformed, err)
	case o.By == 0 || o.By > ByConsole:
		return fmt.Errorf("%w: nobody redacts", ErrMalformed)
	case len(o.Seqs) > MaxRedact:
		return fmt.Errorf("%w: %d blobs named, at most %d are removed at once", ErrTooLarge, len(o.Seqs), MaxRedact)
	}
	return nil
}

// redaction is the content of redact.todo: what is to go, and what is to be recorded of it. Every record that it names
// was sealed before it was written, so it means the same whenever it is read.
type redaction struct {
	By     Actor     `cbor:"1,keyasint"`
	Reason string    `cbor:"2,keyasint,omitzero"`
	Admin  Seq       `cbor:"3,keyasint,omitzero"`
	At     Seq       `cbor:"4,keyasint"` // its redact records are this one or later
	Ranges seqRanges `cbor:"5,keyasint"`
}

// seqRanges is a list of ranges of sequence numbers, both ends included, disjoint and in order: two big-endian numbers of
// eight bytes for each.
type seqRanges []byte

const rangeSize = 16

type seqRange struct{ first, last Seq }

func packRanges(ranges []seqRange) (p seqRanges) {
	slices.SortFunc(ranges, func(a, b seqRange) int { return cmp.Compare(a.first, b.first) })
	for _, r := range ranges {
		p = binary.BigEndian.AppendUint64(p, uint64(r.first))
		p = binary.BigEndian.AppendUint64(p, uint64(r.last))
	}
	return p
}

func (p seqRanges) contains(s Seq) bool {
	_, found := sort.Find(len(p)/rangeSize, func(i int) int {
		at := p[i*rangeSize:]
		switch {
		case s < Seq(binary.BigEndian.Uint64(at)):
			return -1
		case s > Seq(binary.BigEndian.Uint64(at[8:])):
			return 1
		}
		return 0
	})
	return found
}

// promiseRedaction makes it durable that r will be carried out.
func (w *writer) promiseRedaction(r redaction) error {
	b, err := w.chain.codec.encode(r)
	if err != nil {
		return err
	}
	return w.replace(redactTodo, b)
}

// replace is replaceFile, and poisons the writer where nobody knows what is on flash.
func (w *writer) replace(name string, content []byte) error {
	err := replaceFile(w.disk, name, content)
	if err != nil && !errors.Is(err, ErrFull) {
		return w.fail(fmt.Errorf("replacing %s: %w", name, err))
	}
	return err
}

// resumeRedaction finishes what was promised and cut short.
func (w *writer) resumeRedaction() error {
	// What power left of a file that was to replace another may hold any body.
	if err := removeFile(w.disk, replaceTemp); err != nil {
		return w.fail(err)
	}
	b, err := readFile(w.disk, redactTodo, maxTodo)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	var r redaction
	if err := w.chain.codec.decode(b, &r); err != nil || len(r.Ranges)%rangeSize != 0 {
		return fmt.Errorf("%w: %s cannot be read", ErrCorrupt, redactTodo)
	}
	// Nothing signs the promise, and whoever had the flash may have written it: what is resumed is recorded as that, and not
	// in the name of whoever it says.
	r.By, r.Reason, r.Admin = ByGuard, "resumed", 0
	if err := w.flush(); err != nil {
		return err
	}
	recorded, err := w.redactedSince(r.At)
	if err != nil {
		return err
	}
	for index := w.first; index <= w.index; index++ {
		if _, err := w.erase(r, index, recorded); err != nil {
			return err
		}
	}
	return w.endRedaction()
}

// resumeAtStart is resumeRedaction for Open: a redaction for which there is no room now waits for the next one or the next
// start, and is no reason to refuse everything else.
func (w *writer) resumeAtStart() error {
	if err := w.resumeRedaction(); !errors.Is(err, ErrFull) {
		return err
	}
	return nil
}

// endRedaction removes what else may hold a piece of a removed body, and then the promise.
func (w *writer) endRedaction() error {
	names, err := w.disk.List()
	if err != nil {
		return err
	}
	names = slices.DeleteFunc(names, func(n string) bool { return !strings.HasPrefix(n, quarantinePrefix) })
	for _, step := range [][]string{names, {redactTodo}} {
		for _, name := range step {
			if err := removeFile(w.disk, name); err != nil {
				return w.fail(err)
			}
		}
		if err := w.disk.Sync(); err != nil {
			return w.fail(err)
		}
	}
	return nil
}
