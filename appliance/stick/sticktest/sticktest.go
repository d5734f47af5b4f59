// Package sticktest makes sticks as people bring them: of every FAT, with files on them, partitioned or not, and pulled out at
// any moment.
package sticktest

import (
	"encoding/binary"
	"io"
	"maps"
	"os"
	"path"
	"slices"
	"testing"

	"github.com/diskfs/go-diskfs/filesystem"
	"github.com/diskfs/go-diskfs/filesystem/fat12"
	"github.com/diskfs/go-diskfs/filesystem/fat16"
	"github.com/diskfs/go-diskfs/filesystem/fat32"

	"assent.home.arpa/appliance/stick/fat"
)

// Format returns an empty volume.
func Format(t testing.TB, size int64, label string) []byte {
	t.Helper()
	s := NewStick(make([]byte, size))
	if err := fat.Format(s, size, label); err != nil {
		t.Fatal(err)
	}
	return s.Content()
}

// Put writes files onto a volume, in the order of their names, as its owner did.
func Put(t testing.TB, kind int, volume []byte, files map[string][]byte) []byte {
	t.Helper()
	volume = slices.Clone(volume)
	fsys := Reader(t, kind, volume)
	for _, name := range slices.Sorted(maps.Keys(files)) {
		f, err := fsys.OpenFile(name, os.O_CREATE|os.O_RDWR)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := f.Write(files[name]); err != nil {
			t.Fatal(err)
		}
	}
	return volume
}

// Reader opens a volume with other eyes than the product's.
func Reader(t testing.TB, kind int, volume []byte) filesystem.FileSystem {
	t.Helper()
	var fsys filesystem.FileSystem
	var err error
	switch m, size := (&memory{b: volume}), int64(len(volume)); kind {
	case 12:
		fsys, err = fat12.Read(m, size, 0, 512)
	case 16:
		fsys, err = fat16.Read(m, size, 0, 512)
	default:
		fsys, err = fat32.Read(m, size, 0, 512)
	}
	if err != nil {
		t.Fatal(err)
	}
	return fsys
}

// PartitionStart is where Partitioned puts a volume, in bytes.
const PartitionStart = 2048 * 512

// Partitioned puts volumes behind a partition table of the classic kind, one after the other, all of one type.
func Partitioned(kind byte, volumes ...[]byte) []byte {
	disk := make([]byte, PartitionStart)
	disk[510], disk[511] = 0x55, 0xaa
	for i, v := range volumes {
		entry := disk[446+16*i:]
		entry[4] = kind
		binary.LittleEndian.PutUint32(entry[8:], uint32(len(disk)/512))
		binary.LittleEndian.PutUint32(entry[12:], uint32(len(v)/512))
		disk = append(disk, v...)
	}
	return disk
}

// Files reads all files of a volume, by path, with other eyes than the product's.
func Files(t testing.TB, kind int, volume []byte) map[string][]byte {
	t.Helper()
	fsys := Reader(t, kind, volume)
	files := map[string][]byte{}
	var walk func(dir string)
	walk = func(dir string) {
		entries, err := fsys.ReadDir(dir)
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range entries {
			name := path.Join(dir, e.Name())
			info, err := e.Info()
			switch {
			case err != nil:
				t.Fatal(err)
			case e.Name() == "." || e.Name() == "..":
			case e.IsDir():
				walk(name)
			case info.Size() == 0: // which go-diskfs v1.9.4 cannot read
				files[name] = nil
			default:
				files[name] = readOnce(t, fsys, name, info.Size())
			}
		}
	}
	walk(".")
	return files
}

// readOnce reads a file in one go: go-diskfs v1.9.4 reads past a file's end where it is read in parts.
func readOnce(t testing.TB, fsys filesystem.FileSystem, name string, size int64) []byte {
	t.Helper()
	f, err := fsys.OpenFile(name, os.O_RDONLY)
	if err != nil {
		t.Fatal(err)
	}
	b := make([]byte, size)
	if n, err := f.Read(b); err != nil && err != io.EOF || int64(n) != size {
		t.Fatalf("%s: %d bytes of %d, %v", name, n, size, err)
	}
	return b
}
