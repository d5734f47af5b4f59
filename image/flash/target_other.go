//go:build !linux

package flash

import "errors"

// OpenDisk fails: how to write past the page cache, and to a disk of one's own alone, is known for Linux.
func OpenDisk(Disk) (Target, error) {
	return nil, errors.New("assent flash writes to disks on Linux only; here use Raspberry Pi Imager (\"Use custom\"), dd or bmaptool")
}
