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

// Cuts yields disks that a power cut could have left, beginning with base, the disk before the first entry. There is one after
// each entry, with all that was written until then; and for each run of writes between two flushes there are as many as often
// says in which each write that was not forced is lost or kept by chance, as disks do that write in what order they like. The
// marks are those that had been said by then.
func Cuts(base []byte, log []Entry, often int, random *rand.Rand) iter.Seq2[Cut, error] {
	return func(yield func(Cut, error) bool) {
		solid := append([]byte(nil), base...) // what the last flush made durable
		all := append([]byte(nil), base...)
		var marks []string
		began := 0 // first entry after the last flush
		for i, e := range log {
			if e.Mark != "" {
				marks = append(marks, e.Mark)
			}
			if e.Flush || i == len(log)-1 {
				for range often {
					disk := append([]byte(nil), solid...)
					lost := 0
					for _, w := range log[began:i] {
						if keep := w.Forced || random.IntN(2) == 0; !keep && (w.Data != nil || w.Discard > 0) {
							lost++
						} else if err := w.apply(disk); err != nil {
							yield(Cut{}, err)
							return
						}
					}
					if lost > 0 && !yield(Cut{At: i, Lost: lost, Disk: disk, Marks: marks}, nil) {
						return
					}
				}
			}
			if err := e.apply(all); err != nil {
				yield(Cut{}, err)
				return
			}
			if e.Flush {
				copy(solid, all)
				began = i + 1
			}
			if (e.Data != nil || e.Mark != "") && !yield(Cut{At: i + 1, Disk: all, Marks: marks}, nil) {
				return
			}
		}
	}
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
