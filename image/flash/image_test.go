package flash_test

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"assent.home.arpa/image/card"
	"assent.home.arpa/image/card/cardtest"
	"assent.home.arpa/image/flash"
	"assent.home.arpa/image/flash/flashtest"
)

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
