package card_test

import (
	"errors"
	"fmt"
	"io"
	"os"
	"testing"

	"github.com/google/go-cmp/cmp"

	"assent.home.arpa/image/card"
	"assent.home.arpa/image/card/cardtest"
)

var errPowerCut = errors.New("power cut")

// cutDisk takes so many sectors and then loses its power.
type cutDisk struct {
	*os.File
	left int
}

func (d *cutDisk) WriteAt(b []byte, at int64) (int, error) {
	for n := 0; n < len(b); n += card.SectorBytes {
		if d.left == 0 {
			return n, errPowerCut
		}
		if _, err := d.File.WriteAt(b[n:n+card.SectorBytes], at+int64(n)); err != nil {
			return n, err
		}
		d.left--
	}
	return len(b), nil
}

func (*cutDisk) Sync() error { return nil }

// Whenever power fails, the disk has the table that it had or the one that it was to have, and can be mended.
func TestPowerFailsWhileTheTableIsWritten(t *testing.T) {
	const size = 100 * mib
	f := image(t, cardtest.Parts())
	if err := f.Truncate(size); err != nil {
		t.Fatal(err)
	}
	old := read(t, f)
	grown := *old
	if _, err := grown.Grow(size); err != nil {
		t.Fatal(err)
	}
	head, tail := old.Head(), make([]byte, card.TailBytes)
	torns := 0
	for cut := range (card.HeadBytes + card.TailBytes) / card.SectorBytes {
		for _, w := range []struct {
			b  []byte
			at int64
		}{{head, 0}, {tail, size - card.TailBytes}} {
			if _, err := f.WriteAt(w.b, w.at); err != nil {
				t.Fatal(err)
			}
		}
		if err := grown.Write(&cutDisk{f, cut}); !errors.Is(err, errPowerCut) {
			t.Fatalf("%d sectors: %v", cut, err)
		}
		got, torn, err := card.ReadDisk(f, size)
		if err != nil {
			t.Fatalf("%d sectors: %v", cut, err)
		}
		if diff := cmp.Diff(old.Partitions(), got.Partitions()); diff != "" && cmp.Diff(grown.Partitions(), got.Partitions()) != "" {
			t.Errorf("%d sectors: neither the old table nor the new one: %s", cut, diff)
		}
		if !torn {
			continue
		}
		torns++
		if err := got.Repair(f); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(grown.Partitions(), read(t, f).Partitions()); diff != "" {
			t.Errorf("%d sectors: mended: %s", cut, diff)
		}
	}
	if torns == 0 {
		t.Error("no cut tore the table: nothing was tested")
	}
}

// What stands at the end of a disk counts only if it is that disk's own.
func TestABackupThatIsNotOne(t *testing.T) {
	const size = 100 * mib
	for _, tc := range []struct {
		name string
		harm func(f *os.File) error
	}{
		{"damaged in its entries", func(f *os.File) error {
			_, err := f.WriteAt([]byte{0xff}, size-card.TailBytes+56)
			return err
		}},
		{"damaged in its header", func(f *os.File) error {
			_, err := f.WriteAt([]byte{0xff}, size-card.SectorBytes+56) // the disk's id, which only the header's sum covers
			return err
		}},
		{"of a smaller disk", func(f *os.File) error {
			tail := make([]byte, card.TailBytes)
			if _, err := f.ReadAt(tail, size-card.TailBytes); err != nil {
				return err
			}
			_, err := f.WriteAt(tail, size+mib-card.TailBytes)
			return errors.Join(err, f.Truncate(size+mib))
		}},
		{"gone", func(f *os.File) error {
			_, err := f.WriteAt(make([]byte, card.TailBytes), size-card.TailBytes)
			return err
		}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			f := image(t, cardtest.Parts())
			table := read(t, f)
			_, err := table.Grow(size)
			if err := errors.Join(err, f.Truncate(size), table.Write(f)); err != nil {
				t.Fatal(err)
			}
			if _, err := f.WriteAt([]byte{0xff}, card.SectorBytes+40); err != nil {
				t.Fatal(err)
			}
			if err := tc.harm(f); err != nil {
				t.Fatal(err)
			}
			end, err := f.Seek(0, io.SeekEnd)
			if err != nil {
				t.Fatal(err)
			}
			got, _, err := card.ReadDisk(f, end)
			var not *card.NotCardError
			if !errors.As(err, &not) {
				t.Errorf("got %s, %v", fmt.Sprint(got != nil), err)
			}
		})
	}
}
