package audit

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"slices"
	"time"

	"assent.home.arpa/appliance/clock"
)

// sealRoom is more than the frames of an epoch and a seal take.
const sealRoom = 1536

// outcomeRoom is kept for the effects of calls under way, maxOpen of them, when no other segment can be had.
const outcomeRoom = maxOpen * Block

// clockStep is by how much the wall clock must jump against boot time to be recorded.
const clockStep = 2 * time.Second

// writer owns the files. It belongs to one goroutine.
type writer struct {
	disk       Disk
	unlock     func() error
	clock      clock.Clock
	bootID     ID
	quota      int64
	root       Digest
	receiptKey Digest // of this run
	grantKey   Digest

	chain  chain
	key    sealKey
	turned time.Duration // boot: since when key is in force
	next   *turning      // announced in the batch

	anchors    File
	anchorsEnd int64
	unanchored []anchor // sealed, and not in the anchors file yet

	file   File
	index  uint32 // of the segment in file
	offset int64  // where the next batch goes: a multiple of Block
	first  uint32 // oldest segment on disk
	spare  bool   // the next segment is there, zeroed and durable

	batch   []byte // frames since the last seal, not on disk
	due     <-chan struct{}
	stopDue func()
	sealed  Head // acknowledged
	signed  Bytes

	budget  budget
	unknown unknowns

	wall wallReading

	starting bool
	poison   error
}

// wallReading is what the wall clock was when last looked at.
type wallReading struct {
	offset time.Duration // wall minus boot time
	state  clock.State
	known  bool
}

func (w *writer) head() Head {
	h := w.sealed
	h.Sealed = len(w.batch) == 0
	return h
}

func (w *writer) room() Room {
	n := int64(w.index-w.first) + 1
	if w.spare {
		n++
	}
	return Room{Quota: w.quota, Used: n * SegmentSize, First: w.first, Last: w.index, Full: !w.spare, Collapsed: w.budget.spent(Block)}
}

// usable reports why nothing may be written any more.
func (w *writer) usable() error {
	if w.poison != nil {
		return fmt.Errorf("%w: %w: %w", ErrUnavailable, ErrPoisoned, w.poison)
	}
	return nil
}

// fail poisons the writer: nobody can say what is on flash, so nothing is tried again.
func (w *writer) fail(err error) error {
	if w.poison == nil {
		w.poison, w.batch = err, nil
	}
	return w.usable()
}

// ready reports whether something new may begin: the effects of what is under way must still fit when nothing else does.
func (w *writer) ready() error {
	if w.spare {
		return nil
	}
	return w.makeSpare()
}

// pressed reports whether entries promise or settle a call that somebody approved at the box.
func (w *writer) pressed(entries []Entry) bool {
	return slices.ContainsFunc(entries, func(e Entry) bool {
		switch p := e.Payload.(type) {
		case Approval:
			return p.Outcome == Approved
		case IntentRecord, EffectRecord:
			return w.chain.calls.pressed(e.Inv)
		}
		return false
	})
}

// roomAtTheBox reports whether what somebody does at the box can still be recorded where nothing new may begin: a panic, an
// export, leave to prune. The outcomes of calls under way come first.
func (w *writer) roomAtTheBox(entries []Entry) bool {
	for _, e := range entries {
		switch p := e.Payload.(type) {
		case Freeze, Admin, Export, Observe:
		case Blob:
			if len(p.Bytes) > Block {
				return false
			}
		default:
			return false
		}
	}
	left := SegmentSize - w.offset - int64(len(w.batch))
	return left > int64(len(w.chain.calls.openIntents())+2)*Block+sealRoom
}

// roomForOutcomes refuses what matters less than the effects of calls under way.
func (w *writer) roomForOutcomes() error {
	if w.spare || SegmentSize-w.offset-int64(len(w.batch)) > outcomeRoom {
		return nil
	}
	return fmt.Errorf("%w: %w", ErrUnavailable, ErrFull)
}

// maintain does what nobody waits for.
func (w *writer) maintain() {
	if w.poison == nil && !w.spare {
		// No room is no failure: ready tries again before anything new begins, and says so.
		_ = w.makeSpare()
	}
	if w.poison == nil && w.anchors != nil {
		if err := w.anchor(); err != nil && !full(err) {
			_ = w.fail(fmt.Errorf("writing the anchors: %w", err))
		}
	}
}

// add puts entries into the batch, all or none, and rolls to the next segment where they do not fit.
func (w *writer) add(entries []Entry) ([]Seq, error) {
	for rolled := false; ; rolled = true {
		pressed := w.pressed(entries)
		seqs, fits, err := w.tryAdd(entries)
		if err == nil && fits {
			w.budget.pressed = w.budget.pressed || pressed
		}
		if err != nil || fits {
			return seqs, err
		}
		if rolled {
			return nil, ErrTooLarge
		}
		if err := w.flush(); err != nil {
			return nil, err
		}
		if err := w.roll(); err != nil {
			return nil, err
		}
	}
}

func (w *writer) tryAdd(entries []Entry) (seqs []Seq, fits bool, err error) {
	chain, wall, n := w.chain, w.wall, len(w.batch)
	restoreCalls := w.chain.calls.save(entries)
	defer func() {
		if err != nil || !fits {
			restoreCalls()
			w.chain, w.wall, w.batch = chain, wall, w.batch[:n]
		}
	}()
	if step, ok := w.clockStep(); ok {
		if _, err := w.put(Entry{Payload: step}); err != nil {
			return nil, false, err
		}
	}
	for _, e := range entries {
		seq, err := w.put(e)
		if err != nil {
			return nil, false, err
		}
		seqs = append(seqs, seq)
		if w.offset+int64(len(w.batch))+sealRoom > SegmentSize {
			return nil, false, nil
		}
	}
	return seqs, true, nil
}

// addCounts adds what the budget kept out, where it fits beside what the batch is for.
func (w *writer) addCounts() {
	counts := w.budget.counts()
	if len(counts) == 0 {
		return
	}
	if _, fits, err := w.tryAdd(counts); err == nil && fits {
		clear(w.budget.over)
	}
}

// put puts one record into the batch.
func (w *writer) put(e Entry) (Seq, error) {
	r := w.record(e)
	_, err := w.frame(r)
	return r.Seq, err
}

// record is an entry as the next record.
func (w *writer) record(e Entry) Record {
	r := Record{Kind: e.Payload.Kind(), Seq: w.chain.next, Inv: e.Inv, Payload: e.Payload}
	if i, ok := e.Payload.(IntentRecord); ok {
		r.Payload = w.chain.calls.live[e.Inv].refer(i)
	}
	stamp(&r, w.clock, w.bootID)
	return r
}

// frame frames a record, reads it back, and takes it through the reader's own checks. They are the whole of what a verifier
// does with a record: decodeBody accepts nothing but its one encoding and its limits, and step nothing but a record that
// may follow. So what is written verifies, whatever the encoder made of it.
func (w *writer) frame(r Record) (body []byte, err error) {
	b, err := w.chain.codec.encodeBody(r)
	if err != nil {
		return nil, err
	}
	back, err := w.chain.codec.decodeBody(b)
	if err != nil {
		return nil, err
	}
	digest := Digest(sha256.Sum256(b))
	batch, l := appendFrame(w.batch, w.chain.link, classOf(r.Kind), b, digest)
	if err := w.chain.step(back, digest, l, classOf(r.Kind)); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrMalformed, err)
	}
	w.batch = batch
	return b, nil
}

// clockStep looks whether the wall clock was set since the last look.
func (w *writer) clockStep() (ClockStep, bool) {
	wall, state := w.clock.Wall()
	boot := w.clock.Boot()
	before := w.wall
	w.wall = wallReading{offset: time.Duration(wall.UnixNano()) - boot, state: state, known: true}
	if !before.known || (state == before.state && (w.wall.offset-before.offset).Abs() < clockStep) {
		return ClockStep{}, false
	}
	return ClockStep{
		From: (before.offset + boot).Milliseconds(), To: wall.UnixMilli(), FromState: before.state, ToState: state, Source: "system clock",
	}, true
}

// flush seals the batch and returns when it is on flash.
func (w *writer) flush() error {
	if w.stopDue != nil {
		w.stopDue()
		w.due, w.stopDue = nil, nil
	}
	if err := w.usable(); err != nil {
		return err
	}
	if len(w.batch) == 0 {
		return nil
	}
	if err := w.renew(); err != nil {
		return w.fail(err)
	}
	sealBody, err := w.seal()
	if err != nil {
		return w.fail(err)
	}
	// Padding to a whole block: what was acknowledged shares no flash page with what is written later.
	w.batch = append(w.batch, make([]byte, (Block-len(w.batch)%Block)%Block)...)
	if n, err := w.file.WriteAt(w.batch, w.offset); err != nil {
		return w.fail(fmt.Errorf("writing segment %d after %d bytes: %w", w.index, n, err))
	}
	if err := w.file.Sync(); err != nil {
		return w.fail(fmt.Errorf("syncing segment %d: %w", w.index, err))
	}
	w.offset += int64(len(w.batch))
	w.budget.flushed(len(w.batch))
	w.batch = w.batch[:0]
	w.sealed = w.chain.sealed
	w.sealed.Seal = w.signed
	if w.next != nil {
		if err := w.turn(sealBody); err != nil {
			return w.fail(fmt.Errorf("changing the seal key: %w", err))
		}
	}
	return nil
}

// seal signs everything up to here and appends the seal to the batch.
func (w *writer) seal() (body []byte, err error) {
	r := Record{Kind: KindSeal, Seq: w.chain.next}
	stamp(&r, w.clock, w.bootID)
	claims, err := w.chain.codec.encode(SealClaims{
		Size: r.Seq, Link: w.chain.link, Epoch: w.key.epoch, First: w.chain.first, Header: sealHeader(r),
	})
	if err != nil {
		return nil, err
	}
	w.signed = sign1(w.key.private, sealType, sealAAD, claims)
	r.Payload = Seal{Sign1: w.signed}
	return w.frame(r)
}

// roll begins the next segment with its segment record. The batch must be empty.
func (w *writer) roll() error {
	if !w.spare {
		if err := w.makeSpare(); err != nil {
			return err
		}
	}
	index := w.index + 1
	if err := w.begin(index); err != nil {
		return w.fail(err)
	}
	_, err := w.put(Entry{Payload: Segment{
		Index: index, First: w.chain.next, PrevLink: w.chain.link, Epoch: w.chain.epoch.N, SealKey: w.chain.epoch.SealKey,
		ReceiptKey: w.chain.epoch.ReceiptKey, GrantKey: w.chain.epoch.GrantKey, Open: w.chain.calls.openIntents(),
		Other: w.budget.other, Exported: w.chain.keeping.exported, Pruned: w.chain.keeping.pruned, Export: w.chain.keeping.at,
	}})
	if err == nil {
		err = w.announceIfRoom(EpochSegment)
	}
	if err != nil {
		return w.fail(err)
	}
	return w.flush()
}

// begin turns the spare into the segment of that index.
func (w *writer) begin(index uint32) error {
	if err := w.disk.Rename(spareName(index), segmentName(index)); err != nil {
		return err
	}
	if err := w.disk.Sync(); err != nil {
		return err
	}
	f, err := w.disk.Open(segmentName(index))
	if err != nil {
		return err
	}
	if w.file != nil {
		if err := w.file.Close(); err != nil {
			return err
		}
	}
	w.file, w.index, w.offset, w.spare = f, index, 0, false
	w.chain.index = index
	return nil
}

// makeSpare prepares the next segment by writing zeros, so that appending to it later changes no file's size and needs no
// journal of the file system's. Where there is no room it fails with ErrUnavailable and ErrFull and leaves nothing behind.
func (w *writer) makeSpare() error {
	index := w.index + 1
	if w.file == nil {
		index = 0
	}
	quota := w.quota
	if w.starting {
		// A log that is full must open, or nobody could make room in it.
		quota += SegmentSize
	}
	if int64(index-w.first+1)*SegmentSize > quota {
		return fmt.Errorf("%w: %w", ErrUnavailable, ErrFull)
	}
	err := w.zeroFile()
	if err == nil {
		err = w.disk.Rename(spareTemp, spareName(index))
	}
	if err == nil {
		err = w.disk.Sync()
	}
	switch {
	case err == nil:
		w.spare = true
		return nil
	case full(err):
		if err := removeFile(w.disk, spareTemp); err != nil {
			return w.fail(err)
		}
		return fmt.Errorf("%w: %w: %w", ErrUnavailable, ErrFull, err)
	}
	return w.fail(fmt.Errorf("making a spare segment: %w", err))
}

func (w *writer) zeroFile() error {
	if err := removeFile(w.disk, spareTemp); err != nil {
		return err
	}
	f, err := w.disk.Create(spareTemp)
	if err != nil {
		return err
	}
	if err := zero(f, 0, SegmentSize); err != nil {
		f.Close()
		return err
	}
	return f.Close()
}

// zero overwrites a range of f with zeros and syncs it.
func zero(f File, from, to int64) error {
	chunk := make([]byte, SegmentSize/4)
	for from < to {
		n, err := f.WriteAt(chunk[:min(int64(len(chunk)), to-from)], from)
		if err != nil {
			return err
		}
		from += int64(n)
	}
	return f.Sync()
}

func (w *writer) close() error {
	var errs []error
	for _, f := range []File{w.file, w.anchors} {
		if f != nil {
			errs = append(errs, f.Close())
		}
	}
	errs = append(errs, w.unlock(), w.disk.Close())
	w.key.erase()
	return errors.Join(errs...)
}
