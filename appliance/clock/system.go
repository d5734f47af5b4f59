package clock

import (
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// resumeCheck bounds how late Until notices its time after a suspend: Go's timers run on CLOCK_MONOTONIC and stand still
// while the box sleeps.
const resumeCheck = 250 * time.Millisecond

// earliest is a date before which the wall clock cannot be right, since this program did not exist.
var earliest = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

// System is the kernel's clock.
func System() Clock { return system{} }

type system struct{}

func read(id int32) time.Duration {
	var ts unix.Timespec
	if err := unix.ClockGettime(id, &ts); err != nil {
		panic("clock: internal error: clock_gettime: " + err.Error())
	}
	return time.Duration(ts.Nano())
}

func (system) Boot() time.Duration { return read(unix.CLOCK_BOOTTIME) }
func (system) Mono() time.Duration { return read(unix.CLOCK_MONOTONIC) }

func (system) Wall() (time.Time, State) {
	now := time.Now()
	if now.Before(earliest) {
		return now, Unset
	}
	var tx unix.Timex
	// STA_UNSYNC (adjtimex(2)) is cleared by whatever disciplines the kernel clock.
	if state, err := unix.Adjtimex(&tx); err != nil || state == unix.TIME_ERROR || tx.Status&unix.STA_UNSYNC != 0 {
		return now, RTC
	}
	return now, Synced
}

func (s system) Until(t time.Duration) (<-chan struct{}, func()) {
	reached, quit := make(chan struct{}), make(chan struct{})
	go func() {
		timer := time.NewTimer(0)
		defer timer.Stop()
		for {
			select {
			case <-quit:
				return
			case <-timer.C:
				left := t - s.Boot()
				if left <= 0 {
					close(reached)
					return
				}
				timer.Reset(min(left, resumeCheck))
			}
		}
	}()
	return reached, sync.OnceFunc(func() { close(quit) })
}
