package card_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"flag"
	"hash/crc32"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/diskfs/go-diskfs/partition/gpt"
	"github.com/google/go-cmp/cmp"

	"assent.home.arpa/image/card"
	"assent.home.arpa/image/card/cardtest"
)

var update = flag.Bool("update", false, "rewrite the golden bytes")

const mib = 1 << 20

func image(t *testing.T, parts []cardtest.Part) *os.File {
	t.Helper()
	path := filepath.Join(t.TempDir(), "card.img")
	if err := cardtest.Image(path, parts); err != nil {
		t.Fatal(err)
	}
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	return f
}

func read(t *testing.T, f *os.File) *card.Table {
	t.Helper()
	table, err := card.ReadTable(f)
	if err != nil {
		t.Fatal(err)
	}
	return table
}

func TestTheTableIsRead(t *testing.T) {
	table := read(t, image(t, cardtest.Parts()))
	if err := table.Check(); err != nil {
		t.Fatal(err)
	}
	parts := table.Partitions()
	if len(parts) != 7 {
		t.Fatalf("%d partitions", len(parts))
	}
	want := card.Partition{Number: 1, Label: "boot", Type: card.TypeESP, ID: "a55e0000-0000-4000-8000-000000000010", Start: mib, Size: cardtest.BootMiB * mib}
	if diff := cmp.Diff(want, parts[0]); diff != "" {
		t.Error(diff)
	}
	if _, err := table.Lookup(card.Empty); err == nil {
		t.Error("one of two empty partitions was chosen")
	}
	if data, err := table.Lookup(card.Data); err != nil || data.Start+data.Size != table.DiskSize()-mib {
		t.Errorf("data is %+v, %v", data, err)
	}
}

// What grew on one's own must be a good table for others, and nothing but what had to change has changed.
func TestTheLastPartitionGrowsWithTheCard(t *testing.T) {
	f := image(t, cardtest.Parts())
	before := read(t, f).Partitions()
	table := read(t, f)
	const size = 500*mib + 3*card.SectorBytes
	if err := f.Truncate(size); err != nil {
		t.Fatal(err)
	}
	changed, err := table.Grow(size)
	if err != nil || !changed {
		t.Fatalf("changed %v, %v", changed, err)
	}
	if err := table.Write(f); err != nil {
		t.Fatal(err)
	}
	again := read(t, f)
	after := again.Partitions()
	before[6].Size = 499*mib - before[6].Start // the backup needs the rest
	if diff := cmp.Diff(before, after); diff != "" {
		t.Error(diff)
	}
	if again.DiskSize() != size {
		t.Errorf("the table is for %d bytes", again.DiskSize())
	}
	if changed, err := again.Grow(size); changed || err != nil {
		t.Errorf("growing twice: changed %v, %v", changed, err)
	}
	other, err := gpt.Read(f, card.SectorBytes, card.SectorBytes)
	if err != nil {
		t.Fatal(err)
	}
	if err := other.Verify(f, size); err != nil || other.RecoveredFromBackup || !other.ProtectiveMBR {
		t.Errorf("another implementation says %v", err)
	}
	for _, tool := range [][]string{{"sgdisk", "--verify", f.Name()}, {"sfdisk", "--verify", f.Name()}} {
		if _, err := exec.LookPath(tool[0]); err != nil {
			continue
		}
		out, err := exec.Command(tool[0], tool[1:]...).CombinedOutput()
		if err != nil || !strings.Contains(strings.ToLower(string(out)), "no ") && !strings.Contains(string(out), "No errors") {
			t.Errorf("%s: %v\n%s", tool[0], err, out)
		}
	}
	// The backup alone is enough.
	if _, err := f.WriteAt(make([]byte, 16), card.SectorBytes); err != nil {
		t.Fatal(err)
	}
	if other, err = gpt.Read(f, card.SectorBytes, card.SectorBytes); err != nil || !other.RecoveredFromBackup || len(other.Partitions) != 7 {
		t.Errorf("from the backup: %v", err)
	}
}

func TestACardThatIsTooSmall(t *testing.T) {
	table := read(t, image(t, cardtest.Parts()))
	_, err := table.Grow(table.DiskSize() - card.SectorBytes)
	var small *card.SmallError
	if !errors.As(err, &small) {
		t.Fatalf("got %v", err)
	}
}

func TestWhatIsNoCard(t *testing.T) {
	swapped := cardtest.Parts()
	swapped[5], swapped[6] = swapped[6], swapped[5]
	other := cardtest.Parts()
	other[1].Label = "root"
	for _, tc := range []struct {
		name  string
		parts []cardtest.Part
		harm  func(b []byte)
		want  string
	}{
		{"no table", cardtest.Parts(), func(b []byte) { clear(b) }, "no GUID partition table"},
		{"a flipped bit in the header", cardtest.Parts(), func(b []byte) { b[512+40] ^= 1 }, "header is damaged"},
		{"a flipped bit in the entries", cardtest.Parts(), func(b []byte) { b[1024+33] ^= 1 }, "entries are damaged"},
		{"data that is not last", swapped, nil, `partition 6 is labelled "data" instead of audit`},
		{"another system", other, nil, `partition 2 is labelled "root"`},
		{"a partition more", append(cardtest.Parts(), cardtest.Part{Label: "more", Type: card.TypeLinux, MiB: 1}), nil, "8 partitions instead of 7"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			f := image(t, tc.parts)
			b := make([]byte, card.HeadBytes)
			if _, err := f.ReadAt(b, 0); err != nil {
				t.Fatal(err)
			}
			if tc.harm != nil {
				tc.harm(b)
			}
			table, err := card.ReadTable(bytes.NewReader(b))
			if err == nil {
				err = table.Check()
			}
			var not *card.NotCardError
			if !errors.As(err, &not) || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("got %v, want %q", err, tc.want)
			}
		})
	}
}

func area() card.Area {
	return card.Area{Name: "scripted-1.5b", Length: 5*mib + 1, SHA256: sha256.Sum256([]byte("a model"))}
}

func TestTheHeaderOfTheImportAreaIsThese(t *testing.T) {
	b, err := area().Encode()
	if err != nil {
		t.Fatal(err)
	}
	golden := filepath.Join("testdata", "area.hex")
	got := hex.Dump(b[:128])
	if *update {
		if err := os.WriteFile(golden, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Error(diff)
	}
	if !bytes.Equal(b[120:], make([]byte, card.AreaHeaderBytes-120)) {
		t.Error("the rest is not zeros")
	}
	if a, err := card.DecodeArea(b); err != nil || a != area() {
		t.Errorf("read back as %+v, %v", a, err)
	}
}

// Every bit counts: a header that differs anywhere is none, or damaged, and never another one.
func TestAHeaderThatIsDamagedAnywhere(t *testing.T) {
	good, err := area().Encode()
	if err != nil {
		t.Fatal(err)
	}
	for i := range good {
		b := bytes.Clone(good)
		b[i] ^= 0x10
		_, err := card.DecodeArea(b)
		var damaged *card.AreaError
		if !errors.Is(err, card.ErrNoArea) && !errors.As(err, &damaged) {
			t.Fatalf("byte %d: %v", i, err)
		}
	}
}

func TestAnAreaThatCannotBe(t *testing.T) {
	for _, a := range []card.Area{
		{Name: "", Length: 1},
		{Name: "../etc", Length: 1},
		{Name: ".hidden", Length: 1},
		{Name: "a b", Length: 1},
		{Name: "модель", Length: 1},
		{Name: strings.Repeat("x", 65), Length: 1},
		{Name: "x", Length: 0},
		{Name: "x", Length: card.MaxFile + 1},
	} {
		if _, err := a.Encode(); err == nil {
			t.Errorf("%+v was accepted", a)
		}
	}
}

func TestWhereAFileWaits(t *testing.T) {
	const fs = 8 * mib
	b, err := area().Encode()
	if err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct {
		name       string
		size       int64
		fileSystem int64
		start      int64 // negative: an error
		none       bool
	}{
		{"beyond the file system", 32 * mib, fs, 26 * mib, false},
		{"exactly at its end", 32 * mib, 26 * mib, 26 * mib, false},
		{"partly in the file system", 32 * mib, 26*mib + 4096, -1, false},
		{"in a file of a file system that has grown", 32 * mib, 32 * mib, -1, true},
		{"in a partition that is too small for it", 4 * mib, mib, -1, false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			partition := make([]byte, tc.size)
			copy(partition[tc.size-card.AreaHeaderBytes:], b)
			a, err := card.FindArea(bytes.NewReader(partition), tc.size, tc.fileSystem)
			if (err == nil) != (tc.start >= 0) || errors.Is(err, card.ErrNoArea) != tc.none {
				t.Fatalf("got %+v, %v", a, err)
			}
			if err == nil && a.Start(tc.size) != tc.start {
				t.Errorf("it starts at %d", a.Start(tc.size))
			}
		})
	}
	if need := card.Room(area().Length, fs); area().Start(need) < fs+area().Length {
		t.Errorf("%d bytes are said to be room, but the file starts at %d", need, area().Start(need))
	}
}

func TestNamesOfModels(t *testing.T) {
	for path, want := range map[string]string{
		"/models/qwen2.5-1.5b-instruct-q4_k_m.gguf": "qwen2.5-1.5b-instruct-q4_k_m",
		"My Model (final).gguf":                     "My-Model--final-",
		"..gguf":                                    "model",
		"/":                                         "model",
		"--help":                                    "help",
		"модель.gguf":                               "model",
		strings.Repeat("a", 99) + ".gguf":           strings.Repeat("a", 64),
	} {
		got := card.ModelName(path)
		if got != want {
			t.Errorf("%q becomes %q, want %q", path, got, want)
		}
		if _, err := (card.Area{Name: got, Length: 1}).Encode(); err != nil {
			t.Errorf("%q: %v", path, err)
		}
	}
}

func TestTheSizeOfAFileSystem(t *testing.T) {
	partition := make([]byte, 4096)
	copy(partition[1024:], cardtest.Superblock(5<<40))
	if n, err := card.FileSystemSize(bytes.NewReader(partition)); err != nil || n != 5<<40 {
		t.Errorf("got %d, %v", n, err)
	}
	clear(partition)
	if _, err := card.FileSystemSize(bytes.NewReader(partition)); !errors.Is(err, card.ErrNoFileSystem) {
		t.Errorf("got %v", err)
	}
}

func FuzzDecodeArea(f *testing.F) {
	good, err := area().Encode()
	if err != nil {
		f.Fatal(err)
	}
	f.Add(good[:120])
	f.Fuzz(func(t *testing.T, head []byte) {
		b := make([]byte, card.AreaHeaderBytes)
		copy(b, head)
		clear(b[12:16]) // a true checksum, so that what is behind it is looked at
		binary.LittleEndian.PutUint32(b[12:], crc32.Checksum(b, crc32.MakeTable(crc32.Castagnoli)))
		a, err := card.DecodeArea(b)
		if err != nil {
			return
		}
		again, err := a.Encode()
		if err != nil || !bytes.Equal(again, b) {
			t.Errorf("%+v is read from other bytes than it is written as", a)
		}
	})
}
