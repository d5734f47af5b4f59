package main

import (
	"errors"
	"testing"

	"assent.home.arpa/appliance/wire"
	"assent.home.arpa/capabilities"
)

func TestAScriptCanTellHowAQuestionEnded(t *testing.T) {
	of := func(statuses ...capabilities.Status) (all []wire.Outcome) {
		for _, s := range statuses {
			all = append(all, wire.Outcome{Status: s.String()})
		}
		return all
	}
	for _, tc := range []struct {
		name     string
		outcomes []wire.Outcome
		want     int
	}{
		{"nothing was to be done", nil, 0},
		{"done", of(capabilities.Done), 0},
		{"refused, and then better", of(capabilities.Rejected, capabilities.Done), 0},
		{"denied", of(capabilities.Done, capabilities.Denied), exitBad},
		{"refused", of(capabilities.Rejected), exitBad},
		{"frozen", []wire.Outcome{{Status: capabilities.Rejected.String(), Code: capabilities.CodeFrozen}}, exitBad},
		{"nobody knows, of a frozen box", []wire.Outcome{{Status: capabilities.Unknown.String(), Code: capabilities.CodeFrozen}}, exitUnclear},
		{"expired", of(capabilities.Expired), exitBad},
		{"nobody looked", of(capabilities.ExpiredUnseen), exitBad},
		{"taken back", of(capabilities.Withdrawn), exitBad},
		{"failed", of(capabilities.Failed), exitBad},
		{"nobody knows", of(capabilities.Unknown), exitUnclear},
		{"a status of a newer box", []wire.Outcome{{Status: "postponed"}}, exitUnclear},
	} {
		t.Run(tc.name, func(t *testing.T) {
			err, got := (&app{}).judge(tc.outcomes), 0
			var exit *exitError
			if errors.As(err, &exit) {
				got = exit.status
			}
			if got != tc.want {
				t.Errorf("status %d (%v), want %d", got, err, tc.want)
			}
		})
	}
}

// Each thing is said once, in the order in which it happened, and not in the words that are for the model.
func TestAskSaysEachThingOnce(t *testing.T) {
	say := func(text string) wire.Downstream {
		return wire.Downstream{Type: wire.TypeText, Data: wire.Text{Text: text}}
	}
	result := func(o wire.Outcome) wire.Downstream {
		return wire.Downstream{Type: wire.TypeResult, Data: wire.Result{Outcome: o}}
	}
	pending := wire.Downstream{Type: wire.TypePending, Data: wire.Pending{Title: "Search Wikipedia for", Text: "tea", Destination: "wikipedia.org"}}
	end := wire.Downstream{Type: wire.TypeTurnEnd, Data: wire.TurnEnd{Reason: "complete"}}
	for _, tc := range []struct {
		name      string
		replies   []wire.Downstream
		status    int
		out, errs string
	}{
		{
			"denied",
			[]wire.Downstream{say("I will "), say("search."), pending, result(wire.Outcome{
				Capability: "web.search", Status: "denied", Stage: "confirm", Message: "denied; do not ask for it again in this turn",
			}), say("It was refused.\n"), end},
			exitBad,
			"I will search.\n── web.search: somebody at the box said no\nIt was refused.\n",
			"look at the box: Search Wikipedia for \"tea\" → wikipedia.org\n",
		},
		{
			"refused, with a wait",
			[]wire.Downstream{result(wire.Outcome{Capability: "web.search", Status: "rejected", Code: "cool_down", Message: "wait", RetryIn: 30}), say("I must wait."), end},
			exitBad,
			"── web.search: the box refused it: wait; ask again in 30 seconds\nI must wait.\n", "",
		},
		{
			"frozen",
			[]wire.Downstream{result(wire.Outcome{Capability: "web.search", Status: "rejected", Code: "frozen", Message: "the box is frozen; it can only be released with its buttons"}), end},
			exitBad,
			"── web.search: the box is frozen; to release it hold both of its buttons for 3 seconds and do what its screen says\n", "",
		},
		{
			"cut off",
			[]wire.Downstream{say("On and on"), {Type: wire.TypeTurnEnd, Data: wire.TurnEnd{Reason: "length"}}},
			0,
			"On and on\n", "assent: the answer was cut off: it reached the longest that the box allows\n",
		},
		{
			"the model stopped",
			[]wire.Downstream{say("On"), {Type: wire.TypeTurnEnd, Data: wire.TurnEnd{Reason: "failed", Message: "the model stopped; ask again"}}},
			exitBad,
			"On\n", "assent: the model stopped; ask again\n",
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			hostile(t, tc.replies...)
			status, out, errs := assent(t, "ask", "anything?")
			if status != tc.status || out != tc.out || errs != tc.errs {
				t.Errorf("exit %d, want %d\nout  %q\nwant %q\nerrs %q\nwant %q", status, tc.status, out, tc.out, errs, tc.errs)
			}
		})
	}
}
