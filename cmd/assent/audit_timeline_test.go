package main

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"assent.home.arpa/appliance/audit"
	"assent.home.arpa/appliance/audit/story"
)

// Events are told when they end and read in the order of the record, however long one took and whatever the clock said.
func TestTimelineIsInTheOrderOfTheRecord(t *testing.T) {
	t.Setenv("TZ", "UTC")
	at := func(first audit.Seq, minute int64, clock story.Clock, headline string) story.Story {
		return story.Story{
			Kind: story.KindAdmin, ID: number(first), First: first, Last: first, Seal: 99, Headline: headline,
			When: story.When{Unix: minute * 60_000, Clock: clock, Text: "start+1s"},
		}
	}
	var lines timeline
	for _, s := range []story.Story{
		at(10, 60, story.ClockSynced, "quick"),
		at(2, 50, story.ClockSynced, "slow"),
		at(12, 0, story.ClockUnset, "undated"),
		at(14, 30, story.ClockSynced, "after somebody set the clock"),
		at(16, 31, story.ClockEstimated, "later"),
	} {
		lines.add(s)
	}
	var out strings.Builder
	lines.print(&out)
	var got []string
	for l := range strings.Lines(out.String()) {
		got = append(got, strings.TrimSpace(l[min(len(l), 45):]))
	}
	want := []string{
		"slow  [#2]", "quick  [#10]", "undated  [#12]", "the box's clock went back by 30m0s here", "after somebody set the clock  [#14]", "later  [#16]",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}
