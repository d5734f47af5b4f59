// Package logwrites reads what Linux's device-mapper target log-writes recorded of a disk, and makes of it the disks that a power
// cut could have left.
//
// The target passes writes on to a disk and appends each to a log, once it is durable, in the order in which that came to be:
// writes that were waiting for a flush when the flush is done, forced ones (FUA) when they are done
// (Documentation/admin-guide/device-mapper/log-writes.rst; the layout is that of drivers/md/dm-log-writes.c).
//
//	block 0:          magic u64 | version u64 | entries u64 | block size u32, little-endian
//	then, per entry:  block u64 | blocks u64 | flags u64 | length u64, filling one block, with a mark's text behind it,
//	                  followed by so many blocks of data, unless they were discarded
package logwrites

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
)

const (
	magic   = 0x6a736677736872
	version = 1

	superSize = 28
	entrySize = 32

	minBlock = 512
	maxBlock = 64 << 10
	maxWrite = 64 << 20 // bytes of one entry
)

// Flags of an entry.
const (
	flush    = 1 << 0
	fua      = 1 << 1
	discard  = 1 << 2
	mark     = 1 << 3
	metadata = 1 << 4 // for people who read the log
	known    = flush | fua | discard | mark | metadata
)

// ErrLog says that a log is damaged, or none.
var ErrLog = errors.New("logwrites: damaged log")

// Entry is one thing that happened to the disk.
type Entry struct {
	Offset  int64  // on the disk, bytes
	Data    []byte // that were written, or nil
	Discard int64  // bytes that were discarded from Offset on
	Flush   bool   // all writes before this one are durable
	Forced  bool   // this write was durable when it was done
	Mark    string // what the one who used the disk said at this point
}

// Read reads a log of at most so many entries.
func Read(r io.ReaderAt, most int) ([]Entry, error) {
	var super [superSize]byte
	if _, err := r.ReadAt(super[:], 0); err != nil {
		return nil, fmt.Errorf("%w: %v", ErrLog, err)
	}
	le := binary.LittleEndian
	n, block := le.Uint64(super[16:]), int64(le.Uint32(super[24:]))
	switch {
	case le.Uint64(super[0:]) != magic || le.Uint64(super[8:]) != version:
		return nil, fmt.Errorf("%w: it does not begin like one", ErrLog)
	case block < minBlock || block > maxBlock || block&(block-1) != 0:
		return nil, fmt.Errorf("%w: blocks of %d bytes", ErrLog, block)
	case n > uint64(most):
		return nil, fmt.Errorf("%w: %d entries, at most %d are expected", ErrLog, n, most)
	}
	entries := make([]Entry, 0, n)
	at := block
	for i := range n {
		e, size, err := readEntry(r, at, block)
		if err != nil {
			return nil, fmt.Errorf("%w: entry %d: %v", ErrLog, i, err)
		}
		entries = append(entries, e)
		at += size
	}
	return entries, nil
}

// readEntry reads the entry at an offset of the log and returns how many bytes it takes there.
func readEntry(r io.ReaderAt, at, block int64) (Entry, int64, error) {
	head := make([]byte, block)
	if _, err := r.ReadAt(head, at); err != nil {
		return Entry{}, 0, err
	}
	le := binary.LittleEndian
	start, blocks, flags, text := le.Uint64(head[0:]), le.Uint64(head[8:]), le.Uint64(head[16:]), le.Uint64(head[24:])
	if flags&^known != 0 || start > uint64(1)<<40 || blocks > uint64(1)<<40 {
		return Entry{}, 0, fmt.Errorf("block %d, %d blocks, flags %x", start, blocks, flags)
	}
	size := int64(blocks) * block
	e := Entry{Offset: int64(start) * block, Flush: flags&flush != 0, Forced: flags&fua != 0}
	switch {
	case flags&mark != 0:
		if text > uint64(block-entrySize) {
			return Entry{}, 0, fmt.Errorf("a mark of %d bytes", text)
		}
		e.Mark = string(bytes.TrimRight(head[entrySize:entrySize+text], "\x00"))
		return e, block, nil
	case flags&discard != 0:
		e.Discard = size
		return e, block, nil
	case size > maxWrite:
		return Entry{}, 0, fmt.Errorf("a write of %d bytes", size)
	case size > 0:
		e.Data = make([]byte, size)
		if _, err := r.ReadAt(e.Data, at+block); err != nil {
			return Entry{}, 0, err
		}
	}
	return e, block + size, nil
}
