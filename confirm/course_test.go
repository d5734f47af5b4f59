package confirm_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"assent.home.arpa/confirm"
	"assent.home.arpa/confirm/screen"
	"assent.home.arpa/device"
)

// told is a course in words, without times.
func told(c confirm.Course) []string {
	var all []string
	for _, s := range c.Steps {
		if s.Page > 0 {
			all = append(all, fmt.Sprintf("%v: %v %d", s.State, s.Cause, s.Page))
		} else {
			all = append(all, fmt.Sprintf("%v: %v", s.State, s.Cause))
		}
	}
	return all
}

// inOrder demands that no step is before the one ahead of it.
func inOrder(t *testing.T, c confirm.Course) {
	t.Helper()
	for i := 1; i < len(c.Steps); i++ {
		if c.Steps[i].Mono < c.Steps[i-1].Mono {
			t.Errorf("step %d is before step %d", i, i-1)
		}
	}
}

// TestCourseTellsWhatHappened: a decision says which transitions led to it, in order, and which pages were on the glass.
func TestCourseTellsWhatHappened(t *testing.T) {
	r := request(1)
	r.Card = screen.Card{Title: "Search for", Text: "tall towers"}
	to := func(b *box) {
		b.reach()
		b.read(r)
	}
	opened := []string{
		"next: a request", "next: drawn", "waiting: announced", "waiting: drawn", "reading: opened", "reading: drawn 1", "reading: drawn 2",
		"armed: read to the end",
	}
	for name, c := range map[string]struct {
		do   func(b *box, p *pending)
		want confirm.Outcome
		told []string
	}{
		"approved": {
			func(b *box, _ *pending) { to(b); b.hands.Hold(approve, fullHold) }, confirm.Approved,
			append(opened[:len(opened):len(opened)], "holding: hold begun", "result: approved"),
		},
		"let go, then approved": {func(b *box, _ *pending) {
			to(b)
			b.hands.Hold(approve, time.Second)
			b.hands.Wait(time.Second)
			b.hands.Hold(approve, fullHold)
		}, confirm.Approved, append(opened[:len(opened):len(opened)],
			"holding: hold begun", "reading: released early", "armed: read to the end", "holding: hold begun", "result: approved")},
		"denied at once": {func(b *box, _ *pending) { b.reach(); b.hands.Tap(deny) }, confirm.Denied, append(opened[:4:4], "result: denied")},
		"an edge lost": {func(b *box, _ *pending) {
			to(b)
			b.hands.Press(approve)
			b.buttons.Lose(approve, 2)
			b.hands.Release(approve)
			b.hands.Press(approve)
			b.hands.Wait(time.Second)
			b.hands.Release(approve)
			b.hands.Wait(100 * time.Millisecond)
			b.hands.Tap(deny)
		}, confirm.Denied, append(opened[:len(opened):len(opened)],
			"holding: hold begun", "reading: edges were lost", "armed: read to the end", "result: denied")},
		"the box slept": {func(b *box, p *pending) {
			to(b)
			b.clock.Suspend(3 * time.Second)
			b.hands.Wait(100 * time.Millisecond)
			p.cancel()
			p.decided()
		}, confirm.Withdrawn, append(opened[:len(opened):len(opened)],
			"armed: the box slept", "reading: disarmed", "reading: drawn 2", "result: withdrawn")},
		"the bus died": {
			func(b *box, _ *pending) { b.reach(); b.panel.Fail(0); b.hands.Wait(3 * time.Second) }, confirm.DisplayLost,
			append(opened[:4:4], "waiting: the bus did not acknowledge", "result: display_lost"),
		},
	} {
		t.Run(name, func(t *testing.T) {
			inBox(t, func(b *box) {
				p := b.ask(r)
				c.do(b, p)
				d := p.want(c.want)
				if diff := cmp.Diff(c.told, told(d.Course)); diff != "" {
					t.Error(diff)
				}
				inOrder(t, d.Course)
			})
		})
	}
}

// TestCourseIsBounded: of somebody who turns pages for ever the beginning and the end are kept, and what is missing is counted.
func TestCourseIsBounded(t *testing.T) {
	r := request(1)
	r.Card.Text = strings.Repeat("words that take another page of the panel ", 40)
	inBox(t, func(b *box) {
		p := b.ask(r)
		b.reach()
		b.read(r)
		b.hands.Hold(approve, fullHold)
		c := p.want(confirm.Approved).Course
		n := len(b.pages(r))
		all := told(c)
		if want := 4 + 1 + n + 3; len(c.Steps) != confirm.MaxSteps || c.LeftOut != want-confirm.MaxSteps {
			t.Errorf("%d steps and %d left out, want %d and %d", len(c.Steps), c.LeftOut, confirm.MaxSteps, want-confirm.MaxSteps)
		}
		if all[confirm.StepsFirst-1] != "reading: drawn 7" || all[len(all)-1] != "result: approved" || all[len(all)-4] != fmt.Sprintf("reading: drawn %d", n) {
			t.Errorf("kept %q", all)
		}
		inOrder(t, c)
		if len(c.Presses) != confirm.MaxPresses {
			t.Fatalf("%d edges", len(c.Presses))
		}
		if last := c.Presses[len(c.Presses)-1]; last.Edge != device.Release || last.Button != approve {
			t.Errorf("the newest edge is %+v, and not the release that approved", last)
		}
	})
}

// TestPromptsTellTheirCourse: administrative decisions carry what was drawn and pressed, too.
func TestPromptsTellTheirCourse(t *testing.T) {
	inBox(t, func(b *box) {
		b.admin(confirm.AdminFeed).want(confirm.AdminNoGesture)
		b.gesture()
		p := b.admin(confirm.AdminFeed)
		b.hands.Wait(2 * time.Second)
		pressed := b.clock.Mono()
		b.hands.HoldBoth(3100 * time.Millisecond)
		p.want(confirm.AdminConfirmed)
		d := p.out
		if diff := cmp.Diff([]string{"admin: prompt", "admin: drawn 1", "result: confirmed"}, told(d.Course)); diff != "" {
			t.Error(diff)
		}
		if len(d.Pages) != 1 || d.ScreenDigest != screen.Digest(d.Pages) || d.Shown == 0 || d.Shown > d.Pressed || d.Pressed != pressed || d.Completed != pressed+3*time.Second {
			t.Errorf("shown %v, pressed %v, completed %v, on %d pages", d.Shown, d.Pressed, d.Completed, len(d.Pages))
		}
		if len(d.Course.Presses) != 2 {
			t.Errorf("%d edges", len(d.Course.Presses))
		}
	})
}
