// Package layer makes the disk that the boot test puts beside the box's own: kernel modules that simulate hardware, and programs
// that only a test has. The image holds none of it, and takes no notice of such a disk; the test variant of its initial file
// system looks for the label, loads the modules in their order and starts the agent (image/initrd).
package layer

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"

	"assent.home.arpa/image/emulator"
	"assent.home.arpa/image/hil/kernel"
)

// Label is the file system's label, by which it is found.
const Label = "assent-layer"

// size is the disk's, in MiB.
const size = 64

// modules are those of the simulated panel.
func modules() []string { return []string{"gpio_sim", "i2c_dev", "vhci_hcd", "i2c_tiny_usb"} }

// Program is one that is built from the project and put on the disk.
type Program struct{ Name, Package string }

// Make makes the disk as a file in dir and returns its path. cache holds what was downloaded; more are modules that only some starts
// have.
func Make(ctx context.Context, cache, dir string, programs []Program, say func(string), more ...string) (string, error) {
	lock, err := kernel.Locked()
	if err != nil {
		return "", err
	}
	k, err := kernel.Get(ctx, cache, lock, append(modules(), more...), say)
	if err != nil {
		return "", fmt.Errorf("%w: %w", emulator.ErrUntried, err)
	}
	tree := filepath.Join(dir, "layer")
	if err := errors.Join(os.RemoveAll(tree), os.MkdirAll(tree, 0o755)); err != nil {
		return "", err
	}
	order := ""
	for _, m := range k.Modules {
		b, err := os.ReadFile(m)
		if err != nil {
			return "", err
		}
		name := filepath.Base(m)
		order += name + "\n"
		if err := os.WriteFile(filepath.Join(tree, name), b, 0o644); err != nil {
			return "", err
		}
	}
	if err := os.WriteFile(filepath.Join(tree, "order"), []byte(order), 0o644); err != nil {
		return "", err
	}
	for _, p := range programs {
		if err := emulator.Build(ctx, p.Package, filepath.Join(tree, p.Name), ""); err != nil {
			return "", err
		}
	}
	disk := filepath.Join(dir, "layer.disk")
	if err := os.RemoveAll(disk); err != nil {
		return "", err
	}
	out, err := exec.CommandContext(ctx, "mke2fs", "-q", "-F", "-t", "ext4", "-L", Label, "-d", tree, disk, fmt.Sprintf("%dM", size)).CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("%w: mke2fs: %w: %.300s", emulator.ErrUntried, err, out)
	}
	return disk, nil
}
