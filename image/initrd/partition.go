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

// find waits for the partition with an identifier.
func find(uuid string) (partition, error) {
	for began := time.Now(); time.Since(began) < patience; time.Sleep(10 * time.Millisecond) {
		if p, found := look(blocks, uuid); found {
			return p, nil
		}
	}
	return partition{}, fmt.Errorf("no disk has a partition %s", uuid)
}

// look goes through the block devices once.
func look(dir, uuid string) (partition, bool) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return partition{}, false
	}
	for _, e := range entries {
		event, err := os.ReadFile(filepath.Join(dir, e.Name(), "uevent"))
		if err != nil {
			continue
		}
		values := map[string]string{}
		for line := range strings.Lines(string(event)) {
			key, value, _ := strings.Cut(strings.TrimSpace(line), "=")
			values[key] = value
		}
		if id, there := values["PARTUUID"]; !there || id != uuid {
			continue
		}
		path, err := filepath.EvalSymlinks(filepath.Join(dir, e.Name()))
		if err != nil {
			continue
		}
		_, path, _ = strings.Cut(path, "/devices/")
		return partition{name: e.Name(), label: values["PARTNAME"], path: "/devices/" + path}, true
	}
	return partition{}, false
}

// leave writes what the system that comes next cannot find out by itself into run, which is its /run.
func leave(run string, root partition) error {
	slot, found := strings.CutPrefix(root.label, "root_")
	if !found || (slot != "a" && slot != "b") {
		return fmt.Errorf("the root's partition is labelled %q", root.label)
	}
	disk := filepath.Dir(root.path)
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
