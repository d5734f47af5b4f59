package guard_test

import (
	"slices"
	"testing"

	"assent.home.arpa/appliance/guard"
	"assent.home.arpa/confirm"
)

// TestPanicStaysInTheBacklog: what happens at the panel while the disk hangs makes room for what follows, but a panic does not.
func TestPanicStaysInTheBacklog(t *testing.T) {
	const most = 256
	many := func(k confirm.NoticeKind, n int) []confirm.NoticeKind {
		return slices.Repeat([]confirm.NoticeKind{k}, n)
	}
	for name, tc := range map[string]struct {
		kinds          []confirm.NoticeKind
		panics, killed int
	}{
		"a panic before a flood":      {slices.Concat(many(confirm.Panic, 1), many(confirm.BulletinRead, 1000)), 1, 1},
		"a panic after a flood":       {slices.Concat(many(confirm.BulletinRead, 1000), many(confirm.Panic, 1)), 1, 1},
		"panics alone":                {many(confirm.Panic, most+5), most, most + 5},
		"a flood on panics alone":     {slices.Concat(many(confirm.Panic, most), many(confirm.PairingOpened, 5)), most, most},
		"panics between other things": {slices.Repeat([]confirm.NoticeKind{confirm.Panic, confirm.PairingOpened}, 200), 200, 200},
	} {
		t.Run(name, func(t *testing.T) {
			left, killed := guard.Flood(tc.kinds)
			panics := 0
			for _, k := range left {
				if k == confirm.Panic {
					panics++
				}
			}
			if panics != tc.panics || killed != tc.killed || len(left) > most {
				t.Errorf("%d panics that ended %d calls are left of %d, want %d and %d", panics, killed, len(left), tc.panics, tc.killed)
			}
		})
	}
}
