package intake_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"math/rand/v2"
	"strings"
	"testing"

	"assent.home.arpa/appliance/audit/audittest"
	"assent.home.arpa/appliance/intake"
	"assent.home.arpa/image/card"
	"assent.home.arpa/image/card/cardtest"
)

const (
	mib           = 1 << 20
	partitionSize = 5 * mib
	fileSystem    = mib
	modelFile     = "practice.gguf"
)

// content is more than one chunk of a copy, and no whole number of sectors.
func content() []byte {
	b := make([]byte, mib+777)
	rand.NewChaCha8([32]byte{1}).Read(b)
	return b
}

// flashed is a card as it comes from the PC: a small file system, and a model behind it.
func flashed(t *testing.T, harm func(partition []byte)) *audittest.Disk {
	t.Helper()
	b := content()
	a := card.Area{Name: "practice", Length: int64(len(b)), SHA256: sha256.Sum256(b)}
	header, err := a.Encode()
	if err != nil {
		t.Fatal(err)
	}
	partition := make([]byte, partitionSize)
	copy(partition[1024:], cardtest.Superblock(fileSystem))
	copy(partition[a.Start(partitionSize):], b)
	copy(partition[partitionSize-card.AreaHeaderBytes:], header)
	if harm != nil {
		harm(partition)
	}
	d := audittest.NewDisk()
	d.Put("partition", partition)
	return d
}

// start is one start of a box with that card.
func start(t *testing.T, d *audittest.Disk) (intake.Taken, error) {
	t.Helper()
	f, err := d.Open("partition")
	if err != nil {
		t.Fatal(err)
	}
	m := intake.Model{Partition: f, Models: dir{d}, Grow: func(to int64) error {
		at, err := card.FileSystemSize(f)
		if err != nil {
			return err
		}
		if to < at {
			t.Errorf("the file system shrinks from %d to %d", at, to)
		}
		if a, err := card.FindArea(f, partitionSize, at); err == nil && to > a.Start(partitionSize) {
			t.Errorf("the file system grows over a file that waits")
		}
		// One sector holds the size: ext4's journal makes the change one thing, too.
		if _, err := f.WriteAt(cardtest.Superblock(to)[:512], 1024); err != nil {
			return err
		}
		return f.Sync()
	}}
	return m.Take(t.Context())
}

// settled demands that nothing waits any more and that the file system has all the room.
func settled(t *testing.T, d *audittest.Disk) {
	t.Helper()
	partition := d.Content("partition")
	if n, err := card.FileSystemSize(bytes.NewReader(partition)); n != partitionSize || err != nil {
		t.Errorf("the file system has %d of %d bytes, %v", n, partitionSize, err)
	}
	if _, err := card.DecodeArea(partition[partitionSize-card.AreaHeaderBytes:]); !errors.Is(err, card.ErrNoArea) {
		t.Errorf("the header is still there: %v", err)
	}
	if d.Content("intake.tmp") != nil {
		t.Error("a half copy is left")
	}
}

func TestAModelIsTaken(t *testing.T) {
	d := flashed(t, nil)
	taken, err := start(t, d)
	if err != nil || taken.Problem != "" || taken.Area.Name != "practice" {
		t.Fatalf("%+v, %v", taken, err)
	}
	if !bytes.Equal(d.Content(modelFile), content()) {
		t.Error("the model is not the one that waited")
	}
	settled(t, d)
	// The next start finds nothing, and leaves the model alone.
	if taken, err := start(t, d); err != nil || taken != (intake.Taken{}) {
		t.Errorf("the next start: %+v, %v", taken, err)
	}
	if !bytes.Equal(d.Content(modelFile), content()) {
		t.Error("the model is gone")
	}
}

// Issue 5: safe against a power cut at every step. After any cut the next start ends with the whole model in its place.
func TestPowerFailsWhileAModelIsTaken(t *testing.T) {
	cuts := 0
	everyCut(flashed(t, nil), func(d *audittest.Disk) { _, _ = start(t, d) }, func(cut int, d *audittest.Disk) {
		cuts++
		if b := d.Content(modelFile); b != nil && !bytes.Equal(b, content()) {
			t.Fatalf("cut %d: half a model bears the name", cut)
		}
		taken, err := start(t, d)
		if err != nil || taken.Problem != "" {
			t.Fatalf("cut %d: %+v, %v", cut, taken, err)
		}
		if !bytes.Equal(d.Content(modelFile), content()) {
			t.Fatalf("cut %d: the model is lost", cut)
		}
		settled(t, d)
	})
	if cuts < 10*6 {
		t.Errorf("only %d cuts", cuts)
	}
}

// The next start tries again what failed for another reason than the card's content.
func TestTheCardFailsWhileAModelIsTaken(t *testing.T) {
	whole := flashed(t, nil)
	whole.Arm(audittest.Fault{})
	if _, err := start(t, whole); err != nil {
		t.Fatal(err)
	}
	for at := 1; at <= whole.Ops(); at++ {
		d := flashed(t, nil)
		d.Arm(audittest.Fault{At: at, Err: errors.New("input/output error")})
		if taken, err := start(t, d); err == nil || taken.Problem != "" {
			t.Fatalf("operation %d failed: %+v, %v", at, taken, err)
		}
		d.Arm(audittest.Fault{})
		if taken, err := start(t, d); err != nil || taken.Problem != "" || !bytes.Equal(d.Content(modelFile), content()) {
			t.Fatalf("after operation %d failed: %+v, %v", at, taken, err)
		}
		settled(t, d)
	}
}

func TestWhatCannotBeTaken(t *testing.T) {
	for _, tc := range []struct {
		name    string
		harm    func(partition []byte)
		problem string
	}{
		{"a model with a wrong checksum", func(b []byte) { b[partitionSize-2*mib] ^= 1 }, "The model practice on the card is damaged: its checksum is wrong. It was not taken."},
		{"a header with a wrong checksum", func(b []byte) { b[partitionSize-card.AreaHeaderBytes+60] ^= 1 }, "cannot be taken: the import area is damaged: its checksum is wrong"},
		{"a file that lies in the file system", func(b []byte) { copy(b[1024:], cardtest.Superblock(4*mib)) }, "would lie in the file system"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			d := flashed(t, tc.harm)
			taken, err := start(t, d)
			if err != nil || !strings.Contains(taken.Problem, tc.problem) {
				t.Fatalf("%+v, %v; want %q", taken, err, tc.problem)
			}
			if d.Content(modelFile) != nil {
				t.Error("it was taken")
			}
			settled(t, d)
		})
	}
}

func TestThereIsNoRoomForTheModel(t *testing.T) {
	d := flashed(t, nil)
	d.Arm(audittest.Fault{At: 4, Full: true})
	taken, err := start(t, d)
	if err != nil || !strings.Contains(taken.Problem, "There is no room for the model practice (1 MB)") {
		t.Fatalf("%+v, %v", taken, err)
	}
	d.Arm(audittest.Fault{})
	settled(t, d)
}

// What looks like a header in a file system that has grown belongs to a file: nobody may plant a model, or have a file wiped.
func TestAHeaderThatIsPartOfAFile(t *testing.T) {
	d := flashed(t, func(b []byte) { copy(b[1024:], cardtest.Superblock(partitionSize)) })
	before := d.Content("partition")
	taken, err := start(t, d)
	if err != nil || taken != (intake.Taken{}) || d.Content(modelFile) != nil {
		t.Fatalf("%+v, %v", taken, err)
	}
	if !bytes.Equal(before, d.Content("partition")) {
		t.Error("a file was written into")
	}
}

func TestAShutdownWhileAModelIsTaken(t *testing.T) {
	d := flashed(t, nil)
	f, err := d.Open("partition")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	m := intake.Model{Partition: f, Models: dir{d}, Grow: func(int64) error { return nil }, Progress: func(int64, int64) { cancel() }}
	if taken, err := m.Take(ctx); !errors.Is(err, context.Canceled) {
		t.Fatalf("%+v, %v", taken, err)
	}
	if d.Content(modelFile) != nil {
		t.Error("half a model bears the name")
	}
	if taken, err := start(t, d); err != nil || !bytes.Equal(d.Content(modelFile), content()) {
		t.Fatalf("%+v, %v", taken, err)
	}
}
