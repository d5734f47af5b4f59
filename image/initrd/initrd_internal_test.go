//go:build linux

package main

import (
	"encoding/binary"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// sysfs makes what the kernel shows of a card with a root, and of others, which carry the same image.
func sysfs(t *testing.T, others ...string) string {
	t.Helper()
	top := t.TempDir()
	class := filepath.Join(top, "class")
	if err := os.Mkdir(class, 0o755); err != nil {
		t.Fatal(err)
	}
	for _, disk := range append([]string{"devices/platform/soc/mmc0/block/mmcblk0"}, others...) {
		part := "p"
		if strings.HasSuffix(disk, "vda") {
			part = ""
		}
		for device, event := range map[string]string{
			disk:              "DEVTYPE=disk\n",
			disk + part + "2": "DEVTYPE=partition\nPARTUUID=" + rootID + "\nPARTNAME=root_a\n",
			disk + part + "3": "DEVTYPE=partition\nPARTUUID=" + hashID + "\nPARTNAME=hash_a\n",
		} {
			dir := filepath.Join(top, device)
			if device != disk {
				dir = filepath.Join(top, disk, filepath.Base(device))
			}
			if err := os.MkdirAll(dir, 0o755); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(filepath.Join(dir, "uevent"), []byte("DEVNAME="+filepath.Base(device)+"\n"+event), 0o644); err != nil {
				t.Fatal(err)
			}
			if err := os.Symlink(dir, filepath.Join(class, filepath.Base(device))); err != nil {
				t.Fatal(err)
			}
		}
	}
	return class
}

const (
	rootID = "a5465f59-a39a-cc80-48e7-0bf3422a4016"
	hashID = "76ace10c-1b84-4ee0-903b-fd9297f0f651"
	card   = "/devices/platform/soc/mmc0/block/mmcblk0"
	drive  = "/devices/pci0/nvme/nvme0/nvme0n1"
)

func TestThePartitionIsFoundByItsIdentifier(t *testing.T) {
	class := sysfs(t)
	found := look(class, wanted{uuid: rootID})
	if len(found) != 1 || found[0].device() != "/dev/mmcblk0p2" || found[0].label != "root_a" || found[0].path != card+"/mmcblk0p2" || alone(found) != nil {
		t.Errorf("%+v", found)
	}
	for _, uuid := range []string{"", "a5465f59", "root_a", "00000000-0000-0000-0000-000000000000"} {
		if found := look(class, wanted{uuid: uuid}); len(found) != 0 {
			t.Errorf("%q is %+v", uuid, found)
		}
	}
}

// Two disks that carry the same image cannot be told apart by what is on them.
func TestTwoDisksThatCarryTheImage(t *testing.T) {
	for _, c := range []struct {
		event  string
		others []string
		kind   string // U-Boot's word
		want   string // the disk, or what is said
	}{
		{"U-Boot says the card", []string{drive}, "mmc", card},
		{"U-Boot says the drive", []string{drive}, "nvme", drive},
		{"U-Boot says nothing", []string{drive}, "", "mmcblk0 and nvme0n1 carry the same image: leave only one of them in the box"},
		{"U-Boot says what nobody knows", []string{drive}, "floppy", "mmcblk0 and nvme0n1 carry the same image: leave only one of them in the box"},
		{"two of a sort", []string{drive, "/devices/platform/soc/mmc1/block/mmcblk1"}, "mmc", "mmcblk0 and mmcblk1 carry the same image: leave only one of them in the box"},
	} {
		t.Run(c.event, func(t *testing.T) {
			class := sysfs(t, c.others...)
			found := look(class, wanted{uuid: rootID, kind: kindOf(c.kind + "\x00")})
			if err := alone(found); err != nil {
				if err.Error() != c.want {
					t.Errorf("%v, want %s", err, c.want)
				}
				return
			}
			if len(found) != 1 || found[0].disk() != c.want {
				t.Fatalf("%+v", found)
			}
			// What checks the root is on the same disk.
			if hash := look(class, wanted{uuid: hashID, disk: found[0].disk()}); len(hash) != 1 || hash[0].disk() != c.want {
				t.Errorf("its hash is %+v", hash)
			}
		})
	}
	if found := look(sysfs(t, "/devices/virtio/vda"), wanted{uuid: rootID, kind: kindOf("virtio\x00")}); len(found) != 1 || found[0].name != "vda2" {
		t.Errorf("in QEMU: %+v", found)
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
