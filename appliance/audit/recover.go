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
	if w.quota == 0 {
		w.quota = DefaultQuota
	}
	if err := w.open(o); err != nil {
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
	segments := indexes(names, segmentSuffix)
	for i, s := range segments {
		if s != segments[0]+uint32(i) {
			return fmt.Errorf("%w: segment %d is missing", ErrCorrupt, segments[0]+uint32(i))
		}
	}
	var torn tornTail
	if len(segments) > 0 {
		w.first = segments[0]
		if torn, err = w.resume(segments); err != nil {
			return err
		}
	}
	if w.file == nil {
		if err := w.create(o, len(segments) > 0); err != nil {
			return err
		}
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
	if err := w.adoptSpare(names); err != nil {
		return err
	}
	return w.start(o, torn)
}

// tornTail is what a start found after the last seal.
type tornTail struct {
	bytes  uint64
	digest Digest
}

// resume reads the last two segments, which hold the last seal whenever power failed, and sets aside what follows it. It
// leaves w.file nil where nothing was ever sealed.
func (w *writer) resume(segments []uint32) (tornTail, error) {
	last := segments[len(segments)-1]
	from := last
	if len(segments) > 1 {
		from = segments[len(segments)-2]
	}
	if from > 0 {
		s, err := w.segmentRecord(from)
		if err != nil {
			return tornTail{}, err
		}
		w.chain.resume(s)
	}
	for index := from; ; index++ {
		f, err := w.disk.Open(segmentName(index))
		if err != nil {
			return tornTail{}, err
		}
		before := w.chain.seals
		torn, end, err := w.recoverSegment(f, index, index == last)
		if err != nil {
			f.Close()
			return tornTail{}, err
		}
		sealed := w.chain.seals > before
		switch {
		case index < last && sealed:
			w.file, w.index, w.offset = f, index, end
			continue
		case index < last:
			f.Close()
			return tornTail{}, fmt.Errorf("%w: segment %d is empty, and another follows it", ErrCorrupt, index)
		case sealed:
			if w.file != nil {
				w.file.Close()
			}
			w.file, w.index, w.offset = f, index, end
			return torn, nil
		}
		// The segment was begun and its first batch never acknowledged. It is all zeros now: a spare again.
		if err := f.Close(); err != nil {
			return tornTail{}, err
		}
		if err := w.disk.Rename(segmentName(index), spareName(index)); err != nil {
			return tornTail{}, err
		}
		return torn, w.disk.Sync()
	}
}

// segmentRecord reads the record that a segment begins with.
func (w *writer) segmentRecord(index uint32) (*Segment, error) {
	f, err := w.disk.Open(segmentName(index))
	if err != nil {
		return nil, err
	}
	defer f.Close()
	b := make([]byte, Block)
	if _, err := f.ReadAt(b, 0); err != nil && err != io.EOF {
		return nil, err
	}
	frame, err := parseFrame(b)
	if err != nil {
		return nil, fmt.Errorf("%w: segment %d: %w", ErrCorrupt, index, err)
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

// recoverSegment walks a segment to its last seal and zeroes what follows, after keeping a copy. Bytes after the last
// seal were never acknowledged, so no effect ran on them. That can be so in the last segment alone, and only where no
// batch after the damaged one was sealed. Otherwise this is corruption, and nothing is touched.
func (w *writer) recoverSegment(f File, index uint32, last bool) (tornTail, int64, error) {
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
			return tornTail{}, end, zero(f, end, SegmentSize)
		}
		return tornTail{}, end, nil
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
	for _, claims := range w.chain.codec.sealsIn(tail, append(keys, w.chain.epoch.SealKey)) {
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
	claims, err := c.encode(GenesisClaims{Version: Version, Root: rootKey.public(), SealKey: w.key.public(), Image: o.Boot.Image})
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
func (w *writer) start(o Options, torn tornTail) error {
	next, err := newSealKey(w.chain.epoch.N + 1)
	if err != nil {
		return err
	}
	if err := w.chain.codec.writeKey(w.disk, keyNext, next); err != nil {
		return err
	}
	boot := o.Boot
	boot.TailBytes, boot.TailDigest, boot.Unresolved = torn.bytes, torn.digest, nil
	var effects []Entry
	for _, i := range w.chain.calls.openIntents() {
		boot.Unresolved = append(boot.Unresolved, i.Inv)
		effects = append(effects, Entry{Inv: i.Inv, Payload: EffectRecord{
			Intent: i.Intent, Status: capabilities.Unknown, Code: capabilities.CodeInterrupted, Cause: CauseRecovery,
		}})
	}
	entries := append([]Entry{{Payload: boot}}, effects...)
	entries = append(entries, Entry{Payload: Epoch{
		N: next.epoch, SealKey: next.public(), ReceiptKey: Digest(o.ReceiptKey), GrantKey: Digest(o.GrantKey), Reason: EpochStart,
	}})
	if _, err := w.add(entries); err != nil {
		return err
	}
	if err := w.flush(); err != nil {
		return err
	}
	if err := promoteKey(w.disk); err != nil {
		return w.fail(err)
	}
	w.key.erase()
	w.key = next
	w.maintain()
	return nil
}
