package fat

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"io/fs"
)

// Volume is an open file system. One goroutine uses it.
type Volume struct {
	g     geometry
	pages *pages
	hint  uint32 // where the next free cluster is looked for
	taken int64  // clusters allocated, less those freed, since the volume was opened

	soiled bool // the clean bit is off, by us
	clean  bool // it was on before

	reading cursor
}

// Open looks at the volume of size bytes at base of m. It changes nothing.
func Open(m Medium, base, size int64) (*Volume, error) {
	boot := make([]byte, 512)
	if size < int64(len(boot)) {
		return nil, ErrNotFAT
	}
	if _, err := m.ReadAt(boot, base); err != nil {
		return nil, err
	}
	g, err := parse(boot, size)
	if err != nil {
		return nil, err
	}
	v := &Volume{g: g, pages: newPages(m, base, size, g.sector), hint: 2}
	if free, next, ok, err := v.info(); err != nil {
		return nil, err
	} else if ok && free != 0 && g.valid(next) {
		v.hint = next // a hint and no more
	}
	if _, err := v.open(0); err != nil {
		return nil, err
	}
	return v, nil
}

// Label returns the volume's name as it is on the medium, without the blanks behind it. It may be empty, and hold anything.
func (v *Volume) Label() []byte {
	label := []byte(nil)
	if d, err := v.open(0); err == nil {
		_ = v.scan(d, func(e entry) bool { // a name that cannot be read is none
			if e.attr&(attrVolume|attrDirectory) == attrVolume {
				label = bytes.Clone(e.short[:])
			}
			return label == nil
		})
	}
	if label == nil && v.g.labelKnown && string(v.g.bootLabel[:]) != "NO NAME    " {
		label = v.g.bootLabel[:]
	}
	return bytes.TrimRight(label, " \x00")
}

// Exists reports whether there is something of a name.
func (v *Volume) Exists(name string) (bool, error) {
	dir, base, err := split(name)
	if err != nil {
		return false, err
	}
	d, err := v.lookup(dir)
	if err != nil {
		return false, err
	}
	e, err := v.find(d, base)
	return e != nil, err
}

// vacant returns the directory that is to hold a new name, or fs.ErrExist where it has it.
func (v *Volume) vacant(op, name string) (directory, string, error) {
	dir, base, err := split(name)
	if err != nil {
		return directory{}, "", err
	}
	d, err := v.lookup(dir)
	if err != nil {
		return d, "", err
	}
	e, err := v.find(d, base)
	if err == nil && e != nil {
		err = &fs.PathError{Op: op, Path: name, Err: fs.ErrExist}
	}
	return d, base, err
}

// Mkdir makes an empty directory, durably.
func (v *Volume) Mkdir(name string) error {
	d, base, err := v.vacant("mkdir", name)
	if err != nil {
		return err
	}
	n, err := v.blank()
	if err != nil {
		return err
	}
	above := d.first
	if v.g.kind == fat32 && above == v.g.rootFirst {
		above = 0
	}
	dots := append(slotsOf("", pack(".", ""), attrDirectory, n, 0), slotsOf("", pack("..", ""), attrDirectory, above, 0)...)
	if err := v.pages.write(dots, v.g.at(n)); err != nil {
		return err
	}
	if err := v.commit(); err != nil {
		return err
	}
	return v.add(d, base, attrDirectory, n, 0)
}

// Rename gives something in the root another name there. It fails with fs.ErrExist where that is taken, and with
// fs.ErrNotExist where there is nothing to rename.
func (v *Volume) Rename(from, to string) error {
	if dir, _, err := split(from); err != nil || len(dir) > 0 {
		return &fs.PathError{Op: "rename", Path: from, Err: fs.ErrInvalid}
	}
	if dir, _, err := split(to); err != nil || len(dir) > 0 {
		return &fs.PathError{Op: "rename", Path: to, Err: fs.ErrInvalid}
	}
	d, to, err := v.vacant("rename", to)
	if err != nil {
		return err
	}
	e, err := v.find(d, from)
	if err != nil {
		return err
	}
	if e == nil {
		return &fs.PathError{Op: "rename", Path: from, Err: fs.ErrNotExist}
	}
	if err := v.soil(); err != nil {
		return err
	}
	done, err := v.renameInPlace(d, e, to)
	if err != nil || done {
		return err
	}
	// Two names for one directory would be worse than none: what is struck is only lost space.
	if err := v.strike(e); err != nil {
		return err
	}
	return v.add(d, to, e.attr, e.first, e.size)
}

// renameInPlace writes the new slots over the old ones and over free ones before them, where all lie in one sector.
func (v *Volume) renameInPlace(d directory, e *entry, to string) (bool, error) {
	taken := map[[11]byte]bool{}
	if err := v.scan(d, func(o entry) bool { taken[o.short] = o.short != e.short; return true }); err != nil {
		return false, err
	}
	s, err := short(to, taken)
	if err != nil {
		return false, err
	}
	b := slotsOf(to, s, e.attr, e.first, e.size)
	last := e.slots[len(e.slots)-1]
	from := last + slotSize - int64(len(b))
	if from/v.g.sector != last/v.g.sector || e.slots[0]/v.g.sector != last/v.g.sector {
		return false, nil
	}
	for at := from; at < e.slots[0]; at += slotSize {
		var mark [1]byte
		if err := v.pages.read(mark[:], at); err != nil {
			return false, err
		}
		if mark[0] != 0xe5 {
			return false, nil
		}
	}
	for at := e.slots[0]; at < from; at += slotSize {
		if err := v.pages.write([]byte{0xe5}, at); err != nil {
			return false, err
		}
	}
	if err := v.pages.write(b, from); err != nil {
		return false, err
	}
	return true, v.commit()
}

// RemoveAll removes a name with all that is below it. There may be none.
func (v *Volume) RemoveAll(name string) error {
	dir, base, err := split(name)
	if err != nil {
		return err
	}
	d, err := v.lookup(dir)
	if err != nil {
		return err
	}
	e, err := v.find(d, base)
	if err != nil || e == nil {
		return err
	}
	chains, err := v.tree(e)
	if err != nil {
		return err
	}
	// The name goes first: a cut then leaves lost clusters, and not a name that leads to free ones.
	if err := v.strike(e); err != nil {
		return err
	}
	for _, first := range chains {
		if err := v.release(first); err != nil {
			return err
		}
	}
	return v.commit()
}

// commit puts all changes on the medium, and forgets what it held, so that the next look is at the medium.
func (v *Volume) commit() error {
	if err := v.pages.flush(); err != nil {
		return err
	}
	if err := v.pages.medium.Sync(); err != nil {
		return err
	}
	v.pages.forget()
	return nil
}

// cleanBit is the bit of the table's second entry that says that the volume was left in order; FAT12 has none.
func (v *Volume) cleanBit() uint32 {
	switch v.g.kind {
	case fat16:
		return 0x8000
	case fat32:
		return 0x08000000
	}
	return 0
}

// soil turns the clean bit off before the first change.
func (v *Volume) soil() error {
	if v.soiled || v.cleanBit() == 0 {
		return nil
	}
	e, err := v.entry(1)
	if err != nil {
		return err
	}
	v.soiled, v.clean = true, e&v.cleanBit() != 0
	if !v.clean {
		return nil
	}
	if err := v.setEntry(1, e&^v.cleanBit()); err != nil {
		return err
	}
	return v.commit()
}

// Close puts everything on the medium, with the count of free clusters, and the clean bit if it was on. The volume is then
// at rest; it may be used again.
func (v *Volume) Close() error {
	if free, _, ok, err := v.info(); err != nil {
		return err
	} else if ok && v.taken != 0 {
		if left := int64(free) - v.taken; free != 0xffffffff && left >= 0 && left <= int64(v.g.clusters) {
			if err := v.setInfo(uint32(left), v.hint); err != nil {
				return err
			}
		}
	}
	v.taken = 0
	if err := v.commit(); err != nil {
		return err
	}
	if v.soiled && v.clean {
		e, err := v.entry(1)
		if err != nil {
			return err
		}
		if err := v.setEntry(1, e|v.cleanBit()); err != nil {
			return err
		}
	}
	v.soiled = false
	return v.commit()
}

// Offsets of what FAT32 keeps beside the table: how many clusters are free, and where to look for one. Both are hints.
const (
	infoFree = 488
	infoNext = 492
)

func (v *Volume) info() (free, next uint32, ok bool, err error) {
	if v.g.info == 0 {
		return 0, 0, false, nil
	}
	b := make([]byte, 512)
	if err := v.pages.read(b, v.g.info); err != nil {
		return 0, 0, false, err
	}
	ok = string(b[:4]) == "RRaA" && string(b[484:488]) == "rrAa"
	return binary.LittleEndian.Uint32(b[infoFree:]), binary.LittleEndian.Uint32(b[infoNext:]), ok, nil
}

func (v *Volume) setInfo(free, next uint32) error {
	var b [8]byte
	binary.LittleEndian.PutUint32(b[:], free)
	binary.LittleEndian.PutUint32(b[4:], next)
	return v.pages.write(b[:], v.g.info+infoFree)
}

// String names the kind.
func (v *Volume) String() string { return fmt.Sprintf("FAT%d", v.g.kind) }
