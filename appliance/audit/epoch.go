package audit

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"time"
)

// epochLength is how long a seal key is used at most, in boot time: who steals it can sign for no more than that.
const epochLength = 24 * time.Hour

// announce puts the next seal key into the batch, which must be sealed next. The key is on flash before the record that
// promises it.
func (w *writer) announce(reason EpochReason) error {
	next, err := newSealKey(w.chain.epoch.N + 1)
	if err != nil {
		return err
	}
	if err := w.chain.codec.writeKey(w.disk, keyNext, next); err != nil {
		return err
	}
	in := w.chain.epoch
	receiptKey, grantKey := in.ReceiptKey, in.GrantKey
	if reason == EpochStart {
		receiptKey, grantKey = w.receiptKey, w.grantKey
	}
	prev := w.chain.link
	r := w.record(Entry{Payload: Epoch{N: next.epoch, SealKey: next.public(), ReceiptKey: receiptKey, GrantKey: grantKey, Reason: reason}})
	body, err := w.frame(r)
	if err != nil {
		return err
	}
	w.next = &turning{key: next, anchor: anchor{prev: prev, epoch: body}}
	return nil
}

// turning is a key that was announced and is not in force yet.
type turning struct {
	key    sealKey
	anchor anchor
}

// renew announces a key where the present one is old. A disk without room for another key leaves the old one in force.
func (w *writer) renew() error {
	if w.next != nil || w.clock.Boot() < w.turned+epochLength {
		return nil
	}
	return w.announceIfRoom(EpochDay)
}

func (w *writer) announceIfRoom(reason EpochReason) error {
	if len(w.unanchored) > 0 {
		return nil // the file of anchors is behind already
	}
	err := w.announce(reason)
	if err != nil && full(err) {
		return removeFile(w.disk, keyNext)
	}
	return err
}

// turn puts the announced key in force. Its announcement is sealed and on flash.
func (w *writer) turn(sealBody []byte) error {
	next := w.next
	next.anchor.seal = sealBody
	w.unanchored = append(w.unanchored, next.anchor)
	if err := w.anchor(); err != nil && !full(err) {
		return err
	}
	if err := promoteKey(w.disk); err != nil {
		return err
	}
	w.key.erase()
	w.key, w.next, w.turned = next.key, nil, w.clock.Boot()
	return nil
}

// anchor appends what the anchors file lacks.
func (w *writer) anchor() error {
	for len(w.unanchored) > 0 {
		b := appendAnchor(nil, w.unanchored[0])
		if _, err := w.anchors.WriteAt(b, w.anchorsEnd); err != nil {
			return err
		}
		if err := w.anchors.Sync(); err != nil {
			return err
		}
		w.anchorsEnd += int64(len(b))
		w.unanchored = w.unanchored[1:]
	}
	return nil
}

// openAnchors makes the anchors file say what the log says. seen are the anchors of the last two segments, which hold all
// that a power cut can have kept out. It reports false where the file is damaged and the segments that could mend it are
// gone: the log goes on, and whoever verifies it cannot trace it to the root.
func (w *writer) openAnchors(seen []anchor) (whole bool, err error) {
	end, have, sized, err := w.readAnchors()
	switch {
	case err != nil:
		return false, err
	case have != nil && have.epoch.N > w.chain.epoch.N:
		return false, fmt.Errorf("%w: the anchors know epoch %d, and the log ends in epoch %d", ErrCorrupt, have.epoch.N, w.chain.epoch.N)
	case have == nil || !continues(have.epoch.N, w.chain.epoch.N, seen):
		if w.first > 0 {
			return w.keepAnchors()
		}
		return true, w.rebuildAnchors()
	}
	if !sized {
		if err := w.copyAnchors(end); err != nil {
			return false, err
		}
	}
	if w.anchors, err = w.disk.Open(anchorsFile); err != nil {
		return false, err
	}
	w.anchorsEnd = end
	w.unanchored = seen[len(seen)-int(w.chain.epoch.N-have.epoch.N):]
	return true, w.anchor()
}

// continues reports whether seen holds all epochs after the one that is anchored, up to the one in force.
func continues(anchored, inForce uint32, seen []anchor) bool {
	epochs := 0
	for _, a := range seen {
		if a.epoch != nil {
			epochs++
		}
	}
	return int64(inForce)-int64(anchored) <= int64(epochs)
}

// readAnchors reads the anchors that verify, nil where there are none; end is the offset after them, and sized says that
// the file ends there.
func (w *writer) readAnchors() (end int64, last *anchorReader, sized bool, err error) {
	f, err := w.disk.Open(anchorsFile)
	if errors.Is(err, fs.ErrNotExist) {
		return 0, nil, false, nil
	}
	if err != nil {
		return 0, nil, false, err
	}
	defer f.Close()
	size, err := f.Size()
	if err != nil {
		return 0, nil, false, err
	}
	r := w.chain.codec.anchors(io.NewSectionReader(f, 0, size))
	for r.next() == nil {
	}
	if r.end == 0 || r.root != w.root {
		return 0, nil, false, nil
	}
	// The root key did not sign all of the genesis record: its salt, for one. Where the log's own is damaged, this is not
	// the place to say so.
	if w.first == 0 {
		own, err := w.firstFrame(0)
		if err == nil && own.link == link(Digest{}, own.class, own.digest) && own.digest != r.genesis {
			return 0, nil, false, nil
		}
	}
	return r.end, r, r.end == size, nil
}

// rebuildAnchors makes the file from a log that is all there.
func (w *writer) rebuildAnchors() error {
	var content []byte
	t := turns{emit: func(a anchor) error {
		content = appendAnchor(content, a)
		return nil
	}}
	c := newChain(w.chain.codec)
	for index := w.first; index <= w.index; index++ {
		content, err := w.content(index)
		if err != nil {
			return err
		}
		if _, err := c.walk(segment{content: content}, index, t.visit); err != nil {
			return fmt.Errorf("%w: %w", ErrCorrupt, err)
		}
	}
	if c.root != w.root {
		return fmt.Errorf("%w: the log was begun by another root key", ErrCorrupt)
	}
	return w.replaceAnchors(content)
}

func (w *writer) content(index uint32) ([]byte, error) {
	return readFile(w.disk, segmentName(index), SegmentSize)
}

// copyAnchors drops what a power cut left after the last whole entry.
func (w *writer) copyAnchors(end int64) error {
	f, err := w.disk.Open(anchorsFile)
	if err != nil {
		return err
	}
	defer f.Close()
	content := make([]byte, end)
	if _, err := f.ReadAt(content, 0); err != nil && !errors.Is(err, io.EOF) {
		return err
	}
	return w.writeAnchors(content)
}

func (w *writer) writeAnchors(content []byte) error {
	if err := removeFile(w.disk, anchorsTemp); err != nil {
		return err
	}
	if err := writeFile(w.disk, anchorsTemp, content); err != nil {
		return err
	}
	if err := w.disk.Rename(anchorsTemp, anchorsFile); err != nil {
		return err
	}
	return w.disk.Sync()
}

func (w *writer) replaceAnchors(content []byte) (err error) {
	if err := w.writeAnchors(content); err != nil {
		return err
	}
	w.anchorsEnd = int64(len(content))
	w.anchors, err = w.disk.Open(anchorsFile)
	return err
}

// keepAnchors leaves a file as it is that nothing can mend, and goes on after its end.
func (w *writer) keepAnchors() (bool, error) {
	f, err := w.disk.Open(anchorsFile)
	if errors.Is(err, fs.ErrNotExist) {
		return false, w.replaceAnchors(nil)
	}
	if err != nil {
		return false, err
	}
	w.anchors = f
	w.anchorsEnd, err = f.Size()
	return false, err
}
