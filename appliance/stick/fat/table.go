package fat

import (
	"encoding/binary"
	"fmt"
)

// enough is as many free bytes as anybody needs to know of.
const enough = 8 << 30

// entry returns what the table says of cluster n: the next one of its chain, 0 for a free one, or a mark.
func (v *Volume) entry(n uint32) (uint32, error) {
	var b [4]byte
	at, width := v.entryAt(n)
	if err := v.pages.read(b[:width], at); err != nil {
		return 0, err
	}
	switch v.g.kind {
	case fat12:
		e := uint32(binary.LittleEndian.Uint16(b[:]))
		if n%2 == 1 {
			return e >> 4, nil
		}
		return e & 0xfff, nil
	case fat16:
		return uint32(binary.LittleEndian.Uint16(b[:])), nil
	}
	return binary.LittleEndian.Uint32(b[:]) & 0x0fffffff, nil
}

// entryAt returns where the entry of a cluster lies in the first table, and how many bytes it touches.
func (v *Volume) entryAt(n uint32) (at int64, width int) {
	switch v.g.kind {
	case fat12:
		return v.g.table + int64(n) + int64(n)/2, 2
	case fat16:
		return v.g.table + 2*int64(n), 2
	}
	return v.g.table + 4*int64(n), 4
}

// setEntry changes the entry of cluster n in every table. Bits that are not the entry's stay.
func (v *Volume) setEntry(n, value uint32) error {
	at, width := v.entryAt(n)
	for i := range v.g.copies {
		var b [4]byte
		at := at + int64(i)*v.g.tableSize
		if err := v.pages.read(b[:width], at); err != nil {
			return err
		}
		old := binary.LittleEndian.Uint32(b[:])
		switch {
		case v.g.kind == fat12 && n%2 == 1:
			binary.LittleEndian.PutUint32(b[:], old&0x000f|value<<4)
		case v.g.kind == fat12:
			binary.LittleEndian.PutUint32(b[:], old&0xf000|value&0xfff)
		case v.g.kind == fat16:
			binary.LittleEndian.PutUint32(b[:], value)
		default:
			binary.LittleEndian.PutUint32(b[:], old&0xf0000000|value&0x0fffffff)
		}
		if err := v.pages.write(b[:width], at); err != nil {
			return err
		}
	}
	return nil
}

// end is the mark of a chain's last cluster.
func (v *Volume) end() uint32 {
	switch v.g.kind {
	case fat12:
		return 0xfff
	case fat16:
		return 0xffff
	}
	return 0x0fffffff
}

// next returns the cluster after n in its chain; ok is false at the chain's end.
func (v *Volume) next(n uint32) (after uint32, ok bool, err error) {
	e, err := v.entry(n)
	switch {
	case err != nil:
		return 0, false, err
	case v.g.valid(e):
		return e, true, nil
	case int64(e) > lastCluster(v.g.kind)+1:
		return 0, false, nil
	}
	return 0, false, fmt.Errorf("%w: a chain leads nowhere", ErrDamaged)
}

// chain calls visit with the clusters of a chain in order, until visit says that it has seen enough. A chain of more than
// limit clusters is damage: it is a loop, or of something larger than what it is of can be.
func (v *Volume) chain(first uint32, limit int64, visit func(n uint32) (more bool, err error)) error {
	if !v.g.valid(first) {
		return fmt.Errorf("%w: a chain begins nowhere", ErrDamaged)
	}
	for n, steps := first, int64(0); ; steps++ {
		if steps == limit {
			return fmt.Errorf("%w: a chain does not end", ErrDamaged)
		}
		if more, err := visit(n); err != nil || !more {
			return err
		}
		after, ok, err := v.next(n)
		if err != nil || !ok {
			return err
		}
		n = after
	}
}

// allocate takes a free cluster, marks it as a chain's last, and puts it after prev where that is not 0.
func (v *Volume) allocate(prev uint32) (uint32, error) {
	if err := v.soil(); err != nil {
		return 0, err
	}
	for range v.g.clusters {
		n := v.hint
		if v.hint++; v.hint-2 >= v.g.clusters {
			v.hint = 2
		}
		e, err := v.entry(n)
		if err != nil {
			return 0, err
		}
		if e != 0 {
			continue
		}
		if err := v.pages.relieve(); err != nil { // no name leads here yet
			return 0, err
		}
		if err := v.setEntry(n, v.end()); err != nil {
			return 0, err
		}
		v.taken++
		if prev == 0 {
			return n, nil
		}
		return n, v.setEntry(prev, n)
	}
	return 0, ErrFull
}

// release frees the clusters of a chain. Where the chain is damaged, what is before the damage is freed.
func (v *Volume) release(first uint32) error {
	if err := v.soil(); err != nil {
		return err
	}
	v.reading = cursor{}
	for n, more := first, v.g.valid(first); more; {
		e, err := v.entry(n)
		if err != nil {
			return err
		}
		if e == 0 { // a loop, or damage: it was freed before
			return nil
		}
		if err := v.pages.relieve(); err != nil { // the name that led here is gone, durably
			return err
		}
		if err := v.setEntry(n, 0); err != nil {
			return err
		}
		v.taken--
		n, more = e, v.g.valid(e)
	}
	return nil
}

// Free counts the bytes that are free, up to 8 GiB.
func (v *Volume) Free() (int64, error) {
	var free int64
	for n := uint32(2); n-2 < v.g.clusters && free < enough; n++ {
		e, err := v.entry(n)
		if err != nil {
			return 0, err
		}
		if e == 0 {
			free += v.g.cluster
		}
	}
	return free, nil
}
