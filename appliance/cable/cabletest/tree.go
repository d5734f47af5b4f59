// Package cabletest is a box's USB port as far as files go: the kernel's description of a gadget as plain files, and a hand at the
// other end that can eject. What the kernel itself does with them is tried in the emulator (make hil).
package cabletest

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"assent.home.arpa/appliance/cable"
)

// Tree is the kernel's side of one port.
type Tree struct {
	Gadgets     string // directory, as cable.Gadgets
	Controllers string // directory, as cable.Controllers
	State       string // the exporter's own

	t testing.TB
}

// files are those that the kernel makes in a new gadget, all that Assent writes and some that it does not.
func files() []string {
	const lun, english = "functions/mass_storage.0/lun.0/", "strings/0x409/"
	return []string{
		"UDC", "idVendor", "idProduct", "bcdUSB", english + "manufacturer", english + "product", english + "serialnumber",
		"configs/c.1/MaxPower", "configs/c.1/" + english + "configuration",
		lun + "file", lun + "ro", lun + "removable", lun + "cdrom", lun + "inquiry_string", lun + "forced_eject",
	}
}

// New returns the port of a board that has one controller.
func New(t testing.TB) *Tree {
	t.Helper()
	dir := t.TempDir()
	tree := &Tree{Gadgets: filepath.Join(dir, "usb_gadget"), Controllers: filepath.Join(dir, "udc"), State: filepath.Join(dir, "state"), t: t}
	for _, d := range []string{tree.Gadgets, tree.State, filepath.Join(tree.Controllers, "fe980000.usb")} {
		if err := os.MkdirAll(d, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range files() {
		path := tree.path(name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte("\n"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return tree
}

// SetUp is done as on a box, for the user who tests.
func (k *Tree) SetUp() error { return cable.SetUp(k.Gadgets, k.Controllers, os.Getuid(), os.Getgid()) }

// Port is the exporter's end.
func (k *Tree) Port() (*cable.Port, error) { return cable.Open(k.Gadgets, k.Controllers, k.State) }

func (k *Tree) path(name string) string { return filepath.Join(k.Gadgets, cable.Name, name) }

// Read is what one file of the description says.
func (k *Tree) Read(name string) string {
	k.t.Helper()
	b, err := os.ReadFile(k.path(name))
	if err != nil {
		k.t.Fatal(err)
	}
	return strings.TrimSpace(string(b))
}

// Attached is the controller that the disk is at, or "".
func (k *Tree) Attached() string { return k.Read("UDC") }

// Disk is what a PC at the other end reads: nothing where it is not attached, or where there is no medium.
func (k *Tree) Disk() []byte {
	k.t.Helper()
	in := k.Read("functions/mass_storage.0/lun.0/file")
	if k.Attached() == "" || in == "" {
		return nil
	}
	b, err := os.ReadFile(in)
	if err != nil {
		k.t.Fatal(err)
	}
	return b
}

// Eject is what a PC does when its user ejects the disk.
func (k *Tree) Eject() {
	k.t.Helper()
	if err := os.WriteFile(k.path("functions/mass_storage.0/lun.0/file"), []byte("\n"), 0o644); err != nil {
		k.t.Fatal(err)
	}
}

// Left lists what is in the exporter's own directory.
func (k *Tree) Left() []string {
	k.t.Helper()
	entries, err := os.ReadDir(k.State)
	if err != nil {
		k.t.Fatal(err)
	}
	var names []string
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names
}
