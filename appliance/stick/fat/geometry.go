package fat

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math/bits"
)

// Errors of a volume, to be told apart with errors.Is. Those of the medium are passed on.
var (
	// ErrNotFAT says that the bytes are no FAT boot sector.
	ErrNotFAT = errors.New("fat: no FAT file system")
	// ErrDamaged says that the volume contradicts itself.
	ErrDamaged = errors.New("fat: the file system is damaged")
	// ErrUnsupported says that the volume is larger, or odder, than anybody makes it.
	ErrUnsupported = errors.New("fat: a file system of this size or kind is not supported")
	// ErrFull says that there is no room, in the volume or in a directory that cannot grow.
	ErrFull = errors.New("fat: no room")
)

// Limits of what is believed.
const (
	maxTable     = 128 << 20 // bytes of one allocation table: 32 million clusters
	maxDirectory = 2 << 20   // bytes: the format's own limit of 65,536 slots
	maxCluster   = 256 << 10 // bytes
)

// bits of an entry of the allocation table.
const (
	fat12 = 12
	fat16 = 16
	fat32 = 32
)

// geometry is where things are, in bytes from the start of the volume.
type geometry struct {
	kind       uint8 // fat12, fat16 or fat32
	sector     int64
	cluster    int64
	table      int64 // the first table in use
	copies     int   // tables that are written
	tableSize  int64
	root       int64 // FAT12 and FAT16: the root directory's place
	rootSize   int64
	rootFirst  uint32 // FAT32: its first cluster
	data       int64  // cluster 2
	clusters   uint32 // clusters are numbered from 2 to clusters+1
	info       int64  // FAT32: the sector with the free count, or 0
	bootLabel  [11]byte
	labelKnown bool
}

// parse takes a boot sector apart. size is of the volume, in bytes.
func parse(b []byte, size int64) (geometry, error) {
	u16 := func(at int) int64 { return int64(binary.LittleEndian.Uint16(b[at:])) }
	u32 := func(at int) int64 { return int64(binary.LittleEndian.Uint32(b[at:])) }
	if len(b) < 512 || b[510] != 0x55 || b[511] != 0xaa || b[0] != 0xeb && b[0] != 0xe9 {
		return geometry{}, ErrNotFAT
	}
	sector, perCluster, reserved, copies := u16(11), int64(b[13]), u16(14), int64(b[16])
	if sector < 512 || sector > 4096 || bits.OnesCount64(uint64(sector)) != 1 ||
		bits.OnesCount64(uint64(perCluster)) != 1 || reserved == 0 || copies == 0 || b[21] < 0xf0 {
		return geometry{}, ErrNotFAT
	}
	g := geometry{sector: sector, cluster: sector * perCluster, table: reserved * sector}
	total, perTable, rootSlots := u16(19), u16(22), u16(17)
	if total == 0 {
		total = u32(32)
	}
	wide := perTable == 0 && rootSlots == 0 // as Linux tells FAT32 from its elders
	if wide {
		perTable = u32(36)
	}
	g.tableSize = perTable * sector
	switch {
	case copies > 2 || g.cluster > maxCluster || g.tableSize > maxTable:
		return geometry{}, ErrUnsupported
	case perTable == 0 || !wide && rootSlots == 0:
		return geometry{}, fmt.Errorf("%w: it has no table, or no root directory", ErrDamaged)
	case total*sector > size:
		return geometry{}, fmt.Errorf("%w: it says that it is larger than its place", ErrDamaged)
	}
	g.root = g.table + copies*g.tableSize
	g.rootSize = rootSlots * slotSize
	g.data = g.root + (g.rootSize+sector-1)/sector*sector
	count := (total*sector - g.data) / g.cluster
	if count < 1 {
		return geometry{}, fmt.Errorf("%w: it has no room for data", ErrDamaged)
	}
	switch {
	case wide:
		g.kind = fat32
	case count < 4085:
		g.kind = fat12
	default:
		g.kind = fat16
	}
	count = min(count, g.tableSize*8/int64(g.kind)-2, lastCluster(g.kind)-1)
	if count < 1 {
		return geometry{}, fmt.Errorf("%w: its table is too small", ErrDamaged)
	}
	g.clusters, g.copies = uint32(count), int(copies)
	label := 43
	if wide {
		label = 71
		if err := g.wide(b, copies, reserved); err != nil {
			return geometry{}, err
		}
	}
	if b[label-5] == 0x29 {
		g.bootLabel, g.labelKnown = [11]byte(b[label:]), true
	}
	return g, nil
}

// wide takes what only FAT32 has.
func (g *geometry) wide(b []byte, copies, reserved int64) error {
	u16 := func(at int) int64 { return int64(binary.LittleEndian.Uint16(b[at:])) }
	if u16(42) != 0 {
		return ErrUnsupported
	}
	if flags := u16(40); flags&0x80 != 0 { // one table is in use, and the others are not kept
		active := flags & 0x0f
		if active >= copies {
			return fmt.Errorf("%w: the table in use is none", ErrDamaged)
		}
		g.table += active * g.tableSize
		g.copies = 1
	}
	g.rootFirst = binary.LittleEndian.Uint32(b[44:])
	if !g.valid(g.rootFirst) {
		return fmt.Errorf("%w: its root directory is nowhere", ErrDamaged)
	}
	if info := u16(48); info > 0 && info < reserved {
		g.info = info * g.sector
	}
	return nil
}

// lastCluster is the last number that a cluster can have; those above are marks.
func lastCluster(kind uint8) int64 {
	switch kind {
	case fat12:
		return 0xff6
	case fat16:
		return 0xfff6
	}
	return 0x0ffffff6
}

// valid reports whether n is a cluster of the volume.
func (g *geometry) valid(n uint32) bool { return n >= 2 && n-2 < g.clusters }

// at returns where a cluster lies.
func (g *geometry) at(n uint32) int64 { return g.data + int64(n-2)*g.cluster }
