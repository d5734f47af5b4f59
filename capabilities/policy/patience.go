package policy

import "time"

// What a person may take back, or leave undecided, before it counts as a refusal, and how long without any of that until
// the count begins anew.
const (
	freeWastes = 3
	calm       = 10 * time.Minute
)

// Hush is how long after a person's card has left the panel that person's next one makes no sound.
const Hush = time.Minute

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
// to a conversation or a turn, so a new one of those changes nothing. Times are on the boot-time clock.
type Patience struct {
	Refusals int           // in a row
	Until    time.Duration // requests that need a press wait until then
	Wastes   int           `json:",omitzero"` // cards that came to nothing, in a row
	Calm     time.Duration `json:",omitzero"` // when those are forgotten
}

// Refused returns the state after a denial or an unseen expiry at the boot time now.
func (p Patience) Refused(now time.Duration) Patience {
	p.Refusals++
	p.Until = now + coolDown(p.Refusals)
	return p
}

// Wasted returns the state after a card that people at the box were called to for nothing, at the boot time now: it was
// taken back, or opened and not decided. Three are free. What comes after them is a refusal, and ten minutes without any
// (from the end of the wait, where there is one) are forgiven: otherwise one phone could keep the panel and everybody's
// ears busy at no cost.
func (p Patience) Wasted(now time.Duration) Patience {
	if now >= p.Calm {
		p.Wastes = 0
	}
	p.Wastes++
	if p.Wastes > freeWastes {
		p.Wastes = freeWastes + 1 // more of them weigh the same, and nothing counts without end
		p = p.Refused(now)
	}
	p.Calm = max(now, p.Until) + calm
	return p
}

// Rebooted returns the state in a boot other than the one that its times are of, at the boot time now. Nobody can say how
// much of a wait has passed, so the last one begins anew.
func (p Patience) Rebooted(now time.Duration) Patience {
	if p.Refusals > 0 {
		p.Until = now + coolDown(p.Refusals)
	}
	if p.Wastes > 0 {
		p.Calm = max(now, p.Until) + calm
	}
	return p
}

// Approved returns the state after an approval.
func (p Patience) Approved() Patience { return Patience{} }

// Left returns how much longer requests that need a press wait, at the boot time now.
func (p Patience) Left(now time.Duration) time.Duration { return max(0, p.Until-now) }
