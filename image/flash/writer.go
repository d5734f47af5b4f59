package flash

import (
	"context"
	"crypto/sha256"
	"fmt"

	"assent.home.arpa/image/card"
)

// writer writes to a card and remembers what it wrote, to compare it with what can be read.
type writer struct {
	ctx    context.Context
	t      Target
	table  *card.Table
	buf    []byte // a chunk, aligned
	pieces []piece
}

// piece is what one write was of.
type piece struct {
	at, n int64
	sum   [sha256.Size]byte
}

func (w *writer) write(b []byte, at int64) error {
	if err := w.ctx.Err(); err != nil {
		return err
	}
	if _, err := w.t.WriteAt(b, at); err != nil {
		return fmt.Errorf("writing at %d MiB: %w", at>>20, err)
	}
	w.pieces = append(w.pieces, piece{at, int64(len(b)), sha256.Sum256(b)})
	return nil
}

// compare reads a piece back.
func (w *writer) compare(p piece) error {
	if err := w.ctx.Err(); err != nil {
		return err
	}
	b := w.buf[:p.n]
	if _, err := w.t.ReadAt(b, p.at); err != nil {
		return fmt.Errorf("reading back at %d MiB: %w", p.at>>20, err)
	}
	if sha256.Sum256(b) != p.sum {
		return fmt.Errorf("the card does not hold at %d MiB what was written there: it is worn, or smaller than it says", p.at>>20)
	}
	return nil
}

func (w *writer) bytes() int64 {
	total := int64(0)
	for _, p := range w.pieces {
		total += p.n
	}
	return total
}
