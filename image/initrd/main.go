//go:build linux

package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"assent.home.arpa/image/verity"
)

// Bounds on waiting.
const (
	patience = 30 * time.Second // for a disk to appear: SD cards take two seconds, a slow one ten
	grief    = 10 * time.Second // so that somebody can read why
)

func main() {
	err := start()
	fmt.Println("initrd: this slot does not start:", err)
	time.Sleep(grief)
	unix.Sync()
	_ = unix.Reboot(unix.LINUX_REBOOT_CMD_RESTART)
}

// start does everything. It returns only when something failed.
func start() error {
	for _, m := range []struct {
		dir, kind, options string
		flags              uintptr
	}{
		{"/proc", "proc", "", unix.MS_NOSUID | unix.MS_NODEV | unix.MS_NOEXEC},
		{"/sys", "sysfs", "", unix.MS_NOSUID | unix.MS_NODEV | unix.MS_NOEXEC},
		{"/dev", "devtmpfs", "mode=755", unix.MS_NOSUID},
		{"/run", "tmpfs", "mode=755,size=20%", unix.MS_NOSUID | unix.MS_NODEV},
	} {
		if err := mount(m.kind, m.dir, m.kind, m.flags, m.options); err != nil {
			return err
		}
	}
	files, err := filepath.Glob("/modules/*.ko")
	if err != nil {
		return err
	}
	for _, file := range files {
		if err := load(file); err != nil {
			fmt.Println("initrd:", err) // it may be for hardware that this board does not have
		}
	}
	line, err := os.ReadFile("/proc/cmdline")
	if err != nil {
		return err
	}
	root, err := verity.FromCommandLine(string(line))
	if err != nil {
		return err
	}
	kind, _ := os.ReadFile(started) // where it is not, all disks are looked at
	want := wanted{uuid: root.DataUUID(), kind: kindOf(string(kind))}
	data, err := find(want)
	if err != nil {
		return err
	}
	hash, err := find(wanted{uuid: root.HashUUID(), disk: data.disk()})
	if err != nil {
		return err
	}
	device, err := mapRoot(root, data.device(), hash.device())
	if err != nil {
		return err
	}
	if err := mount(device, "/root", "erofs", unix.MS_RDONLY|unix.MS_NODEV, ""); err != nil {
		return err
	}
	if err := alone(look(blocks, want)); err != nil { // another may have come by now
		return err
	}
	if err := leave("/run", data); err != nil {
		return err
	}
	uptime, _ := os.ReadFile("/proc/uptime")
	seconds, _, _ := strings.Cut(string(uptime), " ")
	fmt.Printf("initrd: the root is %s, %s s after the kernel's start\n", data.label, seconds)
	return handOver("/root")
}

// handOver makes dir the root and becomes systemd.
func handOver(dir string) error {
	for _, m := range []string{"/proc", "/sys", "/dev", "/run"} {
		if err := mount(m, dir+m, "", unix.MS_MOVE, ""); err != nil {
			return err
		}
	}
	if err := unix.Chdir(dir); err != nil {
		return fmt.Errorf("chdir %s: %w", dir, err)
	}
	if err := mount(".", "/", "", unix.MS_MOVE, ""); err != nil {
		return err
	}
	if err := unix.Chroot("."); err != nil {
		return fmt.Errorf("chroot: %w", err)
	}
	if err := unix.Chdir("/"); err != nil {
		return fmt.Errorf("chdir /: %w", err)
	}
	if err := lastThing(); err != nil {
		return err
	}
	const next = "/usr/lib/systemd/systemd"
	err := unix.Exec(next, []string{"/sbin/init"}, []string{"PATH=/usr/sbin:/usr/bin", "TERM=dumb"})
	return fmt.Errorf("exec %s: %w", next, err)
}

func mount(what, where, kind string, flags uintptr, options string) error {
	if err := unix.Mount(what, where, kind, flags, options); err != nil {
		return fmt.Errorf("mount %s at %s: %w", what, where, err)
	}
	return nil
}

// load loads one module.
func load(file string) error {
	f, err := os.Open(file)
	if err != nil {
		return err
	}
	defer f.Close()
	if err := unix.FinitModule(int(f.Fd()), "", 0); err != nil && err != unix.EEXIST {
		return fmt.Errorf("module %s: %w", filepath.Base(file), err)
	}
	return nil
}
