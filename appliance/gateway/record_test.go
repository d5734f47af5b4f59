package gateway_test

import (
	"bytes"
	"context"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"assent.home.arpa/appliance/conversation"
	"assent.home.arpa/appliance/wire"
)

// A phone that stays connected can ask how the record is now; who is not known cannot.
func TestRecordIsToldWhenAsked(t *testing.T) {
	b := start(t, say("Yes."))
	b.guard.seal, b.guard.head, b.guard.root = []byte{0xd2, 0x84}, 820, bytes.Repeat([]byte{0xab}, 32)
	p := newHandset(t, b, 1)
	stranger := newHandset(t, b, 2).dial()
	stranger.raw(wire.Upstream{V: wire.Version, ID: "s1", Type: wire.TypeRecord})
	stranger.wantError("hello_first")

	if w := p.hello(); w.Root != strings.Repeat("ab", 32) {
		t.Errorf("welcome %+v", w)
	}
	p.want(wire.TypeSnapshot)
	b.guard.mu.Lock()
	b.guard.head, b.guard.seal = 830, []byte{0xd2, 0x85}
	b.guard.mu.Unlock()
	p.raw(wire.Upstream{V: wire.Version, ID: "r1", Type: wire.TypeRecord})
	f := p.want(wire.TypeRecord)
	want := wire.Record{HeadCode: "3F7QK2XZ", Seal: "0oU", HeadSeq: 830, Root: strings.Repeat("ab", 32)}
	if d := cmp.Diff(want, decode[wire.Record](t, f)); d != "" || f.Re != "r1" {
		t.Errorf("answer to %q (-want +got)\n%s", f.Re, d)
	}
	p.send(wire.TypeRecord, struct{}{})
	p.wantError("bad_frame")
}

// Once somebody at the box has said yes there is nothing left that the phone could take back.
func TestDecidedCanNoLongerBeTakenBack(t *testing.T) {
	b := start(t, func(ctx context.Context, q conversation.Turn, emit conversation.Emit) error {
		card := wire.Pending{Conversation: q.Conversation.String(), Turn: "t1", Invocation: invocation}
		emit(wire.TypeTurn, wire.Turn{Conversation: card.Conversation, Turn: "t1", Text: q.Text})
		emit(wire.TypePending, card)
		card.Decided = true
		emit(wire.TypePending, card)
		<-ctx.Done()
		return nil
	})
	p := newHandset(t, b, 1)
	p.connect()
	p.ask(talkA, "tea")
	p.want(wire.TypeTurn)
	if c := decode[wire.Pending](t, p.want(wire.TypePending)); c.Decided {
		t.Errorf("it waits as %+v", c)
	}
	if c := decode[wire.Pending](t, p.want(wire.TypePending)); !c.Decided {
		t.Errorf("it goes on as %+v", c)
	}
	p.send(wire.TypeDeny, wire.Deny{Invocation: invocation})
	p.wantError("not_pending")
}
