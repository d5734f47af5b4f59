package main

import (
	"bytes"
	"context"
	"errors"
	"path/filepath"

	"assent.home.arpa/appliance/audit"
)

// peer is something else that could hold the same bytes. A commit has returned when they are on flash.
type peer interface {
	commit(batch []byte) error
	Close() error
}

// peers has the log and each peer commit the same batches, those of automatic calls, one durable commit each. The log's
// time includes everything that it does before it is at rest, such as making the next segment, and a peer's what it does at
// times for the same reason: growing its file, copying its write-ahead log back. So the figure is that of the whole run; a
// spell's median leaves out what comes more seldom than a spell. A peer gets the batch as the log wrote it, without its
// padding.
func peers(ctx context.Context, dir string, f figures) error {
	for _, p := range []struct {
		name, limit string
		open        func(path string) (peer, error)
	}{
		{"sqlite", ">1", openSQLite},
		{"bbolt", ">1", openBolt},
		{"etcd_wal", ">=0.65", openEtcd},
	} {
		other, err := p.open(filepath.Join(dir, p.name))
		if err != nil {
			return err
		}
		spell, whole, err := sideBySide(ctx, filepath.Join(dir, p.name+"-log"), other)
		if err := errors.Join(err, other.Close()); err != nil {
			return err
		}
		f.print("vs_"+p.name, whole, "ratio", p.limit)
		f.print("vs_"+p.name+"_spell", spell, "ratio", "-")
	}
	return nil
}

// sideBySide returns batches a second of the log over those of the peer: the median over spells of 100 calls each, and the
// ratio over all of them.
func sideBySide(ctx context.Context, dir string, other peer) (spell, whole float64, err error) {
	const spells, calls = 25, 100
	h := newHousehold()
	disk, err := audit.OpenDir(dir)
	if err != nil {
		return 0, 0, err
	}
	tap := &tapped{Disk: disk}
	l, err := h.open(ctx, tap)
	if err != nil {
		return 0, 0, err
	}
	defer l.Close()
	var ratios []float64
	var allOurs, allTheirs float64
	for range spells {
		var ours, theirs times
		// batch is committed by the log, and what it wrote by the peer, in either order: the peer is a batch behind.
		batch := func(n int, write func() error) error {
			last := bytes.Clone(bytes.TrimRight(tap.last, "\x00"))
			return inTurn(n, func() error {
				return ours.clock(func() error { return errors.Join(write(), rest(ctx, l)) })
			}, func() error {
				return theirs.clock(func() error { return other.commit(last) })
			})
		}
		for n := range calls {
			c := h.automatic()
			entries := c.Entries()
			var i audit.Intent
			err := batch(n, func() (err error) {
				i, err = l.Intend(ctx, entries, c.Intent, c.Inv)
				return err
			})
			if err != nil {
				return 0, 0, err
			}
			effect, observed := settled(i, c)
			err = batch(n, func() error {
				_, err := l.Effect(ctx, i, effect, observed)
				return err
			})
			if err != nil {
				return 0, 0, err
			}
		}
		ratios = append(ratios, theirs.sum()/ours.sum())
		allOurs, allTheirs = allOurs+ours.sum(), allTheirs+theirs.sum()
	}
	return median(ratios), allTheirs / allOurs, l.Close()
}
