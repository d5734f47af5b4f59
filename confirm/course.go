package confirm

import (
	"slices"
	"time"

	"assent.home.arpa/device"
)

// Step is one thing that happened at the panel while a card or a prompt was in front: a transition, or a picture that came on the
// glass.
type Step struct {
	Mono  time.Duration // when
	State State         // from then on
	Cause Cause
	Page  int // CauseDrawn of a card or prompt that is read: the page, from 1
}

// Course is what happened at the panel on the way to a decision, for the audit. It is bounded: of a longer one the beginning
// and the newest are kept.
type Course struct {
	Steps   []Step         // in order, at most MaxSteps
	LeftOut int            // steps that are missing after the first StepsFirst
	Presses []device.Event // the newest MaxPresses edges
}

// Bounds of a Course.
const (
	MaxSteps   = 48
	StepsFirst = 12
	MaxPresses = 32
)

func (c *Course) step(s Step) {
	var dropped bool
	c.Steps, dropped = within(c.Steps, s, StepsFirst, MaxSteps)
	if dropped {
		c.LeftOut++
	}
}

func (c *Course) press(ev device.Event) {
	c.Presses, _ = within(c.Presses, ev, 0, MaxPresses)
}

// within appends x to all, which holds most at the most: then the one after the first keep makes room. What was handed out
// before is left as it is.
func within[T any](all []T, x T, keep, most int) (_ []T, dropped bool) {
	if len(all) < most {
		return append(all, x), false
	}
	return append(slices.Concat(all[:keep], all[keep+1:]), x), true
}

// course is that of what is in front, or nil.
func (m *machine) course() *Course {
	switch {
	case m.front != nil:
		return &m.front.course
	case m.prompt != nil:
		return &m.prompt.course
	}
	return nil
}

// happened adds to the course of what is in front.
func (m *machine) happened(s State, cause Cause, page int) {
	if c := m.course(); c != nil {
		c.step(Step{Mono: m.now.mono, State: s, Cause: cause, Page: page})
	}
}

// closing is the course of what is in front, with its end.
func (m *machine) closing(cause Cause) Course {
	c := *m.course()
	c.Steps, c.Presses = slices.Clip(c.Steps), slices.Clip(c.Presses)
	c.step(Step{Mono: m.now.mono, State: StateResult, Cause: cause})
	return c
}
