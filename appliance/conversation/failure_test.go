package conversation_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"assent.home.arpa/appliance/conversation"
	"assent.home.arpa/appliance/conversation/conversationtest"
	"assent.home.arpa/appliance/ipc"
	"assent.home.arpa/capabilities"
	"assent.home.arpa/inference"
)

// A33: when the model fails in the middle of a turn, what was obtained is there for the next one, word for word.
func TestModelFailsMidTurn(t *testing.T) {
	for name, c := range map[string]struct {
		reply conversationtest.Reply
		code  capabilities.Code
		prose string
	}{
		"killed before it spoke":   {conversationtest.Reply{Err: inference.ErrInterrupted}, capabilities.CodeInterrupted, ""},
		"killed in the middle":     {conversationtest.Reply{Text: "The box is ", Die: true}, capabilities.CodeInterrupted, "The box is "},
		"not there":                {conversationtest.Reply{Err: inference.ErrUnavailable}, "model_unavailable", ""},
		"no model at all":          {conversationtest.Reply{Err: fmt.Errorf("%w: %w", inference.ErrUnavailable, inference.ErrAbsent)}, "no_model", ""},
		"an error of its own":      {conversationtest.Reply{Err: errors.New("llama: status 500")}, "model_unavailable", ""},
		"says nothing for ever":    {conversationtest.Reply{Hang: true}, capabilities.CodeTimeout, ""},
		"says nothing any more":    {conversationtest.Reply{Text: "The box is ", Hang: true}, capabilities.CodeTimeout, "The box is "},
		"too slow for the turn":    {conversationtest.Reply{Text: "The box is fine, I think.", Pause: 50 * time.Second}, capabilities.CodeTimeout, "The box is fine"},
		"a prompt that it refuses": {conversationtest.Reply{Err: &inference.OverflowError{Prompt: 9, Context: 8}}, "context_full", ""},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := newBox(t, both(), conversationtest.Reply{Text: health(1)}, c.reply).
					with(func(o *conversation.Options) { o.Turn.Timeout = 3 * time.Minute })
				phone := b.ask("How is the box?")
				if end := theEnd(t, phone); end.Reason != "failed" || end.Code != c.code || end.Message == "" {
					t.Errorf("end %+v", end)
				}
				if diff := cmp.Diff([]string{"3 " + string(c.code)}, claimCodes(b.guard.Claims())); diff != "" {
					t.Errorf("claims (-want +got):\n%s", diff)
				}
				if phone.Prose() != c.prose {
					t.Errorf("prose %q", phone.Prose())
				}
				next := b.ask("And now?")
				requests := b.model.Requests()
				if diff := cmp.Diff(phone.OutcomeJSON(), told(requests[len(requests)-1])); diff != "" || len(phone.Outcomes()) != 1 {
					t.Errorf("the next turn was given other results (-had +given):\n%s", diff)
				}
				if end := theEnd(t, next); end.Reason != "complete" {
					t.Errorf("the next turn ended with %+v", end)
				}
			})
		})
	}
}

// A call in a step that the engine did not finish is a parse failure and never a shorter call.
func TestEngineKilledInACall(t *testing.T) {
	b := newBox(t, both(), conversationtest.Reply{Text: health(1) + `<tool_call>{"name":"system_health__v1","argu`, Die: true})
	phone := b.ask("?")
	cut := "parse rejected truncated_call"
	if diff := cmp.Diff([]string{cut, cut}, shorts(phone.Outcomes())); diff != "" {
		t.Errorf("outcomes (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"1 truncated_call", "1 truncated_call", "3 interrupted"}, claimCodes(b.guard.Claims())); diff != "" {
		t.Errorf("claims (-want +got):\n%s", diff)
	}
	if len(b.guard.Proposals()) != 0 {
		t.Errorf("proposals %v", b.guard.Proposals())
	}
}

func TestCancelWhileTheModelSpeaks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBox(t, both(), conversationtest.Reply{Text: "Once upon " + `<tool_call>{"name":"sys`, Hang: true})
		phone, end := b.begin(t.Context(), 1, talk(1), "?")
		synctest.Wait()
		if b.Cancel(2, talk(1)) || b.Cancel(1, talk(2)) {
			t.Fatal("somebody else's turn was cancelled")
		}
		if !b.Cancel(1, talk(1)) {
			t.Fatal("there was nothing to cancel")
		}
		end()
		if e := theEnd(t, phone); e.Reason != "cancelled" {
			t.Errorf("end %+v", e)
		}
		if diff := cmp.Diff([]string{"1 truncated_call"}, claimCodes(b.guard.Claims())); diff != "" {
			t.Errorf("claims (-want +got):\n%s", diff)
		}
		if phone.Prose() != "Once upon " {
			t.Errorf("prose %q", phone.Prose())
		}
		if b.Cancel(1, talk(1)) {
			t.Error("a turn that is over was cancelled")
		}
		if e := theEnd(t, b.ask("again")); e.Reason != "complete" {
			t.Errorf("the next turn ended with %+v", e)
		}
	})
}

// A cancelled turn takes back what waits at the box, believes the guard's word for how that ended, and submits nothing
// more; what the model had returned besides is not dropped silently.
func TestCancelWhilePending(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBox(t, both(), say(call("web_search__v1", `{"query":"tea"}`)+health(1))...)
		phone, end := b.begin(t.Context(), 1, talk(1), "?")
		synctest.Wait()
		b.Cancel(1, talk(1))
		end()
		want := []string{"confirm withdrawn", "budget withdrawn interrupted"}
		if diff := cmp.Diff(want, shorts(phone.Outcomes())); diff != "" {
			t.Errorf("outcomes (-want +got):\n%s", diff)
		}
		if diff := cmp.Diff([]string{"2 interrupted"}, claimCodes(b.guard.Claims())); diff != "" {
			t.Errorf("claims (-want +got):\n%s", diff)
		}
		if len(b.guard.Executed()) != 0 || len(b.model.Requests()) != 1 || theEnd(t, phone).Reason != "cancelled" {
			t.Errorf("executed %v, %d model steps, end %+v", b.guard.Executed(), len(b.model.Requests()), theEnd(t, phone))
		}
	})
}

// The turn's time runs while a request waits at the box, too.
func TestTurnTimesOutWhilePending(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBox(t, both(), say(call("web_search__v1", `{"query":"tea"}`))...)
		started := time.Now()
		phone := b.ask("?")
		if took := time.Since(started); took != b.opts.Turn.Timeout {
			t.Errorf("it took %v", took)
		}
		if diff := cmp.Diff([]string{"confirm withdrawn"}, shorts(phone.Outcomes())); diff != "" {
			t.Errorf("outcomes (-want +got):\n%s", diff)
		}
		if e := theEnd(t, phone); e.Reason != "failed" || e.Code != capabilities.CodeTimeout || len(b.guard.Claims()) != 0 {
			t.Errorf("end %+v, claims %v", e, b.guard.Claims())
		}
	})
}

// A call that is being executed when its turn is cancelled is waited for, within a bound: its outcome is the guard's.
func TestCancelWhileExecuting(t *testing.T) {
	for name, c := range map[string]struct {
		takes time.Duration
		want  string
	}{
		"it ends soon": {10 * time.Second, done},
		"it does not":  {time.Hour, "unknown interrupted"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				g := &slowGuard{Guard: conversationtest.NewGuard(local()), takes: c.takes}
				b := newBox(t, nil, say(health(1))...).with(func(o *conversation.Options) { o.Guard = g })
				ctx, cancel := context.WithCancel(t.Context())
				phone := &conversationtest.Phone{}
				time.AfterFunc(time.Second, cancel)
				if err := b.Ask(ctx, conversation.Turn{Slot: 1, Conversation: talk(1), Ask: g.Open(), Text: "?"}, phone.Emit); err != nil {
					t.Fatal(err)
				}
				if diff := cmp.Diff([]string{c.want}, shorts(phone.Outcomes())); diff != "" {
					t.Errorf("outcomes (-want +got):\n%s", diff)
				}
				if e := theEnd(t, phone); e.Reason != "cancelled" {
					t.Errorf("end %+v", e)
				}
			})
		})
	}
}

// slowGuard takes its time to execute, as a slow server makes it.
type slowGuard struct {
	*conversationtest.Guard
	takes time.Duration
}

func (g *slowGuard) Propose(ctx context.Context, p ipc.Propose, pending func(*ipc.Pending)) (*ipc.Outcome, error) {
	select {
	case <-time.After(g.takes):
		return g.Guard.Propose(ctx, p, pending)
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// EndAsk does not stop what is being executed.
func (g *slowGuard) EndAsk(ipc.ID) error { return nil }

// A guard that is lost in the middle of a call may have executed it: that is unknown, and is not tried again. One that is
// away when a call comes has not.
func TestGuardLost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBox(t, both(), say(call("web_search__v1", `{"query":"tea"}`)+health(1), "Oh.")...)
		phone, end := b.begin(t.Context(), 1, talk(1), "?")
		synctest.Wait()
		b.guard.Lose()
		end()
		if diff := cmp.Diff([]string{"unknown interrupted", "rejected guard_unavailable"}, shorts(phone.Outcomes())); diff != "" {
			t.Errorf("outcomes (-want +got):\n%s", diff)
		}
		if o := phone.Outcomes()[0]; o.Capability != "web.search" || o.Message == "" || o.Invocation == "" || o.Data != nil {
			t.Errorf("the lost call is told as %+v", o)
		}
		if n := len(b.guard.Proposals()); n != 1 {
			t.Errorf("%d proposals", n)
		}
		if diff := cmp.Diff(phone.OutcomeJSON(), told(b.model.Requests()[1])); diff != "" {
			t.Errorf("the model was told otherwise (-phone +model):\n%s", diff)
		}
		if events := b.runs.Events(); len(events) != 1 || events[0].Status != "unknown" {
			t.Errorf("events %+v", events)
		}
		if e := theEnd(t, b.ask("?")); e.Reason != "failed" || e.Code != "guard_unavailable" {
			t.Errorf("without a guard the next turn ended with %+v", e)
		}
	})
}

// A guard that refuses a whole turn does so in its own words.
func TestGuardRefuses(t *testing.T) {
	g := refusingGuard{conversationtest.NewGuard()}
	b := newBox(t, nil).with(func(o *conversation.Options) { o.Guard = g })
	phone := b.ask("?")
	if e := theEnd(t, phone); e.Reason != "failed" || e.Code != "not_paired" || e.Message != "pair it again" || len(b.model.Requests()) != 0 {
		t.Errorf("end %+v after %d model steps", e, len(b.model.Requests()))
	}
}

type refusingGuard struct{ *conversationtest.Guard }

func (refusingGuard) Catalog(context.Context, uint32, ipc.ID) (*ipc.Catalog, error) {
	return nil, &ipc.Error{Code: "not_paired", Message: "pair it again"}
}

// The log is for operators: it says how turns end and holds nothing that was said, proposed or returned.
func TestLogHoldsNothingThatWasSaid(t *testing.T) {
	var log bytes.Buffer
	k := local()
	k.Run = conversationtest.Answer(`["secret-result"]`)
	b := newBox(t, []conversationtest.Capability{k},
		conversationtest.Reply{Text: "secret-prose" + call("system_health__v1", `{"n":"secret-argument"}`) + "<tool_call>secret-call</tool_call>"},
		conversationtest.Reply{Text: "secret-half", Die: true},
	).with(func(o *conversation.Options) {
		o.Log = slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug}))
	})
	b.ask("secret-question")
	b.runs.Fill()
	b.opts.Store.Close()
	b.ask("secret-question")
	if n := strings.Count(log.String(), "turn ended"); n != 2 || !strings.Contains(log.String(), "could not be stored") {
		t.Errorf("%d turns and their faults are logged:\n%s", n, log.String())
	}
	if strings.Contains(log.String(), "secret") {
		t.Errorf("the log repeats what was said:\n%s", log.String())
	}
}
