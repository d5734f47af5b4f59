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
	"path/filepath"
	"runtime"
	"strings"
	"sync"

	"golang.org/x/sys/unix"

	"assent.home.arpa/image/hil/report"
)

func main() {
	if os.Getpid() != 1 {
		fmt.Fprintln(os.Stderr, "guest: this is the first process of a test machine; run make hil")
		os.Exit(2)
	}
	c := &console{}
	if err := run(c); err != nil {
		c.say("stopped: " + err.Error())
		c.kernelLog()
	}
	unix.Sync()
	// Nothing is left to do if this fails: the host's time limit ends the machine.
	_ = unix.Reboot(unix.LINUX_REBOOT_CMD_POWER_OFF)
}

// How many goroutines may run, or be in the kernel, at the same time. Display and driver are one process here: a driver waits in
// the kernel for a display that waits for its turn, and the runtime would only notice after 10 ms. So there are enough for
// each room; figures are taken with as many as a Raspberry Pi has.
const (
	boxProcessors = 4
	processors    = 4 * atOnce
)

func run(c *console) error {
	runtime.GOMAXPROCS(boxProcessors)
	if err := mount(); err != nil {
		return err
	}
	release, err := os.ReadFile("/proc/sys/kernel/osrelease")
	if err != nil {
		return err
	}
	if err := quiet(); err != nil {
		return err
	}
	if err := loadModules("/modules"); err != nil {
		return err
	}
	if err := unix.Mount("config", "/sys/kernel/config", "configfs", 0, ""); err != nil && !errors.Is(err, unix.EBUSY) {
		return fmt.Errorf("mounting configfs: %w", err)
	}
	c.say("kernel " + strings.TrimSpace(string(release)) + ", modules loaded " + uptime() + " after power-on")
	if err := measure(c); err != nil {
		return fmt.Errorf("figures: %w", err)
	}
	c.say("figures taken " + uptime() + " after power-on")
	runtime.GOMAXPROCS(processors)
	n := runCases(c, cases())
	trySuspend(c)
	c.say("all done " + uptime() + " after power-on")
	return c.put(report.Line{End: &report.End{Kernel: strings.TrimSpace(string(release)), Cases: n}})
}

func mount() error {
	for _, m := range []struct{ kind, at string }{{"proc", "/proc"}, {"sysfs", "/sys"}, {"devtmpfs", "/dev"}} {
		if err := unix.Mount(m.kind, m.at, m.kind, 0, ""); err != nil {
			return fmt.Errorf("mounting %s: %w", m.kind, err)
		}
	}
	return nil
}

// quiet keeps the kernel off the console for all but the end of the world, so that it does not write into our lines.
func quiet() error {
	if err := os.WriteFile("/proc/sys/kernel/printk", []byte("1"), 0); err != nil {
		return fmt.Errorf("console level: %w", err)
	}
	return nil
}

// loadModules loads every module of a folder, in the order of their names.
func loadModules(dir string) error {
	names, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	for _, n := range names {
		f, err := os.Open(filepath.Join(dir, n.Name()))
		if err != nil {
			return err
		}
		err = unix.FinitModule(int(f.Fd()), "", 0)
		f.Close()
		if err != nil && !errors.Is(err, unix.EEXIST) { // built in
			return fmt.Errorf("module %s: %w", n.Name(), err)
		}
	}
	return nil
}

func uptime() string {
	var ts unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_BOOTTIME, &ts); err != nil {
		return "some time"
	}
	return fmt.Sprintf("%.1f s", float64(ts.Nano())/1e9)
}

// console is the serial line to the host.
type console struct{ mu sync.Mutex }

func (c *console) put(l report.Line) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return report.Write(os.Stdout, l)
}

// say tells a person something. What cannot be said shows as a missing line on the other side.
func (c *console) say(note string) { _ = c.put(report.Line{Note: note}) }

func (c *console) figure(name string, value float64, unit string) error {
	return c.put(report.Line{Figure: &report.Figure{Name: name, Value: value, Unit: unit}})
}

// kernelLog says the last of what the kernel logged.
func (c *console) kernelLog() {
	buf := make([]byte, 256<<10)
	const readAll, lines = 3, 60 // syslog(2)
	n, err := unix.Klogctl(readAll, buf)
	if err != nil {
		return
	}
	all := strings.Split(strings.TrimSpace(string(buf[:n])), "\n")
	for _, line := range all[max(0, len(all)-lines):] {
		c.say("kernel: " + line)
	}
}
