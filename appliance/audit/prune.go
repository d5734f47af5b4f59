package audit

import (
	"context"
	"fmt"
)

// Prune removes the segments up to and including last, which somebody at the box approved: admin is the record of that
// (AdminPrune, Approved). The last two segments stay. Nothing is ever removed without that, exported or not: that a copy is good
// is the word of whatever wrote it.
func (l *Log) Prune(ctx context.Context, last uint32, admin Seq) error {
	return l.do(ctx, func(w *writer) error {
		if last < w.first || last+2 > w.index {
			return fmt.Errorf("%w: segments %d to %d can be pruned at most", ErrMalformed, w.first, int64(w.index)-2)
		}
		return w.prune(last, Prune{By: ByBox, Admin: admin})
	})
}

// prune seals the record that says so and then removes the segments, oldest first. A start finishes what is cut short.
func (w *writer) prune(last uint32, p Prune) error {
	next, err := w.segmentRecord(last + 1)
	if err != nil {
		return err
	}
	p.FirstSegment, p.LastSegment, p.Last, p.LastLink = w.first, last, next.First-1, next.PrevLink
	if w.first > 0 {
		first, err := w.segmentRecord(w.first)
		if err != nil {
			return err
		}
		p.First = first.First
	}
	_, fits, err := w.tryAdd([]Entry{{Payload: p}})
	if err != nil {
		return err
	}
	if !fits {
		return fmt.Errorf("%w: %w", ErrUnavailable, ErrFull)
	}
	if err := w.flush(); err != nil {
		return err
	}
	if err := w.removePruned(w.first); err != nil {
		return w.fail(fmt.Errorf("removing pruned segments: %w", err))
	}
	return nil
}

// removePruned removes the segments from first up to those that are to be kept.
func (w *writer) removePruned(first uint32) error {
	keep := w.chain.keeping.pruned
	for index := first; index < keep; index++ {
		if err := removeFile(w.disk, segmentName(index)); err != nil {
			return err
		}
	}
	if first < keep {
		if err := w.disk.Sync(); err != nil {
			return err
		}
	}
	w.first, w.budget.front = max(first, keep), 0
	if w.first == 0 {
		return nil
	}
	s, err := w.segmentRecord(w.first)
	if err != nil {
		return err
	}
	w.budget.front = s.Other
	return nil
}
