package card

import (
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"io"
)

// Grow makes t the table of a disk of size bytes: the backup moves to its end, and data reaches as far as it can, up to a
// multiple of 1 MiB. It never makes data smaller, and reports whether anything changed. The error is a *NotCardError, or a
// *SmallError.
func (t *Table) Grow(size int64) (bool, error) {
	if err := t.Check(); err != nil {
		return false, err
	}
	if size < t.DiskSize() {
		return false, &SmallError{Have: size, Need: t.DiskSize()}
	}
	data, err := t.Lookup(Data)
	if err != nil {
		return false, err
	}
	was := *t
	le := binary.LittleEndian
	backup := uint64(size/SectorBytes) - 1
	end := max(data.Start+data.Size, (size-TailBytes)/align*align)
	le.PutUint64(t.entry(data.Number - 1)[40:], uint64(end/SectorBytes)-1)
	le.PutUint64(t.header[32:], backup)
	le.PutUint64(t.header[48:], backup-arraySectors-1)
	le.PutUint32(t.header[88:], crc32.ChecksumIEEE(t.entries[:]))
	le.PutUint32(t.header[16:], headerSum(t.header[:]))
	// The protective record covers the disk, or as much as 32 bits can say (UEFI 2.10, table 5.4).
	if record := t.mbr[protectiveAt:]; record[4] == protectiveSig {
		le.PutUint32(record[12:], uint32(min(backup, 0xffffffff)))
	}
	return *t != was, nil
}

// Head returns the first HeadBytes of the disk.
func (t *Table) Head() []byte {
	b := append(t.mbr[:len(t.mbr):len(t.mbr)], t.header[:]...)
	return append(b, t.entries[:]...)
}

// Tail returns the last TailBytes of the disk: the backup.
func (t *Table) Tail() []byte {
	b := *t
	backup := binary.LittleEndian.Uint64(t.header[32:])
	b.turn(backup, 1, backup-arraySectors)
	return append(b.entries[:], b.header[:]...)
}

// Disk is what a table is written to.
type Disk interface {
	io.WriterAt
	Sync() error
}

// Write writes the table, the backup first. Power may fail in between: the primary header is one sector, which is written
// whole or not at all, but the entries are not covered by it; a card that is torn there has its backup, and Repair mends it.
func (t *Table) Write(d Disk) error {
	if _, err := d.WriteAt(t.Tail(), t.DiskSize()-TailBytes); err != nil {
		return fmt.Errorf("writing the backup of the partition table: %w", err)
	}
	if err := d.Sync(); err != nil {
		return fmt.Errorf("writing the backup of the partition table: %w", err)
	}
	return t.Repair(d)
}

// Repair writes the table at the disk's beginning. The backup is not touched: until that is done it is the only one.
func (t *Table) Repair(d Disk) error {
	if _, err := d.WriteAt(t.Head(), 0); err != nil {
		return fmt.Errorf("writing the partition table: %w", err)
	}
	if err := d.Sync(); err != nil {
		return fmt.Errorf("writing the partition table: %w", err)
	}
	return nil
}

// SmallError says that a disk is too small.
type SmallError struct{ Have, Need int64 } // bytes

func (e *SmallError) Error() string {
	return fmt.Sprintf("too small: it has %d MiB, %d are needed", e.Have>>20, (e.Need+align-1)>>20)
}
