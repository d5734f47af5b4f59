package story

import (
	"encoding/hex"
	"time"

	"assent.home.arpa/appliance/audit"
	"assent.home.arpa/appliance/clock"
)

func whenOf(r audit.Record) When {
	w := When{Since: int64(r.Boot), Boot: hex.EncodeToString(r.BootID[:]), Unix: r.Wall, Clock: ClockUnset}
	switch r.Clock {
	case clock.Synced:
		w.Clock = ClockSynced
	case clock.RTC:
		w.Clock = ClockKept
	}
	w.say()
	return w
}

// estimate counts back from a later time of the same run.
func (w *When) estimate(later audit.Record) {
	ahead := (int64(later.Boot) - w.Since) / int64(time.Millisecond)
	w.Unix, w.Clock = later.Wall-ahead, ClockEstimated
	w.say()
}

func (w *When) say() {
	switch w.Clock {
	case ClockUnset:
		w.Text = "start+" + time.Duration(w.Since).Round(time.Second).String()
	case ClockEstimated:
		w.Text = "about " + instant(w.Unix)
	default:
		w.Text = instant(w.Unix)
	}
}

func instant(ms int64) string { return time.UnixMilli(ms).UTC().Format("2006-01-02 15:04:05") + " UTC" }

// clockwork dates what happened before the wall clock was set, once it is.
type clockwork struct {
	run   audit.ID
	known bool    // the wall clock was seen in this run
	unset []*When // of this run, waiting
}

// maxUnset bounds how many times wait for a date; those beyond stay without one.
const maxUnset = 1 << 14

// see takes note of a record. It reports whether times that had no date have one now, or never will.
func (c *clockwork) see(r audit.Record) (settled bool) {
	if r.BootID != c.run {
		c.run, c.known, c.unset, settled = r.BootID, false, nil, true
	}
	if c.known || r.Wall == 0 {
		return settled
	}
	c.known = true
	for _, w := range c.unset {
		w.estimate(r)
	}
	c.unset = nil
	return true
}

// date has w estimated later if it needs to be.
func (c *clockwork) date(w *When) {
	if w.Clock == ClockUnset && len(c.unset) < maxUnset {
		c.unset = append(c.unset, w)
	}
}

// waits reports whether w may still get a date.
func (c *clockwork) waits(w *When) bool {
	return w.Clock == ClockUnset && !c.known && w.Boot == hex.EncodeToString(c.run[:])
}
