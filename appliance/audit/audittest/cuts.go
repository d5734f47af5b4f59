package audittest

import (
	"fmt"
	"hash/maphash"
	"iter"
	"maps"
	"math/rand/v2"
	"slices"
)

// snapshot is a copy of the disk with all that is not durable, unlocked.
func (d *Disk) snapshot() *Disk {
	copies := map[*inode]*inode{nil: nil}
	of := func(f *inode) *inode {
		if c, ok := copies[f]; ok {
			return c
		}
		copies[f] = &inode{now: f.now.clone(), durable: f.durable.clone(), dirty: maps.Clone(f.dirty)}
		return copies[f]
	}
	all := func(names map[string]*inode) map[string]*inode {
		m := make(map[string]*inode, len(names))
		for name, f := range names {
			m[name] = of(f)
		}
		return m
	}
	after := NewDisk()
	after.names, after.durable = all(d.names), all(d.durable)
	for _, c := range d.changes {
		after.changes = append(after.changes, all(c))
	}
	return after
}

// Moment is the disk as it is now, as a copy in which what is not durable still is not.
func (d *Disk) Moment() *Disk {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.snapshot()
}

// Cuts yields what a power cut now may leave, each with a word on what was lost. Of the names: what was durable, and
// each later operation up to each; further, since ext4 with fast commits and f2fs may make one file's names durable before
// another's, all but one of those operations and each alone, where no other depends on it. With each of these, none or all
// of the unsynced sectors and sizes; and with all names, all but each single one, each single one alone, and some at random.
// Of single ones there are at most so many each way, spread over all.
func (d *Disk) Cuts(most int, random *rand.Rand) iter.Seq2[string, *Disk] {
	return func(yield func(string, *Disk) bool) {
		d.mu.Lock()
		defer d.mu.Unlock()
		kept := d.keptNames()
		for i, k := range kept {
			names := maps.Clone(d.durable)
			for _, n := range k {
				d.changes[n].apply(names)
			}
			unsynced := unsyncedIn(names)
			for _, loss := range losses(len(unsynced), i == 0, most, random) {
				word := fmt.Sprintf("name changes %v of %d, %s of %d sectors", k, len(d.changes), loss.word, len(unsynced))
				if !yield(word, cut(names, unsynced, loss.keeps)) {
					return
				}
			}
		}
	}
}

// keptNames lists the sets of changes that may be durable, all of them first.
func (d *Disk) keptNames() [][]int {
	n := len(d.changes)
	all := make([]int, n)
	for i := range all {
		all[i] = i
	}
	kept := [][]int{all}
	seen := map[string]bool{fmt.Sprint(all): true}
	add := func(k []int) {
		if key := fmt.Sprint(k); !seen[key] {
			kept, seen[key] = append(kept, k), true
		}
	}
	for i := range n {
		add(all[:i])
	}
	for i := range n {
		if without := slices.Delete(slices.Clone(all), i, i+1); !d.depends(without, i) {
			add(without)
		}
		if alone := []int{i}; !d.needed(all[:i], i) {
			add(alone)
		}
	}
	return kept
}

// depends reports whether one of the later changes in kept uses a name or a file that change i concerns.
func (d *Disk) depends(kept []int, i int) bool {
	return slices.ContainsFunc(kept, func(k int) bool { return k > i && related(d.changes[k], d.changes[i]) })
}

// needed reports whether change i uses a name or a file that an earlier change concerns.
func (d *Disk) needed(earlier []int, i int) bool {
	return slices.ContainsFunc(earlier, func(k int) bool { return related(d.changes[k], d.changes[i]) })
}

func related(a, b change) bool {
	for name, f := range a {
		if _, ok := b[name]; ok {
			return true
		}
		for _, g := range b {
			if f != nil && f == g {
				return true
			}
		}
	}
	return false
}

// piece is what is written whole or not at all: a sector, or the size where sector is -1.
type piece struct {
	f      *inode
	sector int
}

func unsyncedIn(names map[string]*inode) []piece {
	var pieces []piece
	seen := map[*inode]bool{}
	for _, name := range slices.Sorted(maps.Keys(names)) {
		f := names[name]
		if seen[f] {
			continue
		}
		seen[f] = true
		if f.now.size != f.durable.size {
			pieces = append(pieces, piece{f, -1})
		}
		for _, s := range slices.Sorted(maps.Keys(f.dirty)) {
			pieces = append(pieces, piece{f, s})
		}
	}
	return pieces
}

// loss says which of the unsynced pieces are kept.
type loss struct {
	word  string
	keeps func(i int) bool
}

func losses(n int, closely bool, most int, random *rand.Rand) []loss {
	list := []loss{{"all", func(int) bool { return true }}}
	if n == 0 {
		return list
	}
	list = append(list, loss{"none", func(int) bool { return false }})
	if !closely || n == 1 {
		return list
	}
	step := max(1, (n+most-1)/max(1, most))
	for one := random.IntN(step); one < n; one += step {
		list = append(
			list,
			loss{fmt.Sprintf("all but number %d", one), func(i int) bool { return i != one }},
			loss{fmt.Sprintf("number %d alone", one), func(i int) bool { return i == one }},
		)
	}
	chosen := make([]bool, n)
	for i := range chosen {
		chosen[i] = random.IntN(2) == 0
	}
	return append(list, loss{"a random half", func(i int) bool { return chosen[i] }})
}

// cut is the disk on which names are durable, with those of the unsynced pieces that are kept.
func cut(names map[string]*inode, unsynced []piece, keeps func(int) bool) *Disk {
	after := NewDisk()
	copies := map[*inode]*inode{}
	for name, f := range names {
		if copies[f] == nil {
			copies[f] = &inode{now: f.durable.clone(), dirty: map[int]bool{}}
		}
		after.names[name] = copies[f]
	}
	for i, p := range unsynced {
		f := copies[p.f]
		switch {
		case !keeps(i):
		case p.sector < 0:
			f.now.size = p.f.now.size
		case p.sector*sector < f.now.size:
			f.now.set(p.sector, p.f.now.sectors[p.sector])
		}
	}
	for _, f := range copies {
		f.durable = f.now.clone()
	}
	after.durable = maps.Clone(after.names)
	return after
}

// Print tells disks with other names or other bytes apart, for those who have seen enough of the same.
func (d *Disk) Print(seed maphash.Seed) uint64 {
	d.mu.Lock()
	defer d.mu.Unlock()
	var h maphash.Hash
	h.SetSeed(seed)
	for _, name := range slices.Sorted(maps.Keys(d.names)) {
		f := d.names[name].now
		fmt.Fprintf(&h, "%q %d", name, f.size)
		for _, s := range slices.Sorted(maps.Keys(f.sectors)) {
			fmt.Fprintf(&h, " %d:", s)
			h.Write(f.sectors[s])
		}
	}
	return h.Sum64()
}
