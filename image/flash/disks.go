package flash

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// Rule is which disks are written to, for people.
const Rule = "A disk is written to if it is an SD card, or on USB, or marked removable by the kernel; if nothing on it is in use, be it\n" +
	"mounted, swap, or part of a volume; and if this computer does not run from it. Any other disk is refused, without exception."

// Machine is the computer that cards are written on, by the places where Linux tells of its disks. HostMachine is this one.
type Machine struct {
	Sys  string // where sysfs is mounted
	Proc string // proc of this process: mountinfo, and swaps one above
	Dev  string
}

// HostMachine is the computer that this program runs on.
func HostMachine() Machine { return Machine{Sys: "/sys", Proc: "/proc/self", Dev: "/dev"} }

// Disk is a whole disk.
type Disk struct {
	Name     string   `json:"name"` // as the kernel calls it: sdb
	Path     string   `json:"path"`
	Number   string   `json:"-"` // MAJOR:MINOR, which the next disk gets that is put in
	Sequence int64    `json:"-"` // diskseq: differs for every disk and medium since this computer was started; 0: it does not say
	Size     int64    `json:"size"`
	Model    string   `json:"model,omitempty"`
	Vendor   string   `json:"vendor,omitempty"`
	Serial   string   `json:"serial,omitempty"`
	Bus      string   `json:"bus,omitempty"`
	InUse    []string `json:"in_use,omitempty"` // where it is mounted, or what else uses it
	System   bool     `json:"system,omitempty"` // this computer runs from it
	Problem  string   `json:"problem,omitempty"`
}

// A RefusedError says why a disk is not written to, and what to do.
type RefusedError struct{ Disk, Why string }

func (e *RefusedError) Error() string { return e.Disk + " is not written to: " + e.Why }

// notDisks are what has a name like a disk's and is none: parts of an eMMC, optical drives, floppies.
func notDisk(name string) bool {
	return regexp.MustCompile(`^(mmcblk\d+(boot|rpmb|gp).*|sr\d+|fd\d+)$`).MatchString(name)
}

// Disks lists the disks of m, refused ones too, each with its Problem.
func (m Machine) Disks() ([]Disk, error) {
	entries, err := os.ReadDir(filepath.Join(m.Sys, "block"))
	if err != nil {
		return nil, fmt.Errorf("listing disks: %w", err)
	}
	uses, err := m.uses()
	if err != nil {
		return nil, err
	}
	disks := []Disk{}
	for _, e := range entries {
		dir := filepath.Join(m.Sys, "block", e.Name())
		// Loop, RAM and mapped devices have no hardware behind them.
		if _, err := os.Stat(filepath.Join(dir, "device")); err != nil || notDisk(e.Name()) {
			continue
		}
		disks = append(disks, m.disk(dir, e.Name(), uses))
	}
	return disks, nil
}

// Find finds a disk by its name, its path, or a link to that. Whether it may be written to is its Problem. The error is a
// *RefusedError where what ref names is no whole disk.
func (m Machine) Find(ref string) (Disk, error) {
	path := ref
	if !strings.ContainsRune(ref, filepath.Separator) {
		path = filepath.Join(m.Dev, ref)
	}
	if real, err := filepath.EvalSymlinks(path); err == nil {
		path = real
	} else if !errors.Is(err, fs.ErrNotExist) {
		return Disk{}, &RefusedError{ref, err.Error()}
	}
	name := filepath.Base(path)
	disks, err := m.Disks()
	if err != nil {
		return Disk{}, err
	}
	for _, d := range disks {
		if d.Name == name && d.Path == path {
			return d, nil
		}
		if _, err := os.Stat(filepath.Join(m.Sys, "block", d.Name, name, "partition")); err == nil {
			return Disk{}, &RefusedError{ref, fmt.Sprintf("it is a partition; the whole disk is %s", d.Name)}
		}
	}
	return Disk{}, &RefusedError{ref, "there is no such disk"}
}

// Attached refuses a file that a loop device shows as a disk: what is mounted from there would be written over, and would write.
func (m Machine) Attached(path string) error {
	file, err := os.Stat(path)
	if err != nil {
		return err
	}
	backed, err := filepath.Glob(filepath.Join(m.Sys, "block", "loop*", "loop", "backing_file"))
	if err != nil {
		return err
	}
	for _, attribute := range backed {
		dir := filepath.Dir(attribute)
		name := filepath.Base(filepath.Dir(dir))
		if info, err := os.Stat(text(dir, "backing_file")); err == nil && os.SameFile(info, file) {
			return &RefusedError{path, fmt.Sprintf("it is in use as %s; detach it first: losetup -d /dev/%s", name, name)}
		}
	}
	return nil
}

// Still says whether the disk that goes by d's name now is the one that d was, and may still be written to. Asked once the disk is
// opened, it covers all the time since d was found. The error is a *RefusedError where it is not.
func (m Machine) Still(d Disk) error {
	now, err := m.Find(d.Name)
	switch {
	case err != nil:
		return err
	case now.Number != d.Number || now.Sequence != d.Sequence || now.Size != d.Size || now.Serial != d.Serial || now.Model != d.Model:
		return changed(d)
	case now.Problem != "":
		return &RefusedError{d.Name, now.Problem}
	}
	return nil
}

// changed refuses a disk that is another one than the person was told of.
func changed(d Disk) error {
	return &RefusedError{d.Name, "it is not the disk any more that it was; look again with assent flash"}
}

func (m Machine) disk(dir, name string, uses map[string][]string) Disk {
	d := Disk{
		Name: name, Path: filepath.Join(m.Dev, name), Number: text(dir, "dev"), Sequence: number(dir, "diskseq"), Size: number(dir, "size") * 512,
		Model: firstOf(text(dir, "device/model"), text(dir, "device/name")), Vendor: text(dir, "device/vendor"),
		Serial: firstOf(text(dir, "device/serial"), text(dir, "serial")),
	}
	removable := number(dir, "removable") == 1
	real, err := filepath.EvalSymlinks(dir)
	if err != nil {
		real = dir
	}
	switch {
	case strings.Contains(real, "/usb"):
		d.Bus = "usb"
		d.fromUSB(m, real)
		removable = true
	case strings.HasPrefix(name, "mmcblk"):
		d.Bus = "mmc"
		removable = removable || text(dir, "device/type") == "SD"
	case strings.HasPrefix(name, "nvme"):
		d.Bus = "nvme"
	case strings.Contains(real, "/ata"):
		d.Bus = "ata"
	case strings.Contains(real, "/virtio"):
		d.Bus = "virtio"
	}
	d.InUse = m.inUse(dir, uses)
	d.System = slices.ContainsFunc(d.InUse, system)
	d.Problem = problem(d, removable, number(dir, "ro") == 1)
	return d
}

func problem(d Disk, removable, readOnly bool) string {
	switch {
	case d.System:
		return "this computer runs from it (" + strings.Join(d.InUse, ", ") + ")"
	case len(d.InUse) > 0:
		return "it is in use: " + strings.Join(d.InUse, ", ") + "; unmount or stop that first"
	case !removable:
		return "it is built in: not an SD card, not on USB, not marked removable"
	case d.Size == 0:
		return "there is no card in it"
	case readOnly:
		return "it is write-protected; move the slider on the card, or try another reader"
	}
	return ""
}

// fromUSB takes over what the USB device above a disk says of itself, where the disk itself does not.
func (d *Disk) fromUSB(m Machine, real string) {
	for dir := real; len(dir) > len(m.Sys); dir = filepath.Dir(dir) {
		if text(dir, "idVendor") != "" {
			d.Serial = firstOf(d.Serial, text(dir, "serial"))
			d.Vendor = firstOf(d.Vendor, text(dir, "manufacturer"))
			d.Model = firstOf(d.Model, text(dir, "product"))
			return
		}
	}
}

// text reads an attribute; empty where there is none.
func text(dir, name string) string {
	b, err := os.ReadFile(filepath.Join(dir, name))
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(b))
}

func number(dir, name string) int64 {
	n, err := strconv.ParseInt(text(dir, name), 10, 64)
	if err != nil {
		return 0
	}
	return n
}

func firstOf(texts ...string) string {
	for _, t := range texts {
		if t != "" {
			return t
		}
	}
	return ""
}

// Title is what is written on the disk, as far as it tells.
func (d Disk) Title() string {
	if strings.HasPrefix(d.Model, d.Vendor) {
		return d.Model
	}
	return strings.TrimSpace(d.Vendor + " " + d.Model)
}
