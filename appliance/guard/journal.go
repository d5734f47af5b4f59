package guard

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"syscall"

	"assent.home.arpa/appliance/audit"
	"assent.home.arpa/appliance/clock"
	"assent.home.arpa/appliance/ipc"
	"assent.home.arpa/capabilities"
)

// journal is the audit as the executor sees it: it may be absent from the start, get lost, be full for a while, or be
// replaced by a new one. While it does not work, everything that needs it fails, and the guard says so once.
type journal struct {
	options audit.Options
	state   func(err error)                 // told of each change
	lost    func(context.Context, lostCall) // told of each call that ends as unknown

	moved chan struct{} // holds one: the head is another

	mu     sync.Mutex
	log    *audit.Log // nil where it could not be opened
	err    error
	begun  map[audit.ID]lostCall // proposed and waiting at the panel
	flying map[audit.ID]lostCall // promised, and without an effect
}

// lostCall is a call of which nobody can say whether it took effect.
type lostCall struct {
	inv         audit.ID
	intent      audit.Seq
	proposal    audit.Proposal
	args        []byte // as the log keeps them
	view        []byte // what the panel showed, where the log keeps it
	destination []byte // likewise
	wall        int64  // Unix milliseconds of the promise, 0 where the clock was unset
	code        capabilities.Code
	old         bool // of an earlier start, when the box may have been set up otherwise
	cut         bool // found at a start, in place of an outcome
	sent        bool // the log holds that it left the box
}

// openJournal never fails: a guard without an audit lets people chat. state is told of each change, the first included.
func openJournal(ctx context.Context, o audit.Options, state func(error), lost func(context.Context, lostCall)) *journal {
	j := &journal{options: o, state: state, lost: lost, moved: make(chan struct{}, 1), begun: map[audit.ID]lostCall{}, flying: map[audit.ID]lostCall{}}
	j.open(ctx)
	return j
}

// open opens the log where there is none yet, and notes whether that worked.
func (j *journal) open(ctx context.Context) {
	log, err := audit.Open(ctx, j.options)
	if err != nil {
		_ = j.noted(fmt.Errorf("%w: %w", audit.ErrUnavailable, err), true)
		return
	}
	j.mu.Lock()
	j.log = log
	j.mu.Unlock()
	_ = j.noted(nil, true)
}

// recall tells of the calls that were unknown already when the log was opened: of those that this start found, and of
// those that nobody was told of before the last process ended.
func (j *journal) recall(ctx context.Context) {
	log, err := j.current()
	if err != nil {
		return
	}
	for _, u := range slices.SortedFunc(slices.Values(log.Unknown()), func(a, b audit.UnknownEffect) int { return cmp.Compare(a.Effect, b.Effect) }) {
		j.lost(ctx, lostCall{
			inv: u.Inv, intent: u.Intent, proposal: u.Proposal, args: u.Arguments, view: u.View, destination: u.Destination, wall: u.Wall, code: u.Code,
			old: true, cut: u.Cause == audit.CauseRecovery, sent: u.Sent,
		})
	}
}

// retry finds out whether room was made since the log was full. Whoever makes it has no way to say so.
func (j *journal) retry(ctx context.Context) {
	if trouble(j.Err()) != ipc.AuditFull {
		return
	}
	if log, _ := j.current(); log == nil {
		j.open(ctx)
		j.recall(ctx)
		return
	}
	_ = j.Barrier(ctx) // its failure is what is known already
}

// Err says why nothing can be recorded, or nil.
func (j *journal) Err() error {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.err
}

// trouble says what people are told of an error of the audit's.
func trouble(err error) ipc.AuditTrouble {
	switch {
	case err == nil:
		return 0
	case errors.Is(err, audit.ErrCorrupt):
		return ipc.AuditDamaged
	case errors.Is(err, audit.ErrFull), errors.Is(err, syscall.ENOSPC) && !errors.Is(err, audit.ErrPoisoned):
		return ipc.AuditFull
	}
	return ipc.AuditLost
}

// current returns the log, or why there is none.
func (j *journal) current() (*audit.Log, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.log == nil {
		return nil, j.err
	}
	return j.log, nil
}

// noted remembers whether the audit works, which a full disk can change both ways. What was recorded although the log is
// full, an outcome or a refusal, proves no room for more: only proof ends that.
func (j *journal) noted(err error, proof bool) error {
	if err != nil && !errors.Is(err, audit.ErrUnavailable) {
		return err // this record was not taken; the next may be
	}
	if err == nil {
		select {
		case j.moved <- struct{}{}:
		default: // it is about to be looked at
		}
	}
	j.mu.Lock()
	if err == nil && !proof {
		j.mu.Unlock()
		return nil
	}
	changed := trouble(j.err) != trouble(err)
	j.err = err
	j.mu.Unlock()
	if changed {
		j.state(err)
	}
	return err
}

// renew sets a damaged log aside and begins a new one. Whoever calls it has asked somebody at the box.
func (j *journal) renew(ctx context.Context) (audit.Damaged, error) {
	if trouble(j.Err()) != ipc.AuditDamaged {
		return audit.Damaged{}, errors.New("guard: the log is not damaged")
	}
	disk := j.options.Disk
	if disk == nil {
		var err error
		if disk, err = audit.OpenDir(j.options.Dir); err != nil {
			return audit.Damaged{}, err
		}
	}
	kept, err := audit.SetAside(disk)
	if err != nil {
		return audit.Damaged{}, err
	}
	j.open(ctx)
	return kept, j.Err()
}

// spareable returns the last segment of the oldest quarter, and false where nothing can be spared.
func (j *journal) spareable() (last uint32, ok bool) {
	log, err := j.current()
	if err != nil {
		return 0, false
	}
	r := log.Room()
	if r.Last < r.First+2 {
		return 0, false
	}
	return min(r.First+max(1, (r.Last-r.First+1)/4)-1, r.Last-2), true
}

// crowded reports whether the record refuses something for want of room.
func (j *journal) crowded() bool {
	log, err := j.current()
	return err == nil && (trouble(j.Err()) == ipc.AuditFull || log.Room().Collapsed)
}

// prune records that somebody at the box approved, and removes the oldest segments up to last.
func (j *journal) prune(ctx context.Context, last uint32, approved audit.Admin, text audit.Entry) error {
	log, err := j.current()
	if err != nil {
		return err
	}
	seqs, err := log.Barrier(ctx, text, audit.Entry{Payload: approved})
	if err != nil {
		return j.noted(err, false)
	}
	return j.noted(log.Prune(ctx, last, seqs[1]), true)
}

// redact removes literal payloads. Without a log there is nothing that could be removed.
func (j *journal) redact(ctx context.Context, o audit.RedactOptions) (audit.RedactReport, error) {
	log, err := j.current()
	if err != nil {
		return audit.RedactReport{}, err
	}
	r, err := log.Redact(ctx, o)
	return r, j.noted(err, false)
}

// Append implements executor.Journal.
func (j *journal) Append(ctx context.Context, entries ...audit.Entry) error {
	log, err := j.current()
	if err != nil {
		return err
	}
	j.hear(entries)
	return j.noted(log.Append(ctx, entries...), false)
}

// Barrier returns when entries are on flash. Without entries it only finds out whether the log takes any.
func (j *journal) Barrier(ctx context.Context, entries ...audit.Entry) error {
	_, err := j.barrier(ctx, entries...)
	return err
}

// barrier is Barrier, and returns where the entries are.
func (j *journal) barrier(ctx context.Context, entries ...audit.Entry) ([]audit.Seq, error) {
	log, err := j.current()
	if err != nil {
		return nil, err
	}
	seqs, err := log.Barrier(ctx, entries...)
	if err == nil {
		j.hear(entries)
	}
	// What somebody does at the box is recorded in a full log as well, and proves no room for anything else.
	return seqs, j.noted(err, !log.Room().Full)
}

// hear remembers what calls are about until they are promised or refused.
func (j *journal) hear(entries []audit.Entry) {
	j.mu.Lock()
	defer j.mu.Unlock()
	for _, e := range entries {
		l := j.begun[e.Inv]
		switch p := e.Payload.(type) {
		case audit.Proposal:
			l.proposal = p
		case audit.Blob:
			switch p.Purpose {
			case audit.BlobArguments:
				l.args = p.Bytes
			case audit.BlobView:
				l.view = p.Bytes
			default:
				continue
			}
		case audit.Decision:
			if p.Verdict == audit.Refuse {
				delete(j.begun, e.Inv)
			}
			continue
		default:
			continue
		}
		j.begun[e.Inv] = l
	}
}

// Intend implements executor.Journal.
func (j *journal) Intend(ctx context.Context, entries []audit.Entry, intent audit.IntentRecord, inv [16]byte) (audit.Intent, error) {
	log, err := j.current()
	if err != nil {
		return audit.Intent{}, err
	}
	i, err := log.Intend(ctx, entries, intent, inv)
	if err == nil {
		j.hear(entries)
		j.flies(i)
	}
	return i, j.noted(err, true)
}

// flies remembers what was promised, for the case that nobody will be able to say what became of it.
func (j *journal) flies(i audit.Intent) {
	j.mu.Lock()
	defer j.mu.Unlock()
	l := j.begun[i.Inv()]
	delete(j.begun, i.Inv())
	l.inv, l.intent = i.Inv(), i.Seq()
	if wall, state := j.options.Clock.Wall(); state != clock.Unset {
		l.wall = wall.UnixMilli()
	}
	j.flying[l.inv] = l
}

// Effect implements executor.Journal.
func (j *journal) Effect(ctx context.Context, i audit.Intent, effect audit.EffectRecord, entries ...audit.Entry) (audit.Seq, error) {
	log, err := j.current()
	if err != nil {
		return 0, err
	}
	seq, err := log.Effect(ctx, i, effect, entries...)
	j.mu.Lock()
	l, flew := j.flying[i.Inv()]
	delete(j.flying, i.Inv())
	j.mu.Unlock()
	err = j.noted(err, false)
	switch {
	case !flew:
	case err != nil:
		l.code = capabilities.CodeAuditUnavailable
		j.lost(ctx, l)
	case effect.Status == capabilities.Unknown:
		l.code, l.sent = effect.Code, effect.Sent
		j.lost(ctx, l)
	}
	return seq, err
}

// head returns where the audit ends and the digest of its root key, or false without one.
func (j *journal) head() (audit.Head, audit.Digest, bool) {
	log, err := j.current()
	if err != nil {
		return audit.Head{}, audit.Digest{}, false
	}
	return log.Head(), log.Root(), true
}

func (j *journal) close() error {
	log, err := j.current()
	if err != nil {
		return nil // there is none to close
	}
	return log.Close()
}
