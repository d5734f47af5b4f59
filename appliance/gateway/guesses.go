package gateway

import (
	"net/netip"
	"sync"
	"time"
)

// Bounds of pairing codes that were refused. The guard closes pairing mode after a few wrong ones, whoever sent them, and
// that is what keeps codes from being guessed. This only keeps one device in the house from closing it for everybody each
// time it is opened: it runs out of guesses before the guard does.
const (
	guessesPerAddr = 4
	guessesFor     = 2 * time.Minute // as long as pairing mode is open
	maxGuessers    = 1024
)

// guesses counts refused pairing codes by address.
type guesses struct {
	mu   sync.Mutex
	wait map[netip.Addr]guesser
}

type guesser struct {
	n    int
	last time.Time
}

// left reports whether a device may still try.
func (g *guesses) left(a netip.Addr, now time.Time) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	w := g.wait[a]
	return w.n < guessesPerAddr || now.Sub(w.last) >= guessesFor
}

// refused notes a code that was refused. Of more devices than can be kept the oldest is forgotten.
func (g *guesses) refused(a netip.Addr, now time.Time) {
	g.mu.Lock()
	defer g.mu.Unlock()
	w := g.wait[a]
	if now.Sub(w.last) >= guessesFor {
		w.n = 0
	}
	if _, known := g.wait[a]; !known && len(g.wait) >= maxGuessers {
		oldest := a
		for b, other := range g.wait {
			if oldest == a || other.last.Before(g.wait[oldest].last) {
				oldest = b
			}
		}
		delete(g.wait, oldest)
	}
	g.wait[a] = guesser{n: w.n + 1, last: now}
}
