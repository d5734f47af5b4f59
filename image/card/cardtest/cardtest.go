// Package cardtest makes small images with a card's layout, by another implementation of the partition table than the one under
// test.
package cardtest

import (
	"encoding/binary"
	"fmt"
	"os"

	"github.com/diskfs/go-diskfs/backend/file"
	"github.com/diskfs/go-diskfs/filesystem/fat32"
	"github.com/diskfs/go-diskfs/partition/gpt"

	"assent.home.arpa/image/card"
)

// Sizes of the small image's partitions, in MiB.
const (
	BootMiB = 3
	DataMiB = 2
)

const mib = 1 << 20

// Parts is the layout of the small image.
func Parts() []Part {
	return []Part{
		{card.Boot, card.TypeESP, BootMiB},
		{card.RootA, card.TypeRoot, 1},
		{card.VerityA, card.TypeVerity, 1},
		{card.Empty, card.TypeRoot, 1},
		{card.Empty, card.TypeVerity, 1},
		{card.Audit, card.TypeLinux, 1},
		{card.Data, card.TypeLinux, DataMiB},
	}
}

// Part is one partition to make.
type Part struct {
	Label, Type string
	MiB         int64
}

// Image writes an image of parts to a new file: the table, a FAT file system in boot, a file system's superblock in data, and
// a pattern in the roots.
func Image(path string, parts []Part) error {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o644)
	if err != nil {
		return err
	}
	defer f.Close()
	table := &gpt.Table{LogicalSectorSize: card.SectorBytes, PhysicalSectorSize: card.SectorBytes, ProtectiveMBR: true, GUID: "A55E0000-0000-4000-8000-000000000001"}
	at := int64(1)
	for i, p := range parts {
		table.Partitions = append(table.Partitions, &gpt.Partition{
			Index: i + 1, Start: uint64(at * mib / card.SectorBytes), End: uint64((at+p.MiB)*mib/card.SectorBytes - 1),
			Type: gpt.Type(p.Type), Name: p.Label, GUID: fmt.Sprintf("A55E0000-0000-4000-8000-0000000000%02X", 0x10+i),
		})
		at += p.MiB
	}
	if err := f.Truncate((at + 1) * mib); err != nil {
		return err
	}
	if err := table.Write(f, (at+1)*mib); err != nil {
		return err
	}
	at = 1
	for i, p := range parts {
		if err := fill(f, p, at*mib, byte(i+1)); err != nil {
			return fmt.Errorf("%s: %w", p.Label, err)
		}
		at += p.MiB
	}
	return nil
}

func fill(f *os.File, p Part, at int64, pattern byte) error {
	switch p.Label {
	case card.Boot:
		_, err := fat32.Create(file.New(f, false), p.MiB*mib, at, card.SectorBytes, "BOOT", true)
		return err
	case card.Data:
		_, err := f.WriteAt(Superblock(p.MiB*mib), at+1024)
		return err
	case card.RootA, card.VerityA:
		b := make([]byte, p.MiB*mib)
		for i := range b {
			b[i] = pattern ^ byte(i*7>>9)
		}
		_, err := f.WriteAt(b, at)
		return err
	}
	return nil
}

// Superblock is as much of ext4's superblock as tells its size: blocks of 4096 bytes, 64-bit counts.
func Superblock(size int64) []byte {
	b := make([]byte, 1024)
	le := binary.LittleEndian
	blocks := uint64(size / 4096)
	le.PutUint32(b[0x04:], uint32(blocks))
	le.PutUint32(b[0x18:], 2)
	le.PutUint16(b[0x38:], 0xef53)
	le.PutUint32(b[0x60:], 0x80)
	le.PutUint32(b[0x150:], uint32(blocks>>32))
	return b
}
