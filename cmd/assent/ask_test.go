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
			all = append(all, wire.Outcome{Status: s.String(), Code: "frozen"})
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
		{"frozen", of(capabilities.Rejected), exitBad},
		{"expired", of(capabilities.Expired), exitBad},
		{"nobody looked", of(capabilities.ExpiredUnseen), exitBad},
		{"taken back", of(capabilities.Withdrawn), exitBad},
		{"failed", of(capabilities.Failed), exitBad},
		{"nobody knows", of(capabilities.Unknown), exitUnclear},
		{"a status of a newer box", []wire.Outcome{{Status: "postponed"}}, exitUnclear},
	} {
		t.Run(tc.name, func(t *testing.T) {
			err, got := judge(tc.outcomes), 0
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
