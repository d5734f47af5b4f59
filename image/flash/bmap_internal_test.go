package flash

import (
	"os"
	"path/filepath"
	"testing"
)

// FuzzBmap: whatever a block map says, its ranges ascend and lie within the image.
func FuzzBmap(f *testing.F) {
	good, err := os.ReadFile(filepath.Join("testdata", "bmaptool.bmap"))
	if err != nil {
		f.Fatal(err)
	}
	f.Add(good)
	f.Fuzz(func(t *testing.T, b []byte) {
		ranges, size, err := parseBmap(b)
		if err != nil {
			return
		}
		at := int64(0)
		for _, r := range ranges {
			if r.Start < at || r.End <= r.Start || r.End > size {
				t.Errorf("%+v of %d", r, size)
			}
			at = r.End
		}
	})
}

// What bmaptool itself made: of 10 MiB and 100 bytes, with something in its first block, its ninth MiB and its end.
func TestABlockMapOfBmaptool(t *testing.T) {
	b, err := os.ReadFile(filepath.Join("testdata", "bmaptool.bmap"))
	if err != nil {
		t.Fatal(err)
	}
	ranges, size, err := parseBmap(b)
	if err != nil {
		t.Fatal(err)
	}
	if size != 10<<20+100 || len(ranges) == 0 || ranges[0].Start != 0 || ranges[len(ranges)-1].End != size {
		t.Errorf("%+v of %d", ranges, size)
	}
}
