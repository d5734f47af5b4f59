package confirm

import (
	"fmt"
	"slices"
	"time"

	"assent.home.arpa/device"
)

// judge decides from outside whether a token was earned. It knows what the display acknowledged, where the contacts are,
// which edges arrived and what the clocks say; of the machine it takes what it did, never what it thinks. It shares no rule
// with it but the numbers.
type judge struct {
	rules Timings
	kit   kit

	glass sight
	lines [3]finger
	slept time.Duration // mono: the last suspend

	files      [maxTags + 1]file
	onTop      uint8 // the card that has the panel, or 0
	turn       int   // counts cards that came on top
	served     [4]int
	calm       time.Duration    // mono: from when on nothing but the idle screen and notices was on the glass, or zero
	nextSince  time.Duration    // mono: NEXT REQUEST came on the glass, zero if it is not what was there last
	prompted   time.Duration    // mono: the last page of an administrative prompt came on the glass
	promptBest [2]time.Duration // how long its pages were there
	passed     bool             // the shown number of taps was given
	taps       int              // in the series under way

	gesture time.Duration // boot: until when one that opened pairing mode may open what is offered: nothing has used it yet
	pairing bool
	offers  int           // that were opened
	made    time.Duration // mono: what waits was offered
	over    time.Duration // mono: what was offered last ended unseen

	frozen, lost, gone bool
	unread             bool                  // the levels cannot be read
	agreed             [3]reading            // the levels said that approve alone is down; one for each press, the newest first
	odd                [doubts]time.Duration // mono: the newest presses where there is nothing to press for
	doubted            time.Duration         // mono: until then a token takes the number of taps
	pressed            uint32                // the press that made the newest token
	alone              time.Duration         // mono: the news of the end of the last gesture with deny down
	panicked           uint32                // the deny press that made panic
	tokens             int
	unearned           bool   // one of them
	told               uint16 // cards whose end in front the journal has yet to be told
	broke              string // the first rule that was broken
}

const maxTags = 8

// sight is what is on the glass, as far as anybody can say.
type sight struct {
	known bool
	mark  mark
	since time.Duration // mono: the picture, whatever its small things
	full  time.Duration // mono: since when its bar is full, or zero
	sent  mark          // of the newest draw
	began time.Duration // mono: of the draw in flight, or zero
}

// mark is what the room's frames carry instead of pixels.
type mark struct {
	state           State
	tag, page       uint8 // of a page: from 1
	bar, want, left uint8
}

func (k mark) picture() mark { return mark{state: k.state, tag: k.tag, page: k.page, want: k.want} }

func (k mark) stops() bool { return k.state == StatePanic && k.want == stopMark }

func (k mark) card() bool {
	return k.tag != 0 && (k.state == StateWaiting || k.state == StateReading || k.state == StateChallenge)
}

// finger is one button: its contact, and the edges that arrived.
type finger struct {
	down     bool
	moved    time.Duration // mono: the contact's last move
	moves    uint32        // of the contact, whether or not the edge arrived
	seq      uint32        // of the last edge that arrived
	edges    [4]arrival    // the newest first
	seenUp   time.Duration // mono: it was seen up, by an edge or by its level
	upBefore time.Duration // mono: likewise, as it was when the last press was told
	turned   uint8         // the card that the press under way opened, or turned a page of
	low      time.Duration // mono: since when its level says down, with no edge since; or zero
}

// reading is the newest time at which a press was seen by its level.
type reading struct {
	press uint32 // the contact's move
	at    time.Duration
}

type arrival struct {
	at, came time.Duration // mono: when it happened, and when it was told
	edge     device.Edge
	seq      uint32
	sound    bool
}

// file is what the judge keeps on a card.
type file struct {
	known, ended bool
	person       uint8
	pages        int
	order, turn  int
	announced    time.Duration // boot
	opened       time.Duration // boot
	came         time.Duration // mono: its first picture came on the glass
	lastAck      time.Duration // mono: the last page came on the glass
	best         [3]time.Duration
	outcome      Outcome
}

func (j *judge) blame(format string, args ...any) {
	if j.broke == "" {
		j.broke = fmt.Sprintf(format, args...)
	}
}

// sent is a picture on its way: from now on nobody can say that the old one is still there.
func (j *judge) sent(k mark, now instant) {
	j.glass.sent, j.glass.began = k, now.mono
	if l := &j.lines[device.Deny]; k.stops() && l.edges[0].edge != device.Press && l.low == 0 {
		j.blame("the glass says that deny is held, and it is not")
	}
	if k.card() && j.files[k.tag].known {
		f := &j.files[k.tag]
		if f.ended {
			j.blame("card %d is drawn after its end", k.tag)
		}
		if j.onTop != 0 && j.onTop != k.tag {
			j.blame("card %d takes the panel from card %d", k.tag, j.onTop)
		}
		if j.onTop == 0 {
			j.comesUp(k.tag, now)
		}
		if k.state == StateReading && f.opened == 0 {
			j.blame("card %d is opened by nobody", k.tag)
		}
	}
	if !j.glass.known || j.glass.mark.picture() != k.picture() {
		j.leave(now)
	}
}

// comesUp is a card that is announced: after NEXT REQUEST for its time, and in fair turn.
func (j *judge) comesUp(tag uint8, now instant) {
	f := &j.files[tag]
	j.onTop, f.announced = tag, now.boot
	if j.nextSince == 0 || now.mono < j.nextSince+j.rules.Next {
		j.blame("card %d is announced without NEXT REQUEST for its time", tag)
	}
}

// fair checks whose turn it is when a card is taken from the queue.
func (j *judge) fair(tag uint8) {
	f := &j.files[tag]
	for i := range j.files {
		g := &j.files[i]
		if !g.known || g.ended || g.turn != 0 || i == int(tag) {
			continue
		}
		if j.served[g.person] < j.served[f.person] || g.person == f.person && g.order < f.order {
			j.blame("card %d takes the turn of card %d", tag, i)
		}
	}
	j.turn++
	f.turn, j.served[f.person] = j.turn, j.turn
}

// acknowledged is the picture of the draw in flight, now on the glass.
func (j *judge) acknowledged(now instant) {
	g := &j.glass
	// A number of taps changes nothing while it stays: drawn again, it is asked for again.
	same := g.known && g.mark.picture() == g.sent.picture() && g.since > j.slept && g.sent.state != StateChallenge
	before := g.began <= j.slept // a suspend since may have wiped it
	g.began = 0
	if g.sent.bar != 100 {
		g.full = 0
	} else if g.full == 0 || !same {
		g.full = now.mono
	}
	if before {
		j.leave(now)
		j.calm = 0
		return
	}
	if same {
		g.mark = g.sent
		return
	}
	j.leave(now)
	g.mark = g.sent
	g.known, g.since, j.nextSince, j.prompted = true, now.mono, 0, 0
	if quiet := g.mark.state == StateIdle || g.mark.state == StateBulletin; !quiet || j.calm <= j.slept {
		j.calm = 0
		if quiet {
			j.calm = now.mono
		}
	}
	if f := &j.files[g.mark.tag]; g.mark.card() && f.came == 0 {
		f.came = now.mono
	}
	switch f := &j.files[g.mark.tag]; g.mark.state {
	case StateNext:
		j.nextSince = now.mono
	case StatePairing:
		j.odd = [doubts]time.Duration{}
	case StateAdmin:
		j.odd = [doubts]time.Duration{}
		if g.mark.page == g.mark.want {
			j.prompted = now.mono
		}
	case StateChallenge:
		j.taps = 0
	case StateReading:
		if int(g.mark.page) == f.pages {
			f.lastAck = now.mono
		}
	}
}

// leave ends the stay of a picture.
func (j *judge) leave(now instant) {
	g := &j.glass
	if g.known && g.mark.state == StateReading {
		best := &j.files[g.mark.tag].best[g.mark.page-1]
		*best = max(*best, now.mono-g.since)
	}
	if g.known && g.mark.state == StateAdmin {
		best := &j.promptBest[g.mark.page-1]
		*best = max(*best, now.mono-g.since)
	}
	if g.known && g.mark.state == StateChallenge {
		j.passed = j.taps == int(g.mark.want)
	}
	g.known = false
}

// unknown is a display that did not acknowledge.
func (j *judge) unknown(now instant) {
	j.leave(now)
	j.glass.known, j.glass.began, j.calm = false, 0, 0
}

// arrives is an edge that reaches the panel. It reports whether somebody who sees the glass meant a denial by it.
func (j *judge) arrives(ev device.Event, now instant) (denies uint8) {
	l := &j.lines[ev.Button]
	last := l.edges[0]
	sound := ev.Seq == l.seq+1 && ev.Mono >= last.at && ev.Mono <= now.mono && ev.Edge != last.edge
	l.edges = [4]arrival{{ev.Mono, now.mono, ev.Edge, ev.Seq, sound}, l.edges[0], l.edges[1], l.edges[2]}
	l.seq, l.low = ev.Seq, 0
	if deny := j.lines[device.Deny].edges[0]; ev.Button == device.Approve && ev.Edge == device.Release && deny.edge == device.Press && j.both(last) {
		j.alone = now.mono
	}
	g := &j.glass
	inSight := g.known && ev.Mono >= g.since && g.since > j.slept
	if ev.Button == device.Approve {
		j.odds(ev, now, inSight, last)
	}
	if ev.Edge == device.Release && sound && inSight {
		l.seenUp = max(l.seenUp, ev.Mono)
	}
	if inSight && sound && ev.Button == device.Approve && ev.Edge == device.Press {
		if g.mark.state == StateWaiting && j.files[g.mark.tag].opened == 0 {
			j.files[g.mark.tag].opened = now.boot
		}
		if g.mark.state == StateWaiting {
			j.passed = false
		}
		if ev.Mono >= last.came+j.rules.Quiet { // a new series
			j.taps = 0
		}
		j.taps++
	}
	if f := &j.files[j.onTop]; ev.Button == device.Deny && ev.Edge == device.Press && f.came != 0 && ev.Mono >= f.came {
		return j.onTop
	}
	return 0
}

// odds looks at an edge of approve for what no finger has a reason for.
func (j *judge) odds(ev device.Event, now instant, inSight bool, last arrival) {
	g, l := &j.glass, &j.lines[device.Approve]
	if ev.Edge == device.Release {
		if long := last.edge == device.Press && ev.Mono-last.at >= j.rules.Linger; long && l.turned != 0 {
			j.files[l.turned].best = [3]time.Duration{} // what a press that is no tap turned has to be read again
		} else if long && inSight && g.mark.state == StateChallenge && last.at > g.since {
			j.taps += 100
		}
		l.turned = 0
		return
	}
	l.upBefore, l.turned = l.seenUp, 0
	if !inSight || g.began != 0 && g.sent.picture() != g.mark.picture() {
		return
	}
	switch g.mark.state {
	case StateNext, StateResult:
		copy(j.odd[1:], j.odd[:])
		j.odd[0] = ev.Mono
		if first := j.odd[doubts-1]; first != 0 && ev.Mono-first <= j.rules.Doubt {
			j.doubted = now.mono + j.rules.Trust
		}
	case StateWaiting:
		l.turned = g.mark.tag
	case StateReading:
		if int(g.mark.page) < j.files[g.mark.tag].pages {
			l.turned = g.mark.tag
		}
	}
}

// agrees is a reading of both levels: approve alone is down.
func (j *judge) agrees(now instant) {
	if press := j.lines[device.Approve].moves; j.agreed[0].press != press {
		copy(j.agreed[1:], j.agreed[:])
		j.agreed[0].press = press
	}
	j.agreed[0].at = now.mono
}

// level is a line that the panel reads.
func (j *judge) level(b device.Button, down bool, now instant) {
	l := &j.lines[b]
	if !down {
		if l.low = 0; b == device.Approve && l.edges[0].edge == device.Press && j.both(l.edges[0]) {
			j.alone = now.mono // its release is on its way, or was lost
		}
	} else if l.low == 0 {
		l.low = now.mono
	}
	if !down && j.glass.known && j.glass.since > j.slept {
		j.lines[b].seenUp = now.mono
	}
}

// approved is the whole point: what must be true of the world when a token is made.
func (j *judge) approved(tag uint8, d Decision, digest [32]byte, now instant) {
	j.tokens++
	f, l := &j.files[tag], &j.lines[device.Approve]
	check := func(ok bool, what string) {
		if !ok {
			j.unearned = true
			j.blame("card %d is approved, although %s", tag, what)
		}
	}
	j.ended(tag, Approved, now)
	check(!j.frozen && !j.lost && !j.gone && (!j.unread || j.rules.Dwell == 0), "the box is frozen or blind")
	want := mark{state: StateReading, tag: tag, page: uint8(f.pages)}
	check(j.glass.known && j.glass.mark.picture() == want && j.glass.mark.bar == 100, "its last page with the full bar is not on the glass")
	check(j.glass.known && j.glass.sent.picture() == j.glass.mark.picture(), "another picture is on its way to the glass")
	for i := range f.pages {
		stay := f.best[i]
		if i == f.pages-1 {
			stay = max(stay, now.mono-j.glass.since)
		}
		check(stay >= j.rules.onGlass(wordsOf(i)), "a page was not shown for its time")
	}
	read := f.lastAck + j.rules.onGlass(wordsOf(f.pages-1))
	check(f.lastAck > j.slept && f.lastAck == j.glass.since, "the last page was drawn before the box slept")
	check(j.kit.readsBack && j.rules.Dwell == 0 && now.mono >= j.doubted || j.passed, "nobody gave the number of taps")
	if j.passed { // as a finger does
		j.odd, j.doubted = [doubts]time.Duration{}, 0
	}
	check(d.ScreenDigest == digest && d.Shown == f.lastAck, "the decision tells of another screen")

	e := l.edges
	press, release := e[1], e[0]
	check(release.edge == device.Release && release.sound && press.edge == device.Press && press.sound, "the newest edges are no press that was let go")
	check(d.Completed <= now.mono && d.Completed > j.slept, "the hold was complete at another time")
	whole := now.boot - (now.mono - d.Completed) // boot: when the hold was complete
	check(f.opened != 0 && whole < f.opened+j.rules.reading(f.pages), "its time is up")
	check(j.glass.full != 0 && j.glass.full <= d.Completed, "the bar was not full on the glass when the hold was complete")
	check(d.Expires == whole+j.rules.Spend, "the token lives for another time than it may")
	if j.rules.Dwell != 0 {
		first := e[3]
		check(e[2].edge == device.Release && first.edge == device.Press && e[2].sound && first.sound, "there were not two taps")
		check(press.at-e[2].at >= j.rules.Dwell && release.at-press.at <= j.rules.Hold && e[2].at-first.at <= j.rules.Hold, "the taps have another rhythm")
		check(first.at >= read && l.seenUp >= f.lastAck, "the first tap came before the end was read")
		check(!l.down, "the button is down after the second tap")
	} else {
		check(d.Completed-press.at >= j.rules.Hold, "the hold is too short")
		check(release.at >= d.Completed, "it was let go before the hold was complete")
		check(release.at-press.at < j.rules.Revoke && now.mono-press.at < j.rules.Revoke, "the button looks stuck")
		check(press.at >= read, "the hold began before the end was read")
		check(l.upBefore >= f.lastAck && l.upBefore <= press.at, "the line was not seen up between the last draw and the hold")
		agreed := slices.ContainsFunc(j.agreed[:], func(r reading) bool { return r.press == press.seq && r.at >= d.Completed })
		check(agreed, "the contacts said otherwise")
	}
	check(d.Pressed == press.at, "the decision tells of another press")
	check(press.seq != j.pressed, "the press was used before")
	j.pressed = press.seq
}

// ended is the one end of a card.
func (j *judge) ended(tag uint8, o Outcome, now instant) {
	f := &j.files[tag]
	if !f.known || f.ended {
		j.blame("card %d ends twice, now %v", tag, o)
		return
	}
	f.ended, f.outcome = true, o
	if f.turn != 0 { // it was in front
		j.told |= 1 << tag
	}
	if j.onTop == tag {
		j.onTop = 0
	}
	// A display that is late may bring a window's start onto the glass as much later as a draw may take.
	slack := j.rules.DrawTimeout
	switch o {
	case Expired:
		if f.opened == 0 || now.boot < f.opened+j.rules.reading(f.pages) {
			j.blame("card %d expired at %v, opened at %v", tag, now.boot, f.opened)
		}
	case ExpiredUnseen:
		if f.opened != 0 || f.announced == 0 || now.boot < f.announced+j.waiting()-slack {
			j.blame("card %d was left unseen at %v, announced at %v, opened at %v", tag, now.boot, f.announced, f.opened)
		}
	case Panicked:
		// The panel freezes in the same step, and says so after it.
	case DisplayLost:
		silent := j.glass.began != 0 && now.mono >= j.glass.began+j.rules.DrawTimeout
		e := j.lines[device.Approve].edges
		still := e[0].edge == device.Press && now.mono >= e[0].at+j.rules.Revoke || e[0].edge == device.Release && e[0].at >= e[1].at+j.rules.Revoke
		heldOn := still && j.glass.mark.bar == 100
		failed := j.glass.mark.state == StateChallenge && j.taps != int(j.glass.mark.want)
		if j.kit.readsBack && j.glass.known && !silent && !j.gone && !j.lost && !heldOn && !failed {
			j.blame("card %d was lost to a display that answers", tag)
		}
	}
}

// journaled is a transition that the journal is told. It names the card that it is about.
func (j *judge) journaled(t Transition) {
	if tag := t.Inv[0]; t.Cause != 0 && tag != 0 && (t.To == StateResult || t.From == t.To) {
		j.told &^= 1 << tag
	}
}

// confirmed is an administrative prompt that was answered with yes.
func (j *judge) confirmed(now instant) {
	g := &j.glass
	if !g.known || g.mark.state != StateAdmin || g.mark.bar != 100 || j.prompted == 0 || j.prompted <= j.slept {
		j.blame("a prompt is confirmed that is not on the glass")
		return
	}
	if g.mark.want == 2 && j.promptBest[0] < j.rules.onGlass(promptWords) {
		j.blame("a prompt is confirmed whose first page was not read")
	}
	if !j.kit.readsBack || !j.kit.deny {
		if !j.passed {
			j.blame("a prompt is confirmed without the number of taps")
		}
	}
	j.bothHeld("a prompt", max(j.prompted+j.rules.onGlass(promptWords), j.prompted), now)
}

// thawed is a freeze that is released: by both buttons, and then a tap on approve alone.
func (j *judge) thawed() {
	if !j.kit.deny {
		return
	}
	a, d := &j.lines[device.Approve], &j.lines[device.Deny]
	if a.edges[0].edge != device.Release || a.edges[1].edge != device.Press || a.edges[2].edge != device.Release || a.edges[3].edge != device.Press ||
		d.edges[0].edge != device.Release || d.edges[0].at > a.edges[1].at || a.edges[2].at-a.edges[3].at < j.rules.AdminHold {
		j.blame("the box is released without both buttons and a tap")
	}
}

// offerShown is a prompt that was offered and is opened: by a gesture of its own or, where nobody elsewhere has caused it, one of a
// moment ago that nothing had used before this step; and with nothing behind it.
func (j *judge) offerShown(afresh, pairing bool, gesture time.Duration, now instant) {
	j.offers++
	if j.frozen || j.lost || j.gone {
		j.blame("what is offered is opened on a box that is frozen or blind")
	}
	if j.pairing {
		j.blame("pairing mode is open behind what is offered")
	}
	if pairing && afresh {
		j.blame("what a phone has caused closes pairing mode")
	}
	if j.kit.deny && (afresh || now.boot >= gesture) {
		j.bothHeld("what is offered", max(j.calm, j.made), now)
	}
}

// bothHeld checks an administrative hold that completes.
func (j *judge) bothHeld(what string, from time.Duration, now instant) {
	buttons := []device.Button{device.Approve, device.Deny}
	if !j.kit.deny {
		buttons = buttons[:1]
	}
	for _, b := range buttons {
		l := &j.lines[b]
		if e := l.edges[0]; !l.down || e.edge != device.Press || !e.sound || e.at < from || e.at < j.slept || now.mono-e.at < j.rules.AdminHold {
			j.blame("%s is confirmed, but %v was not held", what, b)
		}
	}
}

// panics is a panic that is raised: deny, alone and long enough.
func (j *judge) panics(now instant) {
	l := &j.lines[device.Deny]
	e := l.edges[0]
	told := (l.down || j.unread) && e.edge == device.Press && now.mono-e.at >= j.rules.Panic && j.panicked != e.seq
	read := l.low != 0 && now.mono-l.low >= j.rules.Panic
	if !told && !read {
		j.blame("panic, but deny was not held")
	}
	j.panicked = e.seq
	if l.low != 0 {
		l.low = now.mono // another takes as long again
	}
}

// after is what must be true once a step is done.
func (j *judge) after(now instant, ticked bool) {
	if j.broke != "" {
		return
	}
	for tag := range j.files {
		f := &j.files[tag]
		if !f.known || f.ended {
			continue
		}
		switch {
		case j.frozen:
			j.blame("card %d is pending on a frozen box", tag)
		case j.lost || j.gone:
			j.blame("card %d is pending without a display or buttons", tag)
		case f.opened != 0 && now.boot >= f.opened+j.rules.reading(f.pages) && !j.heldStill(now):
			j.blame("card %d is pending after its deadline", tag)
		case f.opened == 0 && f.announced != 0 && now.boot >= f.announced+j.waiting():
			j.blame("card %d waits after its window", tag)
		}
	}
	if ticked && j.panicDue(now, j.rules.Panic) {
		j.blame("deny was held alone for %v, and nothing panicked", j.rules.Panic)
	}
	if ticked && j.panicDue(now, stopNotice) && !j.lost && j.glass.began == 0 && !j.glass.sent.stops() {
		j.blame("deny was held alone for %v, and the glass does not say what that leads to", stopNotice)
	}
}

// waiting is how long a card may go unopened once it is announced.
func (j *judge) waiting() time.Duration { return j.rules.Waiting - j.rules.Next }

// heldStill reports whether a full bar may wait for the button to be let go.
func (j *judge) heldStill(now instant) bool {
	e := j.lines[device.Approve].edges[0]
	return j.glass.known && j.glass.mark.bar == 100 && e.edge == device.Press && now.mono < e.at+j.rules.Revoke
}

// both reports whether a press of approve may be half of a gesture, of which deny's newest press is the other.
func (j *judge) both(press arrival) bool {
	return (press.at - j.lines[device.Deny].edges[0].at).Abs() <= j.rules.Panic-j.rules.AdminHold
}

// panicDue reports whether deny has plainly been held for so long, and not as half of the gesture of both.
func (j *judge) panicDue(now instant, held time.Duration) bool {
	l, other := &j.lines[device.Deny], &j.lines[device.Approve]
	e := l.edges[0]
	if !j.kit.deny || j.gone || !l.down || e.edge != device.Press || !e.sound || e.seq != l.moves || e.at <= j.slept || e.seq == j.panicked || now.mono < e.at+held {
		return false
	}
	if o := other.edges[0]; o.seq != other.moves || o.edge == device.Press && j.both(o) {
		return false
	}
	return now.mono >= max(e.at, j.alone)+held
}
