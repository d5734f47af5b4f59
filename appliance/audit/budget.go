package audit

import (
	"cmp"
	"maps"
	"slices"
	"time"
)

// budget keeps what nobody at the box asked for (refusals, claims, starts, calls that run by themselves) to half of the
// quota, so that however much of it there is, what somebody approves can still be recorded. Refusals and claims that are over
// are counted; calls that are over are refused.
type budget struct {
	quota   int64
	other   uint64 // bytes so far of batches that belong to no approved call; see Segment.Other
	front   uint64 // of those, what lies before the oldest segment that is kept
	pressed bool   // the batch that is being made promises or settles an approved call
	over    map[overKey]*Suppressed
}

type overKey struct {
	of    Kind
	class uint8
	slot  uint32
}

// maxOver bounds the counts that wait to be written; what comes then is counted under its kind alone.
const maxOver = 64

// spent reports whether there is no room for n bytes more that nobody at the box asked for.
func (b *budget) spent(n int) bool { return int64(b.other-b.front)+int64(n) > b.quota/2 }

// flushed counts a batch that went to flash.
func (b *budget) flushed(n int) {
	if !b.pressed {
		b.other += uint64(n)
	}
	b.pressed = false
}

// suppress counts entries instead of writing them. Blobs count with the records that they belong to.
func (b *budget) suppress(entries []Entry, now time.Duration) {
	for _, e := range entries {
		key := overKey{of: e.Payload.Kind()}
		count := uint64(1)
		switch p := e.Payload.(type) {
		case Blob:
			continue
		case Claim:
			key.class, key.slot = uint8(p.Class), p.Slot
		case Fault:
			key.class = uint8(p.Class)
		case Proposal:
			key.slot = p.Slot
		case Suppressed:
			key, count = overKey{p.Of, p.Class, p.Slot}, p.Count
		}
		if b.over == nil {
			b.over = map[overKey]*Suppressed{}
		}
		if b.over[key] == nil && len(b.over) >= maxOver {
			key = overKey{of: key.of}
		}
		if b.over[key] == nil {
			b.over[key] = &Suppressed{Of: key.of, Class: key.class, Slot: key.slot, From: ByGuard, Since: now}
		}
		b.over[key].Count += count
	}
}

// counts are the entries that say what was kept out. They stay until written.
func (b *budget) counts() []Entry {
	var entries []Entry
	for _, key := range slices.SortedFunc(maps.Keys(b.over), func(x, y overKey) int {
		return cmp.Or(cmp.Compare(x.of, y.of), cmp.Compare(x.class, y.class), cmp.Compare(x.slot, y.slot))
	}) {
		entries = append(entries, Entry{Payload: *b.over[key]})
	}
	return entries
}

// Room says how full a log is.
type Room struct {
	Quota int64  // bytes of segments that may be kept
	Used  int64  // bytes of segments that are kept, spare included
	First uint32 // the oldest segment that is kept
	Last  uint32 // the one that is written
	Full  bool   // no spare segment could be made: nothing new may begin
	// Collapsed says that what nobody at the box asked for has had its half: until segments are pruned it is counted, and
	// calls that would run by themselves are refused.
	Collapsed bool
}
