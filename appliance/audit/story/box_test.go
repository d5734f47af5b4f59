package story_test

import (
	"context"
	"encoding/hex"
	"testing"
	"time"

	"assent.home.arpa/appliance/audit"
	"assent.home.arpa/appliance/audit/audittest"
	"assent.home.arpa/appliance/audit/story"
	"assent.home.arpa/appliance/clock"
	"assent.home.arpa/appliance/clock/clocktest"
)

// box is a log that a test writes.
type box struct {
	*audit.Log
	t     *testing.T
	disk  *audittest.Disk
	clock *clocktest.Clock
}

func newBox(t *testing.T) *box {
	t.Helper()
	b := &box{t: t, disk: audittest.NewDisk(), clock: clocktest.New()}
	b.start()
	return b
}

// noon sets the wall clock.
func (b *box) noon() { b.clock.SetWall(time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC), clock.Synced) }

func (b *box) start() {
	b.t.Helper()
	l, err := audit.Open(b.t.Context(), audittest.Options(b.clock, b.disk))
	if err != nil {
		b.t.Fatal(err)
	}
	b.Log = l
	b.t.Cleanup(func() { l.Close() })
}

// cut takes the power away and gives it back.
func (b *box) cut() {
	b.t.Helper()
	b.disk = b.disk.Crash(func(int) int { return 0 })
	b.start()
}

func (b *box) barrier(entries ...audit.Entry) {
	b.t.Helper()
	if _, err := b.Barrier(b.t.Context(), entries...); err != nil {
		b.t.Fatal(err)
	}
}

func (b *box) intend(c audittest.Call) audit.Intent {
	b.t.Helper()
	i, err := b.Intend(b.t.Context(), c.Entries(), c.Intent, c.Inv)
	if err != nil {
		b.t.Fatal(err)
	}
	return i
}

func (b *box) effect(i audit.Intent, e audit.EffectRecord, more ...audit.Entry) {
	b.t.Helper()
	if _, err := b.Effect(b.t.Context(), i, e, more...); err != nil {
		b.t.Fatal(err)
	}
}

// records closes the log and reads it.
func (b *box) records() []audit.Entered {
	b.t.Helper()
	if err := b.Close(); err != nil {
		b.t.Fatal(err)
	}
	var all []audit.Entered
	r, err := audit.Verify(context.Background(), b.disk.FS(), audit.VerifyOptions{Visit: func(e audit.Entered) error {
		all = append(all, e)
		return nil
	}})
	if err != nil || r.Status != audit.Intact {
		b.t.Fatalf("%v, %v: %v", err, r.Status, r.Problem)
	}
	return all
}

func tell(t *testing.T, records []audit.Entered) []story.Story {
	t.Helper()
	var all []story.Story
	teller := story.New(func(s story.Story) error {
		all = append(all, s)
		return nil
	})
	for _, e := range records {
		if err := teller.Add(e); err != nil {
			t.Fatal(err)
		}
	}
	if err := teller.Close(); err != nil {
		t.Fatal(err)
	}
	return all
}

func of(stories []story.Story, inv [16]byte) story.Story {
	for _, s := range stories {
		if s.ID == hex.EncodeToString(inv[:]) {
			return s
		}
	}
	return story.Story{}
}

func step(s story.Story, name story.StepName) story.Step {
	for _, step := range s.Steps {
		if step.Name == name {
			return step
		}
	}
	return story.Step{}
}

func literal(s story.Step, name string) story.Literal {
	for _, l := range s.Literals {
		if l.Name == name {
			return l
		}
	}
	return story.Literal{}
}

func names(s story.Story) (all []story.StepName) {
	for _, step := range s.Steps {
		all = append(all, step.Name)
	}
	return all
}
