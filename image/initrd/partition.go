//go:build linux

package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// blocks is where the kernel lists its block devices.
const blocks = "/sys/class/block"

// partition is one partition of a disk.
type partition struct {
	name  string // of its device: "mmcblk0p2"
	label string // in the partition table: "root_a"
	path  string // of its device in sysfs: "/devices/…/block/mmcblk0/mmcblk0p2"
}

func (p partition) device() string { return "/dev/" + p.name }

// disk is the device that the partition is on, in sysfs.
func (p partition) disk() string { return filepath.Dir(p.path) }

// wanted is a partition that is looked for. Cards that carry the same image have partitions of the same identifiers.
type wanted struct {
	uuid string
	kind string // what its device's name begins with; empty: anything
	disk string // that it must be on, in sysfs; empty: any
}

// find waits for a partition. Where several disks have it, nobody knows which of them the kernel was loaded from, and with it the
// state, the record and the keys that go with it: then none is right.
func find(w wanted) (partition, error) {
	for began := time.Now(); time.Since(began) < patience; time.Sleep(10 * time.Millisecond) {
		if all := look(blocks, w); len(all) > 0 {
			return all[0], alone(all)
		}
	}
	return partition{}, fmt.Errorf("no disk has a partition %s", w.uuid)
}

// alone fails where there is more than one.
func alone(all []partition) error {
	if len(all) < 2 {
		return nil
	}
	var disks []string
	for _, p := range all {
		disks = append(disks, filepath.Base(p.disk()))
	}
	return fmt.Errorf("%s carry the same image: leave only one of them in the box", strings.Join(disks, " and "))
}

// look goes through the block devices once.
func look(dir string, w wanted) (found []partition) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil
	}
	for _, e := range entries {
		event, err := os.ReadFile(filepath.Join(dir, e.Name(), "uevent"))
		if err != nil || !strings.HasPrefix(e.Name(), w.kind) {
			continue
		}
		values := map[string]string{}
		for line := range strings.Lines(string(event)) {
			key, value, _ := strings.Cut(strings.TrimSpace(line), "=")
			values[key] = value
		}
		if id, there := values["PARTUUID"]; !there || id != w.uuid {
			continue
		}
		path, err := filepath.EvalSymlinks(filepath.Join(dir, e.Name()))
		if err != nil {
			continue
		}
		_, path, _ = strings.Cut(path, "/devices/")
		p := partition{name: e.Name(), label: values["PARTNAME"], path: "/devices/" + path}
		if w.disk == "" || p.disk() == w.disk {
			found = append(found, p)
		}
	}
	return found
}

// started is where U-Boot says what sort of disk it loaded the kernel from: see boot.cmd.
const started = "/proc/device-tree/chosen/assent,disk"

// kindOf is what the kernel's names of disks of that sort begin with; empty where U-Boot said nothing that is known here.
func kindOf(property string) string {
	switch strings.TrimRight(property, "\x00") {
	case "mmc":
		return "mmcblk"
	case "nvme":
		return "nvme"
	case "virtio":
		return "vd"
	}
	return ""
}

// leave writes what the system that comes next cannot find out by itself into run, which is its /run.
func leave(run string, root partition) error {
	slot, found := strings.CutPrefix(root.label, "root_")
	if !found || (slot != "a" && slot != "b") {
		return fmt.Errorf("the root's partition is labelled %q", root.label)
	}
	disk := root.disk()
	if strings.ContainsAny(disk, "\"*?[]|\\\n") {
		return fmt.Errorf("the disk's path %q has characters that a rule cannot hold", disk)
	}
	rule := fmt.Sprintf(`SUBSYSTEM=="block", DEVPATH=="%[1]s", SYMLINK+="assent/disk"
SUBSYSTEM=="block", DEVPATH=="%[1]s/*", ENV{PARTNAME}=="boot|audit|data", SYMLINK+="assent/$env{PARTNAME}"
`, disk)
	for _, f := range []struct{ path, text string }{
		{filepath.Join(run, "assent-boot/slot"), slot + "\n"},
		{filepath.Join(run, "udev/rules.d/70-assent-disk.rules"), rule},
	} {
		if err := os.MkdirAll(filepath.Dir(f.path), 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(f.path, []byte(f.text), 0o644); err != nil {
			return err
		}
	}
	return nil
}
