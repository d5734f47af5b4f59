package flash_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
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

func TestImagesThatAreDamaged(t *testing.T) {
	imagePath, content := image(t)
	packed, err := os.ReadFile(compress(t, imagePath))
	if err != nil {
		t.Fatal(err)
	}
	// plain and pack put a copy of the image into a directory of its own, after harm.
	plain := func(t *testing.T, content []byte) string {
		path := filepath.Join(t.TempDir(), "box.img")
		put(t, path, content)
		return path
	}
	pack := func(t *testing.T, harm func(b []byte) []byte) string {
		path := filepath.Join(t.TempDir(), "box.img.xz")
		put(t, path, harm(bytes.Clone(packed)))
		return path
	}
	whole := func(b []byte) []byte { return b }
	sumLine := func(b []byte, name string) []byte { return fmt.Appendf(nil, "%x  %s\n", sha256.Sum256(b), name) }
	for _, tc := range []struct {
		name string
		make func(t *testing.T) string
		want string
	}{
		{"a checksum beside it is another's", func(t *testing.T) string {
			path := plain(t, content)
			put(t, path+".sha256", sumLine([]byte("another"), "box.img"))
			return path
		}, "its sha256 is"},
		{"the compressed one's is another's", func(t *testing.T) string {
			path := pack(t, whole)
			put(t, filepath.Join(filepath.Dir(path), "SHA256SUMS"), sumLine([]byte("another"), "*box.img.xz"))
			return path
		}, "its sha256 is"},
		{"the content's is another's", func(t *testing.T) string {
			path := pack(t, whole)
			put(t, strings.TrimSuffix(path, ".xz")+".sha256", sumLine([]byte("another"), "box.img"))
			return path
		}, "its sha256 is"},
		{"a checksum file that is none", func(t *testing.T) string {
			path := plain(t, content)
			put(t, path+".sha256", []byte("<html>not found</html>"))
			return path
		}, "is not a list of checksums"},
		{"a flipped bit in what is compressed", func(t *testing.T) string {
			return pack(t, func(b []byte) []byte { b[len(b)/2] ^= 1; return b })
		}, "it is damaged, or was not fetched to its end; fetch it again"},
		{"half of what is compressed", func(t *testing.T) string {
			return pack(t, func(b []byte) []byte { return b[:len(b)/2] })
		}, "it is damaged, or was not fetched to its end; fetch it again"},
		{"memory that nobody has", func(t *testing.T) string {
			return pack(t, func(b []byte) []byte {
				at := bytes.Index(b[12:64], []byte{0x21, 1}) // the first block's filter, LZMA2
				b[12+at+2] = 40                              // 4 GiB - 1
				return b
			})
		}, "more than 64 MiB of memory"},
		{"half of an image", func(t *testing.T) string {
			return plain(t, content[:len(content)/2])
		}, "its partition table is for"},
		{"another system's image", func(t *testing.T) string {
			path := filepath.Join(t.TempDir(), "other.img")
			if err := cardtest.Image(path, cardtest.Parts()[:2]); err != nil {
				t.Fatal(err)
			}
			return path
		}, "not a card of Assent: 2 partitions"},
		{"a picture", func(t *testing.T) string {
			path := filepath.Join(t.TempDir(), "cat.jpg")
			put(t, path, bytes.Repeat([]byte("\xff\xd8cat"), mib))
			return path
		}, "no GUID partition table"},
		{"an empty file", func(t *testing.T) string {
			path := filepath.Join(t.TempDir(), "empty.img")
			put(t, path, nil)
			return path
		}, "it has 0 bytes"},
		{"a block map that was changed", func(t *testing.T) string {
			path := plain(t, content)
			put(t, path+".bmap", bytes.Replace(flashtest.Bmap(content), []byte("<Range"), []byte("<Range "), 1))
			return path
		}, "its block map: its own checksum is wrong"},
		{"a block map of another image", func(t *testing.T) string {
			path := plain(t, content)
			put(t, path+".bmap", flashtest.Bmap(content[:len(content)-mib]))
			return path
		}, "its block map: it is for an image of"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			path := tc.make(t)
			_, err := flash.OpenImage(t.Context(), path, nil)
			var damaged *flash.ImageError
			if !errors.As(err, &damaged) || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("got %v, want %q", err, tc.want)
			}
		})
	}
}

// What is written is what was checked, also where the file becomes another one in between.
func TestAnImageThatChangesBetweenCheckAndWrite(t *testing.T) {
	for event, compressed := range map[string]bool{"plain": false, "compressed, with a checksum of its content": true} {
		t.Run(event, func(t *testing.T) {
			path, content := image(t)
			put(t, filepath.Join(filepath.Dir(path), "SHA256SUMS"), fmt.Appendf(nil, "%x  box.img\n", sha256.Sum256(content)))
			evil := bytes.Clone(content)
			copy(evil[2*mib:], "EVIL")
			if compressed {
				other := filepath.Join(t.TempDir(), "box.img")
				put(t, other, evil)
				path = compress(t, path)
				var err error
				if evil, err = os.ReadFile(compress(t, other)); err != nil {
					t.Fatal(err)
				}
			}
			im := open(t, path)
			if !im.Checked {
				t.Fatal("the checksum was overlooked")
			}
			put(t, path, evil)
			c := flashtest.NewCard(cardSize)
			_, err := flash.Job{Image: im, Target: c}.Run(t.Context())
			var damaged *flash.ImageError
			if !errors.As(err, &damaged) || !strings.Contains(err.Error(), "it has changed since it was checked") {
				t.Errorf("%v", err)
			}
			if _, err := card.ReadTable(c); err == nil {
				t.Error("the card starts a box")
			}
		})
	}
	t.Run("no checksum, and another head", func(t *testing.T) {
		path, content := image(t)
		im := open(t, path)
		content[card.HeadBytes+5] ^= 1
		put(t, path, content)
		_, err := flash.Job{Image: im, Target: flashtest.NewCard(cardSize)}.Run(t.Context())
		if err == nil || !strings.Contains(err.Error(), "it has changed since it was checked") {
			t.Errorf("%v", err)
		}
	})
}

// Where nothing but the block map tells, it tells while the card is written.
func TestAnImageThatIsNotItsBlockMaps(t *testing.T) {
	path, content := image(t)
	put(t, path+".bmap", flashtest.Bmap(content))
	content[4*mib+17] ^= 1
	put(t, path, content)
	_, err := flash.Job{Image: open(t, path), Target: used(t, content)}.Run(t.Context())
	var damaged *flash.ImageError
	if !errors.As(err, &damaged) {
		t.Errorf("got %v", err)
	}
}

func TestAnImageWithItsChecksum(t *testing.T) {
	path, content := image(t)
	compressed := compress(t, path)
	if open(t, path).Checked || open(t, compressed).Checked {
		t.Error("an image without a checksum is said to be checked")
	}
	put(t, path+".sha256", fmt.Appendf(nil, "%x\n", sha256.Sum256(content)))
	want := []int64{int64(len(content)), int64(len(content))}
	a, b := open(t, path), open(t, compressed)
	if diff := cmp.Diff(want, []int64{a.Size, b.Size}); diff != "" || !a.Checked || !b.Checked {
		t.Errorf("checked %v, %v; %s", a.Checked, b.Checked, diff)
	}
}

// A checksum is of the image alone: a block map that leaves out what the image holds would keep there what the card held before.
func TestABlockMapThatLeavesSomethingOut(t *testing.T) {
	path, content := image(t)
	put(t, path+".sha256", fmt.Appendf(nil, "%x\n", sha256.Sum256(content)))
	var held []int
	for at := 2 * mib; at+flashtest.BlockBytes < len(content)-mib; at += flashtest.BlockBytes {
		if bytes.Count(content[at:at+flashtest.BlockBytes], []byte{0}) != flashtest.BlockBytes {
			held = append(held, at)
		}
	}
	if len(held) == 0 {
		t.Fatal("the image holds nothing")
	}
	for name, from := range map[string]int{"a block between others": held[0], "all that follows": held[len(held)-1]} {
		t.Run(name, func(t *testing.T) {
			less := bytes.Clone(content)
			if from == held[0] {
				clear(less[from : from+flashtest.BlockBytes])
			} else {
				clear(less[from:])
			}
			put(t, path+".bmap", flashtest.Bmap(less))
			im := open(t, path)
			_, err := flash.Job{Image: im, Target: used(t, content)}.Run(t.Context())
			var bad *flash.ImageError
			var unfinished *flash.UnfinishedError
			if !im.Checked || !errors.As(err, &bad) || !errors.As(err, &unfinished) {
				t.Errorf("checked %v, got %v", im.Checked, err)
			}
		})
	}
}
