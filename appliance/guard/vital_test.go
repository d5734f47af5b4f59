package guard_test

import (
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"assent.home.arpa/appliance/audit"
	"assent.home.arpa/appliance/audit/audittest"
	"assent.home.arpa/appliance/watchdog"
	"assent.home.arpa/confirm/screen"
)

// stuckDisk is a card that does not come back from a write while hang is set.
type stuckDisk struct {
	audit.Disk
	hang *atomic.Bool
	free chan struct{}
}

type stuckFile struct {
	audit.File
	disk stuckDisk
}

func (d stuckDisk) Open(name string) (audit.File, error) {
	f, err := d.Disk.Open(name)
	return stuckFile{f, d}, err
}

func (d stuckDisk) Create(name string) (audit.File, error) {
	f, err := d.Disk.Create(name)
	return stuckFile{f, d}, err
}

func (f stuckFile) Sync() error {
	if f.disk.hang.Load() {
		<-f.disk.free
	}
	return f.File.Sync()
}

// D8: a guard whose log hangs is started again, one whose display is unplugged is not.
func TestGuardIsAliveWhileItsPartsAnswer(t *testing.T) {
	live(t, t.TempDir(), func(t *testing.T, h *house) {
		disk := stuckDisk{audittest.NewDisk(), new(atomic.Bool), make(chan struct{})}
		var beats atomic.Int64
		during := func(d time.Duration) int64 {
			before := beats.Load()
			time.Sleep(d)
			synctest.Wait()
			return beats.Load() - before
		}
		h.disk, h.watched = disk, watchdog.Watchdog{Every: 10 * time.Second, Beat: func() { beats.Add(1) }}
		h.restart()
		if n := during(5 * time.Minute); n < 29 {
			t.Errorf("%d beats in five minutes of good health", n)
		}
		h.panel.Fail(0)
		h.hands.Wait(time.Minute)
		if n := during(10 * time.Minute); n < 59 {
			t.Errorf("%d beats in ten minutes without a display", n)
		}
		h.panel.Heal()
		h.hands.Wait(time.Minute)

		disk.hang.Store(true)
		h.hands.HoldBoth(3500 * time.Millisecond) // pairing mode, which is recorded
		if n := during(4 * time.Minute); n < 23 {
			t.Errorf("%d beats in four minutes of a slow card", n)
		}
		during(2 * time.Minute)
		if n := during(time.Hour); n != 0 {
			t.Errorf("%d beats of a guard whose log hangs", n)
		}
		disk.hang.Store(false)
		close(disk.free)
		if n := during(5 * time.Minute); n < 28 {
			t.Errorf("%d beats after the card came back", n)
		}
	})
}

// The box's address can come after the guard, and change.
func TestPairingScreenFollowsTheAddress(t *testing.T) {
	live(t, t.TempDir(), func(t *testing.T, h *house) {
		var now atomic.Value
		now.Store("")
		h.address = func() string { return now.Load().(string) }
		h.restart()
		shows := func(address string) bool {
			code, _ := h.code()
			glass := h.panel.Glass()
			for left := range 121 {
				if glass == screen.DrawPairing(code, address, time.Duration(left)*time.Second, false) {
					return true
				}
			}
			return false
		}
		now.Store("https://192.168.1.20")
		h.hands.Wait(6 * time.Second)
		h.hands.HoldBoth(3500 * time.Millisecond)
		h.hands.Wait(time.Second)
		if !shows("https://192.168.1.20") {
			t.Error("the address is not on the glass")
		}
		now.Store("https://10.0.0.2")
		h.hands.Wait(7 * time.Second)
		if !shows("https://10.0.0.2") {
			t.Error("the new address is not on the glass")
		}
	})
}
