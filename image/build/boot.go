package main

import (
	"bytes"
	"context"
	_ "embed"
	"fmt"
	"os"
	"path/filepath"
)

//go:embed boot.cmd
var bootScript []byte

//go:embed config.txt
var piConfig []byte

//go:embed pi5.dtso
var pi5Overlay []byte

// stub is the program that starts kernel and initial file system out of one file.
const stub = "usr/lib/systemd/boot/efi/linuxaa64.efi.stub"

// commandLine is what the kernel is told beside the root's hash. The console is the one of the device tree. With gpt the backup of
// the partition table counts where power failed while the table was written. Without fsck.repair=yes a damaged file system would
// only be looked at, refused, and the box started again, for ever: nobody can log in to answer.
const commandLine = "ro gpt fsck.repair=yes panic=10 quiet loglevel=4 systemd.show_status=error TERM=dumb systemd.import_credentials=no usbcore.authorized_default=0"

// bootPartition makes the boot partition and puts it on the disk.
func (b *build) bootPartition(ctx context.Context) error {
	_, files, err := b.fetch(ctx, bootLock)
	if err != nil {
		return err
	}
	for _, file := range files {
		if err := extract(ctx, file, b.path("parts")); err != nil {
			return err
		}
	}
	if err := b.kernels(ctx); err != nil {
		return err
	}
	if err := os.WriteFile(b.path("boot.cmd"), bootScript, 0o644); err != nil {
		return err
	}
	if err := b.tool(ctx, "mkimage", "-A", "arm64", "-T", "script", "-C", "none", "-n", "assent", "-d", "/build/boot.cmd", "/build/boot/boot.scr"); err != nil {
		return err
	}
	if err := b.pi(ctx); err != nil {
		return err
	}
	if err := stamp(b.path("boot")); err != nil {
		return err
	}
	if _, err := b.repart(ctx); err != nil {
		return err
	}
	return bootState(b.path("disk"))
}

// kernels makes the file that is booted, as it is shipped and as it is tested.
func (b *build) kernels(ctx context.Context) error {
	for _, dir := range []string{"boot/EFI/Linux", "test"} {
		if err := os.MkdirAll(b.path(dir), 0o755); err != nil {
			return err
		}
	}
	for _, k := range []struct{ initrd, out string }{
		{"initrd", "boot/EFI/Linux/assent-a.efi"},
		{"initrd-test", "test/assent-a.efi"},
	} {
		if err := b.tool(ctx, "python3", "/usr/bin/ukify", "build", "--linux=/build/vmlinuz", "--initrd=/build/"+k.initrd+".zst", "--stub=/build/parts/"+stub,
			"--efi-arch=aa64", "--uname="+b.kernel, "--os-release=@/build/root/usr/lib/os-release",
			"--cmdline=roothash="+b.roothash+" "+commandLine, "--output=/build/"+k.out); err != nil {
			return err
		}
	}
	return nil
}

// pi adds what a Raspberry Pi starts with: its firmware, U-Boot, device trees.
func (b *build) pi(ctx context.Context) error {
	const firmware = "usr/lib/raspi-firmware/"
	trees := "usr/lib/modules/" + b.kernel + "/dtb/broadcom/"
	parts := []string{
		firmware + "bootcode.bin", firmware + "start.elf", firmware + "fixup.dat", firmware + "start4.elf", firmware + "fixup4.dat",
		"usr/lib/u-boot/rpi_arm64/u-boot.bin",
	}
	kernelTrees := []string{
		trees + "bcm2837-rpi-zero-2-w.dtb", trees + "bcm2837-rpi-3-b.dtb", trees + "bcm2837-rpi-3-b-plus.dtb",
		trees + "bcm2711-rpi-4-b.dtb", trees + "bcm2711-rpi-400.dtb", trees + "bcm2712-rpi-5-b.dtb", trees + "bcm2712-d-rpi-5-b.dtb",
	}
	for _, from := range append(parts, kernelTrees...) {
		data, err := os.ReadFile(b.path("parts", from))
		if err != nil {
			return fmt.Errorf("the locked packages lack a file: %w", err)
		}
		if err := save(b.path("boot", filepath.Base(from)), bytes.NewReader(data)); err != nil {
			return err
		}
	}
	if err := save(b.path("boot", "config.txt"), bytes.NewReader(piConfig)); err != nil {
		return err
	}
	if err := os.WriteFile(b.path("pi5.dtso"), pi5Overlay, 0o644); err != nil {
		return err
	}
	if err := b.tool(ctx, "dtc", "-q", "-@", "-I", "dts", "-O", "dtb", "-o", "/build/pi5.dtbo", "/build/pi5.dtso"); err != nil {
		return err
	}
	for _, tree := range []string{"bcm2712-rpi-5-b.dtb", "bcm2712-d-rpi-5-b.dtb"} {
		if err := b.tool(ctx, "fdtoverlay", "-i", "/build/boot/"+tree, "-o", "/build/boot/"+tree, "/build/pi5.dtbo"); err != nil {
			return err
		}
	}
	for _, tree := range kernelTrees {
		tree = "boot/" + filepath.Base(tree)
		get := func(ctx context.Context, node, property string) (string, error) {
			return b.run(ctx, "fdtget", "-t", "s", "/build/"+tree, node, property)
		}
		if err := wired(ctx, get); err != nil {
			return fmt.Errorf("%s: the panel would stay dark: %w", tree, err)
		}
		if err := cabled(ctx, get); err != nil {
			return fmt.Errorf("%s: the record could not be read over a cable: %w", tree, err)
		}
	}
	return nil
}
