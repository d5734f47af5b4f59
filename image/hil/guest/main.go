// Command guest is the first and only process of the machine that the hardware test boots. It makes the box's hardware
// out of simulated lines and a display on a simulated USB port, runs the box's real drivers and the real panel on it, lets
// simulated hands press, says on the console what came of it, and turns the machine off.
//
// What the product is to do stands on the host's side (image/hil); here is only what happened.
package main

import (
	"errors"
	"fmt"
	"os"
	"runtime"
	"strings"

	"golang.org/x/sys/unix"

	"assent.home.arpa/image/emulator/first"
	"assent.home.arpa/image/hil/report"
)

func main() {
	if os.Args[0] == exporterName {
		os.Exit(beExporter())
	}
	if os.Getpid() != 1 {
		fmt.Fprintln(os.Stderr, "guest: this is the first process of a test machine; run make hil")
		os.Exit(2)
	}
	first.Run(run)
}

// How many goroutines may run, or be in the kernel, at the same time. Display and driver are one process here: a driver waits in
// the kernel for a display that waits for its turn, and the runtime would only notice after 10 ms. So there are enough for
// each room; figures are taken with as many as a Raspberry Pi has.
const (
	boxProcessors = 4
	processors    = 4 * atOnce
)

func run(c *first.Console) error {
	runtime.GOMAXPROCS(boxProcessors)
	release, err := os.ReadFile("/proc/sys/kernel/osrelease")
	if err != nil {
		return err
	}
	if err := unix.Mount("config", "/sys/kernel/config", "configfs", 0, ""); err != nil && !errors.Is(err, unix.EBUSY) {
		return fmt.Errorf("mounting configfs: %w", err)
	}
	c.Say("kernel " + strings.TrimSpace(string(release)) + ", modules loaded " + first.Uptime() + " after power-on")
	if err := measure(c); err != nil {
		return fmt.Errorf("figures: %w", err)
	}
	c.Say("figures taken " + first.Uptime() + " after power-on")
	runtime.GOMAXPROCS(processors)
	n, err := runCableCases(c)
	if err != nil {
		return fmt.Errorf("cable: %w", err)
	}
	n += runCases(c, cases())
	trySuspend(c)
	c.Say("all done " + first.Uptime() + " after power-on")
	return c.Put(report.Line{End: &report.End{Kernel: strings.TrimSpace(string(release)), Cases: n}})
}
