package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"time"

	"assent.home.arpa/appliance/audit"
	"assent.home.arpa/capabilities"
)

// A year and a month of a household.
const (
	year  = 365 * effectsADay
	month = 30 * effectsADay
)

// write makes a log of so many effects with the real writer, without waiting for the disk, and returns its directory.
func write(ctx context.Context, dir, name string, effects int) (string, error) {
	h := newHousehold()
	disk, err := openDir(dir, name)
	if err != nil {
		return "", err
	}
	l, err := h.open(ctx, hasty{disk})
	if err != nil {
		return "", err
	}
	return filepath.Join(dir, name), errors.Join(h.live(ctx, l, effects), l.Close())
}

// verify demands that a log is intact.
func verify(ctx context.Context, dir string) error {
	r, err := audit.Verify(ctx, os.DirFS(dir), audit.VerifyOptions{})
	if err == nil && r.Status != audit.Intact {
		err = fmt.Errorf("the log is %s: %v", r.Status, r.Problem)
	}
	return err
}

// verifying holds the default verification against the least that reading a log can cost, and measures how much of a
// household's log it reads in a second.
//
// In such a log three bytes in five are padding: the batches of an automatic call take 4 KiB each and fill 2 KiB and 1 KiB
// of it, those of a pressed one 8 KiB and 4 KiB.
func verifying(ctx context.Context, dir string, f figures) error {
	short, err := write(ctx, dir, "month", month)
	if err != nil {
		return err
	}
	decoder, err := newDecoder()
	if err != nil {
		return err
	}
	var ours, decode times
	one := func(do func() error) error {
		defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
		return do()
	}
	for n := range 9 {
		err := inTurn(n, func() error {
			return one(func() error { return ours.clock(func() error { return verify(ctx, short) }) })
		}, func() error {
			return one(func() error { return decode.clock(func() error { return decoder.log(os.DirFS(short)) }) })
		})
		if err != nil {
			return err
		}
	}
	f.print("verify_vs_decode", decode.at(0.5)/ours.at(0.5), "ratio", ">=0.6")

	long, err := write(ctx, dir, "year", year)
	if err != nil {
		return err
	}
	size, filled, err := extent(long)
	if err != nil {
		return err
	}
	var core, all times
	for range 5 {
		if err := all.clock(func() error { return verify(ctx, long) }); err != nil {
			return err
		}
		if err := one(func() error { return core.clock(func() error { return verify(ctx, long) }) }); err != nil {
			return err
		}
	}
	f.print("verify_mb_s", float64(size)/1e6/(core.at(0.5)/float64(time.Second)), "MB/s", ">=70")
	f.print("year_s", all.at(0.5)/float64(time.Second), "s", "<=1")
	f.print("year_mb", float64(size)/1e6, "MB", "-")
	f.print("year_padding", 1-float64(filled)/float64(size), "ratio", "-")
	return nil
}

// extent returns the bytes of a log without the zeros after its last batch, and those of them that are not padding.
func extent(dir string) (size, filled int64, err error) {
	names, err := filepath.Glob(filepath.Join(dir, "seg-*.cborseq"))
	if err != nil {
		return 0, 0, err
	}
	slices.Sort(names)
	for i, name := range names {
		content, err := os.ReadFile(name)
		if err != nil {
			return 0, 0, err
		}
		whole := bytes.TrimRight(content, "\x00")
		if i < len(names)-1 {
			size += int64(len(content))
		} else {
			size += int64(len(whole))
		}
		for at := 0; at < len(whole); at += audit.Block {
			filled += int64(len(bytes.TrimRight(whole[at:min(at+audit.Block, len(whole))], "\x00")))
		}
	}
	return size, filled, nil
}

// recovery opens a log whose last segment is full of pressed calls, which is the most that a start has to read.
func recovery(ctx context.Context, dir string, f figures) error {
	h := newHousehold()
	disk, err := openDir(dir, "full")
	if err != nil {
		return err
	}
	tap := &tapped{Disk: hasty{disk}}
	l, err := h.open(ctx, tap)
	if err != nil {
		return err
	}
	const room = 24 << 10 // more than a call takes
	for {
		segments, err := filepath.Glob(filepath.Join(dir, "full", "seg-*.cborseq"))
		if err != nil {
			return err
		}
		if len(segments) == 3 && tap.offset > audit.SegmentSize-room {
			break
		}
		c, err := h.pressed(queryP50)
		if err != nil {
			return err
		}
		i, err := l.Intend(ctx, c.Entries(), c.Intent, c.Inv)
		if err != nil {
			return err
		}
		if _, err := l.Effect(ctx, i, audit.EffectRecord{Status: capabilities.Done}); err != nil {
			return err
		}
	}
	if err := l.Close(); err != nil {
		return err
	}
	var took times
	for n := range 9 {
		copied := filepath.Join(dir, fmt.Sprint("copy", n))
		if err := os.CopyFS(copied, os.DirFS(filepath.Join(dir, "full"))); err != nil {
			return err
		}
		disk, err := audit.OpenDir(copied)
		if err != nil {
			return err
		}
		err = took.clock(func() error {
			l, err = h.open(ctx, disk)
			return err
		})
		if err != nil {
			return err
		}
		if err := l.Close(); err != nil {
			return err
		}
	}
	f.print("recover_ms", took.at(0.5)/float64(time.Millisecond), "ms", "<=200")
	return nil
}
