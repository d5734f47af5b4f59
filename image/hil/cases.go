package main

import (
	"fmt"

	"assent.home.arpa/confirm"
)

// outcome is how the first request of a case must end, and how many receipts it may yield.
type outcome struct {
	outcome  string
	receipts int
}

func (o outcome) String() string {
	if o.receipts == 1 {
		return o.outcome + ", 1 receipt"
	}
	return fmt.Sprintf("%s, %d receipts", o.outcome, o.receipts)
}

// stated is what must come of each case. After one of the cable nothing may be on it. A request that ends as withdrawn was taken back by the test: nothing else ended it.
func stated() map[string]outcome {
	off := outcome{"off the cable", 0}
	s := func(o confirm.Outcome, receipts int) outcome { return outcome{o.String(), receipts} }
	return map[string]outcome{
		"read and hold":                   s(confirm.Approved, 1),
		"read and hold on an sh1106":      s(confirm.Approved, 1),
		"press 300 ms before the draw":    s(confirm.Withdrawn, 0),
		"held since boot":                 s(confirm.Withdrawn, 0),
		"held through the draw":           s(confirm.Withdrawn, 0),
		"bounce with the next card ready": s(confirm.Denied, 0),
		"bounce opens and does not turn":  s(confirm.Withdrawn, 0),
		"a line that rings":               s(confirm.Withdrawn, 0),
		"stuck for ever":                  s(confirm.DisplayLost, 0),
		"hold before the page was read":   s(confirm.Approved, 1),
		"second proposal":                 s(confirm.Approved, 1),
		"deny":                            s(confirm.Denied, 0),
		"panic":                           s(confirm.Panicked, 0),

		"cable: read, and ejected":           off,
		"cable: taken back while it is read": off,
		"cable: the guard goes":              off,
		"cable: the exporter is killed":      off,

		"button lines unplugged":           s(confirm.DisplayLost, 0),
		"display stops acknowledging":      s(confirm.DisplayLost, 0),
		"display loses its supply":         s(confirm.DisplayLost, 0),
		"display bus hangs":                s(confirm.DisplayLost, 0),
		"display bus unplugged":            s(confirm.DisplayLost, 0),
		"another chip with the same names": s(confirm.Approved, 1),

		"hold that spans the deadline":     s(confirm.Expired, 0),
		"press at expiry":                  s(confirm.Expired, 0),
		"wall clock steps":                 s(confirm.Approved, 1),
		"the box sleeps during the hold":   s(confirm.Approved, 1),
		"the box sleeps past the deadline": s(confirm.Expired, 0),
	}
}

// limits are what the figures may be at most. Zero: there is none.
func limits() map[string]float64 {
	return map[string]float64{
		"panel/edge_vs_bare":           1.5,
		"panel/edge_ms":                0,
		"panel/settled_ms":             0,
		"panel/deadline_to_receipt_ms": 0,
		"panel/page_bytes":             1.1,
		"panel/line_bytes":             0,
		"panel/page_ms":                0,
		"panel/idle_cpu":               0,
	}
}
