package board_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"assent.home.arpa/device"
	"assent.home.arpa/device/board"
)

func TestDebounce(t *testing.T) {
	const a, d = device.Approve, device.Deny
	const press, release = device.Press, device.Release
	for _, tt := range []struct {
		name   string
		raw    []device.Event
		settle []time.Duration
		want   []device.Event
	}{
		{"press, not yet settled", []device.Event{ev(a, press, at, 1)}, []time.Duration{at + 10*ms - 1}, nil},
		{"press", []device.Event{ev(a, press, at, 1)}, []time.Duration{at + 10*ms}, []device.Event{ev(a, press, at, 1)}},
		{
			"tap",
			[]device.Event{ev(a, press, at, 1), ev(a, release, at+30*ms, 2)},
			[]time.Duration{at + 40*ms},
			[]device.Event{ev(a, press, at, 1), ev(a, release, at+30*ms, 2)},
		},
		{
			"bounce that ends up",
			[]device.Event{ev(a, press, at, 1), ev(a, release, at+3*ms, 2), ev(a, press, at+7*ms, 3), ev(a, release, at+12*ms, 4)},
			[]time.Duration{at + time.Second},
			nil,
		},
		{
			"bounce that ends down",
			[]device.Event{ev(a, press, at, 1), ev(a, release, at+3*ms, 2), ev(a, press, at+7*ms, 3)},
			[]time.Duration{at + time.Second},
			[]device.Event{ev(a, press, at+7*ms, 1)},
		},
		{
			"read late, settled by the next edge",
			[]device.Event{ev(a, press, at, 1), ev(a, release, at+10*ms, 2)},
			nil,
			[]device.Event{ev(a, press, at, 1)},
		},
		{
			"settled by the other button's edge",
			[]device.Event{ev(a, press, at, 1), ev(d, press, at+10*ms, 1)},
			nil,
			[]device.Event{ev(a, press, at, 1)},
		},
		{
			"both at once, in order of time",
			[]device.Event{ev(d, press, at, 1), ev(a, press, at+1, 1)},
			[]time.Duration{at + time.Second},
			[]device.Event{ev(d, press, at, 1), ev(a, press, at+1, 1)},
		},
		{
			"held since before the line was opened",
			[]device.Event{ev(a, release, at, 1)},
			[]time.Duration{at + time.Second},
			[]device.Event{ev(a, release, at, 1)},
		},
		{
			"edges lost while down: open in between, with a gap",
			[]device.Event{ev(a, press, at, 1), ev(a, press, at+100*ms, 3)},
			[]time.Duration{at + time.Second},
			[]device.Event{ev(a, press, at, 1), ev(a, release, at+100*ms, 3), ev(a, press, at+100*ms, 4)},
		},
		{
			"edges lost while up: delivered though the level seems the same, with a gap",
			[]device.Event{ev(a, press, at, 1), ev(a, release, at+50*ms, 2), ev(a, release, at+100*ms, 4)},
			[]time.Duration{at + time.Second},
			[]device.Event{ev(a, press, at, 1), ev(a, release, at+50*ms, 2), ev(a, release, at+100*ms, 4)},
		},
		{
			"edges lost in a bounce",
			[]device.Event{ev(a, press, at, 1), ev(a, release, at+100*ms, 5), ev(a, press, at+103*ms, 6)},
			[]time.Duration{at + time.Second},
			[]device.Event{ev(a, press, at, 1), ev(a, release, at+100*ms, 3), ev(a, press, at+103*ms, 4)},
		},
		{
			"dip that ends down",
			[]device.Event{ev(a, press, at, 1), ev(a, release, at+100*ms, 2), ev(a, press, at+109*ms, 3)},
			[]time.Duration{at + time.Second},
			[]device.Event{ev(a, press, at, 1)},
		},
		{
			"down, and then it does not come to rest",
			[]device.Event{
				ev(a, press, at, 1),
				ev(a, release, at+100*ms, 2), ev(a, press, at+109*ms, 3), ev(a, release, at+118*ms, 4), ev(a, press, at+127*ms, 5),
				ev(a, release, at+136*ms, 6), ev(a, press, at+145*ms, 7),
			},
			[]time.Duration{at + time.Second},
			[]device.Event{ev(a, press, at, 1), ev(a, release, at+136*ms, 2), ev(a, press, at+145*ms, 3)},
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if diff := cmp.Diff(tt.want, board.Debounce(tt.raw, tt.settle...)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// TestDebounceProperties feeds one line any series of edges that alternate, none of them lost: what comes out alternates, is
// counted without gaps, and ends on the level that the line ended on. After a press, and after a release of a contact that came
// to rest, the line was still; a contact that moved for more than 30 ms is released by then.
func TestDebounceProperties(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var raw []device.Event
		still, moving := map[time.Duration]bool{}, map[time.Duration]time.Duration{}
		now := at
		began := at // of the movement that goes on
		for i := range rapid.IntRange(1, 50).Draw(t, "edges") {
			edge := device.Press
			if i%2 == 1 {
				edge = device.Release
			}
			gap := time.Duration(rapid.IntRange(0, 20).Draw(t, "gap")) * ms
			if gap >= 10*ms {
				still[now] = true
				began = now + gap
			}
			now += gap
			moving[now] = now - began
			raw = append(raw, ev(device.Approve, edge, now, uint32(i+1)))
		}
		still[now] = true
		got := board.Debounce(raw, now+10*ms)
		level := device.Release
		for i, out := range got {
			restless := out.Edge == device.Release && moving[out.Mono] > 30*ms
			if out.Seq != uint32(i+1) || out.Edge == level || !still[out.Mono] && !restless {
				t.Fatalf("event %d is %+v after %v", i, out, level)
			}
			level = out.Edge
		}
		if last := raw[len(raw)-1].Edge; last != level {
			t.Fatalf("the line ends on %v, the events on %v", last, level)
		}
	})
}
