package screen

import "testing"

// TestNoCellBeginsAnother holds what Decode rests on: a row of cells can be read in one way only.
func TestNoCellBeginsAnother(t *testing.T) {
	owners := tables().owners
	for s, r := range owners {
		for cols := 1; cols < s.cols; cols++ {
			head := shape{cols: cols}
			for y, row := range s.rows {
				head.rows[y] = row &^ (^uint64(0) >> (cols * column))
			}
			if other, ok := owners[head]; ok {
				t.Errorf("the first %d columns of %U are %U", cols, r, other)
			}
		}
	}
}
