package cable

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// Where the kernel has what this package needs.
const (
	Gadgets     = "/sys/kernel/config/usb_gadget" // once libcomposite is loaded and configfs is mounted
	Controllers = "/sys/class/udc"
)

// Name is the gadget's directory below Gadgets, and Dir all of its path.
const (
	Name = "assent"
	Dir  = Gadgets + "/" + Name
)

// The two files that an exporter is given, below the gadget's directory: where the disk is attached, and what is in it.
const (
	controllerFile = "UDC"
	mediumFile     = lun + "/file"
)

const (
	function = "functions/mass_storage.0"
	lun      = function + "/lun.0"
	config   = "configs/c.1"
	english  = "strings/0x409"
)

// ErrNoController says that the board has no port by which it could pose as anything.
var ErrNoController = errors.New("cable: this board has no USB device controller")

// attribute is one file of the description.
type attribute struct{ name, value string }

// description is the disk. The vendor and product are the Linux Foundation's for gadgets like this.
func description() []attribute {
	return []attribute{
		{"idVendor", "0x1d6b"},
		{"idProduct", "0x0104"},
		{english + "/manufacturer", "Assent"},
		{english + "/product", "Record, read-only"},
		{english + "/serialnumber", "1"},
		{config + "/" + english + "/configuration", "Record, read-only"},
		{lun + "/ro", "1"},
		{lun + "/removable", "1"},
		{lun + "/cdrom", "0"},
		{lun + "/inquiry_string", "Assent  Record          1"},
	}
}

// SetUp describes the disk below gadgets, attached to none of controllers, and gives the exporter its two files. It fails with
// ErrNoController where there is none. Nothing changes where it was done before.
func SetUp(gadgets, controllers string, uid, gid int) error {
	if _, err := controller(controllers); err != nil {
		return err
	}
	dir := filepath.Join(gadgets, Name)
	for _, d := range []string{".", english, config, config + "/" + english, function} {
		if err := os.Mkdir(filepath.Join(dir, d), 0o755); err != nil && !errors.Is(err, fs.ErrExist) {
			return fmt.Errorf("cable: %w", err)
		}
	}
	if err := (files{dir}).detach(); err != nil {
		return err
	}
	for _, a := range description() {
		if err := (files{dir}).write(a.name, a.value); err != nil {
			return err
		}
	}
	link := filepath.Join(dir, config, filepath.Base(function))
	if err := os.Symlink(filepath.Join(dir, function), link); err != nil && !errors.Is(err, fs.ErrExist) {
		return fmt.Errorf("cable: %w", err)
	}
	if err := alone(dir); err != nil {
		return err
	}
	for _, name := range []string{controllerFile, mediumFile} {
		if err := os.Chown(filepath.Join(dir, name), uid, gid); err != nil {
			return fmt.Errorf("cable: %w", err)
		}
	}
	return nil
}

// alone fails where the description holds more than the one disk.
func alone(dir string) error {
	for _, in := range []struct {
		dir  string
		want []string
	}{
		{"functions", []string{filepath.Base(function)}},
		{"configs", []string{filepath.Base(config)}},
	} {
		entries, err := os.ReadDir(filepath.Join(dir, in.dir))
		if err != nil {
			return fmt.Errorf("cable: %w", err)
		}
		var names []string
		for _, e := range entries {
			names = append(names, e.Name())
		}
		if !slices.Equal(names, in.want) {
			return fmt.Errorf("cable: the box would pose as %s", strings.Join(names, ", "))
		}
	}
	return nil
}

// controller is the name of the board's controller: the first, where there are several.
func controller(controllers string) (string, error) {
	entries, err := os.ReadDir(controllers)
	if errors.Is(err, fs.ErrNotExist) || err == nil && len(entries) == 0 {
		return "", ErrNoController
	}
	if err != nil {
		return "", fmt.Errorf("cable: %w", err)
	}
	return entries[0].Name(), nil
}

// files are the files of one gadget's description.
type files struct{ dir string }

func (f files) read(name string) (string, error) {
	b, err := os.ReadFile(filepath.Join(f.dir, name))
	if err != nil {
		return "", fmt.Errorf("cable: %w", err)
	}
	return strings.TrimSpace(string(b)), nil
}

// write puts one line into a file of the description. It makes no file: what the kernel does not offer is an error.
func (f files) write(name, value string) error {
	w, err := os.OpenFile(filepath.Join(f.dir, name), os.O_WRONLY|os.O_TRUNC, 0)
	if err != nil {
		return fmt.Errorf("cable: %w", err)
	}
	_, err = w.WriteString(value + "\n")
	if err := errors.Join(err, w.Close()); err != nil {
		return fmt.Errorf("cable: %w", err)
	}
	return nil
}

// detach takes the disk off the cable. The kernel says ENODEV where it is at none.
func (f files) detach() error {
	at, err := f.read(controllerFile)
	if err != nil || at == "" {
		return err
	}
	return f.write(controllerFile, "")
}
