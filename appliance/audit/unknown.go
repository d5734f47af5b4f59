package audit

import (
	"maps"
	"slices"

	"assent.home.arpa/capabilities"
)

// UnknownEffect is a promised call of which nobody can say what became of it. It is never executed again.
type UnknownEffect struct {
	Inv         ID
	Intent      Seq      // the record that promised it
	Effect      Seq      // the record that says unknown
	Wall        int64    // Unix milliseconds of the promise; 0 where the clock was not set
	Proposal    Proposal // zero where it is further back than the last two segments
	Arguments   []byte   // the normalised arguments (BlobArguments), where they were kept
	View        []byte   // the readable rendering (BlobView), where it was kept
	Destination []byte   // as the panel named it (BlobDestination), where it was kept
	Code        capabilities.Code
	Cause       Cause
	Sent        bool // the record that says unknown holds that it left the box
}

// unknowns finds unknown effects in the records of the last two segments.
type unknowns struct {
	calls map[ID]*UnknownEffect
	open  map[ID]struct{} // of calls: unknown, and no final look since
}

func (u *unknowns) call(inv ID) *UnknownEffect {
	if u.calls == nil {
		u.calls, u.open = map[ID]*UnknownEffect{}, map[ID]struct{}{}
	}
	if u.calls[inv] == nil {
		u.calls[inv] = &UnknownEffect{Inv: inv}
	}
	return u.calls[inv]
}

func (u *unknowns) forget(inv ID) {
	delete(u.calls, inv)
	delete(u.open, inv)
}

func (u *unknowns) see(r Record) {
	switch p := r.Payload.(type) {
	case *Blob:
		switch {
		case r.Inv == ID{}:
		case p.Purpose == BlobView:
			u.call(r.Inv).View = clone(p.Bytes)
		case p.Purpose == BlobArguments:
			u.call(r.Inv).Arguments = clone(p.Bytes)
		case p.Purpose == BlobDestination:
			u.call(r.Inv).Destination = clone(p.Bytes)
		}
	case *Proposal:
		u.call(r.Inv).Proposal = *p
	case *Decision:
		if p.Verdict == Refuse {
			u.forget(r.Inv)
		}
	case *IntentRecord:
		u.call(r.Inv).Wall = r.Wall
	case *EffectRecord:
		if p.Status != capabilities.Unknown {
			u.forget(r.Inv)
			return
		}
		c := u.call(r.Inv)
		c.Intent, c.Effect, c.Code, c.Cause, c.Sent = p.Intent, r.Seq, p.Code, p.Cause, p.Sent
		u.open[r.Inv] = struct{}{}
	case *Observe:
		if p.Final {
			u.forget(r.Inv)
		}
	}
}

func (u *unknowns) list() []UnknownEffect {
	var list []UnknownEffect
	for _, inv := range slices.SortedFunc(maps.Keys(u.open), func(a, b ID) int { return slices.Compare(a[:], b[:]) }) {
		list = append(list, *u.calls[inv])
	}
	return list
}
