package audit

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"runtime"
	"sync"
)

// segment is the content of a segment's file, and what was read of it before its turn came. What frames and records say in
// themselves, and whether a key signed a receipt, depends on nothing that came before, so it can be found out for several
// segments at a time; what they say together is for the chain alone. Nothing is believed for having been read ahead: an
// entry stands for reading the same bytes again, and a press for verifying the same receipt with the same key again.
type segment struct {
	content []byte
	ahead   *[]entry // in the order of their offsets; nil where nothing was read ahead
}

// entry is one frame and the record in it.
type entry struct {
	offset int
	frame  rawFrame
	record Record
	press  *press // the receipt in the record, if one was verified
}

func (c codec) readEntry(content []byte, offset int) (entry, error) {
	f, err := parseFrame(content[offset:])
	if err != nil {
		return entry{}, err
	}
	r, err := c.record(f)
	return entry{offset: offset, frame: f, record: r}, err
}

// entry returns what is at offset. Entries are asked for in order.
func (s segment) entry(c codec, offset int) (entry, error) {
	if s.ahead != nil {
		for len(*s.ahead) > 0 {
			e := (*s.ahead)[0]
			if e.offset > offset {
				break
			}
			*s.ahead = (*s.ahead)[1:]
			if e.offset == offset {
				return e, nil
			}
		}
	}
	return c.readEntry(s.content, offset)
}

// readEntries reads as far as the content is a log at first sight, and verifies the receipts in it with the key that is
// then in force by the look of it. It appends to all.
func (c codec) readEntries(all []entry, content []byte) []entry {
	var key Digest
	for offset := 0; offset < len(content); {
		if content[offset] == 0 {
			if offset%Block == 0 {
				break
			}
			offset += Block - offset%Block
			continue
		}
		e, err := c.readEntry(content, offset)
		if err != nil {
			break
		}
		switch p := e.record.Payload.(type) {
		case *Segment:
			key = p.ReceiptKey
		case *Epoch:
			key = p.ReceiptKey
		case *Approval:
			if p.Outcome != Approved {
				break
			}
			if opened, err := openReceipt(key, p.Receipt); err == nil {
				e.press = &opened
			}
		}
		all = append(all, e)
		offset += e.frame.size
	}
	return all
}

// readAhead reads the segments of a log in their order, a few before their turn, and has them taken apart by as many
// goroutines as there are processors.
type readAhead struct {
	cancel context.CancelFunc
	done   sync.WaitGroup
	free   chan memory  // all that there is
	queue  chan *loaded // in order
}

// memory is for one segment at a time.
type memory struct {
	content []byte
	entries []entry
}

// loaded is a segment that was read, or the error of reading it.
type loaded struct {
	segment
	memory memory
	size   int64
	err    error
	ready  chan struct{} // closed when it has been taken apart
}

func startAhead(ctx context.Context, fsys fs.FS, c codec, segments []uint32) *readAhead {
	ctx, cancel := context.WithCancel(ctx)
	workers := runtime.GOMAXPROCS(0)
	// One for each worker, one with the chain, and one being read: that many segments are in memory however long the log.
	a := &readAhead{cancel: cancel, free: make(chan memory, workers+2), queue: make(chan *loaded, workers+2)}
	for range cap(a.free) {
		a.free <- memory{}
	}
	jobs := make(chan *loaded, cap(a.free))
	a.done.Go(func() {
		defer close(a.queue)
		defer close(jobs)
		for _, index := range segments {
			select {
			case m := <-a.free:
				l := load(fsys, index, m)
				// Never blocks: there are no more segments under way than buffers.
				jobs <- l
				a.queue <- l
			case <-ctx.Done():
				return
			}
		}
	})
	for range workers {
		a.done.Go(func() {
			for l := range jobs {
				if l.err == nil && ctx.Err() == nil {
					l.memory.entries = c.readEntries(l.memory.entries[:0], l.content)
					ahead := l.memory.entries
					l.ahead = &ahead
				}
				close(l.ready)
			}
		})
	}
	return a
}

// next waits for the next segment. There is none only where ctx, with which reading began, has ended.
func (a *readAhead) next(ctx context.Context) (*loaded, error) {
	l, ok := <-a.queue
	if !ok {
		return nil, ctx.Err()
	}
	<-l.ready
	return l, l.err
}

// release gives a segment's memory back. Records do not share it.
func (a *readAhead) release(l *loaded) { a.free <- l.memory }

func (a *readAhead) stop() {
	a.cancel()
	a.done.Wait()
}

// openRegular opens a file of a log, and returns its size. What is none is not opened, be it a link to one: to open a pipe
// waits for somebody who writes to it, a device may have no end, and where a link leads is for nobody to say.
func openRegular(fsys fs.FS, name string) (f fs.File, size int64, err error) {
	info, err := fs.Lstat(fsys, name)
	if err != nil {
		return nil, 0, fmt.Errorf("audit: %w", err)
	}
	if !info.Mode().IsRegular() {
		return nil, 0, fmt.Errorf("audit: %s is not a file: a log is made of files only", name)
	}
	if f, err = fsys.Open(name); err != nil {
		return nil, 0, fmt.Errorf("audit: %w", err)
	}
	if info, err = f.Stat(); err != nil {
		f.Close()
		return nil, 0, fmt.Errorf("audit: %w", err)
	}
	return f, info.Size(), nil
}

// load reads a segment's file, and one byte more than it may have.
func load(fsys fs.FS, index uint32, m memory) *loaded {
	if m.content == nil {
		m.content = make([]byte, SegmentSize+1)
	}
	l := &loaded{memory: m, ready: make(chan struct{})}
	f, size, err := openRegular(fsys, segmentName(index))
	if err != nil {
		l.err = err
		return l
	}
	defer f.Close()
	l.size = size
	n, err := io.ReadFull(f, m.content)
	if err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) {
		l.err = fmt.Errorf("audit: reading: %w", err)
	}
	l.content = m.content[:n]
	return l
}
