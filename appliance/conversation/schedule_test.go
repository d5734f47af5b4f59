package conversation_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"assent.home.arpa/appliance/conversation"
	"assent.home.arpa/appliance/conversation/conversationtest"
	"assent.home.arpa/inference"
)

// One step runs at a time, and phones take turns by step: one that asks without end does not keep another waiting for more
// than the step that runs.
func TestPhonesTakeTurns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBox(t, both()).with(func(o *conversation.Options) { o.Turn.Proposals, o.Turn.Steps = 30, 12 })
		var order []string
		b.model.Say = func(_ int, r inference.Request) conversationtest.Reply {
			who := strings.Fields(r.History[0].Text)[0]
			order = append(order, who)
			reply := conversationtest.Reply{Text: health(len(order)), Pause: time.Second}
			if count(order, who) == 6 {
				reply.Text = "Done."
			}
			return reply
		}
		_, endA := b.begin(t.Context(), 1, talk(1), "A")
		time.Sleep(500 * time.Millisecond) // A's first step runs
		_, endB := b.begin(t.Context(), 2, talk(2), "B")
		_, endC := b.begin(t.Context(), 3, talk(3), "C")
		endA()
		endB()
		endC()
		if n := b.model.Overlaps(); n != 0 {
			t.Errorf("%d steps ran beside another", n)
		}
		if len(order) != 18 {
			t.Fatalf("%d steps: %v", len(order), order)
		}
		for i := range len(order) - 3 {
			three := order[i : i+3]
			if i > 0 && (!slices.Contains(three, "A") || !slices.Contains(three, "B") || !slices.Contains(three, "C")) {
				t.Errorf("steps %d to %d are of %v", i+1, i+3, three)
			}
		}
	})
}

func count(list []string, s string) (n int) {
	for _, x := range list {
		if x == s {
			n++
		}
	}
	return n
}

// A phone that has just had the engine waits for those that have not, however many turns it starts.
func TestManyTurnsOfOnePhone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBox(t, both())
		var order []string
		b.model.Say = func(_ int, r inference.Request) conversationtest.Reply {
			order = append(order, r.History[0].Text)
			return conversationtest.Reply{Text: "Yes.", Pause: time.Second}
		}
		var ends []func()
		for i := range 8 {
			_, end := b.begin(t.Context(), 1, talk(byte(i)), fmt.Sprintf("A%d", i))
			ends = append(ends, end)
			synctest.Wait()
		}
		_, end := b.begin(t.Context(), 2, talk(100), "B")
		end()
		for _, end := range ends {
			end()
		}
		if len(order) != 9 || order[1] != "B" {
			t.Errorf("order %v", order)
		}
	})
}

// A turn that is cancelled while it waits for the engine leaves the queue, and the engine goes to the next.
func TestCancelWhileWaitingForTheEngine(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBox(t, both())
		b.model.Say = func(int, inference.Request) conversationtest.Reply {
			return conversationtest.Reply{Text: "Yes.", Pause: time.Minute / 2}
		}
		_, endA := b.begin(t.Context(), 1, talk(1), "A")
		synctest.Wait()
		phone, endB := b.begin(t.Context(), 2, talk(2), "B")
		synctest.Wait()
		_, endC := b.begin(t.Context(), 3, talk(3), "C")
		synctest.Wait()
		if !b.Cancel(2, talk(2)) {
			t.Fatal("there was nothing to cancel")
		}
		endB()
		if e := theEnd(t, phone); e.Reason != "cancelled" || len(b.guard.Claims()) != 0 {
			t.Errorf("end %+v, claims %v", e, b.guard.Claims())
		}
		endA()
		endC()
		if n := len(b.model.Requests()); n != 2 {
			t.Errorf("%d steps", n)
		}
	})
}

// An engine that hangs for one phone is taken away from it, so that the others get theirs.
func TestHangingStepDoesNotBlockOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBox(t, both(), conversationtest.Reply{Text: "Hm", Hang: true}, conversationtest.Reply{Text: "Yes."})
		phone, endA := b.begin(t.Context(), 1, talk(1), "A")
		synctest.Wait()
		started := time.Now()
		other, endB := b.begin(t.Context(), 2, talk(2), "B")
		endB()
		endA()
		if waited := time.Since(started); waited > 2*time.Minute || other.Prose() != "Yes." {
			t.Errorf("the other phone waited %v for %q", waited, other.Prose())
		}
		if e := theEnd(t, phone); e.Reason != "failed" {
			t.Errorf("end %+v", e)
		}
	})
}
