package fat

import (
	"encoding/binary"
	"fmt"
)

// Format makes an empty volume of size bytes at the beginning of a medium that is all zeros. The kind follows from the size,
// as it does elsewhere: FAT12 below 4 MiB, FAT16 below 32 MiB, FAT32 above. label is at most eleven capital letters.
func Format(m Medium, size int64, label string) error {
	const sector, tables = 512, 2
	if size < 1<<20 || size > 64<<30 || len(label) > 11 {
		return fmt.Errorf("fat: a volume of %d bytes called %q is not made here", size, label)
	}
	kind, reserved, rootSlots, perCluster := fat32, int64(32), int64(0), int64(8)
	switch {
	case size < 4<<20:
		kind, reserved, rootSlots = fat12, 1, 512
	case size < 16<<20:
		kind, reserved, rootSlots, perCluster = fat16, 4, 512, 1
	case size < 32<<20:
		kind, reserved, rootSlots, perCluster = fat16, 4, 512, 4
	case size < 260<<20:
		perCluster = 1 // a FAT32 of fewer than 65,525 clusters is none to some
	}
	total := size / sector
	clusters := (total - reserved - rootSlots*slotSize/sector) / perCluster
	perTable := ((clusters+2)*int64(kind) + 8*sector - 1) / (8 * sector)
	boot := make([]byte, reserved*sector)
	u16 := func(at int, v int64) { binary.LittleEndian.PutUint16(boot[at:], uint16(v)) }
	u32 := func(at int, v int64) { binary.LittleEndian.PutUint32(boot[at:], uint32(v)) }
	copy(boot, "\xeb\x58\x90ASSENT  ")
	u16(11, sector)
	boot[13] = byte(perCluster)
	u16(14, reserved)
	boot[16] = tables
	u16(17, rootSlots)
	if boot[21] = 0xf8; total < 1<<16 {
		u16(19, total)
	} else {
		u32(32, total)
	}
	u16(24, 63) // sectors and heads of a disk that never was; some refuse to do without
	u16(26, 255)
	at := 36 // of what all kinds have behind what differs
	if kind == fat32 {
		at = 64
		u32(36, perTable)
		u32(44, 2) // root directory
		u16(48, 1) // free count
		u16(50, 6) // copies of both
		copy(boot[sector:], "RRaA")
		copy(boot[sector+484:], "rrAa")
		u32(sector+infoFree, (total-reserved-tables*perTable)/perCluster-1)
		u32(sector+infoNext, 3)
		u16(sector+510, 0xaa55)
	} else {
		u16(22, perTable)
	}
	padded := fmt.Sprintf("%-11s", label)
	boot[at], boot[at+2] = 0x80, 0x29
	copy(boot[at+7:], padded)
	copy(boot[at+18:], fmt.Sprintf("FAT%d   ", kind))
	u16(510, 0xaa55)
	if kind == fat32 {
		copy(boot[6*sector:], boot[:2*sector])
	}
	table := binary.LittleEndian.AppendUint32(nil, 0x0ffffff8)
	switch kind {
	case fat32:
		table = append(table, 0xff, 0xff, 0xff, 0x0f, 0xff, 0xff, 0xff, 0x0f) // and the root directory's only cluster
	case fat16:
		table = []byte{0xf8, 0xff, 0xff, 0xff}
	default:
		table = []byte{0xf8, 0xff, 0xff}
	}
	name := append([]byte(padded), attrVolume)
	for _, w := range []struct {
		b  []byte
		at int64
	}{{boot, 0}, {table, reserved * sector}, {table, (reserved + perTable) * sector}, {name, (reserved + tables*perTable) * sector}} {
		if _, err := m.WriteAt(w.b, w.at); err != nil {
			return err
		}
	}
	return m.Sync()
}
