package screen

import "testing"

// TestNoCellBeginsAnother holds what Decode rests on: a row of cells can be read in one way only.
func TestNoCellBeginsAnother(t *testing.T) {
	a := tables()
	for _, run := range []script{latin, greek, cyrillic} {
		for _, owners := range []map[shape]rune{a.owners[common], a.owners[run]} {
			for s, r := range owners {
				if other, ok := a.owners[run][s]; ok && other != r {
					t.Errorf("%U and %U are one cell", r, other)
				}
				for cols := 1; cols < s.cols; cols++ {
					head := shape{cols: cols}
					for y, row := range s.rows {
						head.rows[y] = row &^ (^uint64(0) >> (cols * column))
					}
					if other, ok := a.owner(run, head); ok {
						t.Errorf("the first %d columns of %U are %U", cols, r, other)
					}
				}
			}
		}
	}
}
