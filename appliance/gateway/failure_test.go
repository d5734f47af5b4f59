package gateway_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/gorilla/websocket"

	"assent.home.arpa/appliance/conversation"
	"assent.home.arpa/appliance/gateway"
	"assent.home.arpa/appliance/ipc"
	"assent.home.arpa/appliance/wire"
	"assent.home.arpa/inference"
)

func TestModelIsAway(t *testing.T) {
	for name, c := range map[string]struct {
		err  error
		code string
	}{
		"loading":  {inference.ErrUnavailable, "model_unavailable"},
		"none":     {fmt.Errorf("%w: %w", inference.ErrUnavailable, inference.ErrAbsent), "no_model"},
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
