package logwrites

import (
	"fmt"
	"iter"
	"math/rand/v2"
)

// Cut is a disk as a power cut may have left it.
type Cut struct {
	At    int    // so many entries of the log had happened
	Lost  int    // of them so many writes that nothing had made durable
	Disk  []byte // only until the next one
	Marks []string
}

// Plan says which of the possible cuts are made.
type Plan struct {
	Every  int // one in so many
	Random *rand.Rand
}

// Cuts yields disks that a power cut could have left, beginning with base, the disk before the first entry. Possible is a cut after
// each entry, with all that was written until then; and before each flush one in which each write since the last flush that was
// not forced is lost or kept by chance, as disks do that write in what order they like. The marks are those that had been said
// by then.
func (p Plan) Cuts(base []byte, log []Entry) iter.Seq2[Cut, error] {
	return func(yield func(Cut, error) bool) {
		solid := append([]byte(nil), base...) // what the last flush made durable
		all := append([]byte(nil), base...)
		var marks []string
		began := 0 // first entry after the last flush
		possible := 0
		due := func() bool {
			possible++
			return possible%p.Every == 0
		}
		for i, e := range log {
			if e.Mark != "" {
				marks = append(marks, e.Mark)
			}
			if e.Flush && due() {
				c, err := p.lose(solid, log[began:i])
				c.At, c.Marks = i, marks
				if !yield(c, err) || err != nil {
					return
				}
			}
			if err := e.apply(all); err != nil {
				yield(Cut{}, err)
				return
			}
			if e.Flush {
				// Only what was written since differs.
				for _, w := range log[began : i+1] {
					if err := w.apply(solid); err != nil {
						yield(Cut{}, err)
						return
					}
				}
				began = i + 1
			}
			if due() && !yield(Cut{At: i + 1, Disk: all, Marks: marks}, nil) {
				return
			}
		}
	}
}

// lose is a disk on which some of the writes after the last flush are.
func (p Plan) lose(solid []byte, writes []Entry) (Cut, error) {
	c := Cut{Disk: append([]byte(nil), solid...)}
	for _, w := range writes {
		if keep := w.Forced || p.Random.IntN(2) == 0; !keep && (w.Data != nil || w.Discard > 0) {
			c.Lost++
		} else if err := w.apply(c.Disk); err != nil {
			return c, err
		}
	}
	return c, nil
}

// apply does to a disk what was done then. What was discarded reads as zeros.
func (e Entry) apply(disk []byte) error {
	end := e.Offset + max(int64(len(e.Data)), e.Discard)
	if e.Offset < 0 || end > int64(len(disk)) {
		return fmt.Errorf("%w: a write to %d of a disk of %d bytes", ErrLog, end, len(disk))
	}
	copy(disk[e.Offset:], e.Data)
	clear(disk[e.Offset : e.Offset+e.Discard])
	return nil
}
