package fat

import (
	"fmt"
	"maps"
	"slices"
)

// Medium is what a volume lies on.
type Medium interface {
	// ReadAt reads what is on the medium, as far as that can be told from what is in memory.
	ReadAt(p []byte, off int64) (int, error)
	WriteAt(p []byte, off int64) (int, error)
	// Sync returns when all that was written is on the medium.
	Sync() error
}

const (
	pageSize = 16 << 10
	maxPages = 256 // that are kept although they are clean, and that may be dirty before they have to be written
)

// pages holds tables and directories while they are looked at and changed. Nothing is written before flush, and then only
// sectors that were changed: the rest of a page is the medium's own.
type pages struct {
	medium Medium
	base   int64 // of the volume on the medium
	size   int64 // of the volume
	sector int64
	held   map[int64]*page // by offset in the volume
	dirty  int             // how many of them are
	last   *page           // the one that was looked at last, and where it is
	lastAt int64
}

type page struct {
	b     []byte // shorter than pageSize at the volume's end
	dirty uint32 // a bit a sector
}

func newPages(m Medium, base, size, sector int64) *pages {
	return &pages{medium: m, base: base, size: size, sector: sector, held: map[int64]*page{}, lastAt: -1}
}

func (c *pages) page(at int64) (*page, error) {
	if at == c.lastAt {
		return c.last, nil
	}
	p := c.held[at]
	if p == nil {
		if at < 0 || at >= c.size {
			return nil, fmt.Errorf("%w: it leads beyond its end", ErrDamaged)
		}
		p = &page{b: make([]byte, min(pageSize, c.size-at))}
		if _, err := c.medium.ReadAt(p.b, c.base+at); err != nil {
			return nil, err
		}
		if len(c.held) >= maxPages {
			c.forget()
		}
		c.held[at] = p
	}
	c.last, c.lastAt = p, at
	return p, nil
}

// forget drops what is clean, so that the next look is at the medium.
func (c *pages) forget() {
	maps.DeleteFunc(c.held, func(_ int64, p *page) bool { return p.dirty == 0 })
	c.last, c.lastAt = nil, -1
}

// read copies what is at off.
func (c *pages) read(b []byte, off int64) error {
	return c.each(b, off, func(p *page, part []byte, in int64) { copy(part, p.b[in:]) })
}

// write changes what is at off, for flush to write.
func (c *pages) write(b []byte, off int64) error {
	return c.each(b, off, func(p *page, part []byte, in int64) {
		copy(p.b[in:], part)
		if p.dirty == 0 {
			c.dirty++
		}
		for s := in / c.sector; s*c.sector < in+int64(len(part)); s++ {
			p.dirty |= 1 << s
		}
	})
}

func (c *pages) each(b []byte, off int64, do func(p *page, part []byte, in int64)) error {
	for len(b) > 0 {
		at := off / pageSize * pageSize
		p, err := c.page(at)
		if err != nil {
			return err
		}
		in := off - at
		n := min(int64(len(b)), int64(len(p.b))-in)
		if n <= 0 {
			return fmt.Errorf("%w: it leads beyond its end", ErrDamaged)
		}
		do(p, b[:n], in)
		b, off = b[n:], off+n
	}
	return nil
}

// relieve writes what was changed where that is much, at a moment when it may be written: a chain that leads through all of a
// table would take as much memory as the table.
func (c *pages) relieve() error {
	if c.dirty < maxPages {
		return nil
	}
	return c.flush()
}

// flush writes what was changed, in the order in which it lies on the medium.
func (c *pages) flush() error {
	for _, at := range slices.Sorted(maps.Keys(c.held)) {
		p := c.held[at]
		for p.dirty != 0 {
			from := int64(0)
			for p.dirty&(1<<from) == 0 {
				from++
			}
			to := from
			for to < pageSize/c.sector && p.dirty&(1<<to) != 0 {
				to++
			}
			b := p.b[from*c.sector : min(to*c.sector, int64(len(p.b)))]
			if _, err := c.medium.WriteAt(b, c.base+at+from*c.sector); err != nil {
				return err
			}
			for s := from; s < to; s++ {
				p.dirty &^= 1 << s
			}
			if p.dirty == 0 {
				c.dirty--
			}
		}
	}
	return nil
}
