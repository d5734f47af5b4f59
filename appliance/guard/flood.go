package guard

import (
	"maps"
	"slices"
	"sync"
	"time"

	"assent.home.arpa/appliance/audit"
	"assent.home.arpa/appliance/clock"
)

// How many records an untrusted peer may cause without a person behind them: a burst, and then one a second.
const (
	floodBurst    = 32
	floodInterval = time.Second
)

// flood is the rate limit of such records. What it keeps out is counted, and the counts are recorded.
type flood struct {
	clock clock.Clock

	mu     sync.Mutex
	tokens int
	filled time.Duration // boot: up to when tokens were given
	counts map[kept]*audit.Suppressed
}

// kept is what one count is about. The set is small, so a flood cannot grow it.
type kept struct {
	of    audit.Kind
	class uint8
}

func newFlood(c clock.Clock) *flood {
	return &flood{clock: c, tokens: floodBurst, filled: c.Boot(), counts: map[kept]*audit.Suppressed{}}
}

// allow reports whether a record may be written. What was kept out before comes first.
func (f *flood) allow(of audit.Kind, class uint8) (suppressed []audit.Entry, ok bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	now := f.clock.Boot()
	if n := int((now - f.filled) / floodInterval); n > 0 {
		f.tokens = min(f.tokens+n, floodBurst)
		f.filled += time.Duration(n) * floodInterval
	}
	if f.tokens > 0 {
		f.tokens--
		return f.drainLocked(), true
	}
	key := kept{of, class}
	if f.counts[key] == nil {
		f.counts[key] = &audit.Suppressed{Of: of, Class: class, From: audit.ByGateway, Since: now}
	}
	f.counts[key].Count++
	return nil, false
}

// drain returns the counts that are not recorded yet.
func (f *flood) drain() []audit.Entry {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.drainLocked()
}

func (f *flood) drainLocked() (out []audit.Entry) {
	for _, s := range slices.SortedFunc(maps.Values(f.counts), func(a, b *audit.Suppressed) int {
		return (int(a.Of)-int(b.Of))*256 + int(a.Class) - int(b.Class)
	}) {
		out = append(out, audit.Entry{Payload: *s})
	}
	clear(f.counts)
	return out
}
