//go:build linux

package main

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"
)

// files lists what is in the file system and not for a role. What is not there cannot be opened either, and the error says so.
func files(r role) []attempt {
	var list []attempt
	for _, path := range devices() {
		if !slices.ContainsFunc(r.devices, func(prefix string) bool { return strings.HasPrefix(path, prefix) }) {
			list = append(list, opened(path, unix.O_RDWR), opened(path, unix.O_RDONLY))
		}
	}
	for _, path := range []string{
		"/etc/shadow", "/proc/kcore", "/proc/1/environ", "/proc/1/maps", "/proc/1/root", "/proc/1/ns/net", "/sys/kernel/debug/gpio", "/sys/kernel/tracing/trace",
		"/boot/assent.toml", "/boot/EFI", "/root",
	} {
		list = append(list, listedOrRead(path))
	}
	for _, path := range append(matches("/sys/bus/usb/devices/*/authorized", "/sys/bus/*/drivers_probe", "/sys/bus/*/drivers/*/bind", "/sys/bus/i2c/devices/*/new_device"),
		"/proc/sysrq-trigger", "/proc/sys/kernel/core_pattern", "/proc/sys/kernel/modules_disabled", "/proc/sys/net/mptcp/enabled", "/proc/sys/net/ipv4/ip_forward",
		"/proc/1/oom_score_adj", "/sys/power/state", "/sys/class/gpio/export", "/sys/fs/cgroup/cgroup.procs", "/sys/fs/cgroup/memory.max", "/sys/module/usbcore/parameters/authorized_default",
	) {
		list = append(list, opened(path, unix.O_WRONLY))
	}
	for _, dir := range []string{"gateway", "guard", "guard/audit", "models", "settings"} {
		path := filepath.Join("/var/lib/assent", dir)
		if !slices.ContainsFunc(r.state, func(own string) bool { return path == own || strings.HasPrefix(path, own+"/") }) {
			if dir != "settings" { // anybody may read them
				list = append(list, attempt{name: "list " + path, try: func() error { _, err := os.ReadDir(path); return err }})
			}
			list = append(list, written(path))
		}
	}
	for _, dir := range append([]string{
		"/", "/usr", "/usr/bin", "/usr/lib/systemd/system", "/etc", "/etc/systemd/system", "/boot", "/var", "/var/lib", "/var/lib/assent", "/var/lib/systemd", "/run", "/run/systemd",
		"/run/systemd/system", "/run/udev", "/run/assent", "/run/assent/settings", "/run/assent/notices", "/sys/fs/cgroup", "/sys/kernel/config", "/dev/shm/..",
	}, places()...) {
		if !slices.Contains(r.state, dir) {
			list = append(list, written(dir))
		}
	}
	return list
}

// places are the directories in which roles meet.
func places() []string {
	var dirs []string
	for _, name := range []string{"address", "courier-worker", "export-guard", "gateway-guard", "gateway-model", "guard-courier"} {
		dirs = append(dirs, "/run/assent/"+name)
	}
	return dirs
}

// devices are those of the machine by which anything could be read, faked or broken, and some that no box should have.
func devices() []string {
	return append(matches(
		"/dev/i2c-*", "/dev/gpiochip*", "/dev/spidev*", "/dev/input/event*", "/dev/hidraw*", "/dev/sg*", "/dev/bus/usb/*/*",
		"/dev/tty[0-9]*", "/dev/ttyS*", "/dev/ttyAMA*", "/dev/hvc*", "/dev/vport*", "/dev/video*", "/dev/watchdog*", "/dev/mtd*",
		"/dev/vd*", "/dev/sd*", "/dev/mmcblk*", "/dev/nvme*", "/dev/dm-*", "/dev/loop*",
	),
		"/dev/mem", "/dev/kmem", "/dev/port", "/dev/kmsg", "/dev/console", "/dev/tty0", "/dev/mapper/control", "/dev/loop-control", "/dev/uinput", "/dev/uhid", "/dev/vhci",
		"/dev/fuse", "/dev/net/tun", "/dev/kvm", "/dev/rfkill", "/dev/gpiomem", "/dev/vcio", "/dev/hwrng", "/dev/cpu_dma_latency", "/dev/rtc0", "/dev/autofs", "/dev/userfaultfd",
	)
}

// matches are the files that the patterns name now. Within a sandbox the names outside cannot be seen; a number of each kind is
// tried by name.
func matches(patterns ...string) []string {
	var all []string
	for _, p := range patterns {
		found, err := filepath.Glob(p)
		if err != nil {
			panic("probe: internal error: " + err.Error())
		}
		if star := strings.TrimSuffix(p, "*"); len(found) == 0 && star != p && !strings.ContainsAny(star, "*[") {
			found = []string{star + "0", star + "1"}
		}
		all = append(all, found...)
	}
	return all
}

func opened(path string, how int) attempt {
	word := map[int]string{unix.O_RDONLY: "read", unix.O_WRONLY: "write", unix.O_RDWR: "use"}[how]
	return attempt{name: fmt.Sprintf("%s %s", word, path), try: func() error {
		fd, err := unix.Open(path, how|unix.O_CLOEXEC|unix.O_NONBLOCK|unix.O_NOCTTY, 0)
		if err != nil {
			return err
		}
		return unix.Close(fd)
	}}
}

func listedOrRead(path string) attempt {
	return attempt{name: "look into " + path, try: func() error {
		f, err := os.Open(path)
		if err != nil {
			return err
		}
		defer f.Close()
		info, err := f.Stat()
		if err != nil {
			return err
		}
		if info.IsDir() {
			_, err := f.Readdirnames(1)
			return err
		}
		_, err = f.Read(make([]byte, 1))
		return err
	}}
}

func written(dir string) attempt {
	return attempt{name: "write in " + dir, try: func() error {
		path := filepath.Join(dir, "probe-was-here")
		if err := os.WriteFile(path, nil, 0o600); err != nil {
			return err
		}
		return os.Remove(path)
	}}
}
