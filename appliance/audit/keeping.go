package audit

import "errors"

// keeping follows what may be removed from the front of the log, and what was.
type keeping struct {
	exported Seq    // last record that a complete and good export holds
	at       Seq    // of that export's record
	approved Seq    // the last approval, at the box, of pruning without an export
	pruned   uint32 // segments before this one were pruned
	// started is the first record that was read: what came before cannot be checked.
	started Seq
}

func (k *keeping) export(at Seq, e *Export) error {
	switch {
	case !e.OK || e.Redacted || e.Cable:
	case e.Last >= at:
		return errors.New("holds later records than itself")
	case e.Last >= k.exported:
		k.exported, k.at = e.Last, at
	}
	return nil
}

func (k *keeping) admin(at Seq, a *Admin) error {
	if a.Action == AdminPrune && a.Outcome == Approved {
		if a.By != ByBox {
			return errors.New("approved by somebody who is not at the box")
		}
		k.approved = at
	}
	return nil
}

// prune checks that what was removed was the front of the log, and that somebody has it or nobody at the box wanted it.
func (k *keeping) prune(at Seq, present uint32, p *Prune) error {
	switch {
	case p.Last >= at || p.LastSegment >= present:
		return errors.New("removes what is not there yet")
	case p.FirstSegment != k.pruned:
		return errors.New("does not continue what was pruned before")
	case p.Admin != 0 && p.Export == 0:
		if p.Admin != k.approved && p.Admin >= k.started {
			return errors.New("nobody at the box approved it")
		}
	case p.Export != 0 && p.Admin == 0:
		if p.Export != k.at || p.Last > k.exported {
			return errors.New("no good export holds it")
		}
	default:
		return errors.New("needs either an export or an approval")
	}
	k.pruned = p.LastSegment + 1
	return nil
}
