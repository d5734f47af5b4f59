package config

import "errors"

// OnBox says what is wrong with c as the settings of a box, where the places of record, keys and sockets are the image's: a
// record elsewhere could end with the next start, and nobody would see it.
func (c Config) OnBox() error {
	if c.Paths != Default().Paths {
		return errors.New("paths cannot be changed on a box; take the section [paths] out")
	}
	return nil
}
