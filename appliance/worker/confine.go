package worker

import (
	"fmt"
	"log/slog"
	"runtime"
	"time"

	"golang.org/x/sys/unix"

	"assent.home.arpa/appliance/cage"
)

// maxFiles bounds the open descriptors; a worker has about ten.
const maxFiles = 64

// limits says what the rest of the process needs.
type limits struct {
	read, write []string
	time        time.Duration
}

// confine gives up what the call does not need, for the whole process and for ever: package cage's part, and more of
// everything than the call can take.
func confine(log *slog.Logger, l limits) error {
	seconds := uint64(max(l.time, 0)/time.Second) + 2
	for what, n := range map[int]uint64{
		unix.RLIMIT_CORE:   0,
		unix.RLIMIT_NOFILE: maxFiles,
		// The kernel's own end for a handler that spins: no more processor time than the deadline leaves.
		unix.RLIMIT_CPU: seconds * uint64(runtime.NumCPU()),
	} {
		if err := unix.Prlimit(0, what, &unix.Rlimit{Cur: n, Max: n}, nil); err != nil {
			return fmt.Errorf("worker: confine: limit %d: %w", what, err)
		}
	}
	if err := cage.Enter(log, cage.Room{Read: l.read, Write: l.write}); err != nil {
		return fmt.Errorf("worker: confine: %w", err)
	}
	return nil
}
