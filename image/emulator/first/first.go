// Package first is what the first and only process of a test machine begins and ends with: it mounts what a process needs to see of
// the kernel, loads the modules that the machine came with, and turns the machine off at the end. What it says goes to its host as
// package report has it.
package first

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"

	"golang.org/x/sys/unix"

	"assent.home.arpa/image/hil/report"
)

// Run prepares the machine, calls do, says why that failed if it did, and turns the machine off.
func Run(do func(*Console) error) {
	c := &Console{}
	err := mount()
	if err == nil {
		err = quiet()
	}
	if err == nil {
		err = loadModules("/modules")
	}
	if err == nil {
		err = do(c)
	}
	if err != nil {
		c.Say("stopped: " + err.Error())
		c.kernelLog()
	}
	unix.Sync()
	// Nothing is left to do if this fails: the host's time limit ends the machine.
	_ = unix.Reboot(unix.LINUX_REBOOT_CMD_POWER_OFF)
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

// Uptime says how long the machine has been on.
func Uptime() string {
	var ts unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_BOOTTIME, &ts); err != nil {
		return "some time"
	}
	return fmt.Sprintf("%.1f s", float64(ts.Nano())/1e9)
}

// Console is the serial line to the host.
type Console struct{ mu sync.Mutex }

// Put says one thing.
func (c *Console) Put(l report.Line) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return report.Write(os.Stdout, l)
}

// Say tells a person something. What cannot be said shows as a missing line on the other side.
func (c *Console) Say(note string) { _ = c.Put(report.Line{Note: note}) }

// Figure says one measurement.
func (c *Console) Figure(name string, value float64, unit string) error {
	return c.Put(report.Line{Figure: &report.Figure{Name: name, Value: value, Unit: unit}})
}

// kernelLog says the last of what the kernel logged.
func (c *Console) kernelLog() {
	buf := make([]byte, 256<<10)
	const readAll, lines = 3, 60 // syslog(2)
	n, err := unix.Klogctl(readAll, buf)
	if err != nil {
		return
	}
	all := strings.Split(strings.TrimSpace(string(buf[:n])), "\n")
	for _, line := range all[max(0, len(all)-lines):] {
		c.Say("kernel: " + line)
	}
}
