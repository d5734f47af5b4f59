package expand_test

import (
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"io"
	"os"
	"path/filepath"
	"testing"

	"assent.home.arpa/appliance/expand"
	"assent.home.arpa/image/card"
	"assent.home.arpa/image/card/cardtest"
)

const mib = 1 << 20

// disk is a card that was just written, in a file of size bytes: its table is that of the smaller image.
func disk(t *testing.T, size int64) *os.File {
	t.Helper()
	path := filepath.Join(t.TempDir(), "disk")
	if err := cardtest.Image(path, cardtest.Parts()); err != nil {
		t.Fatal(err)
	}
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	if err := f.Truncate(size); err != nil {
		t.Fatal(err)
	}
	return f
}

func data(t *testing.T, f *os.File) card.Partition {
	t.Helper()
	table, err := card.ReadTable(f)
	if err != nil {
		t.Fatal(err)
	}
	p, err := table.Lookup(card.Data)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func TestTheRestOfTheCardIsTaken(t *testing.T) {
	f := disk(t, 100*mib)
	was := data(t, f)
	p, grown, err := expand.Table(f, 100*mib)
	if err != nil || !grown {
		t.Fatalf("%v, %v", grown, err)
	}
	if p != data(t, f) {
		t.Errorf("%+v is told, %+v is on the disk", p, data(t, f))
	}
	if p.Start != was.Start || p.Size < 100*mib-was.Start-2*mib || p.Size <= was.Size {
		t.Errorf("from %+v to %+v", was, p)
	}
	if _, again, err := expand.Table(f, 100*mib); err != nil || again {
		t.Errorf("a second time: %v, %v", again, err)
	}
}

// shrink makes a file system say that it has 64 KiB: its superblock's number of blocks, whose size is a power of two.
func shrink(t *testing.T, f *os.File, partition int64) {
	t.Helper()
	b := make([]byte, 64)
	if _, err := f.ReadAt(b, partition+1024); err != nil {
		t.Fatal(err)
	}
	binary.LittleEndian.PutUint32(b[4:], uint32(64>>b[24]))
	if _, err := f.WriteAt(b, partition+1024); err != nil {
		t.Fatal(err)
	}
}

func TestAWaitingModelIsNotLost(t *testing.T) {
	for _, c := range []struct {
		name string
		harm func(header []byte)
	}{
		{"whole", func([]byte) {}},
		{"damaged", func(header []byte) { header[20] ^= 1 }},
	} {
		t.Run(c.name, func(t *testing.T) {
			f := disk(t, 100*mib)
			was := data(t, f)
			shrink(t, f, was.Start)
			header, err := card.Area{Name: "model", Length: 4096, SHA256: sha256.Sum256(nil)}.Encode()
			if err != nil {
				t.Fatal(err)
			}
			c.harm(header)
			if _, err := f.WriteAt(header, was.Start+was.Size-card.AreaHeaderBytes); err != nil {
				t.Fatal(err)
			}
			if p, grown, err := expand.Table(f, 100*mib); err != nil || grown || p != was {
				t.Errorf("%+v, %v, %v", p, grown, err)
			}
			if got := data(t, f); got != was {
				t.Errorf("the partition is %+v now", got)
			}
		})
	}
}

func TestDisksThatAreLeftAlone(t *testing.T) {
	f := disk(t, 100*mib)
	var small *card.SmallError
	if _, _, err := expand.Table(f, 10*mib); !errors.As(err, &small) {
		t.Errorf("a smaller disk: %v", err)
	}
	before := data(t, f)
	if _, err := f.WriteAt([]byte{0xff}, 1024+56); err != nil { // the label of the first partition
		t.Fatal(err)
	}
	var other *card.NotCardError
	if _, grown, err := expand.Table(f, 100*mib); !errors.As(err, &other) || grown {
		t.Errorf("a damaged table: %v, %v", grown, err)
	}
	if _, err := f.WriteAt([]byte("b"), 1024+56); err != nil {
		t.Fatal(err)
	}
	if got := data(t, f); got != before {
		t.Errorf("a damaged table was written to: %+v", got)
	}
	if _, err := expand.Card(filepath.Join(t.TempDir(), "none")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("no disk: %v", err)
	}
}

// A table that was torn is mended, and a model that waits does not keep that from being done.
func TestATornTableIsMended(t *testing.T) {
	for _, waits := range []bool{false, true} {
		f := disk(t, 100*mib)
		if _, _, err := expand.Table(f, 100*mib); err != nil {
			t.Fatal(err)
		}
		was := data(t, f)
		if waits {
			wait(t, f, was)
		}
		if _, err := f.WriteAt([]byte{0xff}, 1024+6*128+56); err != nil { // the label of the last partition
			t.Fatal(err)
		}
		if p, wrote, err := expand.Table(f, 100*mib); err != nil || !wrote || p != was {
			t.Fatalf("a model waits %v: %+v, %v, %v", waits, p, wrote, err)
		}
		if got := data(t, f); got != was {
			t.Errorf("a model waits %v: %+v became %+v", waits, was, got)
		}
	}
}

// wait puts the header of a model at the end of a partition, whose file system ends before it.
func wait(t *testing.T, f *os.File, p card.Partition) {
	t.Helper()
	header, err := card.Area{Name: "model", Length: 4096, SHA256: sha256.Sum256(nil)}.Encode()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.WriteAt(header, p.Start+p.Size-card.AreaHeaderBytes); err != nil {
		t.Fatal(err)
	}
	shrink(t, f, p.Start)
}

// What a card's former owner left where a model would wait is no model.
func TestOldContentOfTheCardIsNotAModel(t *testing.T) {
	reference := disk(t, 100*mib)
	end, _, err := expand.Table(reference, 100*mib)
	if err != nil {
		t.Fatal(err)
	}
	f := disk(t, 100*mib)
	wait(t, f, end)
	if _, grown, err := expand.Table(f, 100*mib); err != nil || !grown {
		t.Fatalf("%v, %v", grown, err)
	}
	p := data(t, f)
	if a, err := card.FindArea(io.NewSectionReader(f, p.Start, p.Size), p.Size, 64<<10); !errors.Is(err, card.ErrNoArea) {
		t.Errorf("%+v, %v", a, err)
	}
}
