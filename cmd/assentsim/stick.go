package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"

	"assent.home.arpa/appliance/stick/fat"
)

// stickSize is the simulated stick's, in bytes; a file system that has such a file knows it as mostly empty.
const stickSize = 512 << 20

// slot is where the simulated stick goes in. The stick is a file; what deals with it are the real exporter, in a process of
// its own, and the real guard.
type slot struct {
	ctx context.Context // of the simulated box
	sim *sim

	mu   sync.Mutex
	role func(...string) func() (*exec.Cmd, error)
	pull context.CancelFunc // nil: nothing is in
}

// exporter says how a role is started.
func (s *slot) exporter(role func(...string) func() (*exec.Cmd, error)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.role = role
}

// Insert implements panel.Slot.
func (s *slot) Insert() (string, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	image := filepath.Join(s.sim.config.Paths.State, "stick.img")
	switch {
	case s.role == nil:
		return "", errors.New("the box has not started yet")
	case s.pull != nil:
		return image, nil
	}
	if err := makeStick(image); err != nil {
		return "", err
	}
	ctx, pull := context.WithCancel(s.ctx)
	if err := s.sim.set.Keep(ctx, "stick", s.role("stick", "-device", image)); err != nil {
		pull()
		return "", err
	}
	s.pull = pull
	return image, nil
}

// Pull implements panel.Slot.
func (s *slot) Pull() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.pull != nil {
		s.pull()
		s.pull = nil
	}
}

// makeStick makes an empty stick where there is none yet.
func makeStick(image string) error {
	f, err := os.OpenFile(image, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
	if errors.Is(err, os.ErrExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("stick: %w", err)
	}
	err = f.Truncate(stickSize)
	if err == nil {
		err = fat.Format(f, stickSize, "SIMULATED")
	}
	if err := errors.Join(err, f.Close()); err != nil {
		return errors.Join(fmt.Errorf("stick: %w", err), os.Remove(image))
	}
	return nil
}
