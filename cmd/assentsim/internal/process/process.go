// Package process keeps the roles of a simulated box running, as systemd does on the real one: each in a process of its
// own, started again when it dies, with a worker started for every connection to a worker's socket.
package process

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"syscall"
	"time"

	"assent.home.arpa/appliance/worker/spawn"
)

// Restart delays, doubling from the first to the last while a role keeps dying young.
const (
	firstDelay = 200 * time.Millisecond
	lastDelay  = 5 * time.Second
	settled    = 10 * time.Second
)

// stopGrace is how long a process may take to end before it is killed.
const stopGrace = 5 * time.Second

// Set is the processes of one box.
type Set struct {
	logs string
	log  *slog.Logger
	all  sync.WaitGroup

	mu   sync.Mutex
	pids map[string]int
}

// NewSet returns an empty set whose processes write their logs to files in dir.
func NewSet(dir string, log *slog.Logger) (*Set, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("process: %w", err)
	}
	return &Set{logs: dir, log: log, pids: map[string]int{}}, nil
}

func (s *Set) logFile(name string) (*os.File, error) {
	f, err := os.OpenFile(filepath.Join(s.logs, name+".log"), os.O_CREATE|os.O_TRUNC|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return nil, fmt.Errorf("process: %w", err)
	}
	return f, nil
}

// Keep runs what start makes until ctx ends, and starts it again whenever it exits.
func (s *Set) Keep(ctx context.Context, name string, start func() (*exec.Cmd, error)) error {
	out, err := s.logFile(name)
	if err != nil {
		return err
	}
	s.all.Go(func() {
		defer out.Close()
		delay := firstDelay
		for ctx.Err() == nil {
			began := time.Now()
			err := s.once(ctx, name, start, out)
			if ctx.Err() != nil {
				return
			}
			if time.Since(began) > settled {
				delay = firstDelay
			}
			s.log.Warn("a role ended and is started again", "role", name, "why", err, "in", delay)
			select {
			case <-time.After(delay):
			case <-ctx.Done():
				return
			}
			delay = min(2*delay, lastDelay)
		}
	})
	return nil
}

func (s *Set) once(ctx context.Context, name string, start func() (*exec.Cmd, error), out *os.File) error {
	cmd, err := start()
	if err != nil {
		return err
	}
	cmd.Stdout, cmd.Stderr = out, out
	cmd.SysProcAttr = attributes()
	if err := cmd.Start(); err != nil {
		return err
	}
	s.mu.Lock()
	s.pids[name] = cmd.Process.Pid
	s.mu.Unlock()
	defer func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		delete(s.pids, name)
	}()
	return end(ctx, cmd)
}

// end waits for cmd, asks it to stop when ctx ends, and kills it when it does not.
func end(ctx context.Context, cmd *exec.Cmd) error {
	done := make(chan error, 1)
	go func() { done <- cmd.Wait() }()
	select {
	case err := <-done:
		if err == nil {
			err = errors.New("it exited")
		}
		return err
	case <-ctx.Done():
	}
	cmd.Process.Signal(syscall.SIGTERM)
	select {
	case err := <-done:
		return err
	case <-time.After(stopGrace):
		cmd.Process.Kill()
		return <-done
	}
}

// attributes give a process a group of its own, so that control-C reaches the roles in order, through us, and make it
// die with us.
func attributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGTERM}
}

// Spawn starts a process for each connection to l, until ctx ends, as systemd does for a socket unit with Accept=yes.
func (s *Set) Spawn(ctx context.Context, name string, l *net.UnixListener, command func(context.Context) *exec.Cmd) error {
	out, err := s.logFile(name)
	if err != nil {
		return err
	}
	s.all.Go(func() {
		defer out.Close()
		err := spawn.Serve(ctx, l, func(ctx context.Context) *exec.Cmd {
			cmd := command(ctx)
			cmd.Stdout, cmd.Stderr = out, out
			cmd.SysProcAttr = attributes()
			return cmd
		})
		if err != nil {
			s.log.Error("workers cannot be started any more", "worker", name, "why", err)
		}
	})
	return nil
}

// PID returns the process that plays a role now.
func (s *Set) PID(name string) (int, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	pid, ok := s.pids[name]
	return pid, ok
}

// Wait returns when every process has ended.
func (s *Set) Wait() { s.all.Wait() }
