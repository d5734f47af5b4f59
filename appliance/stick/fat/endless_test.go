package fat_test

import (
	"encoding/binary"
	"errors"
	"io"
	"testing"

	"assent.home.arpa/appliance/stick/fat"
)

// sparse is a large medium of zeros but for what was written to it. It counts what is read.
type sparse struct {
	sectors map[int64][512]byte
	reads   int // bytes
	between int // reads since the last write
	most    int // reads between two writes
}

func newSparse() *sparse { return &sparse{sectors: map[int64][512]byte{}} }

func (s *sparse) ReadAt(p []byte, off int64) (int, error) {
	s.reads += len(p)
	s.between++
	for n := 0; n < len(p); {
		at := off + int64(n)
		b := s.sectors[at/512]
		n += copy(p[n:], b[at%512:])
	}
	return len(p), nil
}

func (s *sparse) WriteAt(p []byte, off int64) (int, error) {
	s.most, s.between = max(s.most, s.between), 0
	for n := 0; n < len(p); {
		at := off + int64(n)
		b := s.sectors[at/512]
		n += copy(b[at%512:], p[n:])
		s.sectors[at/512] = b
	}
	return len(p), nil
}

func (s *sparse) Sync() error { return nil }

// volume is a FAT32 that somebody made by hand.
type volume struct {
	*sparse
	size, data, cluster int64
	perTable            int64 // sectors
}

func handmade(perTable, perCluster int64) *volume {
	v := &volume{sparse: newSparse(), cluster: 512 * perCluster, perTable: perTable, data: (32 + 2*perTable) * 512}
	v.size = v.data + (perTable*512/4-2)*v.cluster
	le, b := binary.LittleEndian, make([]byte, 512)
	copy(b, "\xeb\x58\x90MSDOS5.0")
	le.PutUint16(b[11:], 512)
	b[13], b[16], b[21], b[510], b[511] = byte(perCluster), 2, 0xf8, 0x55, 0xaa
	le.PutUint16(b[14:], 32)
	le.PutUint32(b[32:], uint32(v.size/512))
	le.PutUint32(b[36:], uint32(perTable))
	le.PutUint32(b[44:], 2)
	v.put(b, 0)
	v.set(0, 0x0ffffff8)
	v.set(1, 0x0fffffff)
	v.set(2, 0x0fffffff)
	return v
}

func (v *volume) put(b []byte, off int64) { _, _ = v.WriteAt(b, off) }

// set changes an entry of both tables.
func (v *volume) set(n, value uint32) {
	b := binary.LittleEndian.AppendUint32(nil, value)
	v.put(b, 32*512+4*int64(n))
	v.put(b, (32+v.perTable)*512+4*int64(n))
}

// chain makes clusters that lie one behind the other into one chain.
func (v *volume) chain(first, n uint32) {
	for c := first; c < first+n-1; c++ {
		v.set(c, c+1)
	}
	v.set(first+n-1, 0x0fffffff)
}

func (v *volume) at(cluster uint32) int64 { return v.data + int64(cluster-2)*v.cluster }

// slot is an entry with a short name.
func slot(name string, attr byte, first, size uint32) []byte {
	s := make([]byte, 32)
	copy(s, name+"           ")
	s[11] = attr
	binary.LittleEndian.PutUint16(s[20:], uint16(first>>16))
	binary.LittleEndian.PutUint16(s[26:], uint16(first))
	binary.LittleEndian.PutUint32(s[28:], size)
	return s
}

// A tree in which every directory leads to one other many times over has a billion entries, and is refused after a few of them.
func TestDirectoriesThatLeadToOneAnother(t *testing.T) {
	for event, filler := range map[string][]byte{"full": slot("F", 0x20, 0, 0), "of removed names": slot("\xe5", 0x20, 0, 0)} {
		t.Run(event, func(t *testing.T) {
			v := handmade(64, 64)
			v.chain(10, 64) // two directories as large as they may be
			v.chain(100, 64)
			v.put(slot("AUDIT", 0x10, 10, 0), v.at(2))
			var one, two []byte
			for range 65_536 {
				one = append(one, slot("D", 0x10, 100, 0)...)
				two = append(two, filler...)
			}
			v.put(one, v.at(10))
			v.put(two, v.at(100))
			fs, err := fat.Open(v, 0, v.size)
			if err != nil {
				t.Fatal(err)
			}
			v.reads = 0
			if err := fs.RemoveAll("AUDIT"); !errors.Is(err, fat.ErrDamaged) {
				t.Errorf("%v", err)
			}
			if v.reads > 32<<20 {
				t.Errorf("%d MiB were read of it", v.reads>>20)
			}
		})
	}
}

// A chain that touches every page of a large table is freed without all of the table in memory.
func TestChainThroughAllOfATable(t *testing.T) {
	const perTable, perPage = 16 << 20 / 512, 16 << 10 / 4
	v := handmade(perTable, 1)
	const first = 3
	last := uint32(first)
	for n := uint32(perPage + first); n < perTable*512/4-2; n += perPage {
		v.set(last, n)
		last = n
	}
	v.set(last, 0x0fffffff)
	v.put(slot("AUDIT", 0x20, first, 1<<20), v.at(2))
	fs, err := fat.Open(v, 0, v.size)
	if err != nil {
		t.Fatal(err)
	}
	v.most, v.between = 0, 0
	if err := fs.RemoveAll("AUDIT"); err != nil {
		t.Fatal(err)
	}
	// What was changed and not written yet is in memory: pages of 16 KiB each.
	if v.most > 600 {
		t.Errorf("%d pages were read before anything was written", v.most)
	}
	for _, n := range []uint32{first, perPage + first, last} {
		b := make([]byte, 4)
		for _, table := range []int64{32, 32 + perTable} {
			if _, err := v.ReadAt(b, table*512+4*int64(n)); err != nil && err != io.EOF || binary.LittleEndian.Uint32(b) != 0 {
				t.Errorf("cluster %d is not free: %x, %v", n, b, err)
			}
		}
	}
}

// What cannot be written while much is freed is said.
func TestFreeingThatCannotBeWritten(t *testing.T) {
	const perTable, perPage = 16 << 20 / 512, 16 << 10 / 4
	v := handmade(perTable, 1)
	for n := uint32(3); n+perPage < perTable*512/4-2; n += perPage {
		v.set(n, n+perPage)
	}
	v.put(slot("AUDIT", 0x20, 3, 1<<20), v.at(2))
	m := &failsLater{volume: v}
	fs, err := fat.Open(m, 0, v.size)
	if err != nil {
		t.Fatal(err)
	}
	m.left = 20 // the name goes, and some pages
	if err := fs.RemoveAll("AUDIT"); !errors.Is(err, io.ErrClosedPipe) {
		t.Errorf("%v", err)
	}
}

// failsLater takes so many writes.
type failsLater struct {
	*volume
	left int
}

func (f *failsLater) WriteAt(p []byte, off int64) (int, error) {
	if f.left--; f.left < 0 {
		return 0, io.ErrClosedPipe
	}
	return f.volume.WriteAt(p, off)
}
