package card

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
)

// Offsets in ext4's superblock (the kernel's Documentation/filesystems/ext4/super.rst).
const (
	superAt      = 1024
	superBytes   = 1024
	superBlocks  = 0x04
	superLogSize = 0x18
	superMagic   = 0x38
	superFlags   = 0x60
	superHigh    = 0x150
	magicExt4    = 0xef53
	flag64bit    = 0x80
)

// ErrNoFileSystem says that a partition holds no ext4 file system.
var ErrNoFileSystem = errors.New("no ext4 file system")

// FileSystemSize returns how many bytes of a partition its ext4 file system takes. It may be mounted.
func FileSystemSize(partition io.ReaderAt) (int64, error) {
	b := make([]byte, superBytes)
	if _, err := partition.ReadAt(b, superAt); err != nil {
		return 0, fmt.Errorf("reading the file system's superblock: %w", err)
	}
	le := binary.LittleEndian
	shift := le.Uint32(b[superLogSize:])
	if le.Uint16(b[superMagic:]) != magicExt4 || shift > 6 {
		return 0, ErrNoFileSystem
	}
	blocks := uint64(le.Uint32(b[superBlocks:]))
	if le.Uint32(b[superFlags:])&flag64bit != 0 {
		blocks |= uint64(le.Uint32(b[superHigh:])) << 32
	}
	if blocks == 0 || blocks > 1<<48 {
		return 0, ErrNoFileSystem
	}
	return int64(blocks) << (10 + shift), nil
}
