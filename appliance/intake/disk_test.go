package intake_test

import (
	"errors"
	"math/rand/v2"

	"assent.home.arpa/appliance/audit"
	"assent.home.arpa/appliance/audit/audittest"
	"assent.home.arpa/appliance/intake"
)

var errPower = errors.New("the power is gone")

// dir is a directory on a disk that loses power.
type dir struct{ *audittest.Disk }

func (d dir) Open(name string) (intake.File, error)   { return d.Disk.Open(name) }
func (d dir) Create(name string) (intake.File, error) { return d.Disk.Create(name) }

var _ interface {
	intake.File
} = audit.File(nil)

// everyCut runs what f does on a copy of d, and cuts the power at each operation in turn; after gets what the disk may look
// like then, in several of its forms.
func everyCut(d *audittest.Disk, f func(*audittest.Disk), after func(cut int, d *audittest.Disk)) {
	whole := d.Copy()
	whole.Arm(audittest.Fault{})
	f(whole)
	for cut := 1; cut <= whole.Ops(); cut++ {
		for form := range 6 {
			dies := d.Copy()
			dies.Arm(audittest.Fault{At: cut, Err: errPower, Short: form%2 == 0, Dead: true})
			f(dies)
			choose := func(n int) int { return n - 1 } // everything arrived, or nothing, or some
			switch random := rand.New(rand.NewPCG(uint64(cut), uint64(form))); form {
			case 0:
			case 1:
				choose = func(int) int { return 0 }
			default:
				choose = random.IntN
			}
			crashed := dies.Crash(choose)
			crashed.Arm(audittest.Fault{})
			after(cut, crashed)
		}
	}
}
