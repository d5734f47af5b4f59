package flash_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ulikunitz/xz"

	"assent.home.arpa/image/card"
	"assent.home.arpa/image/card/cardtest"
	"assent.home.arpa/image/flash"
	"assent.home.arpa/image/flash/flashtest"
)

const (
	mib      = 1 << 20
	cardSize = 128*mib + 5*card.SectorBytes
	settings = "[box]\nname = \"Kitchen\"\n"
)

// image makes a small image and returns its path and content.
func image(t *testing.T) (path string, content []byte) {
	t.Helper()
	path = filepath.Join(t.TempDir(), "box.img")
	if err := cardtest.Image(path, cardtest.Parts()); err != nil {
		t.Fatal(err)
	}
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return path, content
}

// compress has xz itself compress a file where it is installed, as the image's builder does.
func compress(t *testing.T, path string) string {
	t.Helper()
	if _, err := exec.LookPath("xz"); err == nil {
		if out, err := exec.Command("xz", "--keep", "-0", "--threads=2", "--block-size=4MiB", path).CombinedOutput(); err != nil {
			t.Fatalf("xz: %v\n%s", err, out)
		}
		return path + ".xz"
	}
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	w, err := xz.NewWriter(&b)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := w.Write(content); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	put(t, path+".xz", b.Bytes())
	return path + ".xz"
}

func put(t *testing.T, path string, b []byte) {
	t.Helper()
	if err := os.WriteFile(path, b, 0o644); err != nil {
		t.Fatal(err)
	}
}

func open(t *testing.T, path string) *flash.Image {
	t.Helper()
	im, err := flash.OpenImage(t.Context(), path, nil)
	if err != nil {
		t.Fatal(err)
	}
	return im
}

// model makes a file of the given length.
func model(t *testing.T, length int64) *flash.ModelFile {
	t.Helper()
	b := make([]byte, length)
	rand.NewChaCha8([32]byte{7}).Read(b)
	m := &flash.ModelFile{Path: filepath.Join(t.TempDir(), "m.gguf"), Name: "practice", Length: length, SHA256: sha256.Sum256(b)}
	put(t, m.Path, b)
	return m
}

// used is a card that was one of a box before, with a model that it has not taken.
func used(t *testing.T, content []byte) *flashtest.Card {
	t.Helper()
	c := flashtest.NewCard(cardSize)
	area, err := card.Area{Name: "stale", Length: 1}.Encode()
	if err != nil {
		t.Fatal(err)
	}
	for at := int64(0); at < cardSize; at += mib {
		c.Put(bytes.Repeat([]byte{0xee}, 4096), at)
	}
	c.Put(content[:mib], 0)
	c.Put(area, cardSize/mib*mib-mib-card.AreaHeaderBytes)
	return c
}

// What is on the card is the image, with a partition table for the card, and the model where the box looks for it.
func TestACardIsWritten(t *testing.T) {
	path, content := image(t)
	for _, tc := range []struct {
		name string
		path string
		bmap bool
	}{
		{"an image", path, false},
		{"a compressed image", compress(t, path), false},
		{"a compressed image with a block map", path + ".xz", true},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if tc.bmap {
				put(t, path+".bmap", flashtest.Bmap(content))
			}
			im := open(t, tc.path)
			if (im.Ranges != nil) != tc.bmap {
				t.Fatal("the block map was overlooked")
			}
			c, m := used(t, content), model(t, 5*mib+321)
			result, err := flash.Job{Image: im, Target: c, Model: m}.Run(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			table, err := card.ReadTable(c)
			if err != nil {
				t.Fatal(err)
			}
			data, err := table.Lookup(card.Data)
			if err != nil || table.DiskSize() != cardSize || data.Size != result.DataSize || data.Start+data.Size != 127*mib {
				t.Fatalf("data is %+v of %d, %v", data, table.DiskSize(), err)
			}
			for _, p := range table.Partitions()[:6] {
				got, want := read(t, c, p.Start, p.Size), content[p.Start:p.Start+p.Size]
				if tc.bmap { // what the map leaves out keeps what was there
					got, want = holding(got, want)
				}
				if !bytes.Equal(got, want) {
					t.Errorf("%s is not the image's", p.Label)
				}
			}
			partition := io.NewSectionReader(c, data.Start, data.Size)
			fs, err := card.FileSystemSize(partition)
			if err != nil {
				t.Fatal(err)
			}
			area, err := card.FindArea(partition, data.Size, fs)
			if err != nil || area.Name != "practice" {
				t.Fatalf("%+v, %v", area, err)
			}
			if sum := sha256.Sum256(read(t, c, data.Start+area.Start(data.Size), area.Length)); sum != m.SHA256 || sum != area.SHA256 {
				t.Error("the model is not the one that was given")
			}
		})
	}
}

// holding cuts both down to the blocks in which want holds something.
func holding(got, want []byte) (g, w []byte) {
	for at := 0; at < len(want); at += flashtest.BlockBytes {
		if b := want[at : at+flashtest.BlockBytes]; !bytes.Equal(b, make([]byte, len(b))) {
			g, w = append(g, got[at:at+flashtest.BlockBytes]...), append(w, b...)
		}
	}
	return g, w
}

func read(t *testing.T, c io.ReaderAt, at, n int64) []byte {
	t.Helper()
	b := make([]byte, n)
	if _, err := c.ReadAt(b, at); err != nil {
		t.Fatal(err)
	}
	return b
}

// A header that an earlier life of the card left at the same place is no model of this one.
func TestACardWithoutAModelHasNone(t *testing.T) {
	path, content := image(t)
	c := used(t, content)
	if _, err := (flash.Job{Image: open(t, path), Target: c}).Run(t.Context()); err != nil {
		t.Fatal(err)
	}
	table, err := card.ReadTable(c)
	if err != nil {
		t.Fatal(err)
	}
	data, err := table.Lookup(card.Data)
	if err != nil {
		t.Fatal(err)
	}
	if a, err := card.FindArea(io.NewSectionReader(c, data.Start, data.Size), data.Size, cardtest.DataMiB*mib); !errors.Is(err, card.ErrNoArea) {
		t.Errorf("%+v, %v", a, err)
	}
}

// A card that is just as large as the image has a file system to its end, which must stay as it is.
func TestACardAsSmallAsTheImage(t *testing.T) {
	path, content := image(t)
	content[len(content)-mib-1] = 0x5a // the last byte of data
	put(t, path, content)
	c := flashtest.NewCard(int64(len(content)))
	if _, err := (flash.Job{Image: open(t, path), Target: c}).Run(t.Context()); err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(read(t, c, 0, int64(len(content))), content) {
		t.Error("the card is not the image")
	}
}

// The settings are in a file system that others can read, and nothing else in it has changed.
func TestSettingsAreDropped(t *testing.T) {
	// As large as FAT32 has to be, for those that look closely.
	parts := cardtest.Parts()
	parts[0].MiB = 40
	path := filepath.Join(t.TempDir(), "box.img")
	if err := cardtest.Image(path, parts); err != nil {
		t.Fatal(err)
	}
	disk := filepath.Join(t.TempDir(), "disk.img")
	put(t, disk, nil)
	if err := os.Truncate(disk, cardSize); err != nil {
		t.Fatal(err)
	}
	target, err := flash.OpenFile(disk)
	if err != nil {
		t.Fatal(err)
	}
	defer target.Close()
	if _, err := (flash.Job{Image: open(t, path), Target: target, Settings: []byte(settings)}).Run(t.Context()); err != nil {
		t.Fatal(err)
	}
	got, err := flashtest.ReadBoot(target, "assent.toml")
	if err != nil || string(got) != settings {
		t.Errorf("%q, %v", got, err)
	}
	boot := filepath.Join(t.TempDir(), "boot.fat")
	put(t, boot, read(t, target, mib, 40*mib))
	if _, err := exec.LookPath("fsck.fat"); err == nil {
		if out, err := exec.Command("fsck.fat", "-n", "-v", boot).CombinedOutput(); err != nil {
			t.Errorf("fsck.fat: %v\n%s", err, out)
		}
	}
	if _, err := exec.LookPath("mtype"); err == nil {
		if out, err := exec.Command("mtype", "-i", boot, "::assent.toml").CombinedOutput(); err != nil || string(out) != settings {
			t.Errorf("mtype: %v\n%q", err, out)
		}
	}
}

// Issue 5: whatever ends the writing, the card is never said to be good, and has no partition table that would start it.
func TestAWriteThatIsCutShort(t *testing.T) {
	path, content := image(t)
	im, m := open(t, path), model(t, 5*mib)
	whole := used(t, content)
	if _, err := (flash.Job{Image: im, Target: whole, Model: m, Settings: []byte(settings)}).Run(t.Context()); err != nil {
		t.Fatal(err)
	}
	for n := 1; n <= whole.Writes(); n++ {
		c := used(t, content)
		c.FailAt(n)
		_, err := flash.Job{Image: im, Target: c, Model: m, Settings: []byte(settings)}.Run(t.Context())
		var unfinished *flash.UnfinishedError
		if !errors.As(err, &unfinished) || !strings.Contains(err.Error(), "does not start a box") {
			t.Fatalf("write %d of %d failed: %v", n, whole.Writes(), err)
		}
		if _, err := card.ReadTable(c); err == nil && n > 1 { // nothing was written by the first
			t.Fatalf("write %d of %d failed: the card has a partition table", n, whole.Writes())
		}
	}
}

func TestThePersonInterrupts(t *testing.T) {
	path, content := image(t)
	im := open(t, path)
	for _, stage := range []flash.Stage{flash.Writing, flash.Verifying} {
		ctx, cancel := context.WithCancel(t.Context())
		c := used(t, content)
		_, err := flash.Job{Image: im, Target: c, Progress: func(s flash.Stage, _, _ int64) {
			if s == stage {
				cancel()
			}
		}}.Run(ctx)
		var unfinished *flash.UnfinishedError
		if !errors.As(err, &unfinished) || !errors.Is(err, context.Canceled) {
			t.Errorf("%s: %v", stage, err)
		}
		if _, err := card.ReadTable(c); err == nil {
			t.Errorf("%s: the card has a partition table", stage)
		}
	}
}

// Cards that keep nothing, keep it wrong, or are smaller than they say, as the cheapest ones are.
func TestACardThatLies(t *testing.T) {
	path, content := image(t)
	im := open(t, path)
	for name, lie := range map[string]func(*flashtest.Card){
		"a bit that flips":       func(c *flashtest.Card) { c.Flip(4*mib + 17) },
		"one that keeps nothing": func(c *flashtest.Card) { c.Put(make([]byte, mib), 0); c.Forget() },
		"one that is half of it": func(c *flashtest.Card) { c.Shrink(cardSize / 2) },
	} {
		c := used(t, content)
		lie(c)
		if _, err := (flash.Job{Image: im, Target: c}).Run(t.Context()); err == nil || !strings.Contains(err.Error(), "does not hold") {
			t.Errorf("%s: %v", name, err)
		}
		if _, err := card.ReadTable(c); err == nil {
			t.Errorf("%s: the card has a partition table", name)
		}
	}
}

func TestWhatDoesNotFit(t *testing.T) {
	path, content := image(t)
	im := open(t, path)
	small := flash.Job{Image: im, Target: flashtest.NewCard(int64(len(content)) - card.SectorBytes)}
	var tooSmall *card.SmallError
	if err := small.Check(); !errors.As(err, &tooSmall) {
		t.Errorf("got %v", err)
	}
	c := used(t, content)
	large := flash.Job{Image: im, Target: c, Model: &flash.ModelFile{Name: "x", Length: 100 * mib}}
	if err := large.Check(); !errors.As(err, &tooSmall) || !strings.Contains(err.Error(), "twice its size") {
		t.Errorf("got %v", err)
	}
	if _, err := large.Run(t.Context()); err == nil || c.Writes() != 0 {
		t.Errorf("%d writes, %v", c.Writes(), err)
	}
}

func TestAModelThatChangesWhileItIsCopied(t *testing.T) {
	path, content := image(t)
	m := model(t, 5*mib)
	m.SHA256[0] ^= 1
	c := used(t, content)
	if _, err := (flash.Job{Image: open(t, path), Target: c, Model: m}).Run(t.Context()); err == nil || !strings.Contains(err.Error(), "the model has changed") {
		t.Errorf("got %v", err)
	}
}
