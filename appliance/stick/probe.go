package stick

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"slices"

	"assent.home.arpa/appliance/ipc"
	"assent.home.arpa/appliance/stick/fat"
)

// Error says why a stick takes no copy, or why an operation on it failed.
type Error struct {
	Problem ipc.StickProblem
	Err     error // may be nil
}

func (e *Error) Error() string {
	if e.Err == nil {
		return fmt.Sprintf("stick: problem %d", e.Problem)
	}
	return fmt.Sprintf("stick: %v", e.Err)
}

func (e *Error) Unwrap() error { return e.Err }

// part is a range of the medium that may hold a file system.
type part struct {
	base, size int64
	system     bool // an EFI system partition: something starts from it
}

// sectorSizes are what a GPT may be laid out in: its header is in the second sector.
func sectorSizes() []int64 { return []int64{512, 4096} }

// find returns the one FAT volume on a medium of size bytes, or an *Error.
func find(m fat.Medium, size int64) (*fat.Volume, error) {
	whole := part{size: size}
	kind, v, err := look(m, whole)
	if v != nil || err != nil {
		return v, err
	}
	if kind != ipc.StickEmpty {
		return nil, &Error{Problem: kind}
	}
	parts, err := partitions(m, size)
	if err != nil {
		return nil, err
	}
	var found []*fat.Volume
	boot, other := false, ipc.StickEmpty
	for _, p := range parts {
		kind, v, err := look(m, p)
		switch {
		case err != nil && !p.system:
			return nil, err
		case p.system:
			boot = true
		case v != nil:
			found = append(found, v)
		case kind != ipc.StickEmpty:
			other = kind
		}
	}
	switch {
	case len(found) == 1:
		return found[0], nil
	case len(found) > 1:
		return nil, &Error{Problem: ipc.StickSeveral}
	case other != ipc.StickEmpty:
		return nil, &Error{Problem: other}
	case boot:
		return nil, &Error{Problem: ipc.StickBoot}
	}
	return nil, &Error{Problem: ipc.StickEmpty}
}

// look says what a range holds: a volume, or the problem that stands for what it is.
func look(m fat.Medium, p part) (ipc.StickProblem, *fat.Volume, error) {
	head := make([]byte, min(p.size, 128<<10))
	if _, err := m.ReadAt(head, p.base); err != nil {
		return 0, nil, &Error{ipc.StickUnreadable, err}
	}
	if other := recognise(head); other != 0 {
		return other, nil, nil
	}
	v, err := fat.Open(m, p.base, p.size)
	switch {
	case err == nil:
		return 0, v, nil
	case errors.Is(err, fat.ErrNotFAT):
		return ipc.StickEmpty, nil, nil
	}
	return 0, nil, problem(err)
}

// recognise knows other file systems by their signatures; 0 is none of them.
func recognise(head []byte) ipc.StickProblem {
	for _, s := range []struct {
		at    int
		magic string
		is    ipc.StickProblem
	}{
		{3, "EXFAT   ", ipc.StickExFAT},
		{3, "NTFS    ", ipc.StickNTFS},
		{3, "-FVE-FS-", ipc.StickEncrypted},        // BitLocker
		{0, "LUKS\xba\xbe", ipc.StickEncrypted},    //
		{32769, "CD001", ipc.StickDisc},            // ISO 9660, also where it has a partition table besides
		{1080, "\x53\xef", ipc.StickLinux},         // ext2, ext3, ext4
		{0, "XFSB", ipc.StickLinux},                //
		{65600, "_BHRfS_M", ipc.StickLinux},        // btrfs
		{1024, "\x10\x20\xf5\xf2", ipc.StickLinux}, // f2fs
		{1024, "H+\x00\x04", ipc.StickApple},       // HFS+
		{1024, "HX\x00\x05", ipc.StickApple},       //
		{32, "NXSB", ipc.StickApple},               // APFS
		{4086, "SWAPSPACE2", ipc.StickLinux},       //
		{1024, "\xe2\xe1\xf5\xe0", ipc.StickLinux}, // erofs
		{0, "hsqs", ipc.StickLinux},                // squashfs
		{536, "LABELONE", ipc.StickLinux},          // LVM
	} {
		if s.at+len(s.magic) <= len(head) && string(head[s.at:s.at+len(s.magic)]) == s.magic {
			return s.is
		}
	}
	return 0
}

// partitions reads a partition table of either kind. None is no error.
func partitions(m fat.Medium, size int64) ([]part, error) {
	b := make([]byte, 512)
	if size < int64(len(b)) {
		return nil, nil
	}
	if _, err := m.ReadAt(b, 0); err != nil {
		return nil, &Error{ipc.StickUnreadable, err}
	}
	if b[510] != 0x55 || b[511] != 0xaa {
		return nil, nil
	}
	var parts []part
	for i := range 4 {
		e := b[446+16*i:]
		from, n := int64(binary.LittleEndian.Uint32(e[8:])), int64(binary.LittleEndian.Uint32(e[12:]))
		switch kind := e[4]; {
		case kind == 0xee: // the old table only keeps the place of the new one
			return guided(m, size)
		case kind == 0 || n == 0:
		case kind == 0x05 || kind == 0x0f || kind == 0x85: // more of them within, which nobody makes on a stick
			return nil, &Error{Problem: ipc.StickSeveral}
		case from == 0 || (from+n)*512 > size:
			return nil, &Error{ipc.StickDamaged, errors.New("a partition is larger than the medium")}
		default:
			parts = append(parts, part{base: from * 512, size: n * 512, system: kind == 0xef})
		}
	}
	return parts, nil
}

// guided reads a GUID partition table (UEFI specification 2.10, section 5.3).
func guided(m fat.Medium, size int64) ([]part, error) {
	damaged := func(why string) ([]part, error) { return nil, &Error{ipc.StickDamaged, errors.New(why)} }
	for _, sector := range sectorSizes() {
		h := make([]byte, 512)
		if size < 2*sector+int64(len(h)) {
			continue
		}
		if _, err := m.ReadAt(h, sector); err != nil {
			return nil, &Error{ipc.StickUnreadable, err}
		}
		if string(h[:8]) != "EFI PART" {
			continue
		}
		length := binary.LittleEndian.Uint32(h[12:])
		if length < 92 || length > uint32(len(h)) {
			return damaged("the partition table's header has no sound length")
		}
		want := binary.LittleEndian.Uint32(h[16:])
		clear(h[16:20])
		if crc32.ChecksumIEEE(h[:length]) != want {
			return damaged("the partition table's header is not what its checksum says")
		}
		at, n, each := binary.LittleEndian.Uint64(h[72:]), binary.LittleEndian.Uint32(h[80:]), binary.LittleEndian.Uint32(h[84:])
		if n > 128 || each != 128 || at < 2 || at > uint64(size/sector) || int64(at)*sector+int64(n*each) > size {
			return damaged("the partition table has no sound place")
		}
		entries := make([]byte, n*each)
		if _, err := m.ReadAt(entries, int64(at)*sector); err != nil {
			return nil, &Error{ipc.StickUnreadable, err}
		}
		if crc32.ChecksumIEEE(entries) != binary.LittleEndian.Uint32(h[88:]) {
			return damaged("the partition table is not what its checksum says")
		}
		return guidedParts(entries, sector, size)
	}
	return damaged("the partition table is not where it should be")
}

func guidedParts(entries []byte, sector, size int64) (parts []part, err error) {
	// C12A7328-F81F-11D2-BA4B-00A0C93EC93B, as it lies on the medium.
	system := []byte{0x28, 0x73, 0x2a, 0xc1, 0x1f, 0xf8, 0xd2, 0x11, 0xba, 0x4b, 0x00, 0xa0, 0xc9, 0x3e, 0xc9, 0x3b}
	for e := range slices.Chunk(entries, 128) {
		if bytes.Equal(e[:16], make([]byte, 16)) {
			continue
		}
		from, to := binary.LittleEndian.Uint64(e[32:]), binary.LittleEndian.Uint64(e[40:])
		if from < 2 || to < from || to >= uint64(size/sector) {
			return nil, &Error{ipc.StickDamaged, errors.New("a partition is larger than the medium")}
		}
		parts = append(parts, part{base: int64(from) * sector, size: int64(to-from+1) * sector, system: bytes.Equal(e[:16], system)})
	}
	return parts, nil
}
