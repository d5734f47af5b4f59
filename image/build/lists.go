package main

import (
	"context"
	_ "embed"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"assent.home.arpa/image/debs"
)

// suite is the Debian release that the box and the tools are made of.
const suite = "forky"

// epoch is the time of every file in the image, in seconds: the day of the locked archive. A box without a clock starts there.
const epoch = 1793318400 // 2026-10-30

// The locks, each made with: go run ./image/build -lock
var (
	//go:embed root.lock
	rootLock string
	//go:embed boot.lock
	bootLock string
	//go:embed tools.lock
	toolsLock string
)

// toolPackages are the programs that make an image and boot it in an emulator. They run on the machine that builds.
func toolPackages() []string {
	return []string{
		"base-files", "systemd", "systemd-repart", "systemd-ukify", "kmod", // sysusers, presets; partitions; kernel and initrd in one file; depmod
		"erofs-utils", "e2fsprogs", "dosfstools", "mtools", "cryptsetup-bin",
		"u-boot-tools", "u-boot-qemu", "device-tree-compiler",
		"xz-utils", "zstd", "bmap-tools", "qemu-system-arm",
	}
}

// bootPackages are files for the boot partition, taken out without what they depend on.
func bootPackages() []string {
	return []string{"systemd-boot-efi", "u-boot-rpi", "raspi-firmware"}
}

// rootPackages are what the box consists of. What they depend on is locked with them; dropped says what of it is left out.
func rootPackages() []string {
	return []string{
		"base-files", "base-passwd", "libc6",
		"systemd", "systemd-resolved", "systemd-timesyncd", "udev", "kmod", "mount", "util-linux", "libnss-systemd", "e2fsprogs",
		"libseccomp2", "libbpf1", "libacl1", // systemd looks for them when it runs; without the first it filters no system calls
		"nftables", "wpasupplicant", "firmware-brcm80211", "wireless-regdb", "ca-certificates", "libubootenv-tool",
		"llama.cpp-tools",
	}
}

// lockAll asks the mirror for new locks.
func lockAll(ctx context.Context, dir string, say func(string)) error {
	box := debs.Archive{Suite: suite, Arch: "arm64", Components: "main non-free-firmware"}
	here := debs.Archive{Suite: suite, Arch: "amd64", Components: "main"}
	kernel, err := box.Kernel(ctx)
	if err != nil {
		return err
	}
	for _, l := range []struct {
		file, what   string
		from         debs.Archive
		packages     []string
		dependencies bool
	}{
		{"tools.lock", "The programs that make the image", here, toolPackages(), true},
		{"boot.lock", "Files for the boot partition", box, append(bootPackages(), deviceTrees(kernel)), false},
		{"root.lock", "What the box consists of", box, append(rootPackages(), kernel...), true},
	} {
		lock, err := l.from.Resolve(ctx, l.packages, l.dependencies)
		if err != nil {
			return err
		}
		lock = slices.DeleteFunc(lock, func(p debs.Package) bool { return l.file == "root.lock" && dropped()[p.Name()] != "" })
		text := fmt.Sprintf("# %s: path in Debian's archive, size, SHA-256. Made with: go run ./image/build -lock\n%s", l.what, lock)
		if err := os.WriteFile(filepath.Join(dir, l.file), []byte(text), 0o644); err != nil {
			return err
		}
		say(fmt.Sprintf("%s: %d packages", l.file, len(lock)))
	}
	return nil
}

// deviceTrees is the package with the device trees of the kernel whose packages are given.
func deviceTrees(kernel []string) string {
	return strings.Replace(kernel[0], "linux-binary-", "linux-base-", 1)
}
