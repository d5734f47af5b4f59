package audit_test

import (
	"context"
	"errors"
	"fmt"
	"syscall"
	"testing"

	"assent.home.arpa/appliance/audit"
	"assent.home.arpa/appliance/audit/audittest"
	"assent.home.arpa/capabilities"
)

type failure struct {
	name  string
	fault audittest.Fault
}

func failures() []failure {
	return []failure{
		{"i/o error", audittest.Fault{Err: syscall.EIO}},
		{"full", audittest.Fault{Full: true}},
		{"short, i/o error", audittest.Fault{Err: syscall.EIO, Short: true}},
		{"no space", audittest.Fault{Err: syscall.ENOSPC}},
		{"short, no space", audittest.Fault{Err: syscall.ENOSPC, Short: true}},
	}
}

// Every operation of every scenario fails once, each in these ways: an error of the device, the disk full for this one
// operation, and full from there on. Nothing is executed that is not recorded, nothing is tried again after an error of the
// device, what is under way on a full disk can be settled, and a start mends what is left.
func TestEveryOperationFails(t *testing.T) {
	for name, s := range scenarios() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			begun := audittest.NewDisk()
			if s.begun != nil {
				begun = s.begun(t)
			}
			whole := begun.Copy()
			if u := s.play(t, whole); u.err != nil {
				t.Fatal(u.err)
			}
			for at := 1; at <= whole.Ops(); at++ {
				for n, kind := range failures() {
					// By default about half of the operations fail, each in one way.
					if !*every && (at%9 != n || at/9%thin != 0) {
						continue
					}
					f := kind.fault
					f.At = at
					where := fmt.Sprintf("operation %d of %d, %s", at, whole.Ops(), kind.name)
					disk := begun.Copy()
					disk.Arm(f)
					u := s.user(t, disk)
					u.open()
					if u.err == nil {
						s.run(u)
					}
					u.afterwards(f, where)
					disk.Arm(audittest.Fault{})
					head, executed := u.known.now()
					s.outlives(t, moment{disk, head, executed}, where)
				}
			}
		})
	}
}

// afterwards goes on with a log whose disk failed, and closes it.
func (u *user) afterwards(f audittest.Fault, where string) {
	t := u.t
	t.Helper()
	if u.err != nil && !errors.Is(u.err, audit.ErrUnavailable) {
		t.Fatalf("%s: %v", where, u.err)
	}
	poisoned := errors.Is(u.err, audit.ErrPoisoned)
	switch {
	case errors.Is(f.Err, syscall.EIO):
		if u.err == nil || u.disk.Ops() != f.At {
			t.Fatalf("%s: %v, and %d operations after it", where, u.err, u.disk.Ops()-f.At)
		}
		if u.log != nil && !poisoned {
			t.Fatalf("%s: not poisoned: %v", where, u.err)
		}
	case f.Full && poisoned:
		t.Fatalf("%s: a full disk is no failure, and yet: %v", where, u.err)
	}
	if u.log == nil {
		return
	}
	c := audittest.Automatic(250)
	_, err := u.log.Intend(context.Background(), c.Entries(), c.Intent, c.Inv)
	switch {
	case poisoned:
		if !errors.Is(err, audit.ErrPoisoned) || u.disk.Ops() != f.At {
			t.Fatalf("%s: a call after that: %v, and %d operations more", where, err, u.disk.Ops()-f.At)
		}
	case err != nil && !errors.Is(err, audit.ErrFull):
		t.Fatalf("%s: a call after that: %v", where, err)
	default:
		for _, i := range u.under {
			if _, err := u.log.Effect(context.Background(), i, audit.EffectRecord{Status: capabilities.Done}); err != nil {
				t.Fatalf("%s: an outcome does not fit: %v", where, err)
			}
			u.known.settle(i)
		}
		u.disk.Arm(audittest.Fault{})
		c := audittest.Automatic(251)
		if _, err := u.log.Intend(context.Background(), c.Entries(), c.Intent, c.Inv); err != nil {
			t.Fatalf("%s: with room again: %v", where, err)
		}
		u.known.acknowledge(u.log.Head())
	}
	u.close()
}
