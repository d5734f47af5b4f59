package gateway_test

import (
	"context"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"assent.home.arpa/appliance/conversation"
	"assent.home.arpa/appliance/gateway"
	"assent.home.arpa/appliance/ipc"
	"assent.home.arpa/appliance/wire"
)

// D5: the phone drops while something waits, the press happens, the phone returns.
func TestResultArrivesOnceAfterADrop(t *testing.T) {
	pressed, decided := make(chan struct{}), make(chan struct{})
	b := start(t, func(ctx context.Context, q conversation.Turn, emit conversation.Emit) error {
		id := q.Conversation.String()
		emit(wire.TypeTurn, wire.Turn{Conversation: id, Turn: "t1", Text: q.Text})
		emit(wire.TypePending, wire.Pending{Conversation: id, Turn: "t1", Invocation: invocation})
		until(ctx, pressed)
		emit(wire.TypeResult, wire.Result{Conversation: id, Turn: "t1", Outcome: wire.Outcome{Invocation: invocation, Status: "done"}})
		emit(wire.TypeTurnEnd, wire.TurnEnd{Conversation: id, Turn: "t1", Reason: "complete"})
		close(decided)
		return nil
	})
	p := newHandset(t, b, 1)
	p.connect()
	p.ask(talkA, "search")
	p.want(wire.TypeTurn)
	p.want(wire.TypePending)
	p.ws.Close()
	close(pressed)
	<-decided
	if w := p.connect(talkA); !w.Resumed {
		t.Fatal("the phone was not resumed")
	}
	p.want(wire.TypeResult)
	p.want(wire.TypeTurnEnd)
	p.send(wire.TypePing, nil)
	p.want(wire.TypePong) // and nothing else
	// The card is gone: it can no longer be taken back.
	p.send(wire.TypeDeny, wire.Deny{Invocation: invocation})
	p.wantError("not_pending")
}

// A turn belongs to the phone, not to the connection that asked.
func TestTurnOutlivesItsConnection(t *testing.T) {
	pressed := make(chan struct{})
	b := start(t, func(ctx context.Context, q conversation.Turn, emit conversation.Emit) error {
		id := q.Conversation.String()
		emit(wire.TypeTurn, wire.Turn{Conversation: id, Turn: "t1", Text: q.Text})
		reason := "complete"
		select {
		case <-pressed:
		case <-ctx.Done():
			reason = "cancelled"
		}
		emit(wire.TypeTurnEnd, wire.TurnEnd{Conversation: id, Turn: "t1", Reason: reason})
		return nil
	})
	p := newHandset(t, b, 1)
	p.connect()
	p.ask(talkA, "search")
	p.want(wire.TypeTurn)
	p.ws.Close()
	for range 3 { // by the third, the gateway has surely noticed that the first is gone
		p.connect()
		p.send(wire.TypePing, nil)
		if f := p.next(); f.Type != wire.TypePong {
			t.Fatalf("got %s %s", f.Type, f.Data)
		}
	}
	close(pressed)
	if end := decode[wire.TurnEnd](t, p.want(wire.TypeTurnEnd)); end.Reason != "complete" {
		t.Errorf("the turn ended with %q", end.Reason)
	}
}

func TestReturningPhoneIsSentTheConversation(t *testing.T) {
	begun, said, goOn := make(chan struct{}), make(chan struct{}), make(chan struct{})
	b := start(t, func(ctx context.Context, q conversation.Turn, emit conversation.Emit) error {
		id := q.Conversation.String()
		emit(wire.TypeTurn, wire.Turn{Conversation: id, Turn: "t1", Text: q.Text})
		until(ctx, begun) // a phone that has not read by the time the ring turns over is hung up on
		for range gateway.RingFrames + 1 {
			emit(wire.TypeText, wire.Text{Conversation: id, Turn: "t1", Text: "a"})
		}
		close(said)
		until(ctx, goOn)
		emit(wire.TypeTurnEnd, wire.TurnEnd{Conversation: id, Turn: "t1", Reason: "complete"})
		return nil
	})
	id := parseID[ipc.ID](talkA)
	open := "t1"
	b.turns.keep(id, wire.Snapshot{Conversation: talkA, Open: &open, Items: []wire.Item{{Kind: "question", Turn: "t1", Text: "long"}}})
	p := newHandset(t, b, 1)
	p.connect()
	p.ask(talkA, "long")
	p.want(wire.TypeTurn)
	p.ws.Close()
	close(begun)
	<-said
	for _, session := range []string{p.session, "another start"} {
		p.dial()
		p.send(wire.TypeHello, map[string]any{"slot": 1, "sig": p.sign(wire.AuthBytes(1, p.nonce)), "last": 1, "session": session, "conversation": talkA})
		if w := decode[wire.Welcome](t, p.want(wire.TypeWelcome)); w.Resumed {
			t.Fatal("resumed where frames are missing")
		}
		snap := decode[wire.Snapshot](t, p.want(wire.TypeSnapshot))
		// What the model has said of a step that is not over is part of the conversation as it is.
		want := []wire.Item{{Kind: "question", Turn: "t1", Text: "long"}, {Kind: "prose", Turn: "t1", Text: strings.Repeat("a", gateway.RingFrames+1)}}
		if diff := cmp.Diff(want, snap.Items); diff != "" {
			t.Errorf("snapshot (-want +got)\n%s", diff)
		}
	}
	close(goOn)
	p.want(wire.TypeTurnEnd)
}

// A phone that reads nothing costs nobody anything, and is dropped once what it missed is gone.
func TestSlowReaderIsDropped(t *testing.T) {
	const frames, batch = 2 * gateway.RingFrames, 128
	read := make(chan struct{}, frames)
	b := startOnPipes(t, func(ctx context.Context, q conversation.Turn, emit conversation.Emit) error {
		for i := range frames {
			emit(wire.TypeText, wire.Text{Conversation: q.Conversation.String(), Turn: "t1", Text: "x"})
			if i%batch == batch-1 {
				for range batch {
					until(ctx, read) // the other connection keeps up
				}
			}
		}
		emit(wire.TypeTurnEnd, wire.TurnEnd{Conversation: q.Conversation.String(), Turn: "t1", Reason: "complete"})
		return nil
	})
	slow := newHandset(t, b, 1)
	slow.connect()
	quick := &handset{t: t, box: b, slot: 1, key: slow.key}
	quick.connect()
	quick.ask(talkA, "much")
	for range frames {
		quick.want(wire.TypeText)
		read <- struct{}{}
	}
	quick.want(wire.TypeTurnEnd)
	if code := slow.closed(); code != 4008 {
		t.Errorf("closed with %d, want 4008", code)
	}
	if slow.last >= quick.last {
		t.Error("the slow reader was sent everything")
	}
}

func TestConnectionsOfOnePhoneAreBounded(t *testing.T) {
	b := start(t, say("to all"))
	first := newHandset(t, b, 1)
	first.connect()
	var more []*handset
	for range 4 {
		p := &handset{t: t, box: b, slot: 1, key: first.key}
		p.connect()
		more = append(more, p)
	}
	if code := first.closed(); code != 4001 {
		t.Errorf("the oldest was closed with %d, want 4001", code)
	}
	more[0].ask(talkA, "who hears it?")
	for _, p := range more {
		p.want(wire.TypeTurn)
		p.want(wire.TypeText)
		p.want(wire.TypeTurnEnd)
	}
}
