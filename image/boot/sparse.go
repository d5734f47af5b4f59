package main

import (
	"errors"
	"io"
	"os"

	"golang.org/x/sys/unix"
)

// copyData copies the parts of a file that are not holes (lseek(2)).
func copyData(in, out *os.File, size int64) error {
	for at := int64(0); at < size; {
		start, err := in.Seek(at, unix.SEEK_DATA)
		if errors.Is(err, unix.ENXIO) {
			return nil
		}
		if err != nil {
			return err
		}
		end, err := in.Seek(start, unix.SEEK_HOLE)
		if err != nil {
			return err
		}
		if _, err := io.Copy(io.NewOffsetWriter(out, start), io.NewSectionReader(in, start, end-start)); err != nil {
			return err
		}
		at = end
	}
	return nil
}
