// Package clock is the box's one clock, injected wherever time decides something.
//
// Three readings, each for one purpose:
//
//   - Boot (CLOCK_BOOTTIME) decides expiry. It runs through suspend and nobody can set it.
//   - Mono (CLOCK_MONOTONIC) orders a press against a draw. It is the clock that GPIO events carry. It stops in suspend,
//     so a change of Boot − Mono means that the box slept.
//   - Wall is for people and for TLS. It may be unset, and it may jump; nothing that allows anything looks at it.
package clock

import "time"

// State says what the wall clock is worth. The numbers are those of key 5 of an audit record.
type State uint8

// The states. Do not renumber.
const (
	Unset  State = 0 // never set since the box was made, or reset by a dead battery: before 2026
	RTC    State = 1 // kept by the hardware or carried over a restart, unconfirmed
	Synced State = 2 // confirmed by a time source in this boot
)

func (s State) String() string {
	switch s {
	case RTC:
		return "rtc"
	case Synced:
		return "synced"
	}
	return "unset"
}

// Clock reads time and waits for it.
type Clock interface {
	Boot() time.Duration
	Mono() time.Duration
	Wall() (time.Time, State)
	// Until returns a channel that is closed once Boot has reached t. Stop, which may be called more than once, ends the
	// wait early and frees what it holds; the channel is then never closed.
	Until(t time.Duration) (reached <-chan struct{}, stop func())
}
