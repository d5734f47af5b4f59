package confirm

import (
	"fmt"
	"time"

	"assent.home.arpa/device"
)

// happening is one thing that happens in the room.
type happening uint8

const (
	pressApprove happening = iota // or its release
	pressDeny
	toRead  // as long as the page on the glass needs
	toHold  // until the hold is full
	toNext  // until the panel has something to do
	toTap   // 100 ms
	toLater // a good second
	toPanic
	toRevoke
	toWindow // until the card's own deadline
	dealOne
	dealTwo
	dealOther
	ordinary // what follows are faults and interferences
)

const (
	approveLost = ordinary + iota
	approveLate
	denyLost
	denyLate
	arriveAll
	withdrawFront
	withdrawOther
	sleepShort
	sleepLong
	busHangs
	busAnswers
	busFails
	levelFault
	looked // at the levels, as happens once a second
	newIdle
	asked
	unasked
	offer
	offerAfresh
	retract
	frozenByGuard
	wrongCodes
	newBulletins
	linesClose
	happenings
)

var happeningNames = [happenings]string{
	"approve", "deny", "read", "hold", "next", "tap", "later", "panic", "revoke", "window", "deal one", "deal two", "deal other",
	"approve lost", "approve late", "deny lost", "deny late", "arrive", "withdraw front", "withdraw other", "sleep", "sleep long",
	"bus hangs", "bus answers", "bus fails", "level fault", "look", "idle", "ask", "unask", "offer", "offer afresh", "retract", "freeze", "codes", "bulletins", "lines close",
}

func (h happening) String() string { return happeningNames[h] }

// moment is a happening, and how far it is from the time that matters to it.
type moment struct {
	what happening
	skew time.Duration
}

func (m moment) String() string {
	if m.skew == 0 {
		return m.what.String()
	}
	return fmt.Sprintf("%v %+d ms", m.what, m.skew.Milliseconds())
}

// timed reports whether h lets time pass to a moment that matters, so that a step before and after it matter, too.
func (h happening) timed() bool { return h >= toRead && h <= toWindow && h != toTap && h != toLater }

// until is the moment, as a time from now, or zero if there is none ahead.
func (r *room) until(h happening) time.Duration {
	j := &r.j
	var mono, boot time.Duration
	switch h {
	case toRead:
		if j.glass.mark.state == StateReading {
			mono = j.glass.since + j.rules.onGlass(wordsOf(int(j.glass.mark.page)-1))
		} else if j.glass.mark.state == StateAdmin {
			mono = j.glass.since + j.rules.onGlass(promptWords)
		}
	case toHold:
		l := &j.lines[device.Approve]
		need := j.rules.Hold
		if j.rules.Dwell != 0 {
			need = j.rules.Dwell
		}
		if g := j.glass.mark.state; g == StateIdle || g == StateAdmin {
			need = j.rules.AdminHold
		}
		mono = l.edges[0].at + need
	case toRevoke:
		mono = j.lines[device.Approve].edges[0].at + j.rules.Revoke
	case toPanic:
		mono = j.lines[device.Deny].moved + j.rules.Panic
	case toNext:
		boot = r.m.wake()
	case toWindow:
		if f := &j.files[j.onTop]; f.opened != 0 {
			boot = f.opened + j.rules.reading(f.pages)
		} else if f.announced != 0 {
			boot = f.announced + j.waiting()
		}
	case toTap:
		mono = r.now.mono + 100*time.Millisecond
	case toLater:
		mono = r.now.mono + 1100*time.Millisecond
	}
	if boot != 0 {
		return max(0, boot-r.now.boot)
	}
	return max(0, mono-r.now.mono)
}

// happen lets h happen; skew moves a moment by a little. It reports whether anything could happen.
func (r *room) happen(h happening, skew time.Duration) bool {
	if h >= toRead && h <= toWindow {
		d := r.until(h)
		if d == 0 || d+skew <= 0 {
			return false
		}
		r.advance(d + skew)
		return true
	}
	switch h {
	case pressApprove, approveLate, approveLost:
		r.move(device.Approve, way(h, approveLate, approveLost))
	case pressDeny, denyLate, denyLost:
		if !r.m.kit.deny {
			return false
		}
		r.move(device.Deny, way(h, denyLate, denyLost))
	case arriveAll:
		if r.late[device.Approve].n+r.late[device.Deny].n == 0 {
			return false
		}
		r.arrive(device.Approve)
		r.arrive(device.Deny)
	case dealOne:
		r.deal(0, 1)
	case dealTwo:
		r.deal(1, 2)
	case dealOther:
		r.deal(uint8(r.steps)%4, 1+r.steps%3)
	case withdrawFront, withdrawOther:
		return r.withdraw(h == withdrawFront)
	case sleepShort:
		r.sleep(3 * time.Second)
	case sleepLong:
		r.sleep(4 * time.Minute)
	default:
		return r.interfere(h)
	}
	r.settle()
	return true
}

// interfere is what faults and programs do.
func (r *room) interfere(h happening) bool {
	switch h {
	case busHangs:
		r.bus = hangs
	case busAnswers:
		r.bus = answers
		r.due = min(r.due, r.now.mono)
	case busFails:
		r.bus = fails
	case levelFault:
		r.j.unread = !r.j.unread
	case looked:
		r.probes = true
		r.answerProbes()
		r.j.after(r.now, false)
	case newIdle:
		r.step(setIdle{})
	case asked:
		r.ask()
	case unasked:
		if r.prompt == nil {
			return false
		}
		r.step(unask{r.prompt})
	case offer:
		r.offers(false)
	case offerAfresh:
		r.offers(true)
	case retract:
		if r.offer == nil {
			return false
		}
		r.step(unask{r.offer})
		if r.offer != nil {
			r.j.blame("what is offered was taken back, and is not")
		}
	case frozenByGuard:
		was := r.j.frozen
		r.j.frozen = true
		r.step(freeze{})
		if !was {
			r.allEnds()
		}
	case wrongCodes:
		r.step(codeSpent{})
	case newBulletins:
		r.step(setBulletins{bulletins[:(len(r.m.bulletins)+2)%3]})
	case linesClose:
		if r.j.gone {
			return false
		}
		r.j.gone = true
		r.step(buttonsLost{})
	}
	r.settle()
	return true
}

func way(h, late, lost happening) arrivalWay {
	switch h {
	case late:
		return isLate
	case lost:
		return isLost
	}
	return atOnce
}

func (r *room) withdraw(front bool) bool {
	for tag := r.dealt; tag > 0; tag-- {
		if f := &r.j.files[tag]; !f.ended && (tag == r.j.onTop) == front {
			r.step(withdraw{r.cards[tag].req.Inv})
			r.settle()
			if !f.ended {
				r.j.blame("card %d was withdrawn, and is pending", tag)
			}
			return true
		}
	}
	return false
}
