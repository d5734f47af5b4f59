//go:build linux

package main

import (
	"encoding/binary"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// sysfs makes what the kernel shows of a card with a root, and of a stick that poses as one.
func sysfs(t *testing.T) string {
	t.Helper()
	top := t.TempDir()
	class := filepath.Join(top, "class")
	if err := os.Mkdir(class, 0o755); err != nil {
		t.Fatal(err)
	}
	for device, event := range map[string]string{
		"devices/platform/soc/mmc0/block/mmcblk0":           "DEVNAME=mmcblk0\nDEVTYPE=disk\n",
		"devices/platform/soc/mmc0/block/mmcblk0/mmcblk0p2": "DEVNAME=mmcblk0p2\nDEVTYPE=partition\nPARTUUID=a5465f59-a39a-cc80-48e7-0bf3422a4016\nPARTNAME=root_a\n",
		"devices/platform/soc/mmc0/block/mmcblk0/mmcblk0p7": "DEVNAME=mmcblk0p7\nDEVTYPE=partition\nPARTUUID=76ace10c-1b84-4ee0-903b-fd9297f0f651\nPARTNAME=data\n",
	} {
		dir := filepath.Join(top, device)
		if err := os.MkdirAll(dir, 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, "uevent"), []byte(event), 0o644); err != nil {
			t.Fatal(err)
		}
		if err := os.Symlink(dir, filepath.Join(class, filepath.Base(device))); err != nil {
			t.Fatal(err)
		}
	}
	return class
}

func TestThePartitionIsFoundByItsIdentifier(t *testing.T) {
	class := sysfs(t)
	p, found := look(class, "a5465f59-a39a-cc80-48e7-0bf3422a4016")
	if !found || p.device() != "/dev/mmcblk0p2" || p.label != "root_a" || p.path != "/devices/platform/soc/mmc0/block/mmcblk0/mmcblk0p2" {
		t.Errorf("%+v, %v", p, found)
	}
	for _, uuid := range []string{"", "a5465f59", "root_a", "00000000-0000-0000-0000-000000000000"} {
		if p, found := look(class, uuid); found {
			t.Errorf("%q is %+v", uuid, p)
		}
	}
}

func TestWhatIsLeftForTheSystem(t *testing.T) {
	run := t.TempDir()
	if err := leave(run, partition{name: "mmcblk0p4", label: "root_b", path: "/devices/platform/soc/mmc0/block/mmcblk0/mmcblk0p4"}); err != nil {
		t.Fatal(err)
	}
	slot, err := os.ReadFile(filepath.Join(run, "assent-boot/slot"))
	if err != nil || string(slot) != "b\n" {
		t.Errorf("the slot is %q, %v", slot, err)
	}
	rule, err := os.ReadFile(filepath.Join(run, "udev/rules.d/70-assent-disk.rules"))
	if err != nil {
		t.Fatal(err)
	}
	// Every line is about this disk and no other.
	for line := range strings.Lines(string(rule)) {
		if !strings.Contains(line, `DEVPATH=="/devices/platform/soc/mmc0/block/mmcblk0`) || !strings.Contains(line, `SYMLINK+="assent/`) {
			t.Errorf("the rule %q", line)
		}
	}
	for _, bad := range []partition{
		{label: "data", path: "/devices/block/vda/vda7"},
		{label: "root_c", path: "/devices/block/vda/vda7"},
		{path: "/devices/block/vda/vda2"},
		{label: "root_a", path: "/devices/*/vda/vda2"},
		{label: "root_a", path: "/devices/a\"b/vda/vda2"},
	} {
		if err := leave(t.TempDir(), bad); err == nil {
			t.Errorf("%+v is taken", bad)
		}
	}
}

// TestTheMapperIsAskedLikeThis has the offsets of struct dm_ioctl and struct dm_target_spec.
func TestTheMapperIsAskedLikeThis(t *testing.T) {
	le := binary.LittleEndian
	b := request("CRYPT-VERITY-x-root", readOnly, target(8000, "1 a b"))
	for _, field := range []struct {
		name      string
		at        int
		got, want uint32
	}{
		{"version", 0, le.Uint32(b[0:]), 4},
		{"data size", 12, le.Uint32(b[12:]), uint32(len(b))},
		{"data start", 16, le.Uint32(b[16:]), 312},
		{"targets", 20, le.Uint32(b[20:]), 1},
		{"flags", 28, le.Uint32(b[28:]), 1},
		{"sectors", 320, le.Uint32(b[320:]), 8000},
	} {
		if field.got != field.want {
			t.Errorf("%s at %d is %d, not %d", field.name, field.at, field.got, field.want)
		}
	}
	if string(b[48:53]) != "root\x00" || string(b[176:196]) != "CRYPT-VERITY-x-root\x00" {
		t.Errorf("name %q, uuid %q", b[48:53], b[176:196])
	}
	if string(b[336:343]) != "verity\x00" || string(b[352:358]) != "1 a b\x00" {
		t.Errorf("target %q, table %q", b[336:343], b[352:358])
	}
	if b := request("", 0, nil); le.Uint32(b[20:]) != 0 {
		t.Error("a request without a target has one")
	}
}
