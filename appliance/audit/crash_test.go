package audit_test

import (
	"context"
	"flag"
	"fmt"
	"hash/maphash"
	"math/rand/v2"
	"testing"

	"assent.home.arpa/appliance/audit"
	"assent.home.arpa/appliance/audit/audittest"
	"assent.home.arpa/appliance/clock/clocktest"
)

var every = flag.Bool("every", false, "go through all faults that are enumerated, not through one in some")

// moments plays a scenario and keeps what lies between all its operations.
func (s scenario) moments(t *testing.T) []moment {
	t.Helper()
	disk := audittest.NewDisk()
	if s.begun != nil {
		disk = s.begun(t)
	}
	u := s.user(t, disk)
	var all []moment
	disk.Watch(func(d *audittest.Disk) {
		head, executed := u.known.now()
		all = append(all, moment{d, head, executed})
	})
	u.open()
	if u.err == nil {
		s.run(u)
	}
	u.close()
	disk.Watch(nil)
	if u.err != nil {
		t.Fatalf("the scenario itself fails: %v", u.err)
	}
	kinds := verify(t, disk, audit.VerifyOptions{}).Kinds
	for _, k := range s.holds {
		if kinds[k] == 0 {
			t.Fatalf("there is no %s in the scenario", k)
		}
	}
	head, executed := u.known.now()
	return append(all, moment{disk.Moment(), head, executed})
}

// D3, W14: the power goes between any two operations, and flash keeps any legal part of what was not synced. What was
// acknowledged is there, what was executed has its intent, and a second start changes nothing. Some of those starts are
// themselves cut, between any two of their operations.
func TestPowerLossAtAnyInstant(t *testing.T) {
	for name, s := range scenarios() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			random := rand.New(rand.NewPCG(7, 8))
			seed := maphash.MakeSeed()
			seen := map[uint64]bool{}
			one, again, most, recovered, within := 8, 12, 4, 0, 0
			if *every {
				one, again, most = 1, 1, 64
			}
			moments := s.moments(t)
			for at, m := range moments {
				for word, image := range m.disk.Cuts(most, random) {
					print := image.Print(seed)
					if seen[print] {
						continue
					}
					seen[print] = true
					if len(seen)%one != 0 {
						continue
					}
					recovered++
					m.disk = image
					where := fmt.Sprintf("operation %d of %d, %s", at, len(moments), word)
					if recovered%again == 0 {
						within += s.cutAgain(t, m, where, random)
					}
					if first := s.outlives(t, m, where); *every || recovered%3 == 0 {
						s.onceMore(t, m, first, where)
					}
				}
			}
			t.Logf("%d operations, %d states, %d recovered from, %d more within starts", len(moments), len(seen), recovered, within)
			if len(seen) < len(moments)/2 || recovered == 0 {
				t.Errorf("only %d states for %d operations, %d recovered from", len(seen), len(moments), recovered)
			}
		})
	}
}

// cutAgain cuts a start between any two of its operations, and returns in how many states.
func (s scenario) cutAgain(t *testing.T, m moment, where string, random *rand.Rand) (states int) {
	t.Helper()
	image := m.disk.Copy()
	var within []*audittest.Disk
	image.Watch(func(d *audittest.Disk) { within = append(within, d) })
	o := audittest.Options(clocktest.New(), image)
	l, err := audit.Open(context.Background(), o)
	if err != nil {
		t.Fatalf("%s: %v", where, err)
	}
	if err := l.Close(); err != nil {
		t.Fatalf("%s: %v", where, err)
	}
	for n, d := range within {
		for word, second := range d.Cuts(1, random) {
			states++
			m.disk = second
			s.outlives(t, m, fmt.Sprintf("%s; then operation %d of %d of the start, %s", where, n, len(within), word))
		}
	}
	return states
}
