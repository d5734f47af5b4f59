package policy

import "time"

// coolDown returns how long a person's requests wait after the nth refusal in a row, from 1.
func coolDown(n int) time.Duration {
	switch {
	case n <= 0:
		return 0
	case n == 1:
		return 30 * time.Second
	case n == 2:
		return 2 * time.Minute
	}
	return 10 * time.Minute
}

// Patience is how the box feels about one person's requests. The zero value is a clean slate. It belongs to the person, not
// to a conversation or a turn, so a new one of those changes nothing.
type Patience struct {
	Refusals int           // in a row
	Until    time.Duration // on the boot-time clock
}

// Refused returns the state after a denial or an unseen expiry at the boot time now.
func (p Patience) Refused(now time.Duration) Patience {
	n := p.Refusals + 1
	return Patience{Refusals: n, Until: now + coolDown(n)}
}

// Approved returns the state after an approval.
func (p Patience) Approved() Patience { return Patience{} }

// Left returns how much longer requests that need a press wait, at the boot time now.
func (p Patience) Left(now time.Duration) time.Duration { return max(0, p.Until-now) }
