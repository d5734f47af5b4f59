// Package blockmap says which parts of an image must be written to a card, as bmaptool has it (block map format 2.0). What is not
// written keeps what the card held before, so the map is not made of what happens to be zero in the image, but of what the
// partitions' contents say they use: an empty slot, and the free blocks of file systems, are left out, and nothing else.
package blockmap

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// Block is the unit of a map in bytes.
const Block = 4096

// Range is a run of bytes that must be written.
type Range struct{ Start, End int64 } // End is the first byte behind it

// FAT32 returns what a FAT32 file system of size bytes uses (Microsoft's specification of 2000, sections 3 and 4): all up to the
// first cluster, and the clusters that are not free. Offsets are within the partition.
func FAT32(partition io.ReaderAt, size int64) ([]Range, error) {
	b := make([]byte, 512)
	if _, err := partition.ReadAt(b, 0); err != nil {
		return nil, err
	}
	le := binary.LittleEndian
	sector := int64(le.Uint16(b[11:]))
	cluster := int64(b[13]) * sector
	reserved, copies, length := int64(le.Uint16(b[14:]))*sector, int64(b[16]), int64(le.Uint32(b[36:]))*sector
	data := reserved + copies*length
	if le.Uint16(b[510:]) != 0xaa55 || sector < 512 || cluster == 0 || length == 0 || le.Uint16(b[22:]) != 0 || data >= size {
		return nil, errors.New("blockmap: no FAT32 file system")
	}
	table := make([]byte, length)
	if _, err := partition.ReadAt(table, reserved); err != nil {
		return nil, err
	}
	used := []Range{{0, data}}
	clusters := min((size-data)/cluster, int64(len(table)/4-2))
	for i := range clusters {
		if le.Uint32(table[4*(i+2):])&0x0fffffff != 0 {
			used = append(used, Range{data + i*cluster, data + (i+1)*cluster})
		}
	}
	return used, nil
}

// Ext4 returns what an ext4 file system of size bytes uses, from what dumpe2fs prints of it.
func Ext4(dump string, size int64) ([]Range, error) {
	block, err := number(dump, `(?m)^Block size:\s+(\d+)$`)
	if err != nil {
		return nil, err
	}
	count, err := number(dump, `(?m)^Block count:\s+(\d+)$`)
	if err != nil {
		return nil, err
	}
	if block < 1024 || count*block > size {
		return nil, errors.New("blockmap: a file system larger than its partition")
	}
	var used []Range
	at := int64(0)
	for _, m := range regexp.MustCompile(`(?m)^\s+Free blocks: (.*)$`).FindAllStringSubmatch(dump, -1) {
		for run := range strings.SplitSeq(m[1], ",") {
			if strings.TrimSpace(run) == "" {
				continue
			}
			first, last, two := strings.Cut(strings.TrimSpace(run), "-")
			from, err := strconv.ParseInt(first, 10, 64)
			to := from
			if err == nil && two {
				to, err = strconv.ParseInt(last, 10, 64)
			}
			if err != nil || from < at || to < from || to >= count {
				return nil, fmt.Errorf("blockmap: dumpe2fs says that %q is free", run)
			}
			used = append(used, Range{at * block, from * block})
			at = to + 1
		}
	}
	if at == 0 {
		return nil, errors.New("blockmap: dumpe2fs says that nothing is free")
	}
	return append(used, Range{at * block, count * block}), nil
}

func number(text, pattern string) (int64, error) {
	m := regexp.MustCompile(pattern).FindStringSubmatch(text)
	if m == nil {
		return 0, fmt.Errorf("blockmap: dumpe2fs does not print %s", pattern)
	}
	return strconv.ParseInt(m[1], 10, 64)
}

// Write writes the map of an image of size bytes, of which the ranges must be written; they may overlap and stand in any order.
func Write(w io.Writer, image io.ReaderAt, size int64, ranges []Range) error {
	if size <= 0 || size%Block != 0 {
		return fmt.Errorf("blockmap: an image of %d bytes", size)
	}
	blocks, err := merge(ranges, size)
	if err != nil {
		return err
	}
	var list strings.Builder
	mapped := int64(0)
	for _, r := range blocks {
		sum := sha256.New()
		if _, err := io.Copy(sum, io.NewSectionReader(image, r.Start*Block, (r.End-r.Start)*Block)); err != nil {
			return err
		}
		fmt.Fprintf(&list, "        <Range chksum=\"%x\"> %d-%d </Range>\n", sum.Sum(nil), r.Start, r.End-1)
		mapped += r.End - r.Start
	}
	// The map's own checksum is taken with zeros in its place.
	none := strings.Repeat("0", 2*sha256.Size)
	text := fmt.Sprintf(`<?xml version="1.0" ?>
<bmap version="2.0">
    <ImageSize> %d </ImageSize>
    <BlockSize> %d </BlockSize>
    <BlocksCount> %d </BlocksCount>
    <MappedBlocksCount> %d </MappedBlocksCount>
    <ChecksumType> sha256 </ChecksumType>
    <BmapFileChecksum> %s </BmapFileChecksum>
    <BlockMap>
%s    </BlockMap>
</bmap>
`, size, Block, size/Block, mapped, none, list.String())
	sum := sha256.Sum256([]byte(text))
	_, err = io.WriteString(w, strings.Replace(text, none, hex.EncodeToString(sum[:]), 1))
	return err
}

// merge turns ranges of bytes into ascending ranges of blocks that do not touch.
func merge(ranges []Range, size int64) ([]Range, error) {
	var blocks []Range
	for _, r := range ranges {
		if r.Start < 0 || r.End < r.Start || r.End > size {
			return nil, fmt.Errorf("blockmap: the range %d to %d is not in the image", r.Start, r.End)
		}
		if r.End > r.Start {
			blocks = append(blocks, Range{r.Start / Block, (r.End + Block - 1) / Block})
		}
	}
	slices.SortFunc(blocks, func(a, b Range) int { return int(a.Start - b.Start) })
	var merged []Range
	for _, r := range blocks {
		if n := len(merged); n > 0 && r.Start <= merged[n-1].End {
			merged[n-1].End = max(merged[n-1].End, r.End)
			continue
		}
		merged = append(merged, r)
	}
	return merged, nil
}
