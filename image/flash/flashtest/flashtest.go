// Package flashtest has a card that breaks on demand, and what belongs to an image beside it.
package flashtest

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"time"

	"github.com/diskfs/go-diskfs/backend"
	"github.com/diskfs/go-diskfs/filesystem/fat32"

	"assent.home.arpa/image/card"
)

// BlockBytes is the block size of Bmap.
const BlockBytes = 4096

// Card is a card in memory. Like a worn or a false one, it may fail, forget, flip a bit, or be smaller than it says.
type Card struct {
	content []byte
	writes  int
	failAt  int
	forgets bool
	keeps   int64
	flip    int64
}

// NewCard returns a card of size bytes that holds zeros.
func NewCard(size int64) *Card { return &Card{content: make([]byte, size), keeps: size, flip: -1} }

// Put sets bytes without the card's noticing.
func (c *Card) Put(b []byte, at int64) { copy(c.content[at:], b) }

// FailAt makes the nth write and everything after it fail: the card was pulled out.
func (c *Card) FailAt(n int) { c.failAt = n }

// Forget makes the card take writes and keep nothing.
func (c *Card) Forget() { c.forgets = true }

// Shrink makes the card keep nothing beyond n bytes, as the ones do that say to be larger than they are.
func (c *Card) Shrink(n int64) { c.keeps = n }

// Flip makes a bit of the byte at an offset come out wrong.
func (c *Card) Flip(at int64) { c.flip = at }

// Writes is how many writes there were.
func (c *Card) Writes() int { return c.writes }

// Size implements flash.Target.
func (c *Card) Size() int64 { return int64(len(c.content)) }

// Close implements flash.Target.
func (c *Card) Close() error { return nil }

// Sync implements flash.Target.
func (c *Card) Sync() error { return nil }

var errPulled = errors.New("input/output error")

// ReadAt implements flash.Target.
func (c *Card) ReadAt(p []byte, off int64) (int, error) {
	n := copy(p, c.content[min(off, c.Size()):])
	if at := c.flip - off; at >= 0 && at < int64(n) {
		p[at] ^= 1
	}
	if n < len(p) {
		return n, io.EOF
	}
	return n, nil
}

// WriteAt implements flash.Target.
func (c *Card) WriteAt(p []byte, off int64) (int, error) {
	c.writes++
	if c.failAt > 0 && c.writes >= c.failAt {
		return 0, errPulled
	}
	if off+int64(len(p)) > c.Size() {
		return 0, errors.New("beyond the card's end")
	}
	if !c.forgets && off+int64(len(p)) <= c.keeps {
		copy(c.content[off:], p)
	}
	return len(p), nil
}

// Bmap is the block map of an image, as bmaptool makes it: the blocks that hold something.
func Bmap(image []byte) []byte {
	var ranges bytes.Buffer
	blocks := (len(image) + BlockBytes - 1) / BlockBytes
	block := func(i int) []byte { return image[i*BlockBytes : min((i+1)*BlockBytes, len(image))] }
	empty := func(i int) bool { return bytes.Count(block(i), []byte{0}) == len(block(i)) }
	mapped := 0
	for i := 0; i < blocks; i++ {
		if empty(i) {
			continue
		}
		first := i
		for i < blocks && !empty(i) {
			i++
		}
		sum := sha256.Sum256(image[first*BlockBytes : min(i*BlockBytes, len(image))])
		text := fmt.Sprintf("%d-%d", first, i-1)
		if first == i-1 {
			text = fmt.Sprint(first)
		}
		fmt.Fprintf(&ranges, "        <Range chksum=\"%x\"> %s </Range>\n", sum, text)
		mapped += i - first
	}
	zeros := hex.EncodeToString(make([]byte, sha256.Size))
	bmap := fmt.Sprintf(`<?xml version="1.0" ?>
<bmap version="2.0">
    <ImageSize> %d </ImageSize>
    <BlockSize> %d </BlockSize>
    <BlocksCount> %d </BlocksCount>
    <MappedBlocksCount> %d  </MappedBlocksCount>
    <ChecksumType> sha256 </ChecksumType>
    <BmapFileChecksum> %s </BmapFileChecksum>
    <BlockMap>
%s    </BlockMap>
</bmap>
`, len(image), BlockBytes, blocks, mapped, zeros, &ranges)
	sum := sha256.Sum256([]byte(bmap))
	return bytes.Replace([]byte(bmap), []byte(zeros), []byte(hex.EncodeToString(sum[:])), 1)
}

// ReadBoot reads a file of a card's boot partition.
func ReadBoot(disk io.ReaderAt, name string) ([]byte, error) {
	table, err := card.ReadTable(disk)
	if err != nil {
		return nil, err
	}
	boot, err := table.Lookup(card.Boot)
	if err != nil {
		return nil, err
	}
	fat, err := fat32.Read(readOnly{ReaderAt: disk}, boot.Size, boot.Start, card.SectorBytes)
	if err != nil {
		return nil, err
	}
	return fat.ReadFile(name)
}

// readOnly is a disk as go-diskfs wants it.
type readOnly struct{ io.ReaderAt }

func (readOnly) Read([]byte) (int, error)                { return 0, backend.ErrNotSuitable }
func (readOnly) Seek(int64, int) (int64, error)          { return 0, backend.ErrNotSuitable }
func (readOnly) Close() error                            { return nil }
func (readOnly) Stat() (fs.FileInfo, error)              { return info{}, nil }
func (readOnly) Sys() (*os.File, error)                  { return nil, backend.ErrNotSuitable }
func (readOnly) Writable() (backend.WritableFile, error) { return nil, backend.ErrIncorrectOpenMode }
func (readOnly) Path() string                            { return "" }

type info struct{}

func (info) Name() string       { return "disk" }
func (info) Size() int64        { return 0 }
func (info) Mode() fs.FileMode  { return fs.ModeDevice }
func (info) ModTime() time.Time { return time.Time{} }
func (info) IsDir() bool        { return false }
func (info) Sys() any           { return nil }
