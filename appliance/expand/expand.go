// Package expand gives the box's data partition the rest of the card, on the first start after the card was written by a tool that
// does not know how (one that copies the image and nothing else). It happens before anything is mounted, and touches the partition
// table only: package intake grows the file system.
//
// A model that waits at the end of the partition is found by that end. As long as one waits, the partition stays as it is.
package expand

import (
	"errors"
	"fmt"
	"io"
	"os"
	"unsafe"

	"golang.org/x/sys/unix"

	"assent.home.arpa/image/card"
)

// Card makes the data partition of a disk reach to the disk's end, in the table and in the kernel, and reports whether it wrote
// for that, or to mend a torn table.
func Card(disk string) (bool, error) {
	f, err := os.OpenFile(disk, os.O_RDWR|unix.O_CLOEXEC, 0)
	if err != nil {
		return false, err
	}
	defer f.Close()
	size, err := f.Seek(0, io.SeekEnd)
	if err != nil {
		return false, fmt.Errorf("%s: %w", disk, err)
	}
	data, grown, err := Table(f, size)
	if err != nil || !grown {
		return grown, err
	}
	if err := tellKernel(f, data); err != nil {
		return true, err
	}
	return true, nil
}

// Disk is what a table is read from and written to.
type Disk interface {
	io.ReaderAt
	card.Disk
}

// Table edits the table of a disk of size bytes, and returns the data partition as it is then, and whether anything was written. A
// table that a power cut has torn is mended, whatever else there is to do.
func Table(disk Disk, size int64) (card.Partition, bool, error) {
	t, torn, err := card.ReadDisk(disk, size)
	if err != nil {
		return card.Partition{}, false, err
	}
	if err := t.Check(); err != nil {
		return card.Partition{}, false, err
	}
	if torn {
		if err := t.Repair(disk); err != nil {
			return card.Partition{}, false, err
		}
	}
	data, err := t.Lookup(card.Data)
	if err != nil {
		return card.Partition{}, torn, err
	}
	waits, err := modelWaits(io.NewSectionReader(disk, data.Start, data.Size), data.Size)
	if err != nil || waits {
		return data, torn, err
	}
	changed, err := t.Grow(size)
	if err != nil || !changed {
		return data, torn, err
	}
	larger, err := t.Lookup(card.Data)
	if err != nil {
		return data, torn, err
	}
	if err := forget(disk, data, larger); err != nil {
		return data, torn, err
	}
	if err := t.Write(disk); err != nil {
		return data, torn, err
	}
	return larger, true, nil
}

// forget wipes the place in which a model's header would be found once the partition is larger. What stands there now is of
// whoever used the card before: it must not pass for a model that its owner has put there.
func forget(disk card.Disk, data, larger card.Partition) error {
	end := larger.Start + larger.Size
	from := max(data.Start+data.Size, end-card.AreaHeaderBytes)
	if from >= end {
		return nil
	}
	if _, err := disk.WriteAt(make([]byte, end-from), from); err != nil {
		return fmt.Errorf("wiping the card's old content: %w", err)
	}
	if err := disk.Sync(); err != nil {
		return fmt.Errorf("wiping the card's old content: %w", err)
	}
	return nil
}

// modelWaits reports whether something waits in the partition's import area, be it damaged.
func modelWaits(partition io.ReaderAt, size int64) (bool, error) {
	fileSystem, err := card.FileSystemSize(partition)
	if errors.Is(err, card.ErrNoFileSystem) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	_, err = card.FindArea(partition, size, fileSystem)
	var damaged *card.AreaError
	switch {
	case err == nil || errors.As(err, &damaged):
		return true, nil
	case errors.Is(err, card.ErrNoArea):
		return false, nil
	}
	return false, err
}

// Of the kernel's include/uapi/linux/blkpg.h.
const (
	blkpg           = 0x1269 // _IO(0x12, 105)
	resizePartition = 3
)

type blkpgPartition struct {
	start, length int64 // bytes
	number        int32
	_             [64 + 64]byte // names, which nothing reads any more
}

type blkpgArgument struct {
	op, flags, length int32
	data              unsafe.Pointer
}

// tellKernel changes the size of a partition that the kernel knows, while others of the disk are in use.
func tellKernel(disk *os.File, p card.Partition) error {
	part := blkpgPartition{start: p.Start, length: p.Size, number: int32(p.Number)}
	arg := blkpgArgument{op: resizePartition, length: int32(unsafe.Sizeof(part)), data: unsafe.Pointer(&part)}
	if _, _, errno := unix.Syscall(unix.SYS_IOCTL, disk.Fd(), blkpg, uintptr(unsafe.Pointer(&arg))); errno != 0 {
		return fmt.Errorf("telling the kernel of the larger partition: %w; it is as large from the next start on", errno)
	}
	return nil
}
