package gateway_test

import (
	"context"
	"errors"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/gorilla/websocket"

	"assent.home.arpa/appliance/conversation"
	"assent.home.arpa/appliance/gateway"
	"assent.home.arpa/appliance/ipc"
	"assent.home.arpa/appliance/wire"
	"assent.home.arpa/inference"
)

const invocation = "aabbccddeeff00112233445566778899"

func TestQuestionIsAnswered(t *testing.T) {
	b := start(t, say("Good ", "evening."))
	p := newHandset(t, b, 1)
	w := p.connect()
	if diff := cmp.Diff(wire.Welcome{Session: w.Session, Name: "phone 1", Role: "adult", Model: "Test model", HeadCode: "3F7Q-K2"}, w); diff != "" {
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

func TestNothingBeforeHello(t *testing.T) {
	b := start(t, say())
	p := newHandset(t, b, 1).dial()
	for _, typ := range []wire.Type{wire.TypeAsk, wire.TypeCancel, wire.TypeDeny} {
		p.send(typ, struct{}{})
		p.wantError("hello_first")
	}
}

// D9: a hello that another connection saw, another phone's key and an unknown slot prove nothing.
func TestHelloNeedsTheKey(t *testing.T) {
	b := start(t, say())
	p := newHandset(t, b, 1)
	p.connect()
	first := p.nonce
	other := newHandset(t, b, 2)
	for name, hello := range map[string]func() map[string]any{
		"replayed":    func() map[string]any { return map[string]any{"slot": 1, "sig": p.sign(wire.AuthBytes(1, first))} },
		"another key": func() map[string]any { return map[string]any{"slot": 1, "sig": other.sign(wire.AuthBytes(1, p.nonce))} },
		"no such":     func() map[string]any { return map[string]any{"slot": 9, "sig": p.sign(wire.AuthBytes(9, p.nonce))} },
	} {
		t.Run(name, func(t *testing.T) {
			p.dial()
			p.send(wire.TypeHello, hello())
			p.wantError("not_paired")
			p.ask(talkA, "hello?")
			p.wantError("hello_first")
		})
	}
}

// D9, D2: there is no message that approves, and trying is in the audit.
func TestApproveIsNoMessage(t *testing.T) {
	hold := make(chan struct{})
	b := start(t, func(_ context.Context, q conversation.Turn, emit conversation.Emit) error {
		emit(wire.TypePending, wire.Pending{Conversation: q.Conversation.String(), Turn: "t1", Invocation: invocation})
		<-hold
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
	var got []wire.Type
	for _, c := range await[*ipc.Claim](t, b.guard, len(types)) {
		if c.Class != ipc.ClaimProtocol || c.Slot != 1 || c.Code != "unknown_type" || c.Digest == [32]byte{} {
			t.Errorf("claim %+v", c)
		}
		got = append(got, wire.Type(c.Detail))
	}
	if len(got) != len(types) {
		t.Errorf("claims for %q, want %q", got, types)
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

// D5: the phone drops while something waits, the press happens, the phone returns.
func TestResultArrivesOnceAfterADrop(t *testing.T) {
	pressed, decided := make(chan struct{}), make(chan struct{})
	b := start(t, func(_ context.Context, q conversation.Turn, emit conversation.Emit) error {
		id := q.Conversation.String()
		emit(wire.TypeTurn, wire.Turn{Conversation: id, Turn: "t1", Text: q.Text})
		emit(wire.TypePending, wire.Pending{Conversation: id, Turn: "t1", Invocation: invocation})
		<-pressed
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
	said, goOn := make(chan struct{}), make(chan struct{})
	b := start(t, func(_ context.Context, q conversation.Turn, emit conversation.Emit) error {
		id := q.Conversation.String()
		emit(wire.TypeTurn, wire.Turn{Conversation: id, Turn: "t1", Text: q.Text})
		for range gateway.RingFrames + 1 {
			emit(wire.TypeText, wire.Text{Conversation: id, Turn: "t1", Text: "a"})
		}
		close(said)
		<-goOn
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

func TestOneTurnAPhone(t *testing.T) {
	hold := make(chan struct{})
	b := start(t, func(ctx context.Context, q conversation.Turn, emit conversation.Emit) error {
		emit(wire.TypeTurn, wire.Turn{Conversation: q.Conversation.String(), Turn: "t1", Text: q.Text})
		if q.Slot == 1 {
			<-hold
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
	b := start(t, func(_ context.Context, q conversation.Turn, emit conversation.Emit) error {
		emit(wire.TypePending, wire.Pending{Conversation: q.Conversation.String(), Turn: "t1", Invocation: invocation})
		<-hold
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

// Ten thousand frames at once cost the other phones nothing.
func TestFloodHurtsNobodyElse(t *testing.T) {
	b := start(t, say("calm"))
	p, other := newHandset(t, b, 1), newHandset(t, b, 2)
	p.connect()
	other.connect()
	var sent sync.WaitGroup
	sent.Go(func() {
		for range 10_000 {
			if p.ws.WriteMessage(websocket.TextMessage, []byte(`{"v":1,"id":"f","type":"ping"}`)) != nil {
				return
			}
		}
	})
	other.ask(talkA, "still there?")
	other.want(wire.TypeTurn)
	other.want(wire.TypeText)
	other.want(wire.TypeTurnEnd)
	p.closed()
	sent.Wait()
}

// Whoever goes on too fast is told so a few times, and then hung up on.
func TestTooManyFramesEndTheConnection(t *testing.T) {
	b := start(t, say())
	p := newHandset(t, b, 1)
	p.connect()
	warnings := 0
	for {
		if p.ws.WriteMessage(websocket.TextMessage, []byte(`{"v":1,"id":"f","type":"ping"}`)) != nil {
			break
		}
		f, err := p.receive()
		if err != nil {
			break
		}
		if f.code() == "too_fast" {
			warnings++
		}
	}
	if warnings != gateway.MaxOffences {
		t.Errorf("%d warnings, want %d", warnings, gateway.MaxOffences)
	}
}

func TestQuestionsAreLimitedOverAllConnections(t *testing.T) {
	b := start(t, say())
	p := newHandset(t, b, 1)
	for range 8 {
		p.connect()
		p.send(wire.TypeAsk, wire.Ask{Conversation: talkA, Counter: 1, Text: "x", Sig: strings.Repeat("A", 86)})
		f := p.want(wire.TypeError)
		p.ws.Close()
		if f.code() == "too_fast" {
			return
		}
	}
	t.Error("eight questions at once were let through")
}

// A phone that reads nothing costs nobody anything, and is dropped once what it missed is gone.
func TestSlowReaderIsDropped(t *testing.T) {
	const frames, batch = 2 * gateway.RingFrames, 128
	read := make(chan struct{}, frames)
	b := startOnPipes(t, func(_ context.Context, q conversation.Turn, emit conversation.Emit) error {
		for i := range frames {
			emit(wire.TypeText, wire.Text{Conversation: q.Conversation.String(), Turn: "t1", Text: "x"})
			if i%batch == batch-1 {
				for range batch {
					<-read // the other connection keeps up
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

func TestQuestionBounds(t *testing.T) {
	b := start(t, say())
	slot := uint32(1)
	for name, c := range map[string]struct {
		change func(*wire.Ask)
		code   string
	}{
		"empty":              {func(q *wire.Ask) { q.Text = " \n" }, "bad_question"},
		"too long":           {func(q *wire.Ask) { q.Text = strings.Repeat("é", wire.MaxQuestion/2+1) }, "bad_question"},
		"upper-case id":      {func(q *wire.Ask) { q.Conversation = strings.ToUpper(talkB) }, "bad_frame"},
		"no conversation":    {func(q *wire.Ask) { q.Conversation = strings.Repeat("0", 32) }, "bad_frame"},
		"short signature":    {func(q *wire.Ask) { q.Sig = q.Sig[1:] }, "bad_frame"},
		"padded signature":   {func(q *wire.Ask) { q.Sig = q.Sig[:84] + "==" }, "bad_frame"},
		"another's text":     {func(q *wire.Ask) { q.Text = "y" }, "bad_signature"},
		"another's counter":  {func(q *wire.Ask) { q.Counter++ }, "bad_signature"},
		"other conversation": {func(q *wire.Ask) { q.Conversation = talkB }, "bad_signature"},
	} {
		t.Run(name, func(t *testing.T) {
			p := newHandset(t, b, slot)
			slot++ // each may ask but so often
			p.connect()
			q := p.askData(talkA, "x")
			c.change(&q)
			p.send(wire.TypeAsk, q)
			p.wantError(c.code)
		})
	}
}

func TestFrameTooLarge(t *testing.T) {
	b := start(t, say())
	p := newHandset(t, b, 1).dial()
	p.ws.WriteMessage(websocket.TextMessage, []byte(`{"v":1,"id":"`+strings.Repeat("x", wire.MaxFrame)))
	if code := p.closed(); code != websocket.CloseMessageTooBig {
		t.Errorf("closed with %d", code)
	}
}

func TestFramesAreStrict(t *testing.T) {
	b := start(t, say())
	p := newHandset(t, b, 1).dial()
	for name, text := range map[string]string{
		"not JSON":        `approve`,
		"an array":        `[1]`,
		"two values":      `{"v":1,"id":"a","type":"ping"} {}`,
		"unknown field":   `{"v":1,"id":"a","type":"ping","approve":true}`,
		"a field twice":   `{"v":1,"id":"a","type":"ping","type":"ask"}`,
		"another case":    `{"v":1,"id":"a","Type":"ping"}`,
		"wrong version":   `{"v":2,"id":"a","type":"ping"}`,
		"wrong type":      `{"v":"1","id":"a","type":"ping"}`,
		"long id":         `{"v":1,"id":"` + strings.Repeat("a", wire.MaxID+1) + `","type":"ping"}`,
		"not UTF-8":       "{\"v\":1,\"id\":\"\xff\",\"type\":\"ping\"}",
		"field in data":   `{"v":1,"id":"a","type":"hello","data":{"slot":1,"sig":"","role":"owner"}}`,
		"data of hello":   `{"v":1,"id":"a","type":"hello"}`,
		"cut off":         `{"v":1,"id":"a","type":"hello","data":{`,
		"deep":            `{"v":1,"id":"a","type":"ping","data":` + strings.Repeat("[", 12000),
		"data is a list":  `{"v":1,"id":"a","type":"hello","data":[]}`,
		"nothing":         ``,
		"pair without":    `{"v":1,"id":"a","type":"pair","data":{"code":"","name":"x","key":"x"}}`,
		"unknown in pair": `{"v":1,"id":"a","type":"pair","data":{"code":"A","name":"x","key":"x","role":"owner"}}`,
	} {
		t.Run(name, func(t *testing.T) {
			if err := p.ws.WriteMessage(websocket.TextMessage, []byte(text)); err != nil {
				t.Fatal(err)
			}
			p.wantError("bad_frame")
		})
	}
	if err := p.ws.WriteMessage(websocket.BinaryMessage, []byte(`{"v":1,"id":"a","type":"ping"}`)); err != nil {
		t.Fatal(err)
	}
	p.wantError("bad_frame")
}

func TestModelIsAway(t *testing.T) {
	for name, c := range map[string]struct {
		err  error
		code string
	}{
		"loading":  {inference.ErrUnavailable, "model_unavailable"},
		"died":     {inference.ErrInterrupted, "model_unavailable"},
		"no guard": {ipc.ErrClosed, "guard_unavailable"},
		"slow":     {context.DeadlineExceeded, "timeout"},
		"unknown":  {errors.New("open /var/lib/assent/private: no"), "internal_error"},
	} {
		t.Run(name, func(t *testing.T) {
			b := start(t, func(context.Context, conversation.Turn, conversation.Emit) error { return c.err })
			p := newHandset(t, b, 1)
			p.connect()
			id := p.ask(talkA, "anybody there?")
			f := p.wantError(c.code)
			if f.Re != id || !decode[wire.Error](t, f).Retry {
				t.Errorf("%+v", f)
			}
			if strings.Contains(string(f.Data), "private") {
				t.Errorf("the error tells a phone about the box's inside: %s", f.Data)
			}
			// Nothing may be proposed under a turn that was not begun.
			await[*ipc.EndAsk](t, b.guard, 1)
		})
	}
}

func TestGuardGoesAndReturns(t *testing.T) {
	b := start(t, say("hello"))
	p := newHandset(t, b, 1)
	p.connect()
	b.guard.stop()
	if n := decode[wire.Notice](t, p.want(wire.TypeNotice)); n.Class != "guard_lost" {
		t.Fatalf("notice %+v", n)
	}
	p.ask(talkA, "now?")
	p.wantError("guard_unavailable")
	b.guard.start(t)
	if n := decode[wire.Notice](t, p.want(wire.TypeNotice)); n.Class != "guard_back" {
		t.Fatalf("notice %+v", n)
	}
	if code := p.closed(); code != websocket.CloseServiceRestart {
		t.Errorf("closed with %d: a phone must prove itself to the guard that came back", code)
	}
	if w := p.connect(); !w.Resumed {
		t.Error("the phone was not resumed")
	}
	p.ask(talkA, "now?")
	p.want(wire.TypeTurn)
}

func TestRemovedPhoneIsHungUpOn(t *testing.T) {
	stopped := make(chan struct{})
	b := start(t, func(ctx context.Context, q conversation.Turn, emit conversation.Emit) error {
		emit(wire.TypeTurn, wire.Turn{Conversation: q.Conversation.String(), Turn: "t1", Text: q.Text})
		<-ctx.Done()
		close(stopped)
		return nil
	})
	p, other := newHandset(t, b, 1), newHandset(t, b, 2)
	p.connect()
	other.connect()
	p.ask(talkA, "still mine?")
	p.want(wire.TypeTurn)
	b.guard.unpair(1)
	b.guard.notice(t, ipc.Notice{Class: ipc.NoticePhoneRemoved, Slot: 1})
	if code := p.closed(); code != 4003 {
		t.Errorf("closed with %d, want 4003", code)
	}
	<-stopped
	other.send(wire.TypePing, nil)
	other.want(wire.TypePong)
}

func TestNoticesReachWhomTheyConcern(t *testing.T) {
	b := start(t, say())
	p, other := newHandset(t, b, 1), newHandset(t, b, 2)
	p.connect()
	other.connect()
	b.guard.notice(t, ipc.Notice{Class: ipc.NoticeCatalogChanged, Slot: 2})
	b.guard.notice(t, ipc.Notice{Class: 99})
	b.guard.notice(t, ipc.Notice{Class: ipc.NoticeFrozen})
	want := func(h *handset, class string) {
		t.Helper()
		if n := decode[wire.Notice](t, h.want(wire.TypeNotice)); n.Class != class || n.Message == "" {
			t.Errorf("notice %+v, want %s", n, class)
		}
	}
	want(p, "frozen")
	want(other, "catalog_changed")
	want(other, "frozen")
}

// Whoever comes late is told what still holds.
func TestStandingNotices(t *testing.T) {
	b := start(t, say(), func(o *gateway.Options) { o.Fixture = "practice" })
	b.guard.blank = true
	p := newHandset(t, b, 1)
	p.connect()
	p.ws.Close()
	p.session = "of another start"
	p.dial()
	p.send(wire.TypeHello, map[string]any{"slot": 1, "sig": p.sign(wire.AuthBytes(1, p.nonce))})
	p.want(wire.TypeWelcome)
	for _, class := range []string{"fixture", "display_lost"} {
		if n := decode[wire.Notice](t, p.want(wire.TypeNotice)); n.Class != class || n.Message == "" {
			t.Errorf("notice %+v, want %s", n, class)
		}
	}
	p.want(wire.TypeSnapshot)
}

func TestShutdownEndsTurns(t *testing.T) {
	b := start(t, func(ctx context.Context, q conversation.Turn, emit conversation.Emit) error {
		emit(wire.TypeTurn, wire.Turn{Conversation: q.Conversation.String(), Turn: "t1", Text: q.Text})
		<-ctx.Done()
		return ctx.Err()
	})
	p := newHandset(t, b, 1)
	p.connect()
	p.ask(talkA, "for ever")
	p.want(wire.TypeTurn)
	if err := b.stop(); err != nil {
		t.Errorf("Run: %v", err)
	}
	if code := p.closed(); code != websocket.CloseGoingAway && code != 0 {
		t.Errorf("closed with %d", code)
	}
}

func TestPairing(t *testing.T) {
	b := start(t, say("hello"))
	p := &handset{t: t, box: b}
	fresh := newHandset(t, b, 1) // only for its key
	p.key = fresh.key
	b.guard.unpair(1)
	p.dial()
	point, err := p.key.PublicKey.Bytes()
	if err != nil {
		t.Fatal(err)
	}
	pair := wire.Pair{Code: "000000", Name: "Anna", Key: base64url(point)}
	for {
		p.send(wire.TypePair, pair)
		if f := p.want(wire.TypeError); f.code() == "wrong_code" {
			break
		} else if f.code() != "guard_unavailable" { // still connecting
			t.Fatalf("got %s", f.Data)
		}
	}
	pair.Code = "482913"
	for _, accepted := range []bool{false, true} {
		id := p.send(wire.TypePair, pair)
		p.send(wire.TypePair, pair)
		if f := p.wantError("pairing_busy"); f.Re == id {
			t.Error("the first was refused instead of the second")
		}
		b.guard.accept <- accepted
		if !accepted {
			p.wantError("pairing_refused")
			continue
		}
		got := decode[wire.Paired](t, p.want(wire.TypePaired))
		if diff := cmp.Diff(wire.Paired{Slot: 1, Name: "Anna", Role: "adult"}, got); diff != "" {
			t.Errorf("paired (-want +got)\n%s", diff)
		}
	}
	p.slot = 1
	p.send(wire.TypeHello, map[string]any{"slot": 1, "sig": p.sign(wire.AuthBytes(1, p.nonce))})
	p.want(wire.TypeWelcome)
}

// D9, cases "DNS rebinding": a foreign name is refused before the upgrade.
func TestForeignNamesAreRefused(t *testing.T) {
	b := start(t, say(), func(o *gateway.Options) { o.Config.Gateway.Hosts = []string{"assent.local", "box.lan:9000"} })
	_, port, _ := net.SplitHostPort(b.addr)
	for name, c := range map[string]struct {
		host   string
		origin []string
		want   int
	}{
		"address":              {b.addr, []string{"http://" + b.addr}, 101},
		"configured":           {"assent.local:" + port, []string{"http://assent.local:" + port}, 101},
		"configured with port": {"box.lan:9000", []string{"http://box.lan:9000"}, 101},
		"loopback by name":     {"localhost:" + port, []string{"http://localhost:" + port}, 101},
		"no origin":            {b.addr, nil, 101},
		"rebinding":            {"evil.example", []string{"http://evil.example"}, 403},
		"rebinding with port":  {"evil.example:" + port, []string{"http://evil.example:" + port}, 403},
		"foreign origin":       {b.addr, []string{"http://evil.example"}, 403},
		"null origin":          {b.addr, []string{"null"}, 403},
		"other scheme":         {b.addr, []string{"https://" + b.addr}, 403},
		"other port":           {b.addr, []string{"http://127.0.0.1:1"}, 403},
		"two origins":          {b.addr, []string{"http://" + b.addr, "http://evil.example"}, 403},
		"another address":      {"127.0.0.2:" + port, []string{"http://127.0.0.2:" + port}, 403},
		"suffix":               {"assent.local.evil.example", nil, 403},
		"other port of name":   {"box.lan:9001", nil, 403},
	} {
		t.Run(name, func(t *testing.T) {
			for _, path := range []string{"/ws", "/", "/healthz"} {
				req, err := http.NewRequest("GET", "http://"+b.addr+path, nil)
				if err != nil {
					t.Fatal(err)
				}
				req.Host = c.host
				req.Header["Origin"] = c.origin
				want := c.want
				if path == "/ws" {
					req.Header.Set("Connection", "Upgrade")
					req.Header.Set("Upgrade", "websocket")
					req.Header.Set("Sec-WebSocket-Version", "13")
					req.Header.Set("Sec-WebSocket-Key", "AAAAAAAAAAAAAAAAAAAAAA==")
				} else if want == 101 {
					want = 200
				}
				resp, err := http.DefaultTransport.RoundTrip(req)
				if err != nil {
					t.Fatal(err)
				}
				resp.Body.Close()
				if resp.StatusCode != want {
					t.Errorf("%s: %d, want %d", path, resp.StatusCode, want)
				}
			}
		})
	}
}
