package card

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"path/filepath"
	"strings"
)

// AreaHeaderBytes is the size of the import area's header.
const AreaHeaderBytes = 4096

// MaxFile bounds the length of a file in the import area.
const MaxFile = 1 << 40

// maxName bounds its name.
const maxName = 64

const (
	areaMagic   = "ASSENTia"
	areaVersion = 1
)

// slack is what the file system needs beside the files in it: journal, tables that grow with it, and what the box writes.
const slack = 64 << 20

// ErrNoArea says that no file is waiting.
var ErrNoArea = errors.New("nothing waits in the import area")

// AreaError says that something is in the import area that is no file: it may be wiped.
type AreaError struct{ Why string }

func (e *AreaError) Error() string { return "the import area is damaged: " + e.Why }

// Area is the header of an import area.
type Area struct {
	Name   string // of the model, without .gguf; see ModelName
	Length int64
	SHA256 [sha256.Size]byte
}

// Start returns where the file begins in a partition of size bytes. It is negative where the file does not fit.
func (a Area) Start(size int64) int64 {
	free := size - AreaHeaderBytes - a.Length
	if free < 0 {
		return -1
	}
	return free / align * align
}

// Encode returns the header's bytes. The error says what is wrong with a.
func (a Area) Encode() ([]byte, error) {
	if err := a.valid(); err != nil {
		return nil, err
	}
	b := make([]byte, AreaHeaderBytes)
	copy(b, areaMagic)
	binary.LittleEndian.PutUint32(b[8:], areaVersion)
	binary.LittleEndian.PutUint64(b[16:], uint64(a.Length))
	copy(b[24:], a.SHA256[:])
	copy(b[56:], a.Name)
	binary.LittleEndian.PutUint32(b[12:], areaSum(b))
	return b, nil
}

func (a Area) valid() error {
	if a.Length <= 0 || a.Length > MaxFile {
		return fmt.Errorf("a length of %d bytes", a.Length)
	}
	if a.Name == "" || len(a.Name) > maxName || strings.ContainsFunc(a.Name, foreign) || !initial(a.Name[0]) {
		return fmt.Errorf("the name %q", a.Name)
	}
	return nil
}

// initial reports whether a name may begin with c.
func initial(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9'
}

// foreign reports whether r may not be in a name at all.
func foreign(r rune) bool {
	return r > 0x7f || !initial(byte(r)) && !strings.ContainsRune("._-", r)
}

// DecodeArea reads a header. Errors: ErrNoArea, *AreaError.
func DecodeArea(b []byte) (Area, error) {
	if len(b) != AreaHeaderBytes || string(b[:8]) != areaMagic {
		return Area{}, ErrNoArea
	}
	if binary.LittleEndian.Uint32(b[12:]) != areaSum(b) {
		return Area{}, &AreaError{"its checksum is wrong"}
	}
	if v := binary.LittleEndian.Uint32(b[8:]); v != areaVersion {
		return Area{}, &AreaError{fmt.Sprintf("it is of version %d, this box knows version %d", v, areaVersion)}
	}
	name, _, _ := strings.Cut(string(b[56:56+maxName]), "\x00")
	a := Area{Name: name, Length: int64(binary.LittleEndian.Uint64(b[16:])), SHA256: [sha256.Size]byte(b[24:])}
	if err := a.valid(); err != nil {
		return Area{}, &AreaError{"it holds " + err.Error()}
	}
	// One header, one encoding: what this does not know of, it does not take.
	if again, err := a.Encode(); err != nil || !bytes.Equal(again, b) {
		return Area{}, &AreaError{"it holds what does not belong there"}
	}
	return a, nil
}

// areaSum is the header's CRC-32C, taken with its own field zero.
func areaSum(b []byte) uint32 {
	c := [AreaHeaderBytes]byte(b)
	clear(c[12:16])
	return crc32.Checksum(c[:], crc32.MakeTable(crc32.Castagnoli))
}

// FindArea reads the header at the end of a partition of size bytes whose file system is of fileSystem bytes (see
// FileSystemSize). Errors: ErrNoArea, also where the file system has grown over the place, *AreaError, and those of reading.
func FindArea(partition io.ReaderAt, size, fileSystem int64) (Area, error) {
	if fileSystem > size-AreaHeaderBytes {
		return Area{}, ErrNoArea
	}
	b := make([]byte, AreaHeaderBytes)
	if _, err := partition.ReadAt(b, size-AreaHeaderBytes); err != nil {
		return Area{}, fmt.Errorf("reading the import area: %w", err)
	}
	a, err := DecodeArea(b)
	if err != nil {
		return Area{}, err
	}
	if start := a.Start(size); start < fileSystem {
		return Area{}, &AreaError{"its file would lie in the file system"}
	}
	return a, nil
}

// Room returns how large a data partition must be so that a file of length bytes can wait in it and be copied into its file
// system, which is of fileSystem bytes now. ext4 spends less than one byte in 32 on its own tables.
func Room(length, fileSystem int64) int64 {
	copied := fileSystem + slack + length + length/32
	return (copied+align-1)/align*align + (length+AreaHeaderBytes+align-1)/align*align
}

// ModelName makes a name for the import area of a file's path: its base without .gguf, in which everything but letters, digits
// and ". _ -" becomes a dash. It is "model" where nothing is left.
func ModelName(path string) string {
	name := strings.Map(func(r rune) rune {
		if foreign(r) {
			return '-'
		}
		return r
	}, strings.TrimSuffix(filepath.Base(path), ".gguf"))
	name = strings.TrimLeft(name, "._-")
	if name = name[:min(len(name), maxName)]; name == "" {
		return "model"
	}
	return name
}
