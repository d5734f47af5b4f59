package audit

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"time"

	"assent.home.arpa/appliance/clock"
)

// chain is what must be known to judge the next record. The reader moves it along the log that it verifies, and the
// writer along the log that it writes, through the same step: a log that would not verify cannot be written.
type chain struct {
	codec codec

	next  Seq
	link  Digest // of the record before
	first Seq    // first record since the last seal
	// sealed is the last seal: bytes after it were never acknowledged.
	sealed Head
	seals  uint64

	root     Digest
	epoch    Epoch // in force, with the keys of seals, receipts and grants
	upcoming *Epoch
	opening  bool  // the batch began with a segment record, which stands alone
	lastSeal *Seal // of the present epoch; its signature is checked when the epoch ends
	every    bool  // check the signature of every seal, not of the last in each epoch

	boot     ID
	bootTime time.Duration
	calls    calls
	keeping  keeping
	index    uint32 // of the segment that is read
	booting  bool   // a boot record was read, and its epoch was not
}

func newChain(c codec) chain { return chain{codec: c, calls: newCalls()} }

// resume starts a chain in the middle of a log, at a segment record that the reader takes on trust.
func (c *chain) resume(s *Segment) {
	c.next, c.first, c.link = s.First, s.First, s.PrevLink
	c.epoch = Epoch{N: s.Epoch, SealKey: s.SealKey, ReceiptKey: s.ReceiptKey, GrantKey: s.GrantKey, Reason: EpochSegment}
	c.keeping = keeping{exported: s.Exported, at: s.Export, pruned: s.Pruned, started: s.First}
	c.calls.partial = true
	for _, o := range s.Open {
		c.calls.reopen(o)
	}
}

// step checks a record against all that came before and moves past it. After an error the chain must not be used, unless
// the caller restores what it saved.
func (c *chain) step(r Record, bodyDigest, frameLink Digest, class byte) error {
	if frameLink != link(c.link, class, bodyDigest) {
		return errors.New("it does not follow from the record before it: its link is another")
	}
	if err := c.stands(r.Kind); err != nil {
		return err
	}
	if r.Payload == nil { // redacted: the link vouches for the hash, and the class for its being a blob
		c.next, c.link = c.next+1, frameLink
		return nil
	}
	if r.Seq != c.next {
		return fmt.Errorf("sequence number %d where %d was due", r.Seq, c.next)
	}
	if err := c.time(r); err != nil {
		return err
	}
	if err := c.kind(r); err != nil {
		return fmt.Errorf("%s: %w", r.Kind, err)
	}
	c.next, c.link = c.next+1, frameLink
	if r.Kind == KindSeal {
		c.calls.trim()
		c.seals++
		c.first = c.next
		c.sealed = Head{Seq: r.Seq, Link: frameLink, BootID: r.BootID, Sealed: true}
	}
	return nil
}

// stands checks whether a record of kind k may stand here, be it redacted or not.
func (c *chain) stands(k Kind) error {
	switch {
	case c.next == 0 != (k == KindGenesis):
		return errors.New("genesis is record 0, and only that")
	case c.upcoming != nil && k != KindSeal:
		return errors.New("follows an epoch, where its seal was due")
	case c.opening && k != KindEpoch && k != KindSeal:
		return errors.New("in the batch of a segment record, which stands alone")
	}
	return nil
}

// time checks that boot time does not run backwards within a run. A run begins with its boot record; what the start writes
// before that, such as the first genesis, is of the new run already.
func (c *chain) time(r Record) error {
	if r.BootID == (ID{}) {
		return errors.New("no boot id")
	}
	switch r.Kind {
	case KindGenesis, KindSegment, KindBoot:
	default:
		if r.BootID != c.boot {
			return errors.New("a boot id that no boot record announced")
		}
		if r.Boot < c.bootTime {
			return errors.New("boot time runs backwards")
		}
	}
	c.boot, c.bootTime = r.BootID, r.Boot
	return nil
}

func (c *chain) kind(r Record) error {
	switch p := r.Payload.(type) {
	case *Genesis:
		claims, err := c.codec.openGenesis(p)
		if err != nil {
			return err
		}
		c.root = p.Root
		c.epoch = Epoch{SealKey: claims.SealKey}
		return nil
	case *Segment:
		return c.segment(p)
	case *Boot:
		c.booting = true
		c.calls.restart(r.BootID != c.calls.boot)
		c.calls.boot = r.BootID
		return nil
	case *Epoch:
		if c.upcoming != nil || p.N != c.epoch.N+1 {
			return fmt.Errorf("epoch %d where %d was due", p.N, c.epoch.N+1)
		}
		switch same := p.ReceiptKey == c.epoch.ReceiptKey && p.GrantKey == c.epoch.GrantKey; {
		case c.booting != (p.Reason == EpochStart):
			return errors.New("a start, and only a start, begins an epoch for that reason")
		case p.Reason != EpochStart && !same:
			return errors.New("other receipt or grant keys without a start")
		}
		c.upcoming = p
		return nil
	case *Seal:
		return c.seal(r, p)
	case *Export:
		return c.keeping.export(r.Seq, p)
	case *Admin:
		return c.keeping.admin(r.Seq, p)
	case *Prune:
		return c.keeping.prune(r.Seq, c.index, p)
	case *Redact:
		if p.Seq >= r.Seq {
			return errors.New("redacts a later record")
		}
		return nil
	}
	return c.calls.step(r, c.first, c.epoch)
}

// segment checks that a segment record repeats what the log says, so that whoever begins there begins with the truth.
func (c *chain) segment(s *Segment) error {
	if c.next != c.first {
		return errors.New("begins within a batch")
	}
	want := Segment{
		Index: s.Index, First: c.next, PrevLink: c.link, Epoch: c.epoch.N, SealKey: c.epoch.SealKey,
		ReceiptKey: c.epoch.ReceiptKey, GrantKey: c.epoch.GrantKey, Open: c.calls.openIntents(),
		Other: s.Other, Exported: c.keeping.exported, Pruned: c.keeping.pruned, Export: c.keeping.at,
	}
	a, err := c.codec.encode(want)
	if err != nil {
		return err
	}
	b, err := c.codec.encode(s)
	if err != nil {
		return err
	}
	if string(a) != string(b) {
		return errors.New("does not repeat what came before")
	}
	c.opening = true
	return nil
}

func (c *chain) seal(r Record, s *Seal) error {
	if c.booting && c.upcoming == nil {
		return errors.New("a start without a new key")
	}
	claims, err := c.codec.peekSeal(s)
	if err != nil {
		return err
	}
	want := SealClaims{Size: r.Seq, Link: c.link, Epoch: c.epoch.N, First: c.first, Header: sealHeader(r), Tree: claims.Tree}
	if claims != want {
		return errors.New("does not sign what came before")
	}
	c.lastSeal, c.opening = s, false
	if c.every || c.upcoming != nil {
		if err := c.checkLastSeal(); err != nil {
			return err
		}
	}
	if c.upcoming != nil {
		c.epoch, c.upcoming, c.lastSeal, c.booting = *c.upcoming, nil, nil, false
	}
	return nil
}

// checkLastSeal verifies the signature that vouches for everything before it.
func (c *chain) checkLastSeal() error {
	if c.lastSeal == nil {
		return nil
	}
	_, err := c.codec.openSeal(c.epoch.SealKey, c.lastSeal)
	return err
}

// sealHeader is the hash of a seal's record without its signature.
func sealHeader(r Record) Digest {
	// Seal{}: a map with key 1 and no bytes.
	return sha256.Sum256(appendBody(make([]byte, 0, maxHeader), r, []byte{0xa1, 0x01, 0x40}))
}

// stamp fills in what every record carries.
func stamp(r *Record, clk clock.Clock, bootID ID) {
	r.BootID, r.Boot, r.Salt = bootID, clk.Boot(), newSalt()
	wall, state := clk.Wall()
	r.Wall, r.Clock = 0, clock.Unset
	if now := wall.UnixMilli(); state != clock.Unset && now > 0 && now <= MaxWall {
		r.Wall, r.Clock = now, state
	}
}

// fork returns a copy that moves on its own.
func (c *chain) fork() chain {
	copied := *c
	copied.calls = c.calls.fork()
	return copied
}
