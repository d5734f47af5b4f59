package audit

import (
	"bytes"
	"crypto/ed25519"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"slices"
	"strings"

	"assent.home.arpa/capabilities"
)

// keepTorn bounds the torn tails that are kept; the oldest go first.
const keepTorn = 16

// openWriter takes a directory and leaves it ready for writing. It can fail at any point and be run again.
func openWriter(o Options) (_ *writer, err error) {
	if o.Clock == nil || len(o.ReceiptKey) != ed25519.PublicKeySize || len(o.GrantKey) != ed25519.PublicKeySize || o.BootID == [16]byte{} {
		return nil, errors.New("audit: internal error: options lack a clock, a boot id, a receipt key or a grant key")
	}
	disk := o.Disk
	if disk == nil {
		if disk, err = OpenDir(o.Dir); err != nil {
			return nil, fmt.Errorf("%w: %w", ErrUnavailable, err)
		}
	}
	unlock, err := disk.Lock()
	if err != nil {
		disk.Close()
		if errors.Is(err, ErrLocked) {
			return nil, err
		}
		return nil, fmt.Errorf("%w: locking: %w", ErrUnavailable, err)
	}
	w := &writer{disk: disk, unlock: unlock, clock: o.Clock, bootID: o.BootID, quota: o.Quota, chain: newChain(newCodec())}
	w.receiptKey, w.grantKey = Digest(o.ReceiptKey), Digest(o.GrantKey)
	if w.quota == 0 {
		w.quota = DefaultQuota
	}
	w.budget.quota = w.quota
	w.turned = o.Clock.Boot()
	err = w.open(o)
	if err == nil {
		err = w.resumeAtStart()
	}
	if err != nil {
		w.close()
		if errors.Is(err, ErrCorrupt) || errors.Is(err, ErrUnavailable) {
			return nil, err
		}
		return nil, fmt.Errorf("%w: opening: %w", ErrUnavailable, err)
	}
	return w, nil
}

func (w *writer) open(o Options) error {
	names, err := w.disk.List()
	if err != nil {
		return err
	}
	if slices.Contains(names, setAsideTodo) {
		return fmt.Errorf("%w: it is being set aside; set it aside again to finish", ErrCorrupt)
	}
	segments := indexes(names, segmentSuffix)
	var found past
	if len(segments) > 0 {
		w.first = segments[0]
		if found, err = w.resume(segments); err != nil {
			return err
		}
	}
	if w.file == nil {
		if err := w.create(o, len(segments) > 0); err != nil {
			return err
		}
	}
	if err := w.settle(segments); err != nil {
		return err
	}
	if w.root, err = readRoot(w.disk); err != nil {
		return fmt.Errorf("%w: the root key's file: %w", ErrCorrupt, err)
	}
	if w.chain.root != (Digest{}) && w.chain.root != w.root {
		return fmt.Errorf("%w: the log was begun by another root key", ErrCorrupt)
	}
	if w.key, err = w.chain.codec.currentKey(w.disk, w.chain.epoch); err != nil {
		return err
	}
	if found.anchored, err = w.openAnchors(found.anchors); err != nil {
		return err
	}
	if err := w.adoptSpare(names); err != nil {
		return err
	}
	return w.start(o, found)
}

// settle demands that no segment is missing but those that were pruned, and removes what a cut-off prune left.
func (w *writer) settle(segments []uint32) error {
	due := w.chain.keeping.pruned
	for _, s := range segments {
		if s < w.chain.keeping.pruned {
			continue
		}
		if s != due {
			return fmt.Errorf("%w: segment %d is missing", ErrCorrupt, due)
		}
		due++
	}
	return w.removePruned(w.first)
}

// past is what a start learns from the last two segments.
type past struct {
	torn     tornTail
	anchors  []anchor
	anchored bool // the anchors file says all that the log says
}

// tornTail is what a start found after the last seal.
type tornTail struct {
	bytes  uint64
	digest Digest
}

// resume reads the last two segments, which hold the last seal whenever power failed, and sets aside what follows it. It
// leaves w.file nil where nothing was ever sealed.
func (w *writer) resume(segments []uint32) (found past, err error) {
	last := segments[len(segments)-1]
	from := last
	if len(segments) > 1 && segments[len(segments)-2] == last-1 {
		from = last - 1
	}
	if from > 0 {
		s, err := w.segmentRecord(from)
		if err != nil {
			return past{}, err
		}
		w.chain.resume(s)
		w.budget.other = s.Other
	}
	learn := learner{w: w, byOwn: map[ID]struct{}{}, turns: turns{emit: func(a anchor) error {
		found.anchors = append(found.anchors, a)
		return nil
	}}}
	for index := from; ; index++ {
		f, err := w.disk.Open(segmentName(index))
		if err != nil {
			return past{}, err
		}
		before := w.chain.seals
		torn, end, err := w.recoverSegment(f, index, index == last, &learn)
		if err != nil {
			f.Close()
			return past{}, err
		}
		sealed := w.chain.seals > before
		switch {
		case index < last && sealed:
			w.file, w.index, w.offset = f, index, end
			continue
		case index < last:
			f.Close()
			return past{}, fmt.Errorf("%w: segment %d is empty, and another follows it", ErrCorrupt, index)
		case sealed:
			if w.file != nil {
				w.file.Close()
			}
			w.file, w.index, w.offset, found.torn = f, index, end, torn
			return found, nil
		}
		// The segment was begun and its first batch never acknowledged. It is all zeros now: a spare again.
		if err := f.Close(); err != nil {
			return past{}, err
		}
		if err := w.disk.Rename(segmentName(index), spareName(index)); err != nil {
			return past{}, err
		}
		found.torn = torn
		return found, w.disk.Sync()
	}
}

// segmentRecord reads the record that a segment begins with.
func (w *writer) segmentRecord(index uint32) (*Segment, error) {
	frame, err := w.firstFrame(index)
	if err != nil {
		return nil, err
	}
	r, err := w.chain.codec.record(frame)
	if err != nil {
		return nil, fmt.Errorf("%w: segment %d: %w", ErrCorrupt, index, err)
	}
	s, ok := r.Payload.(*Segment)
	if !ok {
		return nil, fmt.Errorf("%w: segment %d begins with %s", ErrCorrupt, index, r.Kind)
	}
	return s, nil
}

func (w *writer) firstFrame(index uint32) (rawFrame, error) {
	f, err := w.disk.Open(segmentName(index))
	if err != nil {
		return rawFrame{}, err
	}
	defer f.Close()
	b := make([]byte, Block)
	if _, err := f.ReadAt(b, 0); err != nil && err != io.EOF {
		return rawFrame{}, err
	}
	frame, err := parseFrame(b)
	if err != nil {
		return rawFrame{}, fmt.Errorf("%w: segment %d: %w", ErrCorrupt, index, err)
	}
	return frame, nil
}

// recoverSegment walks a segment to its last seal and zeroes what follows, after keeping a copy. Bytes after the last
// seal were never acknowledged, so no effect ran on them. That can be so in the last segment alone, and only where no
// batch after the damaged one was sealed. Otherwise this is corruption, and nothing is touched.
func (w *writer) recoverSegment(f File, index uint32, last bool, learn *learner) (tornTail, int64, error) {
	size, err := f.Size()
	if err != nil {
		return tornTail{}, 0, err
	}
	if size > SegmentSize || (size < SegmentSize && !last) {
		return tornTail{}, 0, fmt.Errorf("%w: segment %d is %d bytes", ErrCorrupt, index, size)
	}
	content := make([]byte, SegmentSize)
	if _, err := f.ReadAt(content[:size], 0); err != nil && err != io.EOF {
		return tornTail{}, 0, err
	}
	probe := w.chain.fork()
	end, err := probe.walk(segment{content: content}, index, nil)
	if err == nil {
		w.chain = probe
		if size < SegmentSize {
			err = zero(f, end, SegmentSize)
		}
		return tornTail{}, end, errors.Join(err, learn.read(content[:end]))
	}
	var d *damage
	if !errors.As(err, &d) {
		return tornTail{}, 0, err
	}
	if !last {
		return tornTail{}, 0, fmt.Errorf("%w: %w", ErrCorrupt, d)
	}
	if end > 0 {
		// The probe stands in the middle of a batch. Go again, as far as the last seal.
		if _, err := w.chain.walk(segment{content: content[:end]}, index, nil); err != nil {
			return tornTail{}, 0, err
		}
	}
	if err := w.mustBeTorn(content[end:], d); err != nil {
		return tornTail{}, 0, err
	}
	if err := learn.read(content[:end]); err != nil {
		return tornTail{}, 0, err
	}
	torn, err := w.setAside(content[end:], index, end)
	if err != nil {
		return tornTail{}, 0, err
	}
	return torn, end, zero(f, end, SegmentSize)
}

// mustBeTorn fails where another batch than the damaged one was sealed after it: batches are written one after the other,
// so the damaged one was on flash once. The damaged batch's own seal proves nothing, since sectors reach flash in any order.
func (w *writer) mustBeTorn(tail []byte, d *damage) error {
	keys, err := w.chain.codec.knownSealKeys(w.disk)
	if err != nil {
		return err
	}
	// What proves beforehand that the log will not open must do so while nothing is changed.
	if w.chain.next == 0 {
		if err := w.neverSealed(); err != nil {
			return err
		}
	} else if !slices.Contains(keys, w.chain.epoch.SealKey) {
		return fmt.Errorf("%w: no seal key for epoch %d; %w", ErrCorrupt, w.chain.epoch.N, d)
	} else if root, err := readRoot(w.disk); err != nil {
		return fmt.Errorf("%w: the root key's file: %w", ErrCorrupt, err)
	} else if w.chain.root != (Digest{}) && w.chain.root != root {
		return fmt.Errorf("%w: the log was begun by another root key", ErrCorrupt)
	}
	for _, claims := range w.chain.codec.sealsIn(tail, keys) {
		if claims.First != w.chain.next {
			return fmt.Errorf("%w: %w", ErrCorrupt, d)
		}
	}
	return nil
}

// setAside copies a torn tail to a file of its own, since somebody may want to know what was lost.
func (w *writer) setAside(tail []byte, index uint32, offset int64) (tornTail, error) {
	if firstNonZero(tail) < 0 {
		return tornTail{}, nil
	}
	tail = bytes.TrimRight(tail, "\x00")
	torn := tornTail{bytes: uint64(len(tail)), digest: sha256.Sum256(tail)}
	names, err := w.disk.List()
	if err != nil {
		return tornTail{}, err
	}
	names = slices.DeleteFunc(names, func(n string) bool { return !strings.HasPrefix(n, quarantinePrefix) })
	for len(names) >= keepTorn {
		if err := removeFile(w.disk, names[0]); err != nil {
			return tornTail{}, err
		}
		names = names[1:]
	}
	name := fmt.Sprintf("%s%08d-%07d-%x.bin", quarantinePrefix, index, offset, torn.digest[:4])
	if err := removeFile(w.disk, name); err != nil {
		return tornTail{}, err
	}
	return torn, writeFile(w.disk, name, tail)
}

// neverSealed fails where something says that there was a log: the anchors are first written after a seal.
func (w *writer) neverSealed() error {
	names, err := w.disk.List()
	if err != nil {
		return err
	}
	if slices.Contains(names, anchorsFile) {
		return fmt.Errorf("%w: there are anchors and no log that they belong to", ErrCorrupt)
	}
	return nil
}

// create begins a log. begun says that a first segment is there in which nothing was ever sealed.
func (w *writer) create(o Options, begun bool) error {
	c := w.chain.codec
	old, ok, err := c.readKey(w.disk, keyCurrent)
	if err != nil {
		return err
	}
	if (ok && old.epoch > 0) || w.first > 0 {
		return fmt.Errorf("%w: there is a seal key and no log that it belongs to", ErrCorrupt)
	}
	if err := w.neverSealed(); err != nil {
		return err
	}
	rootKey, err := newSealKey(0)
	if err != nil {
		return err
	}
	// The root key exists in memory alone, for one signature.
	defer rootKey.erase()
	if w.key, err = newSealKey(0); err != nil {
		return err
	}
	if err := c.writeKey(w.disk, keyCurrent, w.key); err != nil {
		return err
	}
	if err := writeRoot(w.disk, rootKey.public()); err != nil {
		return err
	}
	if !begun {
		if err := w.makeSpare(); err != nil {
			return err
		}
	}
	if err := w.begin(0); err != nil {
		return err
	}
	previous, _, err := c.readDamaged(w.disk, previousLog)
	if err != nil {
		return fmt.Errorf("what is known of the log before this one: %w", err)
	}
	claims, err := c.encode(GenesisClaims{
		Version: Version, Root: rootKey.public(), SealKey: w.key.public(), Image: o.Boot.Image, PrevLog: previous.Link,
	})
	if err != nil {
		return err
	}
	statement := sign1(rootKey.private, genesisType, genesisAAD, claims)
	if _, err := w.put(Entry{Payload: Genesis{Version: Version, Root: rootKey.public(), Statement: statement}}); err != nil {
		return err
	}
	return w.flush()
}

// adoptSpare keeps the spare segment if it is whole and zero, and removes every other.
func (w *writer) adoptSpare(names []string) error {
	want := spareName(w.index + 1)
	for _, n := range names {
		if n == spareTemp || (strings.HasSuffix(n, spareSuffix) && n != want) {
			if err := removeFile(w.disk, n); err != nil {
				return err
			}
		}
	}
	f, err := w.disk.Open(want)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer f.Close()
	size, err := f.Size()
	if err != nil {
		return err
	}
	content := make([]byte, SegmentSize)
	if _, err := f.ReadAt(content, 0); err != nil && err != io.EOF {
		return err
	}
	if size != SegmentSize || firstNonZero(content) >= 0 {
		return removeFile(w.disk, want)
	}
	w.spare = true
	return f.Sync()
}

// start writes what every start writes, in one batch: the boot and what it found, unknown for each effect that nobody
// recorded, and the next seal key. The batch is the last that the old key seals.
func (w *writer) start(o Options, found past) error {
	boot := o.Boot
	boot.TailBytes, boot.TailDigest, boot.Unresolved = found.torn.bytes, found.torn.digest, nil
	var effects []Entry
	for _, i := range w.chain.calls.openIntents() {
		boot.Unresolved = append(boot.Unresolved, i.Inv)
		effects = append(effects, Entry{Inv: i.Inv, Payload: EffectRecord{
			Intent: i.Intent, Status: capabilities.Unknown, Code: capabilities.CodeInterrupted, Cause: CauseRecovery,
		}})
	}
	entries := append([]Entry{{Payload: boot}}, effects...)
	if !found.anchored {
		entries = append(entries, Entry{Payload: Fault{Class: FaultStorage, Where: "anchors"}})
	}
	w.starting = true
	seqs, err := w.add(entries)
	if err != nil {
		return err
	}
	w.starting = false
	for i, e := range effects {
		effect := e.Payload.(EffectRecord)
		w.unknown.see(Record{Seq: seqs[i+1], Inv: e.Inv, Payload: &effect})
	}
	if err := w.announce(EpochStart); err != nil {
		return err
	}
	if err := w.flush(); err != nil {
		return err
	}
	w.maintain()
	return nil
}
