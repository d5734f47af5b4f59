package blockmap_test

import (
	"bytes"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"assent.home.arpa/image/blockmap"
)

// dump is what dumpe2fs 1.47 prints, shortened.
const dump = `Filesystem volume name:   data
Block count:              100
Block size:               4096

Group 0: (Blocks 0-63) csum 0xb36c
  Block bitmap at 2 (+2), csum 0x9d5a3a2b
  Free blocks: 10-19, 21, 30-63
  Free inodes: 12-64
Group 1: (Blocks 64-99)
  Free blocks:
  Free inodes: 65-128
`

func TestExt4UsesWhatIsNotFree(t *testing.T) {
	got, err := blockmap.Ext4(dump, 100*4096)
	if err != nil {
		t.Fatal(err)
	}
	const b = 4096
	want := []blockmap.Range{{Start: 0, End: 10 * b}, {Start: 20 * b, End: 21 * b}, {Start: 22 * b, End: 30 * b}, {Start: 64 * b, End: 100 * b}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	for name, text := range map[string]string{
		"nothing":            "",
		"nothing free":       strings.ReplaceAll(dump, "Free blocks: 10-19, 21, 30-63", ""),
		"beyond the end":     strings.Replace(dump, "30-63", "30-163", 1),
		"backwards":          strings.Replace(dump, "30-63", "30-20", 1),
		"not in order":       strings.Replace(dump, "10-19", "40-50", 1),
		"no numbers":         strings.Replace(dump, "30-63", "many", 1),
		"a larger partition": strings.Replace(dump, "count:              100", "count:              101", 1),
	} {
		if got, err := blockmap.Ext4(text, 100*4096); err == nil {
			t.Errorf("%s: %v", name, got)
		}
	}
}

// fat is a FAT32 file system of ten clusters of 512 bytes, of which the third is used.
func fat() []byte {
	b := make([]byte, 14*512)
	b[12], b[13], b[14], b[16], b[36] = 2, 1, 2, 2, 1 // 512 bytes, 1 sector, 2 reserved, 2 tables of 1 sector
	b[510], b[511] = 0x55, 0xaa
	table := b[1024:]
	copy(table[8+2*4:], []byte{0xff, 0xff, 0xff, 0x0f})
	return b
}

func TestFAT32UsesWhatIsNotFree(t *testing.T) {
	got, err := blockmap.FAT32(bytes.NewReader(fat()), 14*512)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]blockmap.Range{{Start: 0, End: 2048}, {Start: 3072, End: 3584}}, got); diff != "" {
		t.Error(diff)
	}
	for name, harm := range map[string]func(b []byte){
		"no signature":     func(b []byte) { b[510] = 0 },
		"no sectors":       func(b []byte) { b[12] = 0 },
		"no clusters":      func(b []byte) { b[13] = 0 },
		"no table":         func(b []byte) { b[36] = 0 },
		"FAT16":            func(b []byte) { b[22] = 1 },
		"tables too large": func(b []byte) { b[37] = 1 },
	} {
		b := fat()
		harm(b)
		if got, err := blockmap.FAT32(bytes.NewReader(b), 14*512); err == nil {
			t.Errorf("%s: %v", name, got)
		}
	}
}

func TestTheMapIsThis(t *testing.T) {
	image := make([]byte, 5*blockmap.Block)
	image[0], image[3*blockmap.Block] = 1, 2
	var got bytes.Buffer
	// Out of order, overlapping, touching, and not at the edges of blocks.
	ranges := []blockmap.Range{{Start: 3 * blockmap.Block, End: 3*blockmap.Block + 1}, {Start: 1, End: 2}, {Start: 0, End: blockmap.Block}, {Start: 9, End: 9}}
	if err := blockmap.Write(&got, bytes.NewReader(image), int64(len(image)), ranges); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"<ImageSize> 20480 </ImageSize>", "<BlocksCount> 5 </BlocksCount>", "<MappedBlocksCount> 2 </MappedBlocksCount>", "> 0-0 </Range>", "> 3-3 </Range>",
	} {
		if !strings.Contains(got.String(), want) {
			t.Errorf("no %s in\n%s", want, got.String())
		}
	}
	for name, r := range map[string]blockmap.Range{"before it": {Start: -1, End: 3}, "after it": {Start: 0, End: 20481}, "backwards": {Start: 5, End: 4}} {
		if err := blockmap.Write(&got, bytes.NewReader(image), int64(len(image)), []blockmap.Range{r}); err == nil {
			t.Errorf("a range %s is taken", name)
		}
	}
}
