// Package verity reads what a box needs to know to mount its read-only root: where the partitions are, and how their hashes are
// laid out. It opens nothing and calls nothing.
//
// The root hash is the only thing that is trusted; it stands in the kernel's command line, inside the signed-by-content file that
// is booted. From it follow the partitions: the first half of the hash is the identifier of the partition with the data, the
// second half that of the one with the hashes (UAPI Discoverable Partitions Specification). What the superblock says is checked
// by the kernel against the root hash as soon as anything is read.
package verity

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"
)

// SuperblockBytes is how much of the hash partition Parse wants.
const SuperblockBytes = 512

// RootHash is the hash of the whole root, SHA-256.
type RootHash [32]byte

// FromCommandLine finds roothash= in a kernel's command line.
func FromCommandLine(line string) (RootHash, error) {
	for field := range strings.FieldsSeq(line) {
		if text, found := strings.CutPrefix(field, "roothash="); found {
			b, err := hex.DecodeString(text)
			if err != nil || len(b) != len(RootHash{}) {
				return RootHash{}, fmt.Errorf("verity: %.80q is no root hash", text)
			}
			return RootHash(b), nil
		}
	}
	return RootHash{}, errors.New("verity: the command line has no roothash=")
}

// DataUUID is the identifier of the partition that holds the root.
func (h RootHash) DataUUID() string { return uuid(h[:16]) }

// HashUUID is the identifier of the partition that holds its hashes.
func (h RootHash) HashUUID() string { return uuid(h[16:]) }

func (h RootHash) String() string { return hex.EncodeToString(h[:]) }

func uuid(b []byte) string {
	return fmt.Sprintf("%x-%x-%x-%x-%x", b[:4], b[4:6], b[6:8], b[8:10], b[10:16])
}

// Superblock is the head of a hash partition (cryptsetup's wiki, "DM-Verity", version 1).
type Superblock struct {
	Algorithm       string
	DataBlockBytes  uint32
	HashBlockBytes  uint32
	DataBlocks      uint64
	Salt            []byte
	hashBlocksBegin uint64
}

// Offsets in the superblock.
const (
	versionAt   = 8
	kindAt      = 12
	algorithmAt = 32
	dataBlockAt = 64
	hashBlockAt = 68
	blocksAt    = 72
	saltSizeAt  = 80
	saltAt      = 88
	maxSalt     = 256
)

// Parse reads a superblock. It takes only what the image is made with: version 1 of superblock and hash, SHA-256, blocks of 4096
// bytes.
func Parse(b []byte) (Superblock, error) {
	le := binary.LittleEndian
	if len(b) < SuperblockBytes || !bytes.HasPrefix(b, []byte("verity\x00\x00")) {
		return Superblock{}, errors.New("verity: there is no superblock")
	}
	name, _, _ := bytes.Cut(b[algorithmAt:dataBlockAt], []byte{0})
	s := Superblock{
		Algorithm: string(name), DataBlockBytes: le.Uint32(b[dataBlockAt:]), HashBlockBytes: le.Uint32(b[hashBlockAt:]),
		DataBlocks: le.Uint64(b[blocksAt:]), hashBlocksBegin: 1,
	}
	salt := le.Uint16(b[saltSizeAt:])
	switch {
	case le.Uint32(b[versionAt:]) != 1 || le.Uint32(b[kindAt:]) != 1:
		return Superblock{}, errors.New("verity: unknown version of the superblock")
	case s.Algorithm != "sha256":
		return Superblock{}, fmt.Errorf("verity: hashes of kind %q", s.Algorithm)
	case s.DataBlockBytes != 4096 || s.HashBlockBytes != 4096:
		return Superblock{}, fmt.Errorf("verity: blocks of %d and %d bytes", s.DataBlockBytes, s.HashBlockBytes)
	case s.DataBlocks == 0 || s.DataBlocks > 1<<32:
		return Superblock{}, fmt.Errorf("verity: %d blocks", s.DataBlocks)
	case salt > maxSalt:
		return Superblock{}, fmt.Errorf("verity: a salt of %d bytes", salt)
	}
	s.Salt = bytes.Clone(b[saltAt : saltAt+int(salt)])
	return s, nil
}

// Sectors is the size of the mapped device, in units of 512 bytes.
func (s Superblock) Sectors() uint64 { return s.DataBlocks * uint64(s.DataBlockBytes) / 512 }

// Table is the line that device mapper's target "verity" takes (the kernel's Documentation/admin-guide/device-mapper/verity.rst).
// A block with a wrong hash restarts the machine: the slot then has one try less, and its turn ends.
func (s Superblock) Table(data, hash string, root RootHash) string {
	salt := "-"
	if len(s.Salt) > 0 {
		salt = hex.EncodeToString(s.Salt)
	}
	return fmt.Sprintf("1 %s %s %d %d %d %d %s %s %s 1 restart_on_corruption",
		data, hash, s.DataBlockBytes, s.HashBlockBytes, s.DataBlocks, s.hashBlocksBegin, s.Algorithm, root, salt)
}
