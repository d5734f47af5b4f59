package executor_test

import (
	"context"
	"testing"
	"time"

	"assent.home.arpa/appliance/audit"
	"assent.home.arpa/appliance/ipc"
	"assent.home.arpa/capabilities"
	"assent.home.arpa/capabilities/executor"
	"assent.home.arpa/capabilities/policy"
	"assent.home.arpa/confirm"
)

func TestDecisionsThatAreNotApprovals(t *testing.T) {
	tests := []struct {
		outcome confirm.Outcome
		status  capabilities.Status
		code    capabilities.Code
		wait    time.Duration // cool-down that follows
		by      audit.Actor
	}{
		{confirm.Denied, capabilities.Denied, "", 30 * time.Second, audit.ByBox},
		{confirm.Expired, capabilities.Expired, "", 0, audit.ByBox},
		{confirm.ExpiredUnseen, capabilities.ExpiredUnseen, "", 30 * time.Second, audit.ByBox},
		{confirm.Withdrawn, capabilities.Withdrawn, "", 0, audit.ByGateway},
		{confirm.Panicked, capabilities.Denied, capabilities.CodeFrozen, 30 * time.Second, audit.ByBox},
		{confirm.DisplayLost, capabilities.Rejected, capabilities.CodeDisplayUnavailable, 0, 0},
		{confirm.Busy, capabilities.Rejected, capabilities.CodeBusy, 0, 0},
		{0, capabilities.Rejected, capabilities.CodeInternal, 0, 0},
	}
	for _, tt := range tests {
		t.Run(tt.outcome.String(), func(t *testing.T) {
			b := newBox(t)
			b.desk.answer(tt.outcome)
			b.want(b.invoke(b.turn(adult(), executor.NewConversation(nil)), "find_pages__v1", query), capabilities.StageConfirm, tt.status, tt.code)
			if got := b.Patience("p1").Left(b.clock.Boot()); got != tt.wait {
				t.Errorf("the person waits %v, want %v", got, tt.wait)
			}
			if len(b.courier.Calls()) != 0 {
				t.Error("it was executed")
			}
			if tt.outcome == 0 {
				return
			}
			records := b.records()
			if a := find[*audit.Approval](records); len(a) != 1 || a[0].Outcome != audit.ApprovalOutcome(tt.outcome) || len(a[0].Receipt) != 0 || a[0].By != tt.by {
				t.Errorf("approval records %+v", a)
			}
			if d := find[*audit.Decision](records); len(d) != 2 || d[1].Stage != capabilities.StageConfirm || d[1].Status != tt.status {
				t.Errorf("decision records %+v", d)
			}
		})
	}
}

func TestDenialEndsTheMatterForTheTurn(t *testing.T) {
	b := newBox(t)
	c := executor.NewConversation(nil)
	turn := b.turn(adult(), c)
	b.desk.answer(confirm.Denied)
	b.want(b.invoke(turn, "find_pages__v1", query), capabilities.StageConfirm, capabilities.Denied, "")
	b.desk.answer(confirm.Approved)
	// Reworded, with a space more: the same capability in the same turn is refused, even when the wait is over.
	b.clock.Advance(time.Minute)
	b.want(b.invoke(turn, "find_pages__v1", `{"query":"tall towers "}`), capabilities.StagePolicy, capabilities.Rejected, capabilities.CodeDeniedInTurn)
	// What needs no press goes on.
	b.want(b.invoke(turn, "box_state__v1", "{}"), capabilities.StageExecute, capabilities.Done, "")
	b.want(b.invoke(b.turn(adult(), c), "find_pages__v1", query), capabilities.StageExecute, capabilities.Done, "")
	if len(b.desk.requests()) != 2 {
		t.Fatalf("the panel showed %d cards", len(b.desk.requests()))
	}
}

func TestCoolDownFollowsThePersonAndNobodyElse(t *testing.T) {
	b := newBox(t)
	refuse := func() {
		b.desk.answer(confirm.Denied)
		b.want(b.invoke(b.turn(adult(), executor.NewConversation(nil)), "find_pages__v1", query), capabilities.StageConfirm, capabilities.Denied, "")
		b.desk.answer(confirm.Approved)
	}
	for _, wait := range []time.Duration{30 * time.Second, 2 * time.Minute, 10 * time.Minute, 10 * time.Minute} {
		refuse()
		b.clock.Advance(wait - time.Second)
		// A new turn in a new conversation changes nothing, and neither does setting the clock.
		b.clock.SetWall(time.Date(2029, 1, 1, 0, 0, 0, 0, time.UTC), 2)
		o := b.invoke(b.turn(adult(), executor.NewConversation(nil)), "find_pages__v1", query)
		b.want(o, capabilities.StagePolicy, capabilities.Rejected, capabilities.CodeCoolDown)
		if o.RetryIn != 1 {
			t.Fatalf("told to wait %d s, not 1", o.RetryIn)
		}
		other := executor.Person{Slot: 2, ID: "p2", Phone: "Desk", Role: policy.Adult}
		b.want(b.invoke(b.turn(other, executor.NewConversation(nil)), "find_pages__v1", query), capabilities.StageExecute, capabilities.Done, "")
		b.clock.Suspend(time.Second) // sleep counts
	}
	b.want(b.invoke(b.turn(adult(), executor.NewConversation(nil)), "find_pages__v1", query), capabilities.StageExecute, capabilities.Done, "")
	refuse()
	if got := b.Patience("p1").Left(b.clock.Boot()); got != 30*time.Second {
		t.Fatalf("an approval did not reset the wait: %v", got)
	}
}

// TestCallingPeopleForNothingCosts: a card that is taken back, or opened and left, is free three times (W10).
func TestCallingPeopleForNothingCosts(t *testing.T) {
	for _, outcome := range []confirm.Outcome{confirm.Withdrawn, confirm.Expired} {
		t.Run(outcome.String(), func(t *testing.T) {
			b := newBox(t)
			b.desk.answer(outcome)
			ask := func() ipc.Outcome {
				return b.invoke(b.turn(adult(), executor.NewConversation(nil)), "find_pages__v1", query)
			}
			for n := range 4 {
				if o := ask(); o.Stage != capabilities.StageConfirm {
					t.Fatalf("card %d: %+v", n+1, o)
				}
			}
			o := ask()
			b.want(o, capabilities.StagePolicy, capabilities.Rejected, capabilities.CodeCoolDown)
			if o.RetryIn != 30 {
				t.Errorf("told to wait %d s", o.RetryIn)
			}
			b.clock.Advance(30 * time.Second)
			ask()
			if got := b.Patience("p1").Left(b.clock.Boot()); got != 2*time.Minute {
				t.Errorf("the next wait is %v", got)
			}
		})
	}
}

func TestWhatNobodyWasCalledForIsFree(t *testing.T) {
	b := newBox(t)
	b.desk.queued = true
	b.desk.answer(confirm.Withdrawn)
	for range 5 {
		b.invoke(b.turn(adult(), executor.NewConversation(nil)), "find_pages__v1", query)
	}
	if b.Patience("p1") != (policy.Patience{}) {
		t.Fatalf("it costs %+v", b.Patience("p1"))
	}
	b.desk.queued = false
	b.desk.answer(confirm.Approved)
	b.invoke(b.turn(adult(), executor.NewConversation(nil)), "find_pages__v1", query)
	if asked := b.desk.requests(); asked[len(asked)-1].Still {
		t.Error("it made the next card one that nobody hears")
	}
}

// TestOneSoundAMinute: people are called for a person's card once, and then not until a minute without one.
func TestOneSoundAMinute(t *testing.T) {
	b := newBox(t)
	b.desk.answer(confirm.Approved)
	still := func(p executor.Person) bool {
		b.invoke(b.turn(p, executor.NewConversation(nil)), "find_pages__v1", query)
		asked := b.desk.requests()
		return asked[len(asked)-1].Still
	}
	first := still(adult())
	b.clock.Advance(policy.Hush - time.Second)
	second := still(adult())
	other := still(executor.Person{Slot: 2, ID: "p2", Phone: "Desk", Role: policy.Adult})
	b.clock.Advance(policy.Hush)
	if third := still(adult()); first || !second || other || third {
		t.Errorf("no sound for the first %v, one within a minute %v, another person's %v, one after it %v", first, second, other, third)
	}
}

// wait makes the panel hold every card until release is closed or the card is withdrawn.
func (b *box) wait() (shown <-chan confirm.Request, release chan struct{}) {
	cards := make(chan confirm.Request, 8)
	release = make(chan struct{})
	b.desk.do(func(ctx context.Context, r confirm.Request) confirm.Outcome {
		cards <- r
		select {
		case <-release:
			return confirm.Approved
		case <-ctx.Done():
			return confirm.Withdrawn
		}
	})
	return cards, release
}

func (b *box) start(ctx context.Context, turn *executor.Turn) <-chan ipc.Outcome {
	done := make(chan ipc.Outcome, 1)
	go func() { done <- b.Invoke(ctx, proposal(turn, "find_pages__v1", query), func(ipc.Pending) {}) }()
	return done
}

func TestWithdrawals(t *testing.T) {
	t.Run("the turn ends", func(t *testing.T) {
		b := newBox(t)
		shown, _ := b.wait()
		turn := b.turn(adult(), executor.NewConversation(nil))
		done := b.start(t.Context(), turn)
		<-shown
		turn.End()
		b.want(<-done, capabilities.StageConfirm, capabilities.Withdrawn, "")
	})
	t.Run("the gateway goes away", func(t *testing.T) {
		b := newBox(t)
		shown, _ := b.wait()
		ctx, cancel := context.WithCancel(t.Context())
		done := b.start(ctx, b.turn(adult(), executor.NewConversation(nil)))
		<-shown
		cancel()
		b.want(<-done, capabilities.StageConfirm, capabilities.Withdrawn, "")
		if d := find[*audit.Decision](b.records()); len(d) != 2 {
			t.Fatal("the withdrawal is not in the audit")
		}
	})
	t.Run("the phone says no", func(t *testing.T) {
		b := newBox(t)
		shown, _ := b.wait()
		turn := b.turn(adult(), executor.NewConversation(nil))
		done := b.start(t.Context(), turn)
		card := <-shown
		if b.Withdraw(card.Inv, 2, true) || b.Withdraw(capabilities.InvocationID{7}, 1, true) || b.Withdraw(card.Inv, 0, true) {
			t.Fatal("somebody else withdrew it")
		}
		select {
		case o := <-done:
			t.Fatalf("another phone's withdrawal ended it: %+v", o)
		default:
		}
		if !b.Withdraw(card.Inv, 1, true) {
			t.Fatal("its own phone could not withdraw it")
		}
		b.want(<-done, capabilities.StageConfirm, capabilities.Denied, "")
		b.desk.answer(confirm.Approved)
		b.want(b.invoke(turn, "find_pages__v1", `{"query":"tall  towers"}`), capabilities.StagePolicy, capabilities.Rejected, capabilities.CodeDeniedInTurn)
		if w := find[*audit.Withdraw](b.records()); len(w) != 1 || w[0].By != audit.ByPhone || w[0].Slot != 1 || !w[0].Deny {
			t.Fatalf("withdraw records %+v", w)
		}
	})
	t.Run("after the hold has counted", func(t *testing.T) {
		b := newBox(t)
		turn := b.turn(adult(), executor.NewConversation(nil))
		b.desk.do(func(_ context.Context, r confirm.Request) confirm.Outcome {
			b.Withdraw(r.Inv, 1, true) // on its way to the guard while the button was held
			return confirm.Approved
		})
		b.want(b.invoke(turn, "find_pages__v1", query), capabilities.StageExecute, capabilities.Done, "")
		records := b.records()
		if a := find[*audit.Approval](records); len(a) != 1 || a[0].Outcome != audit.Approved || a[0].By != audit.ByBox || a[0].Slot != 0 {
			t.Errorf("approval records %+v", a)
		}
		if w := find[*audit.Withdraw](records); len(w) != 0 {
			t.Errorf("withdraw records %+v", w)
		}
	})
	t.Run("too late", func(t *testing.T) {
		b := newBox(t)
		o := b.invoke(b.turn(adult(), executor.NewConversation(nil)), "find_pages__v1", query)
		if b.Withdraw(o.Inv, 1, true) {
			t.Fatal("an executed call was withdrawn")
		}
	})
}

func TestOnePendingDecisionAPhone(t *testing.T) {
	b := newBox(t)
	shown, release := b.wait()
	first := b.start(t.Context(), b.turn(adult(), executor.NewConversation(nil)))
	<-shown
	o := b.Invoke(t.Context(), proposal(b.turn(adult(), executor.NewConversation(nil)), "find_pages__v1", query), func(ipc.Pending) { t.Error("announced as pending") })
	b.want(o, capabilities.StageConfirm, capabilities.Rejected, capabilities.CodeBusy)
	other := b.start(t.Context(), b.turn(executor.Person{Slot: 2, ID: "p2", Phone: "Desk", Role: policy.Adult}, executor.NewConversation(nil)))
	<-shown
	close(release)
	b.want(<-first, capabilities.StageExecute, capabilities.Done, "")
	b.want(<-other, capabilities.StageExecute, capabilities.Done, "")
}

func TestNobodyIsBotheredForWhatCannotBeDone(t *testing.T) {
	for event, tt := range map[string]struct {
		prepare func(*box)
		code    capabilities.Code
	}{
		"no courier": {func(b *box) { b.courier.Leave(true) }, capabilities.CodeCourierUnavailable},
		"no audit":   {func(b *box) { b.journal.err = audit.ErrUnavailable }, capabilities.CodeAuditUnavailable},
	} {
		for _, name := range []string{"find_pages__v1", "box_state__v1"} {
			b := newBox(t)
			tt.prepare(b)
			args := map[string]string{"find_pages__v1": query, "box_state__v1": "{}"}[name]
			b.want(b.invoke(b.turn(adult(), executor.NewConversation(nil)), name, args), capabilities.StageConfirm, capabilities.Rejected, tt.code)
			if len(b.desk.requests())+len(b.courier.Calls()) != 0 {
				t.Errorf("%s, %s: it was shown or executed", event, name)
			}
		}
	}
}
