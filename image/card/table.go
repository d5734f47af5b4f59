package card

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"unicode/utf16"
)

// Geometry of a table as every tool makes it: 128 entries of 128 bytes behind the header, the same before the backup header.
const (
	entries       = 128
	entryBytes    = 128
	headerBytes   = 92
	arraySectors  = entries * entryBytes / SectorBytes
	firstUsable   = 2 + arraySectors
	align         = 1 << 20
	labelUnits    = 36
	protectiveAt  = 446 // the first record of the MBR
	protectiveSig = 0xee
)

// HeadBytes is how much of a disk's beginning the table takes: protective MBR, header, entries.
const HeadBytes = firstUsable * SectorBytes

// TailBytes is how much of its end: entries, header.
const TailBytes = (arraySectors + 1) * SectorBytes

// Partition is one entry of a table. Start and Size are in bytes.
type Partition struct {
	Number int // from 1
	Label  string
	Type   string // a GUID in its usual form, lower case
	ID     string // likewise
	Start  int64
	Size   int64
}

// Table is a GUID partition table. What this package does not edit stays as it was read.
type Table struct {
	mbr     [SectorBytes]byte
	header  [SectorBytes]byte
	entries [entries * entryBytes]byte
}

// ReadTable reads the table at the beginning of a disk, or of an image. The error is a *NotCardError where there is none or it is
// damaged; the backup is not looked at: see ReadDisk.
func ReadTable(r io.ReaderAt) (*Table, error) {
	t := &Table{}
	head := make([]byte, HeadBytes)
	if _, err := r.ReadAt(head, 0); err != nil {
		return nil, fmt.Errorf("reading the partition table: %w", err)
	}
	copy(t.mbr[:], head)
	copy(t.header[:], head[SectorBytes:])
	copy(t.entries[:], head[2*SectorBytes:])
	if err := t.valid(); err != nil {
		return nil, err
	}
	return t, nil
}

// ReadDisk reads the table of a disk of size bytes. Where the one at its beginning is damaged, as a power cut in the middle of
// Write leaves it, the backup at its end counts, as it does for U-Boot and for a kernel that is told gpt; torn says so, and Repair
// mends it. The error is a *NotCardError where neither is good.
func ReadDisk(r io.ReaderAt, size int64) (t *Table, torn bool, err error) {
	t, err = ReadTable(r)
	var damaged *NotCardError
	if !errors.As(err, &damaged) {
		return t, false, err
	}
	if backup, failed := readBackup(r, size); failed == nil {
		return backup, true, nil
	}
	return nil, false, err
}

// readBackup reads the table at the end of a disk of size bytes, and returns it as it stands at the beginning.
func readBackup(r io.ReaderAt, size int64) (*Table, error) {
	if size < HeadBytes+TailBytes {
		return nil, &NotCardError{"it is too small for a partition table"}
	}
	at := size/SectorBytes*SectorBytes - TailBytes
	tail := make([]byte, TailBytes)
	if _, err := r.ReadAt(tail, at); err != nil {
		return nil, fmt.Errorf("reading the backup of the partition table: %w", err)
	}
	t := &Table{}
	copy(t.entries[:], tail)
	copy(t.header[:], tail[len(t.entries):])
	le := binary.LittleEndian
	own := uint64(at/SectorBytes) + arraySectors
	switch h := t.header[:]; {
	case le.Uint32(h[16:]) != headerSum(h):
		return nil, &NotCardError{"the backup of its partition table is damaged"}
	case le.Uint64(h[24:]) != own || le.Uint64(h[32:]) != 1 || le.Uint64(h[72:]) != own-arraySectors:
		return nil, &NotCardError{"the backup of its partition table is of another disk"}
	}
	t.turn(1, own, 2)
	if _, err := r.ReadAt(t.mbr[:], 0); err != nil {
		return nil, fmt.Errorf("reading the partition table: %w", err)
	}
	return t, t.valid()
}

// turn makes t's header the one at a place: own and other are where it and its twin are, array where its entries are.
func (t *Table) turn(own, other, array uint64) {
	le := binary.LittleEndian
	le.PutUint64(t.header[24:], own)
	le.PutUint64(t.header[32:], other)
	le.PutUint64(t.header[72:], array)
	le.PutUint32(t.header[16:], headerSum(t.header[:]))
}

func (t *Table) valid() error {
	le := binary.LittleEndian
	h := t.header[:]
	switch {
	case string(h[:8]) != "EFI PART":
		return &NotCardError{"it has no GUID partition table"}
	case le.Uint32(h[8:]) != 0x10000 || le.Uint32(h[12:]) != headerBytes:
		return &NotCardError{"its partition table is of an unknown kind"}
	case le.Uint32(h[16:]) != headerSum(h):
		return &NotCardError{"its partition table's header is damaged"}
	case le.Uint64(h[24:]) != 1 || le.Uint64(h[72:]) != 2 || le.Uint32(h[80:]) != entries || le.Uint32(h[84:]) != entryBytes:
		return &NotCardError{"its partition table has an unusual geometry"}
	case le.Uint32(h[88:]) != crc32.ChecksumIEEE(t.entries[:]):
		return &NotCardError{"its partition table's entries are damaged"}
	}
	first, last, backup := le.Uint64(h[40:]), le.Uint64(h[48:]), le.Uint64(h[32:])
	if first < firstUsable || last <= first || backup > 1<<40 || last+arraySectors+1 > backup {
		return &NotCardError{"its partition table contradicts itself"}
	}
	for i := range entries {
		e := t.entry(i)
		if start, end := le.Uint64(e[32:]), le.Uint64(e[40:]); used(e) && (start < first || end < start || end > last) {
			return &NotCardError{fmt.Sprintf("partition %d lies outside the disk", i+1)}
		}
	}
	return nil
}

func (t *Table) entry(i int) []byte { return t.entries[i*entryBytes : (i+1)*entryBytes] }

func used(entry []byte) bool { return [16]byte(entry) != [16]byte{} }

// headerSum is the header's CRC-32, taken with its own field zero.
func headerSum(h []byte) uint32 {
	c := [headerBytes]byte(h[:headerBytes])
	clear(c[16:20])
	return crc32.ChecksumIEEE(c[:])
}

// Partitions returns the entries that are in use, in the table's order.
func (t *Table) Partitions() []Partition {
	le := binary.LittleEndian
	var parts []Partition
	for i := range entries {
		e := t.entry(i)
		if !used(e) {
			continue
		}
		start, end := int64(le.Uint64(e[32:])), int64(le.Uint64(e[40:]))
		parts = append(parts, Partition{
			Number: i + 1, Label: label(e[56:]), Type: guid(e), ID: guid(e[16:]),
			Start: start * SectorBytes, Size: (end - start + 1) * SectorBytes,
		})
	}
	return parts
}

// Lookup finds a partition by its label. The error is a *NotCardError where there is none, or more than one.
func (t *Table) Lookup(label string) (Partition, error) {
	var found []Partition
	for _, p := range t.Partitions() {
		if p.Label == label {
			found = append(found, p)
		}
	}
	if len(found) != 1 {
		return Partition{}, &NotCardError{fmt.Sprintf("%d partitions are labelled %s", len(found), label)}
	}
	return found[0], nil
}

// DiskSize returns how large the disk is that the table was made for.
func (t *Table) DiskSize() int64 {
	return int64(binary.LittleEndian.Uint64(t.header[32:])+1) * SectorBytes
}

// label decodes a partition's name, UTF-16LE that ends at the first zero.
func label(b []byte) string {
	var units []uint16
	for i := range labelUnits {
		u := binary.LittleEndian.Uint16(b[2*i:])
		if u == 0 {
			break
		}
		units = append(units, u)
	}
	return string(utf16.Decode(units))
}

// guid writes a GUID as people do: its first three fields are stored little-endian (UEFI 2.10, appendix A).
func guid(b []byte) string {
	le := binary.LittleEndian
	return fmt.Sprintf("%08x-%04x-%04x-%x-%x", le.Uint32(b), le.Uint16(b[4:]), le.Uint16(b[6:]), b[8:10], b[10:16])
}
