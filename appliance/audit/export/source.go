package export

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"strconv"
	"strings"
	"time"

	"assent.home.arpa/appliance/audit"
)

const anchorsName = "anchors.cborseq"

// How often, and at what distance, the newest segment is read until it ends with a seal. The writer's batch is one
// write(2), so a second reading nearly always has all of it.
const (
	maxReads    = 20
	stableReads = 4 // equal ones in a row: nobody is writing, and the tail is torn
	readAgain   = 10 * time.Millisecond
)

// source is the log to be copied.
type source struct {
	fs.FS
	segments []string // names, in order
	anchors  bool
	bytes    int64
}

// find looks for a log where audit.Verify does: in the directory, or in log below it.
func find(fsys fs.FS) (source, error) {
	for _, dir := range []string{".", "log"} {
		sub, err := fs.Sub(fsys, dir)
		if err != nil {
			return source{}, fmt.Errorf("export: %w", err)
		}
		entries, err := fs.ReadDir(sub, ".")
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return source{}, fmt.Errorf("export: %w", err)
		}
		s := source{FS: sub}
		for _, e := range entries { // ReadDir sorts, and the names have a fixed width
			_, isSegment := indexOf(e.Name())
			if !isSegment && e.Name() != anchorsName {
				continue
			}
			info, err := e.Info()
			if err != nil {
				return source{}, fmt.Errorf("export: %w", err)
			}
			if !info.Mode().IsRegular() {
				return source{}, fmt.Errorf("export: %s is not a file", e.Name())
			}
			s.bytes += info.Size()
			if isSegment {
				s.segments = append(s.segments, e.Name())
			} else {
				s.anchors = true
			}
		}
		if len(s.segments) > 0 {
			return s, nil
		}
	}
	return source{}, fmt.Errorf("export: no segments here: %w", fs.ErrNotExist)
}

// indexOf returns the number in a segment's name.
func indexOf(name string) (uint32, bool) {
	digits, ok := strings.CutPrefix(name, "seg-")
	if !ok {
		return 0, false
	}
	digits, ok = strings.CutSuffix(digits, ".cborseq")
	n, err := strconv.ParseUint(digits, 10, 32)
	if !ok || err != nil || fmt.Sprintf("%08d", n) != digits {
		return 0, false
	}
	return uint32(n), true
}

// open opens a file of the log. One that was pruned since it was listed is gone.
func (s source) open(name string) (fs.File, error) {
	f, err := s.Open(name)
	if err != nil {
		return nil, fmt.Errorf("export: %w", err)
	}
	return f, nil
}

// whole reads a segment into memory; ok is false where it has not a segment's size, and cannot be whole.
func (s source) whole(name string) (b []byte, ok bool, err error) {
	f, err := s.open(name)
	if err != nil {
		return nil, false, err
	}
	defer f.Close()
	b, err = io.ReadAll(io.LimitReader(f, audit.SegmentSize+1))
	if err != nil {
		return nil, false, fmt.Errorf("export: reading %s: %w", name, err)
	}
	return b, len(b) == audit.SegmentSize, nil
}

// settled reads the newest segment until it ends with a seal, or until it is clear that it will not.
func (s source) settled(ctx context.Context, name string) (b []byte, ok bool, err error) {
	equal := 1
	for range maxReads {
		again, ok, err := s.whole(name)
		if err != nil || !ok || sealedEnd(again) {
			return again, ok, err
		}
		if equal++; !bytes.Equal(again, b) {
			equal = 1
		}
		if b = again; equal == stableReads {
			break
		}
		select {
		case <-ctx.Done():
			return nil, false, ctx.Err()
		case <-time.After(readAgain):
		}
	}
	return b, true, nil
}
