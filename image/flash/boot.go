package flash

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"strings"
	"time"

	"github.com/diskfs/go-diskfs/backend"
	"github.com/diskfs/go-diskfs/filesystem/fat32"

	"assent.home.arpa/image/card"
)

// settingsFile is where the box looks for settings on its boot partition.
const settingsFile = "assent.toml"

// dropSettings writes the settings into the boot partition's file system, and reads them back.
func dropSettings(t Target, boot card.Partition, content []byte) error {
	fat, err := fat32.Read(storage{Target: t}, boot.Size, boot.Start, card.SectorBytes)
	if err != nil {
		return err
	}
	// What the image itself brought along goes: writing over it would leave its end.
	entries, err := fat.ReadDir(".")
	if err != nil {
		return err
	}
	for _, e := range entries {
		if !strings.EqualFold(e.Name(), settingsFile) {
			continue
		}
		if err := fat.Remove(e.Name()); err != nil {
			return err
		}
	}
	f, err := fat.OpenFile(settingsFile, os.O_CREATE|os.O_RDWR)
	if err != nil {
		return err
	}
	_, err = f.Write(content)
	if err := errors.Join(err, f.Close(), t.Sync()); err != nil {
		return err
	}
	// Anew: the file system has a copy of its tables in memory.
	fat, err = fat32.Read(storage{Target: t}, boot.Size, boot.Start, card.SectorBytes)
	if err != nil {
		return err
	}
	kept, err := fat.ReadFile(settingsFile)
	if err != nil {
		return err
	}
	if !bytes.Equal(kept, content) {
		return errors.New("what was written is not what is read")
	}
	return nil
}

// storage is a Target as go-diskfs wants it: it reads and writes at offsets alone.
type storage struct{ Target }

var errSequential = errors.New("flash: internal error: a file system read its disk from the beginning")

func (s storage) Read([]byte) (int, error)                { return 0, errSequential }
func (s storage) Seek(int64, int) (int64, error)          { return 0, errSequential }
func (s storage) Sys() (*os.File, error)                  { return nil, backend.ErrNotSuitable }
func (s storage) Writable() (backend.WritableFile, error) { return s, nil }
func (s storage) Path() string                            { return "" }
func (s storage) Stat() (fs.FileInfo, error)              { return diskInfo(s.Size()), nil }

// diskInfo is the fs.FileInfo of a disk of so many bytes.
type diskInfo int64

func (i diskInfo) Name() string       { return "disk" }
func (i diskInfo) Size() int64        { return int64(i) }
func (i diskInfo) Mode() fs.FileMode  { return fs.ModeDevice }
func (i diskInfo) ModTime() time.Time { return time.Time{} }
func (i diskInfo) IsDir() bool        { return false }
func (i diskInfo) Sys() any           { return nil }
