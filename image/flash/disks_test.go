package flash_test

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"

	"assent.home.arpa/image/card"
	"assent.home.arpa/image/flash"
	"assent.home.arpa/image/flash/flashtest"
)

func machine(t *testing.T) flash.Machine {
	t.Helper()
	m, err := flashtest.Machine(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// Issue 5: mounted, system and built-in disks are refused, each with its reason, and cards are not.
func TestWhichDisksAreWrittenTo(t *testing.T) {
	disks, err := machine(t).Disks()
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]string{}
	for _, d := range disks {
		got[d.Name] = d.Problem
	}
	want := map[string]string{
		"nvme0n1": "this computer runs from it (/, /boot, swap)",
		"sda":     "it is built in: not an SD card, not on USB, not marked removable",
		"sdb":     "",
		"sdc":     "it is in use: /media/me/My Backup; unmount or stop that first",
		"sdd":     "it is in use: /media/me/tree; unmount or stop that first",
		"sde":     "it is in use: part of vault; unmount or stop that first",
		"sdf":     "this computer runs from it (swap)",
		"sdg":     "there is no card in it",
		"sdh":     "it is write-protected; move the slider on the card, or try another reader",
		"mmcblk0": "",
		"mmcblk1": "it is built in: not an SD card, not on USB, not marked removable",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestWhatADiskSaysOfItself(t *testing.T) {
	m := machine(t)
	d, err := m.Find("sdb")
	if err != nil {
		t.Fatal(err)
	}
	want := flash.Disk{Name: "sdb", Path: filepath.Join(m.Dev, "sdb"), Number: "8:16", Size: 32e9, Model: "SD Reader", Vendor: "Generic", Serial: "R\x1b[31m1", Bus: "usb"}
	if diff := cmp.Diff(want, d); diff != "" {
		t.Error(diff)
	}
}

func TestDisksAreFoundByWhatPeopleCallThem(t *testing.T) {
	m := machine(t)
	for _, tc := range []struct{ ref, name, want string }{
		{"sdb", "sdb", ""},
		{filepath.Join(m.Dev, "sdb"), "sdb", ""},
		{filepath.Join(m.Dev, "disk/by-id/usb-reader"), "sdb", ""},
		{"sdb1", "", "it is a partition; the whole disk is sdb"},
		{"sdz", "", "there is no such disk"},
		{"loop0", "", "there is no such disk"},
		{"dm-1", "", "there is no such disk"},
		{"mmcblk1boot0", "", "there is no such disk"},
		{filepath.Join(m.Dev, "..", "sys", "block", "sdb"), "", "there is no such disk"},
		{"", "", "there is no such disk"},
	} {
		d, err := m.Find(tc.ref)
		var refused *flash.RefusedError
		if d.Name != tc.name || (tc.want == "") != (err == nil) || err != nil && (!errors.As(err, &refused) || !strings.Contains(err.Error(), tc.want)) {
			t.Errorf("%q: %q, %v", tc.ref, d.Name, err)
		}
	}
}

// A computer whose mounts cannot be read is one on which nothing is known to be free.
func TestMountsThatCannotBeRead(t *testing.T) {
	m := machine(t)
	if err := os.Remove(filepath.Join(m.Proc, "mountinfo")); err != nil {
		t.Fatal(err)
	}
	if disks, err := m.Disks(); err == nil {
		t.Errorf("got %+v", disks)
	}
}

// A reader keeps its name and number when another card is put into it, while the image is being checked.
func TestADiskThatIsAnotherOneNow(t *testing.T) {
	for name, tc := range map[string]struct{ attribute, value, want string }{
		"nothing has happened": {"removable", "1", ""},
		"another medium":       {"diskseq", "8", "not the disk any more"},
		"another size":         {"size", "2048", "not the disk any more"},
		"another disk":         {"device/model", "SD Reader 2", "not the disk any more"},
		"another of its kind":  {"device/serial", "R2", "not the disk any more"},
		"another number":       {"dev", "8:32", "not the disk any more"},
		"the slider has moved": {"ro", "1", "write-protected"},
		"no card":              {"size", "0", "not the disk any more"},
	} {
		t.Run(name, func(t *testing.T) {
			m := machine(t)
			dir := filepath.Join(m.Sys, "block", "sdb")
			put(t, filepath.Join(dir, "diskseq"), []byte("7\n"))
			d, err := m.Find("sdb")
			if err != nil || d.Problem != "" {
				t.Fatalf("%+v, %v", d, err)
			}
			put(t, filepath.Join(dir, tc.attribute), []byte(tc.value+"\n"))
			err = m.Still(d)
			var refused *flash.RefusedError
			if (tc.want == "") != (err == nil) || err != nil && (!errors.As(err, &refused) || !strings.Contains(err.Error(), tc.want)) {
				t.Errorf("got %v, want %q", err, tc.want)
			}
		})
	}
}

// sequence is the kernel's diskseq of a device, 0 where it has none.
func sequence(t *testing.T, path string) int64 {
	t.Helper()
	b, err := os.ReadFile("/sys/block/" + filepath.Base(path) + "/diskseq")
	if errors.Is(err, os.ErrNotExist) {
		return 0
	}
	if err != nil {
		t.Fatal(err)
	}
	n, err := strconv.ParseInt(strings.TrimSpace(string(b)), 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// loop makes a real block device of a file; it needs root.
func loop(t *testing.T, size int64) flash.Disk {
	t.Helper()
	if os.Getuid() != 0 {
		t.Skip("SKIPPED: block devices need root")
	}
	backing := filepath.Join(t.TempDir(), "backing")
	put(t, backing, nil)
	if err := os.Truncate(backing, size); err != nil {
		t.Fatal(err)
	}
	out, err := exec.Command("losetup", "--find", "--show", backing).CombinedOutput()
	if err != nil {
		t.Skipf("SKIPPED: losetup: %v\n%s", err, out)
	}
	path := strings.TrimSpace(string(out))
	t.Cleanup(func() { _ = exec.Command("losetup", "--detach", path).Run() })
	number, err := os.ReadFile("/sys/block/" + filepath.Base(path) + "/dev")
	if err != nil {
		t.Skipf("SKIPPED: %v", err)
	}
	return flash.Disk{Name: filepath.Base(path), Path: path, Number: strings.TrimSpace(string(number)), Size: size, Sequence: sequence(t, path)}
}

// The whole of it on a block device, past the page cache.
func TestABlockDeviceIsWritten(t *testing.T) {
	d := loop(t, cardSize)
	target, err := flash.OpenDisk(d)
	if err != nil {
		t.Fatal(err)
	}
	path, content := image(t)
	put(t, path+".bmap", flashtest.Bmap(content))
	m := model(t, 5*mib+321)
	result, err := flash.Job{Image: open(t, path), Target: target, Model: m, Settings: []byte(settings)}.Run(t.Context())
	if err := errors.Join(err, target.Close()); err != nil {
		t.Fatal(err)
	}
	if result.Written < m.Length {
		t.Errorf("%+v", result)
	}
	f, err := os.Open(d.Path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	table, err := card.ReadTable(f)
	if err != nil || table.DiskSize() != cardSize/512*512 {
		t.Fatalf("%v", err)
	}
	if got, err := flashtest.ReadBoot(f, "assent.toml"); err != nil || string(got) != settings {
		t.Errorf("%q, %v", got, err)
	}
}

// What comes into use, or becomes another disk, after the list was made, is refused all the same.
func TestABlockDeviceThatIsNotFree(t *testing.T) {
	d := loop(t, 64*mib)
	var refused *flash.RefusedError
	for name, harm := range map[string]func(*flash.Disk){
		"another disk":   func(d *flash.Disk) { d.Number = "8:16" },
		"another size":   func(d *flash.Disk) { d.Size -= mib },
		"another medium": func(d *flash.Disk) { d.Sequence++ },
	} {
		wrong := d
		if harm(&wrong); d.Sequence == 0 && wrong.Sequence != 0 {
			continue // a kernel that does not tell media apart
		}
		if target, err := flash.OpenDisk(wrong); !errors.As(err, &refused) {
			t.Errorf("%s: %v, %v", name, target, err)
		}
	}
	notDisk := d
	notDisk.Path = filepath.Join(t.TempDir(), "file")
	put(t, notDisk.Path, make([]byte, mib))
	if target, err := flash.OpenDisk(notDisk); err == nil {
		t.Errorf("a file: %v", target)
	}
	if out, err := exec.Command("mkfs.ext4", "-q", d.Path).CombinedOutput(); err != nil {
		t.Skipf("SKIPPED: mkfs.ext4: %v\n%s", err, out)
	}
	at := t.TempDir()
	if err := unix.Mount(d.Path, at, "ext4", 0, ""); err != nil {
		t.Skipf("SKIPPED: %v", err)
	}
	defer func() {
		if err := unix.Unmount(at, 0); err != nil {
			t.Error(err)
		}
	}()
	if target, err := flash.OpenDisk(d); !errors.As(err, &refused) || !strings.Contains(err.Error(), "in use") {
		t.Errorf("mounted: %v, %v", target, err)
	}
}
