package flashtest

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"assent.home.arpa/image/flash"
)

// Machine makes a computer in a directory, as /sys, /proc and /dev show it: a system on an encrypted volume, a built-in data disk, a
// backup disk and a stick that are in use, cards and readers of several kinds.
func Machine(dir string) (flash.Machine, error) {
	m := flash.Machine{Sys: filepath.Join(dir, "sys"), Proc: filepath.Join(dir, "proc", "self"), Dev: filepath.Join(dir, "dev")}
	b := &builder{m: m}
	const (
		ata = "pci0000:00/0000:00:17.0/ata1/host0/target0:0:0/0:0:0:0"
		usb = "pci0000:00/0000:00:14.0/usb1/1-%d"
		mmc = "pci0000:00/0000:00:1c.0/mmc_host/mmc%d/mmc%d:0001"
	)
	// The system: two partitions of an NVMe disk, the second encrypted, with volumes on it.
	b.disk("nvme0n1", "259:0", 1<<40, "pci0000:00/0000:00:1d.0/nvme/nvme0", map[string]string{"device/model": "Fast 1TB  ", "device/serial": "N1"})
	b.part("nvme0n1", "nvme0n1p1", "259:1")
	b.part("nvme0n1", "nvme0n1p2", "259:2")
	b.virtual("dm-0", "254:0", "crypt")
	b.virtual("dm-1", "254:1", "vg-root")
	b.virtual("dm-2", "254:2", "vg-swap")
	b.holds("nvme0n1/nvme0n1p2", "dm-0")
	b.holds("dm-0", "dm-1")
	b.holds("dm-0", "dm-2")
	// A built-in disk that nothing uses.
	b.disk("sda", "8:0", 2<<40, ata, map[string]string{"device/vendor": "ATA", "device/model": "Big 2TB"})
	b.part("sda", "sda1", "8:1")
	// A card in a reader on USB: what it is for.
	reader := fmt.Sprintf(usb, 1)
	b.disk("sdb", "8:16", 32e9/512*512, reader+"/1-1:1.0/host6/target6:0:0/6:0:0:0", map[string]string{"removable": "1", "device/vendor": "Generic", "device/model": "SD Reader"})
	b.part("sdb", "sdb1", "8:17")
	b.file(filepath.Join(m.Sys, "devices", reader, "idVendor"), "0bda")
	b.file(filepath.Join(m.Sys, "devices", reader, "serial"), "R\x1b[31m1")
	// A backup disk on USB, which is not marked removable, mounted with a blank in its name.
	b.disk("sdc", "8:32", 4<<40, fmt.Sprintf(usb, 2)+"/host7", map[string]string{"device/model": "Backup"})
	b.part("sdc", "sdc1", "8:33")
	// The same kind, with btrfs, whose mounts have a number of their own.
	b.disk("sdd", "8:48", 4<<40, fmt.Sprintf(usb, 3)+"/host8", map[string]string{"device/model": "Backup 2"})
	b.part("sdd", "sdd1", "8:49")
	// A stick with a volume that is not mounted, one with swap, one behind a loop.
	b.disk("sde", "8:64", 64e9, fmt.Sprintf(usb, 4)+"/host9", map[string]string{"removable": "1"})
	b.part("sde", "sde1", "8:65")
	b.virtual("dm-3", "254:3", "vault")
	b.holds("sde/sde1", "dm-3")
	b.disk("sdf", "8:80", 64e9, fmt.Sprintf(usb, 5)+"/host10", map[string]string{"removable": "1"})
	b.part("sdf", "sdf2", "8:82")
	// An empty reader, and a card with its slider on lock.
	b.disk("sdg", "8:96", 0, fmt.Sprintf(usb, 6)+"/host11", map[string]string{"removable": "1"})
	b.disk("sdh", "8:112", 16e9, fmt.Sprintf(usb, 7)+"/host12", map[string]string{"removable": "1", "ro": "1"})
	// A card in a slot of its own, and a soldered eMMC with its parts.
	b.disk("mmcblk0", "179:0", 32e9, fmt.Sprintf(mmc, 0, 0), map[string]string{"device/name": "SC32G", "device/type": "SD"})
	b.disk("mmcblk1", "179:8", 32e9, fmt.Sprintf(mmc, 1, 1), map[string]string{"device/name": "DA4032", "device/type": "MMC"})
	b.disk("mmcblk1boot0", "179:16", 4<<20, fmt.Sprintf(mmc, 1, 1)+"/boot0", map[string]string{"device/type": "MMC"})
	b.disk("sr0", "11:0", 1<<30, "pci0000:00/0000:00:17.0/ata2/host1", map[string]string{"removable": "1"})
	b.virtual("loop0", "7:0", "")
	b.file(filepath.Join(m.Sys, "block", "loop0", "loop", "backing_file"), filepath.Join(dir, "core.snap")+"\n")
	b.file(filepath.Join(dir, "core.snap"), "")
	b.file(filepath.Join(dir, "free.img"), "")
	b.link(filepath.Join(m.Dev, "mapper", "vg-root"), "../dm-1")
	b.link(filepath.Join(m.Dev, "disk", "by-id", "usb-reader"), "../../sdb")
	b.file(filepath.Join(m.Proc, "mountinfo"), strings.Join([]string{
		"22 1 254:1 / / rw,relatime shared:1 - ext4 /dev/mapper/vg-root rw",
		"23 22 259:1 / /boot rw - ext4 /dev/nvme0n1p1 rw",
		"24 22 0:5 / /proc rw - proc proc rw",
		`25 22 8:33 / /media/me/My\040Backup rw - ext4 /dev/sdc1 rw`,
		"26 22 0:40 /@ /media/me/tree rw - btrfs /dev/sdd1 rw,subvol=/@",
		"27 22 7:0 / /snap/core ro - squashfs /dev/loop0 ro",
	}, "\n")+"\n")
	b.file(filepath.Join(filepath.Dir(m.Proc), "swaps"), "Filename\tType\tSize\tUsed\tPriority\n/dev/dm-2 partition 1 0 -2\n/dev/sdf2 partition 1 0 -3\n")
	return m, b.err
}

type builder struct {
	m   flash.Machine
	err error
}

func (b *builder) file(path, content string) {
	b.err = errors.Join(b.err, os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte(content), 0o644))
}

func (b *builder) link(path, to string) {
	b.err = errors.Join(b.err, os.MkdirAll(filepath.Dir(path), 0o755), os.Symlink(to, path))
}

// disk makes a disk on hardware at a path below devices.
func (b *builder) disk(name, number string, size int64, at string, attributes map[string]string) {
	dir := filepath.Join(b.m.Sys, "devices", at, "block", name)
	b.link(filepath.Join(b.m.Sys, "block", name), filepath.Join("..", "devices", at, "block", name))
	b.file(filepath.Join(dir, "dev"), number+"\n")
	b.file(filepath.Join(dir, "size"), fmt.Sprintln(size/512))
	for _, flag := range []string{"removable", "ro"} {
		b.file(filepath.Join(dir, flag), "0\n")
	}
	b.err = errors.Join(b.err, os.MkdirAll(filepath.Join(dir, "device"), 0o755), os.MkdirAll(filepath.Join(dir, "holders"), 0o755))
	for name, value := range attributes {
		b.file(filepath.Join(dir, name), value+"\n")
	}
	b.file(filepath.Join(b.m.Dev, name), "")
}

func (b *builder) part(disk, name, number string) {
	dir := filepath.Join(b.m.Sys, "block", disk, name)
	b.file(filepath.Join(dir, "dev"), number+"\n")
	b.file(filepath.Join(dir, "partition"), "1\n")
	b.err = errors.Join(b.err, os.MkdirAll(filepath.Join(dir, "holders"), 0o755))
	b.file(filepath.Join(b.m.Dev, name), "")
}

// virtual makes a device without hardware.
func (b *builder) virtual(name, number, title string) {
	dir := filepath.Join(b.m.Sys, "devices", "virtual", "block", name)
	b.link(filepath.Join(b.m.Sys, "block", name), filepath.Join("..", "devices", "virtual", "block", name))
	b.file(filepath.Join(dir, "dev"), number+"\n")
	if title != "" {
		b.file(filepath.Join(dir, "dm", "name"), title+"\n")
	}
	b.err = errors.Join(b.err, os.MkdirAll(filepath.Join(dir, "holders"), 0o755))
	b.file(filepath.Join(b.m.Dev, name), "")
}

// holds says that a device is built on another.
func (b *builder) holds(below, above string) {
	b.link(filepath.Join(b.m.Sys, "block", below, "holders", above), filepath.Join(b.m.Sys, "block", above))
}
