package cable

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"assent.home.arpa/appliance/stick"
	"assent.home.arpa/appliance/stick/fat"
)

const (
	// imageName is the one file of an exporter's own directory.
	imageName = "record.img"
	// label is what a PC calls the disk.
	label = "ASSENT"
	// spare is what must stay free on the box's own file system, whatever is shown.
	spare = 64 << 20
)

// How long the kernel may take to hear that the other end is gone: until then it keeps a medium that a PC has locked.
const (
	releaseTries = 30
	releasePause = 100 * time.Millisecond
)

// Port is the exporter's end of the cable. One goroutine uses it.
type Port struct {
	gadget     files
	controller string
	image      string
}

var _ stick.Port = (*Port)(nil)

// Open takes the gadget that SetUp made below gadgets, and dir for the image. What an exporter that died left on the cable is
// taken off it.
func Open(gadgets, controllers, dir string) (*Port, error) {
	at, err := controller(controllers)
	if err != nil {
		return nil, err
	}
	p := &Port{gadget: files{filepath.Join(gadgets, Name)}, controller: at, image: filepath.Join(dir, imageName)}
	if err := p.Hide(); err != nil {
		return nil, err
	}
	return p, nil
}

// Make implements stick.Port: an empty FAT volume in a file with holes, which takes no more of the card than is written to it.
func (p *Port) Make(room int64) (stick.Medium, error) {
	if room < 0 || room > 32<<30 {
		return nil, fmt.Errorf("cable: room for %d bytes: %w", room, fs.ErrInvalid)
	}
	if err := p.Hide(); err != nil {
		return nil, err
	}
	// Two tables of four bytes for each cluster of 512, directories, and the ends of clusters.
	size := (room + room/16 + 4<<20) &^ (1<<20 - 1)
	var free unix.Statfs_t
	if err := unix.Statfs(filepath.Dir(p.image), &free); err != nil {
		return nil, fmt.Errorf("cable: %w", err)
	}
	if left := int64(free.Bavail) * free.Bsize; left < room+spare {
		return nil, fmt.Errorf("cable: %d MB are free and about %d are needed: %w", left>>20, (room+spare)>>20, syscall.ENOSPC)
	}
	f, err := os.OpenFile(p.image, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return nil, fmt.Errorf("cable: %w", err)
	}
	err = f.Truncate(size)
	if err == nil {
		err = fat.Format(f, size, label)
	}
	if err := errors.Join(err, f.Close()); err != nil {
		return nil, errors.Join(fmt.Errorf("cable: %w", err), p.Hide())
	}
	d, err := stick.OpenDevice(p.image)
	if err != nil {
		return nil, errors.Join(err, p.Hide())
	}
	return d, nil
}

// Show implements stick.Port: the image into the drive, then the drive to the cable.
func (p *Port) Show() error {
	if _, err := os.Stat(p.image); err != nil {
		return fmt.Errorf("cable: nothing was made to be shown: %w", err)
	}
	if err := p.gadget.write(mediumFile, p.image); err != nil {
		return err
	}
	if err := p.gadget.write(controllerFile, p.controller); err != nil {
		return errors.Join(err, p.Hide())
	}
	return nil
}

// Shown implements stick.Port. Whoever ejects the disk at the other end takes the image out of the drive.
func (p *Port) Shown() (bool, error) {
	at, err := p.gadget.read(controllerFile)
	if err != nil || at == "" {
		return false, err
	}
	in, err := p.gadget.read(mediumFile)
	return in != "", err
}

// Hide implements stick.Port: off the cable, out of the drive, off the card. It does as much of that as it can.
func (p *Port) Hide() error {
	err := errors.Join(p.gadget.detach(), p.takeOut())
	if removed := os.Remove(p.image); removed != nil && !errors.Is(removed, fs.ErrNotExist) {
		err = errors.Join(err, fmt.Errorf("cable: %w", removed))
	}
	return err
}

func (p *Port) takeOut() error {
	in, err := p.gadget.read(mediumFile)
	if err != nil || in == "" {
		return err
	}
	for range releaseTries {
		if err = p.gadget.write(mediumFile, ""); !errors.Is(err, syscall.EBUSY) {
			return err
		}
		time.Sleep(releasePause)
	}
	return err
}
