// Command hil tries the box's real drivers and its real panel on a real kernel: it boots the kernel that the box runs in an
// emulator, with GPIO lines that simulated fingers move and a display behind a real I2C bus, and compares what happened with
// what is to happen. `make hil` runs it.
//
// Time in the machine is the number of instructions that its processor has done, and waiting costs none (QEMU's icount). So
// hands, deadlines and figures are the same on a busy host as on an idle one. It is a processor of 250 million instructions
// a second, slower than any box.
//
// The machine cannot sleep as a box does: without an idle state of the processor, the kernel's clocks run on in suspend. The
// cases about sleep let the clock that the panel is given say what it says after one.
//
// It needs qemu-system-aarch64, dpkg-deb, xz and the apt of a Debian machine; make installs what is missing. The kernel's
// packages are fixed by kernel/kernel.lock. What is fetched, and what the last run left behind (the console, pictures of the
// glass), is in assent/hil in the user's cache.
//
// The exit code is 0 if all is as it should be, 1 if not, and 2 if it could not be tried.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"

	"assent.home.arpa/image/debs"
	"assent.home.arpa/image/emulator"
	"assent.home.arpa/image/hil/kernel"
)

// suite is the Debian release whose kernel the box runs.
const suite = "forky"

// modules are what the simulated hardware needs, and nothing of it is in the box's image; and those with which box and PC meet at the
// two ends of a cable.
func modules() []string {
	return []string{
		"gpio_sim", "i2c_dev", "vhci_hcd", "i2c_tiny_usb", "dummy_hcd",
		"libcomposite", "usb_f_mass_storage", "usb_storage", "sd_mod", "vfat", "nls_cp437", "nls_ascii",
	}
}

func main() { os.Exit(run(os.Args[1:], os.Stdout, os.Stderr)) }

func run(args []string, stdout, stderr io.Writer) int {
	flags := flag.NewFlagSet("hil", flag.ContinueOnError)
	flags.SetOutput(stderr)
	relock := flags.Bool("lock", false, "print a lock of the newest kernel of the machine's mirror, and do nothing else")
	limit := flags.Duration("limit", 6*time.Minute, "end the machine after this `time`")
	if err := flags.Parse(args); err != nil || flags.NArg() > 0 {
		return 3
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, unix.SIGTERM)
	defer stop()
	if *relock {
		return newLock(ctx, stdout, stderr)
	}
	err := try(ctx, *limit, stdout, stderr)
	switch {
	case err == nil:
		return 0
	case errors.Is(err, emulator.ErrUntried):
		fmt.Fprintln(stderr, "hil:", err)
		return 2
	}
	fmt.Fprintln(stderr, "hil:", err)
	return 1
}

func newLock(ctx context.Context, stdout, stderr io.Writer) int {
	archive := debs.Archive{Suite: suite, Arch: "arm64", Components: "main"}
	packages, err := archive.Kernel(ctx)
	if err != nil {
		fmt.Fprintln(stderr, "hil:", err)
		return 2
	}
	lock, err := archive.Resolve(ctx, packages, false)
	if err != nil {
		fmt.Fprintln(stderr, "hil:", err)
		return 2
	}
	fmt.Fprintf(stdout, "# The kernel that make hil boots: path in Debian's archive, size, SHA-256. Made with: go run ./image/hil -lock\n%s", lock)
	return 0
}

// try prepares the machine, boots it and judges what it says.
func try(ctx context.Context, limit time.Duration, stdout, stderr io.Writer) error {
	say := func(line string) { fmt.Fprintln(stderr, "hil:", line) }
	cache, err := os.UserCacheDir()
	if err != nil {
		return fmt.Errorf("%w: %v; set XDG_CACHE_HOME", emulator.ErrUntried, err)
	}
	dir := filepath.Join(cache, "assent", "hil")
	unlock, err := emulator.Alone(dir)
	if err != nil {
		return err
	}
	defer unlock()
	last := filepath.Join(dir, "last")
	if err := errors.Join(os.RemoveAll(last), os.MkdirAll(last, 0o755)); err != nil {
		return fmt.Errorf("%w: %v", emulator.ErrUntried, err)
	}
	lock, err := kernel.Locked()
	if err != nil {
		return fmt.Errorf("%w: %v", emulator.ErrUntried, err)
	}
	k, err := kernel.Get(ctx, dir, lock, modules(), say)
	if err != nil {
		return fmt.Errorf("%w: %w", emulator.ErrUntried, err)
	}
	say("building the guest")
	initrd, err := emulator.Pack(ctx, dir, "./image/hil/guest", k.Modules)
	if err != nil {
		return fmt.Errorf("%w: %w", emulator.ErrUntried, err)
	}
	v := &verdict{pictures: last, out: stdout}
	say("booting")
	end, err := boot(ctx, limit, machine{image: k.Image, initrd: initrd, log: filepath.Join(last, "console.log")}, v.line)
	if err != nil {
		return err
	}
	say(fmt.Sprintf("the machine ran for %v; console and pictures of the glass: %s", end.Round(100*time.Millisecond), last))
	return v.judge()
}
