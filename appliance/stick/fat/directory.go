package fat

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"strings"
)

// directory is where a directory's slots lie.
type directory struct {
	first uint32  // cluster; 0 for a root directory that has a place of its own
	parts []int64 // offsets of its parts
	part  int64   // bytes of each
}

// entry is what a directory says of a name.
type entry struct {
	attr  byte
	first uint32
	size  uint32
	short [11]byte
	long  string
	slots []int64 // where it lies, long name first
}

func (e *entry) isDir() bool { return e.attr&attrDirectory != 0 }

// called reports whether the entry has that name, which is of ASCII letters.
func (e *entry) called(name string) bool {
	stem, ext := strings.TrimRight(string(e.short[:8]), " "), strings.TrimRight(string(e.short[8:]), " ")
	if ext != "" {
		stem += "." + ext
	}
	return strings.EqualFold(e.long, name) || strings.EqualFold(stem, name)
}

// open finds the parts of the directory that begins at a cluster; 0 is the root.
func (v *Volume) open(first uint32) (directory, error) {
	if first == 0 && v.g.kind != fat32 {
		return directory{parts: []int64{v.g.root}, part: v.g.rootSize}, nil
	}
	if first == 0 {
		first = v.g.rootFirst
	}
	d := directory{first: first, part: v.g.cluster}
	err := v.chain(first, max(1, maxDirectory/v.g.cluster), func(n uint32) (bool, error) {
		d.parts = append(d.parts, v.g.at(n))
		return true, nil
	})
	return d, err
}

// slot returns where slot i lies; false is beyond the directory.
func (d *directory) slot(i int) (int64, bool) {
	off := int64(i) * slotSize
	if off/d.part >= int64(len(d.parts)) {
		return 0, false
	}
	return d.parts[off/d.part] + off%d.part, true
}

// scan calls visit with every entry until it says that it has seen enough.
func (v *Volume) scan(d directory, visit func(e entry) (more bool)) error {
	var name long
	var slots []int64
	for i := 0; ; i++ {
		at, ok := d.slot(i)
		if !ok {
			return nil
		}
		var b [slotSize]byte
		if err := v.pages.read(b[:], at); err != nil {
			return err
		}
		switch {
		case b[0] == 0:
			return nil
		case b[0] == 0xe5:
			name, slots = long{}, nil
			continue
		case b[11]&0x3f == attrLong:
			if name.take(b[:]); name.letters == nil || b[0]&0x40 != 0 {
				slots = nil
			}
			slots = append(slots, at)
			continue
		}
		e := entry{attr: b[11], size: binary.LittleEndian.Uint32(b[28:]), short: [11]byte(b[:])}
		e.first = uint32(binary.LittleEndian.Uint16(b[26:]))
		if v.g.kind == fat32 {
			e.first |= uint32(binary.LittleEndian.Uint16(b[20:])) << 16
		}
		if e.long = name.name(e.short); e.long == "" {
			slots = nil
		}
		e.slots = append(slots, at)
		name, slots = long{}, nil
		if !visit(e) {
			return nil
		}
	}
}

// find returns the entry of a name in a directory; nil where there is none.
func (v *Volume) find(d directory, name string) (found *entry, err error) {
	err = v.scan(d, func(e entry) bool {
		if e.attr&attrVolume == 0 && e.called(name) {
			found = &e
		}
		return found == nil
	})
	return found, err
}

// lookup goes down a path to the directory that holds its last element.
func (v *Volume) lookup(path []string) (directory, error) {
	d, err := v.open(0)
	if err != nil {
		return d, err
	}
	for _, name := range path {
		e, err := v.find(d, name)
		switch {
		case err != nil:
			return d, err
		case e == nil:
			return d, &fs.PathError{Op: "open", Path: name, Err: fs.ErrNotExist}
		case !e.isDir():
			return d, &fs.PathError{Op: "open", Path: name, Err: fs.ErrInvalid}
		}
		if d, err = v.open(e.first); err != nil {
			return d, err
		}
	}
	return d, nil
}

// spare is how many slots an entry of the root directory has at least, so that another name fits in the same sector.
const spare = 6

// add writes a new entry into a directory, durably. In the root it lies within one sector, with room for a longer name
// before it, so that rename can be one write.
func (v *Volume) add(d directory, name string, attr byte, first, size uint32) error {
	taken := map[[11]byte]bool{}
	if err := v.scan(d, func(e entry) bool { taken[e.short] = true; return true }); err != nil {
		return err
	}
	s, err := short(name, taken)
	if err != nil {
		return err
	}
	b := slotsOf(name, s, attr, first, size)
	need := len(b) / slotSize
	inRoot := d.first == 0 || v.g.kind == fat32 && d.first == v.g.rootFirst
	at, passed, behind, err := v.room(d, max(need, spare), inRoot)
	if inRoot && errors.Is(err, ErrFull) {
		at, passed, behind, err = v.room(d, need, false)
	}
	if err != nil {
		return err
	}
	for _, slot := range append(passed, at[:len(at)-need]...) { // none of them is the directory's end any more
		if err := v.pages.write([]byte{0xe5}, slot); err != nil {
			return err
		}
	}
	for i, slot := range at[len(at)-need:] {
		if err := v.pages.write(b[i*slotSize:(i+1)*slotSize], slot); err != nil {
			return err
		}
	}
	if behind != 0 { // the directory ended here, and whatever lies behind its end must not begin to count
		if err := v.pages.write([]byte{0}, behind); err != nil {
			return err
		}
	}
	return v.commit()
}

// room finds so many free slots in a row, within one sector where together is set, and lets the directory grow where there
// are none. passed are slots at the directory's end that lie before them; behind is the slot after them, where the directory
// ended before it, or 0.
func (v *Volume) room(d directory, need int, together bool) (at, passed []int64, behind int64, err error) {
	ended := false
	for i := 0; i < maxDirectory/slotSize; i++ {
		slot, ok := d.slot(i)
		if !ok {
			if err := v.grow(&d); err != nil {
				return nil, nil, 0, err
			}
			ended = true
			slot, _ = d.slot(i)
		}
		var b [1]byte
		if err := v.pages.read(b[:], slot); err != nil {
			return nil, nil, 0, err
		}
		ended = ended || b[0] == 0
		if !ended && b[0] != 0xe5 || together && len(at) > 0 && at[0]/v.g.sector != slot/v.g.sector {
			if ended {
				passed = append(passed, at...)
			}
			at = nil
		}
		if ended || b[0] == 0xe5 {
			at = append(at, slot)
		}
		if len(at) < need {
			continue
		}
		if ended {
			behind, _ = d.slot(i + 1)
		}
		return at, passed, behind, nil
	}
	return nil, nil, 0, ErrFull
}

// grow gives a directory another cluster of zeros. One that has a place of its own, or is as large as it may be, is full.
func (v *Volume) grow(d *directory) error {
	if d.first == 0 || int64(len(d.parts)+1)*d.part > maxDirectory {
		return ErrFull
	}
	n, err := v.blank()
	if err != nil {
		return err
	}
	var last uint32
	if err := v.chain(d.first, maxDirectory/slotSize, func(n uint32) (bool, error) { last = n; return true, nil }); err != nil {
		return err
	}
	if err := v.commit(); err != nil { // zeros first
		return err
	}
	d.parts = append(d.parts, v.g.at(n))
	return v.setEntry(last, n)
}

// blank allocates a cluster and fills it with zeros.
func (v *Volume) blank() (uint32, error) {
	n, err := v.allocate(0)
	if err != nil {
		return 0, err
	}
	return n, v.pages.write(make([]byte, v.g.cluster), v.g.at(n))
}

// strike removes an entry from its directory, durably. What it leads to stays allocated.
func (v *Volume) strike(e *entry) error {
	if err := v.soil(); err != nil {
		return err
	}
	for _, slot := range e.slots {
		if err := v.pages.write([]byte{0xe5}, slot); err != nil {
			return err
		}
	}
	return v.commit()
}

// Bounds of a tree that is removed. What a copy leaves behind are four directories with some thousand slots, three deep;
// directories that lead to one another could have billions.
const (
	maxDepth = 8
	maxTree  = 4 * maxDirectory // bytes of directories
)

// walk goes through what is below an entry.
type walk struct {
	v      *Volume
	bytes  int64    // of directories that were looked at, whatever is in them
	chains []uint32 // of all that was found
}

// tree lists the chains of an entry and of all that is below it.
func (v *Volume) tree(e *entry) ([]uint32, error) {
	w := walk{v: v}
	err := w.visit(e, 0)
	return w.chains, err
}

func (w *walk) visit(e *entry, depth int) error {
	endless := fmt.Errorf("%w: a directory does not end", ErrDamaged)
	if depth > maxDepth {
		return endless
	}
	if e.first != 0 {
		w.chains = append(w.chains, e.first)
	}
	if !e.isDir() {
		return nil
	}
	d, err := w.v.open(e.first)
	if err != nil {
		return err
	}
	if w.bytes += int64(len(d.parts)) * d.part; w.bytes > maxTree {
		return endless
	}
	var below []entry
	if err := w.v.scan(d, func(e entry) bool {
		if e.attr&attrVolume == 0 && e.short[0] != '.' {
			below = append(below, e)
		}
		return true
	}); err != nil {
		return err
	}
	for i := range below {
		if err := w.visit(&below[i], depth+1); err != nil {
			return err
		}
	}
	return nil
}
