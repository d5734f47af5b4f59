package config

import (
	"errors"
	"fmt"
)

// MaxBoxQuotaMB is the most that the record may take on a box, in MiB. Its partition has 512, of which the file system takes some 25
// for itself; the rest is for keys and pairings, for a segment that is written anew, and for what is left of torn ones.
const MaxBoxQuotaMB = 448

// OnBox says what is wrong with c as the settings of a box, where the places of record, keys and sockets are the image's: a
// record elsewhere could end with the next start, and nobody would see it; and where the record has a partition of its own.
func (c Config) OnBox() error {
	var errs []error
	if c.Paths != Default().Paths {
		errs = append(errs, errors.New("paths cannot be changed on a box; take the section [paths] out"))
	}
	if c.Audit.QuotaMB > MaxBoxQuotaMB {
		errs = append(errs, fmt.Errorf("audit.quota_mb can be at most %d on a box, whose partition for the record has 512 MiB", MaxBoxQuotaMB))
	}
	return errors.Join(errs...)
}
