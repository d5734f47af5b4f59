package guard

import (
	"cmp"
	"maps"
	"slices"
	"sync"
	"time"

	"assent.home.arpa/appliance/audit"
	"assent.home.arpa/appliance/clock"
)

// How many records one source may cause without a press behind them: a burst, and then one a minute. What is kept out is
// counted, and the counts are recorded once an hour: a record takes a whole block of flash.
const (
	floodBurst    = 32
	floodInterval = time.Minute
	floodReport   = time.Hour
)

// source is who caused a record: the gateway itself, somebody who is no paired phone, or a phone by its slot. A stranger
// costs nothing to be, so a stranger is only counted.
type source struct {
	gateway bool
	slot    uint32 // with gateway unset; 0 is a stranger
	turns   bool   // the ends of a phone's turns, which must not use up what records its mistakes
}

// flood is the rate limit of records that an untrusted peer causes. Each source has its own, so that none can use up
// another's.
type flood struct {
	clock clock.Clock

	mu       sync.Mutex
	buckets  map[source]*bucket // bounded by the phones that are paired
	counts   map[kept]*audit.Suppressed
	reported time.Duration // boot
}

type bucket struct {
	tokens int
	filled time.Duration // boot: up to when tokens were given
}

// kept is what one count is about. The set is small, so a flood cannot grow it.
type kept struct {
	source
	of    audit.Kind
	class uint8
}

func newFlood(c clock.Clock) *flood {
	return &flood{clock: c, buckets: map[source]*bucket{}, counts: map[kept]*audit.Suppressed{}, reported: c.Boot()}
}

// allow reports whether a record may be written, and counts it where it may not.
func (f *flood) allow(from source, of audit.Kind, class uint8) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	now := f.clock.Boot()
	if (from.gateway || from.slot != 0) && f.bucketLocked(from, now).take(now) {
		return true
	}
	key := kept{from, of, class}
	if f.counts[key] == nil {
		f.counts[key] = &audit.Suppressed{Of: of, Class: class, From: audit.ByGateway, Slot: from.slot, Since: now}
	}
	f.counts[key].Count++
	return false
}

func (f *flood) bucketLocked(from source, now time.Duration) *bucket {
	b := f.buckets[from]
	if b == nil {
		b = &bucket{tokens: floodBurst, filled: now}
		f.buckets[from] = b
	}
	return b
}

func (b *bucket) take(now time.Duration) bool {
	if n := int((now - b.filled) / floodInterval); n > 0 {
		b.tokens = min(b.tokens+n, floodBurst)
		b.filled += time.Duration(n) * floodInterval
	}
	if b.tokens == 0 {
		return false
	}
	b.tokens--
	return true
}

// due returns the counts that are not recorded yet, at most once an hour.
func (f *flood) due() []audit.Entry {
	f.mu.Lock()
	defer f.mu.Unlock()
	now := f.clock.Boot()
	if now < f.reported+floodReport {
		return nil
	}
	f.reported = now
	return f.drainLocked()
}

// drain returns the counts that are not recorded yet.
func (f *flood) drain() []audit.Entry {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.drainLocked()
}

func (f *flood) drainLocked() (out []audit.Entry) {
	for _, s := range slices.SortedFunc(maps.Values(f.counts), func(a, b *audit.Suppressed) int {
		return cmp.Or(cmp.Compare(a.Of, b.Of), cmp.Compare(a.Class, b.Class), cmp.Compare(a.Slot, b.Slot), cmp.Compare(a.Since, b.Since))
	}) {
		out = append(out, audit.Entry{Payload: *s})
	}
	clear(f.counts)
	return out
}
