package audit

import (
	"cmp"
	"crypto/sha256"
	"errors"
	"fmt"
	"maps"
	"slices"

	"assent.home.arpa/capabilities"
	"assent.home.arpa/confirm/receipt"
)

// Bounds of what is remembered of calls, so that verifying takes the same memory for a year as for a day.
const (
	maxCalls  = 4096    // undecided or unsettled at one time
	maxOpen   = 64      // promised and without an effect at one time
	maxClosed = 1 << 16 // invocations of this boot that ended, remembered to refuse their being used again
)

// calls follows each invocation from its proposal to its end and refuses what no sound box could have written: an intent
// that policy did not allow, a press that nobody gave, an effect that nobody promised.
type calls struct {
	boot   ID // of the last boot record
	live   map[ID]call
	closed map[ID]struct{}
	order  []ID // closed, oldest first
	// opened is the receipt of the record at hand, where it was verified in advance.
	opened *press
	// partial says that reading began in the middle of a log: until the next start, calls may appear whose beginning was
	// not seen.
	partial bool
}

// call is one invocation. Sequence numbers are 0 where there is no such record: record 0 is the genesis.
type call struct {
	proposal Proposal
	at       Seq // of proposal
	verdict  Verdict
	decision Seq
	approval Seq
	receipt  *receipt.Claims // of a press
	signed   Digest          // SHA-256 of the receipt
	intent   Seq
}

func newCalls() calls { return calls{live: map[ID]call{}, closed: map[ID]struct{}{}} }

// reopen takes over an intent from a segment record.
func (c *calls) reopen(o OpenIntent) { c.live[o.Inv] = call{intent: o.Intent} }

// restart forgets what died with the previous run. Promised effects do not die; and what ended is remembered until the
// kernel's boot ends, since its receipts are of that boot.
func (c *calls) restart(rebooted bool) {
	maps.DeleteFunc(c.live, func(_ ID, k call) bool { return k.intent == 0 })
	c.partial = false
	if rebooted {
		clear(c.closed)
		c.order = nil
	}
}

// pressed reports whether a call that is under way was asked for at the panel. Of what began before reading did, nobody
// knows, and it counts as if it was.
func (c *calls) pressed(inv ID) bool {
	k, ok := c.live[inv]
	return ok && (k.approval != 0 || k.at == 0)
}

// openIntents lists the intents without an effect, in order.
func (c *calls) openIntents() []OpenIntent {
	var open []OpenIntent
	for inv, k := range c.live {
		if k.intent != 0 {
			open = append(open, OpenIntent{Intent: k.intent, Inv: inv})
		}
	}
	slices.SortFunc(open, func(a, b OpenIntent) int { return cmp.Compare(a.Intent, b.Intent) })
	return open
}

// underWay counts them.
func (c *calls) underWay() (n int) {
	for _, k := range c.live {
		if k.intent != 0 {
			n++
		}
	}
	return n
}

func (c *calls) close(inv ID) {
	delete(c.live, inv)
	c.closed[inv] = struct{}{}
	c.order = append(c.order, inv)
}

// trim forgets the oldest that ended. It is called between batches, when nothing can be restored any more.
func (c *calls) trim() {
	for len(c.order) > maxClosed {
		delete(c.closed, c.order[0])
		c.order = c.order[1:]
	}
}

// save returns a function that undoes what step does for the given entries.
func (c *calls) save(entries []Entry) (restore func()) {
	if slices.ContainsFunc(entries, func(e Entry) bool { return e.Payload.Kind() == KindBoot }) {
		return c.saveAll() // a start forgets calls that it does not name
	}
	before := map[ID]call{}
	for _, e := range entries {
		if k, ok := c.live[e.Inv]; ok {
			before[e.Inv] = k
		}
	}
	n := len(c.order)
	return func() {
		for _, inv := range c.order[n:] {
			delete(c.closed, inv)
		}
		c.order = c.order[:n]
		for _, e := range entries {
			delete(c.live, e.Inv)
		}
		maps.Copy(c.live, before)
	}
}

func (c *calls) saveAll() (restore func()) {
	before := c.fork()
	return func() {
		// The maps stay the same ones: a copy of the chain shares them.
		clear(c.live)
		clear(c.closed)
		maps.Copy(c.live, before.live)
		maps.Copy(c.closed, before.closed)
		c.order, c.partial = before.order, before.partial
	}
}

// step checks one record of a call. first is the first record of the batch that is not sealed yet.
func (c *calls) step(r Record, first Seq, epoch Epoch) error {
	switch r.Payload.(type) {
	case *Proposal, *Decision, *Approval, *IntentRecord, *EffectRecord, *Withdraw:
	default:
		return nil
	}
	if r.Inv == (ID{}) {
		return errors.New("no invocation")
	}
	k, live := c.live[r.Inv]
	if _, ended := c.closed[r.Inv]; ended {
		return errors.New("an invocation that has ended")
	}
	if p, ok := r.Payload.(*Proposal); ok {
		return c.propose(r, p, live)
	}
	if !live && c.partial {
		if _, ok := r.Payload.(*IntentRecord); ok {
			c.live[r.Inv] = call{intent: r.Seq}
		}
		return nil
	}
	if !live {
		return errors.New("an invocation that was not proposed")
	}
	var err error
	switch p := r.Payload.(type) {
	case *Decision:
		return c.decide(r, p, k)
	case *Approval:
		err = k.approve(r, p, epoch, c.opened)
	case *IntentRecord:
		if c.underWay() >= maxOpen {
			return fmt.Errorf("more than %d effects are under way", maxOpen)
		}
		err = k.promise(r, p)
	case *EffectRecord:
		switch {
		case k.intent == 0 || p.Intent != k.intent:
			return errors.New("an effect without its intent")
		case k.intent >= first:
			return errors.New("an effect before its intent was sealed")
		}
		c.close(r.Inv)
		return nil
	}
	if err == nil {
		c.live[r.Inv] = k
	}
	return err
}

func (c *calls) propose(r Record, p *Proposal, live bool) error {
	if live {
		return errors.New("an invocation that was proposed before")
	}
	if len(c.live) >= maxCalls {
		return fmt.Errorf("more than %d invocations are open", maxCalls)
	}
	c.live[r.Inv] = call{proposal: *p, at: r.Seq}
	return nil
}

func (c *calls) decide(r Record, d *Decision, k call) error {
	switch {
	case k.intent != 0:
		return errors.New("decided after the intent")
	case d.Verdict == Refuse:
		c.close(r.Inv)
		return nil
	case d.Stage != capabilities.StagePolicy:
		if d.Verdict == Confirm {
			return errors.New("only policy asks for a press")
		}
		return nil
	case k.decision != 0:
		return errors.New("policy decided twice")
	case k.proposal.Capability == "" || k.proposal.ArgsDigest == capabilities.ArgsDigest{}:
		return errors.New("policy passed what was not resolved and validated")
	}
	k.verdict, k.decision = d.Verdict, r.Seq
	c.live[r.Inv] = k
	return nil
}

// approve checks the press: that it was asked for, that the panel's key signed it, and that it is a press for this call,
// these arguments and this screen, given after the pages were shown and before the deadline.
func (k *call) approve(r Record, a *Approval, epoch Epoch, opened *press) error {
	if k.verdict != Confirm || k.approval != 0 || k.intent != 0 {
		return errors.New("a press that policy did not ask for")
	}
	k.approval = r.Seq
	if a.Outcome != Approved {
		return nil
	}
	if a.By != ByBox {
		return errors.New("approved by somebody who is not at the box")
	}
	k.signed = sha256.Sum256(a.Receipt)
	if opened == nil || opened.key != epoch.ReceiptKey || opened.digest != k.signed {
		o, err := openReceipt(epoch.ReceiptKey, a.Receipt)
		if err != nil {
			return fmt.Errorf("receipt: %w", err)
		}
		opened = &o
	}
	c, p := opened.claims, &k.proposal
	switch {
	case ID(c.Inv) != r.Inv, c.ArgsDigest != p.ArgsDigest, c.ArgsDigest != a.ArgsDigest:
		return errors.New("receipt: for another invocation or other arguments")
	case Digest(c.ScreenDigest) != a.ScreenDigest, Digest(c.RequestDigest) != a.RequestDigest:
		return errors.New("receipt: for another screen or request")
	case c.Capability != p.Capability, c.Version != p.Version, c.Revision != p.Revision, Digest(c.SchemaDigest) != p.SchemaDigest, c.Slot != p.Slot:
		return errors.New("receipt: for another capability, revision or phone")
	case ID(c.BootID) != r.BootID:
		return errors.New("receipt: of another boot")
	case c.Shown != a.Shown, c.Pressed != a.Pressed, c.Completed != a.Completed, c.Expires != a.Expires:
		return errors.New("receipt: other times than the record's")
	// Decoding has checked that shown, pressed and completed are in order. CLOCK_MONOTONIC is never ahead of
	// CLOCK_BOOTTIME, so a press that completed after the deadline on the former certainly did on the latter.
	case c.Completed > c.Expires:
		return errors.New("receipt: pressed after the deadline")
	}
	k.receipt = &c
	return nil
}

// refer fills in an intent's references to the records of its call.
func (k call) refer(i IntentRecord) IntentRecord {
	i.Proposal, i.Decision, i.Approval, i.ReceiptDigest = k.at, k.decision, k.approval, k.signed
	return i
}

func (k *call) promise(r Record, i *IntentRecord) error {
	switch {
	case k.intent != 0:
		return errors.New("promised twice")
	case k.verdict != Allow && k.verdict != Confirm:
		return errors.New("policy did not allow it")
	case k.verdict == Confirm && k.receipt == nil:
		return errors.New("policy asked for a press, and there is no receipt")
	case i.Proposal != k.at, i.Decision != k.decision, i.Approval != k.approval:
		return errors.New("points at other records than its own")
	case i.ArgsDigest != k.proposal.ArgsDigest:
		return errors.New("other arguments than proposed")
	case i.ReceiptDigest != k.signed:
		return errors.New("another receipt than the one recorded")
	case k.receipt != nil && i.RequestDigest != Digest(k.receipt.RequestDigest):
		return errors.New("another request than the one shown")
	}
	k.intent = r.Seq
	return nil
}

func (c *calls) fork() calls {
	return calls{live: maps.Clone(c.live), closed: maps.Clone(c.closed), order: slices.Clone(c.order), partial: c.partial, boot: c.boot}
}
