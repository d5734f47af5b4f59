package worker

import (
	"fmt"
	"log/slog"
	"runtime"
	"time"

	"github.com/landlock-lsm/go-landlock/landlock"
	"github.com/landlock-lsm/go-landlock/landlock/syscall"
	"golang.org/x/sys/unix"
)

const (
	// maxFiles bounds the open descriptors; a worker has about ten.
	maxFiles = 64
	// tcpSince is the Landlock ABI that first refused TCP connects (Linux 6.7).
	tcpSince = 4
)

// limits says what the rest of the process needs.
type limits struct {
	read, write []string
	time        time.Duration
}

// confine gives up what the call does not need, for the whole process and for ever. What Landlock of this kernel can refuse
// and the limits do not name, is refused: files, TCP and UDP sockets, signals and abstract sockets of others. Descriptors
// that are open stay usable.
func confine(log *slog.Logger, l limits) error {
	// No core dump and no ptrace by another worker of the same user: the memory may hold a household's text.
	if err := unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0); err != nil {
		return fmt.Errorf("worker: confine: %w", err)
	}
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
	if abi, err := syscall.LandlockGetABIVersion(); err != nil || abi < tcpSince {
		log.Warn("this kernel's landlock cannot refuse connects; only the unit confines this worker", "abi", abi)
	}
	if err := landlock.V11.BestEffort().Restrict(landlock.RODirs(l.read...), landlock.RWDirs(l.write...)); err != nil {
		return fmt.Errorf("worker: confine: %w", err)
	}
	return nil
}
