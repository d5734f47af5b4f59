package gateway_test

import (
	"context"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"assent.home.arpa/appliance/conversation"
	"assent.home.arpa/appliance/ipc"
	"assent.home.arpa/appliance/wire"
)

const invocation = "aabbccddeeff00112233445566778899"

func TestQuestionIsAnswered(t *testing.T) {
	b := start(t, say("Good ", "evening."))
	p := newHandset(t, b, 1)
	w := p.connect()
	if diff := cmp.Diff(wire.Welcome{Session: w.Session, Name: "phone 1", Role: "adult", Model: "Test model", HeadCode: "3F7QK2XZ"}, w); diff != "" {
		t.Errorf("welcome (-want +got)\n%s", diff)
	}
	id := p.ask(talkA, "How are you?")
	turn := p.want(wire.TypeTurn)
	if turn.Re != id || turn.Seq != 1 {
		t.Errorf("the turn answers %q with seq %d, want %q and 1", turn.Re, turn.Seq, id)
	}
	var text strings.Builder
	for range 2 {
		text.WriteString(decode[wire.Text](t, p.want(wire.TypeText)).Text)
	}
	if text.String() != "Good evening." {
		t.Errorf("prose %q", text.String())
	}
	p.want(wire.TypeTurnEnd)
}

// D9, D2: there is no message that approves, and trying is in the audit.
func TestApproveIsNoMessage(t *testing.T) {
	hold := make(chan struct{})
	b := start(t, func(ctx context.Context, q conversation.Turn, emit conversation.Emit) error {
		emit(wire.TypePending, wire.Pending{Conversation: q.Conversation.String(), Turn: "t1", Invocation: invocation})
		until(ctx, hold)
		return nil
	})
	defer close(hold)
	p := newHandset(t, b, 1)
	p.connect()
	p.ask(talkA, "search")
	p.want(wire.TypePending)
	types := []wire.Type{"approve", "confirm", "mint", "press", "Deny", "ask ", wire.TypeResult, wire.TypePending, ""}
	for _, typ := range types {
		p.send(typ, map[string]string{"invocation": invocation})
		p.wantError("unknown_type")
	}
	// The audit hears of it, in words of the box's own.
	c := await[*ipc.Claim](t, b.guard, 1)[0]
	if c.Class != ipc.ClaimProtocol || c.Slot != 1 || c.Code != "unknown_type" || c.Digest == [32]byte{} || !strings.HasPrefix(string(c.Detail), "messages of an unknown type: ") {
		t.Errorf("claim %+v, %q", c, c.Detail)
	}
	if w := await[*ipc.Withdraw](t, b.guard, 0); len(w) > 0 {
		t.Errorf("something was withdrawn: %+v", w)
	}
}

func TestReplayedAskIsRefused(t *testing.T) {
	b := start(t, say("once"))
	p := newHandset(t, b, 1)
	p.connect()
	q := p.askData(talkA, "once only")
	p.send(wire.TypeAsk, q)
	for _, typ := range []wire.Type{wire.TypeTurn, wire.TypeText, wire.TypeTurnEnd} {
		p.want(typ)
	}
	p.send(wire.TypeAsk, q)
	p.wantError("old_counter")
}

func TestOneTurnAPhone(t *testing.T) {
	hold := make(chan struct{})
	b := start(t, func(ctx context.Context, q conversation.Turn, emit conversation.Emit) error {
		emit(wire.TypeTurn, wire.Turn{Conversation: q.Conversation.String(), Turn: "t1", Text: q.Text})
		if q.Slot == 1 {
			until(ctx, hold)
		}
		emit(wire.TypeTurnEnd, wire.TurnEnd{Conversation: q.Conversation.String(), Turn: "t1", Reason: "complete"})
		return nil
	})
	p, other := newHandset(t, b, 1), newHandset(t, b, 2)
	p.connect()
	other.connect()
	p.ask(talkA, "first")
	p.want(wire.TypeTurn)
	p.ask(talkB, "second")
	p.wantError("turn_running")
	other.ask(talkA, "of another phone")
	other.want(wire.TypeTurn)
	other.want(wire.TypeTurnEnd)
	close(hold)
	p.want(wire.TypeTurnEnd)
}

func TestCancel(t *testing.T) {
	b := start(t, func(ctx context.Context, q conversation.Turn, emit conversation.Emit) error {
		emit(wire.TypeTurn, wire.Turn{Conversation: q.Conversation.String(), Turn: "t1", Text: q.Text})
		<-ctx.Done()
		emit(wire.TypeTurnEnd, wire.TurnEnd{Conversation: q.Conversation.String(), Turn: "t1", Reason: "cancelled"})
		return nil
	})
	p, other := newHandset(t, b, 1), newHandset(t, b, 2)
	p.connect()
	other.connect()
	p.ask(talkA, "go on for ever")
	p.want(wire.TypeTurn)
	other.send(wire.TypeCancel, wire.Cancel{Conversation: talkA})
	other.wantError("no_turn")
	p.send(wire.TypeCancel, wire.Cancel{Conversation: talkB})
	p.wantError("no_turn")
	p.send(wire.TypeCancel, wire.Cancel{Conversation: talkA})
	if end := decode[wire.TurnEnd](t, p.want(wire.TypeTurnEnd)); end.Reason != "cancelled" {
		t.Errorf("the turn ended with %q", end.Reason)
	}
	await[*ipc.EndAsk](t, b.guard, 1)
}

func TestCancelBeforeTheGuardHasAnswered(t *testing.T) {
	b := start(t, func(context.Context, conversation.Turn, conversation.Emit) error {
		t.Error("a cancelled question was put to the model")
		return nil
	})
	b.guard.holdAsk = make(chan struct{})
	p := newHandset(t, b, 1)
	p.connect()
	id := p.ask(talkA, "never mind")
	p.send(wire.TypeCancel, wire.Cancel{Conversation: talkA})
	if f := p.wantError("interrupted"); f.Re != id {
		t.Errorf("the error answers %q, want %q", f.Re, id)
	}
	close(b.guard.holdAsk)
}

// W10, D9: a phone takes back its own request, and no other's.
func TestDenyOnlyItsOwn(t *testing.T) {
	hold := make(chan struct{})
	b := start(t, func(ctx context.Context, q conversation.Turn, emit conversation.Emit) error {
		emit(wire.TypePending, wire.Pending{Conversation: q.Conversation.String(), Turn: "t1", Invocation: invocation})
		until(ctx, hold)
		return nil
	})
	defer close(hold)
	p, other := newHandset(t, b, 1), newHandset(t, b, 2)
	p.connect()
	other.connect()
	p.ask(talkA, "search")
	p.want(wire.TypePending)
	other.send(wire.TypeDeny, wire.Deny{Invocation: invocation})
	other.wantError("not_pending")
	p.send(wire.TypeDeny, wire.Deny{Invocation: strings.ToUpper(invocation)})
	p.wantError("not_pending")
	p.send(wire.TypeDeny, wire.Deny{Invocation: invocation})
	w := await[*ipc.Withdraw](t, b.guard, 1)
	if len(w) != 1 || w[0].Slot != 1 || !w[0].Deny || w[0].Inv.String() != invocation {
		t.Errorf("withdrawn: %+v", w)
	}
}

// W10: a phone reads nothing that belongs to another.
func TestPhonesDoNotSeeEachOther(t *testing.T) {
	b := start(t, say("secret"))
	p, other := newHandset(t, b, 1), newHandset(t, b, 2)
	p.connect()
	other.connect()
	p.ask(talkA, "mine")
	for range 3 {
		p.next()
	}
	other.send(wire.TypePing, nil)
	other.want(wire.TypePong)
}
