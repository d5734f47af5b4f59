package audit

import (
	"context"
	"crypto/ed25519"
	"encoding/base32"
	"errors"
	"fmt"
	"sync"
	"time"

	"assent.home.arpa/appliance/clock"
)

// What callers branch on.
var (
	// ErrUnavailable says that nothing can be recorded now, so nothing may be executed. Chat may go on.
	ErrUnavailable = errors.New("audit: unavailable")
	// ErrPoisoned comes with ErrUnavailable after a failed write or sync: this log is done for, and a restart recovers it.
	ErrPoisoned = errors.New("audit: a write failed; restart to recover")
	// ErrFull comes with ErrUnavailable where there is no room for a spare segment. It passes when room is made.
	ErrFull = errors.New("audit: no room for another segment; make room at the box, or raise the quota")
	// ErrShare says that calls which nobody approved have had their half of the record. Approved ones go on.
	ErrShare = errors.New("audit: what runs by itself has had its half of the record; make room at the box")
	// ErrLocked says that another process has the log open.
	ErrLocked = errors.New("audit: the log is open in another process")
	// ErrCorrupt says that acknowledged bytes cannot be read. Nothing was changed.
	ErrCorrupt = errors.New("audit: the log is corrupt")
	// ErrSettled says that an intent has its effect already, or is none of this log's.
	ErrSettled = errors.New("audit: the intent is settled, or is not of this log")
	// ErrTooLarge says that entries do not fit in one segment together.
	ErrTooLarge = errors.New("audit: too much for one batch")
)

// DefaultQuota is used where Options.Quota is 0: eleven months at 100 effects a day.
const DefaultQuota = 256 << 20

// groupDelay bounds how long Append may leave records unsealed.
const groupDelay = time.Second

// Entry is one record to be written. Inv is the invocation that it belongs to, zero for none.
type Entry struct {
	Inv     [16]byte
	Payload Payload
}

// Options says where a log lives and what starts with it.
type Options struct {
	Dir string
	// Disk replaces the directory Dir, for tests. The log closes it.
	Disk       Disk
	Clock      clock.Clock
	BootID     [16]byte          // the kernel's boot id
	ReceiptKey ed25519.PublicKey // by which receipts of this run are verified
	GrantKey   ed25519.PublicKey
	Boot       Boot
	Quota      int64 // bytes of segments, spare included; DefaultQuota where 0
}

// Head is where the log ends.
type Head struct {
	Seq    Seq
	Link   Digest
	BootID ID
	Sealed bool  // nothing was appended since
	Seal   Bytes // the COSE_Sign1 of the last seal, for a phone to keep as an anchor
}

// Code is the short form of a head, for a panel and a person: 40 bits of its link in Crockford's base 32. It tells apart
// what differs by accident or by a thief's hand in one try; who can try for hours compares Link.
func (h Head) Code() string {
	return base32.NewEncoding("0123456789ABCDEFGHJKMNPQRSTVWXYZ").EncodeToString(h.Link[:5])
}

// Intent is the durable promise of one execution. Only Intend makes a valid one, so what takes an Intent cannot run
// without an audit.
type Intent struct {
	log *Log
	seq Seq
	inv ID
}

// Valid reports whether i came from Intend.
func (i Intent) Valid() bool { return i.log != nil }

// Seq is the record that holds the promise.
func (i Intent) Seq() Seq { return i.seq }

// Inv is the invocation.
func (i Intent) Inv() [16]byte { return i.inv }

// Log is an audit log that is open for writing. Its methods may be called from any goroutine; one goroutine of its own
// owns the files.
type Log struct {
	ops     chan func(*writer)
	quit    chan struct{}
	stopped chan struct{} // closed when the owner has returned
	once    sync.Once
	err     error // of closing; read after stopped
	root    Digest
	unknown []UnknownEffect

	redacting sync.Mutex // one redaction at a time: there is one redact.todo

	mu   sync.Mutex
	head Head
	room Room
}

// Open opens the log, and creates one where there is none. It sets aside and zeroes a torn tail, writes unknown for each
// intent without an effect, announces a new seal key, and records the boot with what it found. An error that wraps
// ErrLocked, ErrCorrupt or ErrUnavailable means that nothing may be executed.
func Open(ctx context.Context, o Options) (*Log, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	w, err := openWriter(o)
	if err != nil {
		return nil, err
	}
	l := &Log{ops: make(chan func(*writer)), quit: make(chan struct{}), stopped: make(chan struct{}), head: w.head(), room: w.room(), root: w.root, unknown: w.unknown.list()}
	go l.own(w)
	return l, nil
}

// own is the goroutine that owns the files.
func (l *Log) own(w *writer) {
	defer close(l.stopped)
	for {
		if w.due == nil && len(w.batch) > 0 {
			w.due, w.stopDue = w.clock.Until(w.clock.Boot() + groupDelay)
		}
		select {
		case op := <-l.ops:
			op(w)
		case <-w.due:
			// A failure poisons the writer, and whoever comes next hears of it.
			_ = w.flush()
		case <-l.quit:
			w.addCounts()
			err := w.flush()
			l.err = errors.Join(err, w.close())
			return
		}
		w.maintain()
		l.publish(w)
	}
}

func (l *Log) publish(w *writer) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.head, l.room = w.head(), w.room()
}

// do runs op in the owner. Once the owner has taken it, it runs to its end whatever becomes of ctx: the disk bounds it,
// and a caller that gave up must not be told that something durable did not happen.
func (l *Log) do(ctx context.Context, op func(*writer) error) error {
	done := make(chan error, 1)
	run := func(w *writer) {
		if err := ctx.Err(); err != nil {
			done <- err
			return
		}
		err := w.usable()
		if err == nil {
			err = op(w)
		}
		l.publish(w)
		done <- err
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	select {
	case l.ops <- run:
		return <-done
	case <-ctx.Done():
		return ctx.Err()
	case <-l.stopped:
		return fmt.Errorf("%w: the log is closed", ErrUnavailable)
	}
}

// Answers returns once the owner of the files takes its turn, which it does whether or not it can write; or when the log is
// closed, or ctx has ended.
func (l *Log) Answers(ctx context.Context) {
	select {
	case l.ops <- func(*writer) {}:
	case <-l.stopped:
	case <-ctx.Done():
	}
}

// Barrier records entries and returns when they are sealed and on flash.
func (l *Log) Barrier(ctx context.Context, entries ...Entry) (seqs []Seq, err error) {
	if err := writable(entries); err != nil {
		return nil, err
	}
	err = l.do(ctx, func(w *writer) error {
		if err := w.ready(); err != nil && (w.poison != nil || !w.roomAtTheBox(entries)) {
			return err
		}
		if seqs, err = w.add(entries); err != nil {
			return err
		}
		w.addCounts()
		return w.flush()
	})
	if err != nil {
		return nil, err
	}
	return seqs, nil
}

// Append records entries on which nothing waits, such as rejections. They are sealed within a second, or with the next
// barrier. A failure to write them poisons the log. Once such records have had half of the quota they are only counted, and
// the counts are written with the next barrier.
func (l *Log) Append(ctx context.Context, entries ...Entry) error {
	if err := writable(entries); err != nil {
		return err
	}
	return l.do(ctx, func(w *writer) error {
		if err := w.roomForOutcomes(); err != nil {
			return err
		}
		if w.budget.spent(len(w.batch) + Block) {
			w.budget.suppress(entries, w.clock.Boot())
			return nil
		}
		if _, err := w.add(entries); err != nil {
			return err
		}
		if len(w.batch) > MaxBlob {
			return w.flush()
		}
		return nil
	})
}

// Intend is barrier 1: it records entries (proposal, decision, approval, literal payloads) and the intent, and returns
// when they are sealed and on flash. It fills in the intent's references. An intent that policy did not allow, or for
// which policy asked for a press that was not given for exactly this call, is refused. It fails with ErrShare where calls
// that nobody approved have had their half of the quota.
func (l *Log) Intend(ctx context.Context, entries []Entry, intent IntentRecord, inv [16]byte) (Intent, error) {
	if err := writable(entries); err != nil {
		return Intent{}, err
	}
	var seqs []Seq
	err := l.do(ctx, func(w *writer) (err error) {
		if err := w.ready(); err != nil {
			return err
		}
		all := append(append([]Entry{}, entries...), Entry{Inv: inv, Payload: intent})
		if w.budget.spent(len(w.batch)+2*Block) && !w.pressed(all) {
			return ErrShare
		}
		if seqs, err = w.add(all); err != nil {
			return err
		}
		w.addCounts()
		return w.flush()
	})
	if err != nil {
		return Intent{}, err
	}
	return Intent{log: l, seq: seqs[len(seqs)-1], inv: inv}, nil
}

// Effect is barrier 2: it settles an intent, once, and records what goes with it. It works while the log is full, and when
// ctx has ended: what was done is recorded even if nobody waits for it any more.
// An error that wraps ErrUnavailable means that the outcome is not recorded, so it is unknown whatever the caller knows.
func (l *Log) Effect(ctx context.Context, i Intent, effect EffectRecord, entries ...Entry) (Seq, error) {
	if i.log != l {
		return 0, ErrSettled
	}
	if err := writable(entries); err != nil {
		return 0, err
	}
	effect.Intent = i.seq
	var seqs []Seq
	err := l.do(context.WithoutCancel(ctx), func(w *writer) (err error) {
		if w.chain.calls.live[i.inv].intent != i.seq {
			return ErrSettled
		}
		all := append([]Entry{{Inv: i.inv, Payload: effect}}, entries...)
		if seqs, err = w.add(all); err != nil {
			return err
		}
		return w.flush()
	})
	if err != nil {
		return 0, err
	}
	return seqs[0], nil
}

// Head returns the last sealed record.
func (l *Log) Head() Head {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.head
}

// Room says how full the log is.
func (l *Log) Room() Room {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.room
}

// Unknown lists the effects that were unknown when the log was opened, those that this start found included, as far as the
// last two segments tell. Who keeps a list over longer times adds these to it.
func (l *Log) Unknown() []UnknownEffect { return l.unknown }

// Root is the public device root key, which signed the first record. People compare it; phones pin it.
func (l *Log) Root() Digest { return l.root }

// Close seals what was appended and lets go of the files.
func (l *Log) Close() error {
	l.once.Do(func() { close(l.quit) })
	<-l.stopped
	return l.err
}

// writable refuses what only the log itself writes.
func writable(entries []Entry) error {
	for _, e := range entries {
		if e.Payload == nil {
			return fmt.Errorf("%w: an entry without a payload", ErrMalformed)
		}
		switch k := e.Payload.Kind(); k {
		case KindGenesis, KindSegment, KindBoot, KindSeal, KindEpoch, KindIntent, KindEffect, KindPrune:
			return fmt.Errorf("%w: %s is not for callers to write", ErrMalformed, k)
		}
	}
	return nil
}
