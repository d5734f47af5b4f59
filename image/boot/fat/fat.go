// Package fat looks into FAT file systems on disks that are files, without mounting them: a card's boot partition, and sticks.
package fat

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"path/filepath"

	"github.com/diskfs/go-diskfs/backend"
	"github.com/diskfs/go-diskfs/backend/file"
	"github.com/diskfs/go-diskfs/filesystem/fat32"

	"assent.home.arpa/image/card"
)

// sectorSize is that of cards and sticks.
const sectorSize = 512

// open opens the file system in a partition, or of the whole disk if there is no label. The caller closes the disk.
func open(name, label string) (backend.Storage, *fat32.FileSystem, error) {
	info, err := os.Stat(name)
	if err != nil {
		return nil, nil, err
	}
	p := card.Partition{Size: info.Size()}
	if label != "" {
		if p, err = partition(name, label); err != nil {
			return nil, nil, err
		}
	}
	d, err := file.OpenFromPath(name, false)
	if err != nil {
		return nil, nil, err
	}
	fsys, err := fat32.Read(d, p.Size, p.Start, sectorSize)
	if err != nil {
		return nil, nil, errors.Join(err, d.Close())
	}
	return d, fsys, nil
}

func partition(disk, label string) (card.Partition, error) {
	f, err := os.Open(disk)
	if err != nil {
		return card.Partition{}, err
	}
	defer f.Close()
	table, err := card.ReadTable(f)
	if err != nil {
		return card.Partition{}, err
	}
	return table.Lookup(label)
}

// Replace puts content in a file's place.
func Replace(disk, label, name string, content []byte) (err error) {
	d, fsys, err := open(disk, label)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, d.Close()) }()
	// Writing over it would leave its end.
	if old, err := fsys.OpenFile(name, os.O_RDONLY); err == nil {
		if err := errors.Join(old.Close(), fsys.Remove(name)); err != nil {
			return err
		}
	}
	f, err := fsys.OpenFile(name, os.O_CREATE|os.O_RDWR)
	if err != nil {
		return err
	}
	_, err = f.Write(content)
	return errors.Join(err, f.Close())
}

// Digests returns the SHA-256 of each file.
func Digests(disk, label string) (sums map[string][sha256.Size]byte, err error) {
	d, fsys, err := open(disk, label)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, d.Close()) }()
	sums = map[string][sha256.Size]byte{}
	return sums, walk(fsys, ".", func(name string, f io.Reader) error {
		h := sha256.New()
		_, err := io.Copy(h, f)
		sums[name] = [sha256.Size]byte(h.Sum(nil))
		return err
	})
}

// Extract copies everything into a folder of this machine.
func Extract(disk, label, dir string) (err error) {
	d, fsys, err := open(disk, label)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, d.Close()) }()
	return walk(fsys, ".", func(name string, in io.Reader) error {
		to := filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
			return err
		}
		out, err := os.Create(to)
		if err != nil {
			return err
		}
		_, err = io.Copy(out, in)
		return errors.Join(err, out.Close())
	})
}

// walk calls visit with each file below dir.
func walk(fsys *fat32.FileSystem, dir string, visit func(name string, f io.Reader) error) error {
	entries, err := fsys.ReadDir(dir)
	if err != nil {
		return fmt.Errorf("fat: %s: %w", dir, err)
	}
	for _, e := range entries {
		if e.Name() == "." || e.Name() == ".." {
			continue
		}
		name := path.Join(dir, e.Name())
		if e.IsDir() {
			if err := walk(fsys, name, visit); err != nil {
				return err
			}
			continue
		}
		f, err := fsys.OpenFile(name, os.O_RDONLY)
		if err != nil {
			return fmt.Errorf("fat: %s: %w", name, err)
		}
		err = visit(name, f)
		if err := errors.Join(err, f.Close()); err != nil {
			return fmt.Errorf("fat: %s: %w", name, err)
		}
	}
	return nil
}

// SamePartition reports whether a partition holds the same on two disks, as far as the first one's reaches.
func SamePartition(a, b, label string) (bool, error) {
	var sums [2][sha256.Size]byte
	for i, disk := range []string{a, b} {
		p, err := partition(disk, label)
		if err != nil {
			return false, err
		}
		f, err := os.Open(disk)
		if err != nil {
			return false, err
		}
		h := sha256.New()
		_, err = io.Copy(h, io.NewSectionReader(f, p.Start, p.Size))
		if err := errors.Join(err, f.Close()); err != nil {
			return false, err
		}
		sums[i] = [sha256.Size]byte(h.Sum(nil))
	}
	return sums[0] == sums[1], nil
}

// NewStick makes a stick of so many bytes with an empty FAT32 file system and no partitions.
func NewStick(name string, size int64) error {
	d, err := file.CreateFromPath(name, size)
	if err != nil {
		return err
	}
	_, err = fat32.Create(d, size, 0, sectorSize, "STICK", false)
	return errors.Join(err, d.Close())
}
