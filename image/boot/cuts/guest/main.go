// Command guest is the first and only process of the machine that loses its power. It lets the box's audit live on the box's file
// system, on a disk of which Linux records every write, makes of the record the disks that a power cut at any instant could
// have left, starts anew on each of them as the box does, and says on the console what it found there.
package main

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"assent.home.arpa/appliance/audit"
	"assent.home.arpa/image/boot/logwrites"
	"assent.home.arpa/image/emulator/first"
	"assent.home.arpa/image/hil/report"
)

// quota bounds the log so that it is pruned in the time that it lives here.
const quota = 4 * audit.SegmentSize

const (
	maxEntries = 1 << 16
	most       = 160 // cuts, about
	maxFaults  = 10  // that are told
)

func main() {
	if os.Getpid() != 1 {
		fmt.Fprintln(os.Stderr, "guest: this is the first process of a test machine; run make boot-test")
		os.Exit(2)
	}
	first.Run(run)
}

func run(c *first.Console) error {
	data, err := disk("data")
	if err != nil {
		return err
	}
	record, err := disk("record")
	if err != nil {
		return err
	}
	again, err := disk("again")
	if err != nil {
		return err
	}
	base, err := os.ReadFile(data)
	if err != nil {
		return err
	}
	told, err := household(data, record, int64(len(base))/512)
	if err != nil {
		return err
	}
	f, err := os.Open(record)
	if err != nil {
		return err
	}
	defer f.Close()
	log, err := logwrites.Read(f, maxEntries)
	if err != nil {
		return err
	}
	c.Say(fmt.Sprintf("%d things happened to the disk, and somebody was told something %d times, %s after power-on", len(log), len(told), first.Uptime()))
	return replay(c, base, log, told, again)
}

// disk finds a disk by the serial number that its host gave it.
func disk(serial string) (string, error) {
	found, err := filepath.Glob("/sys/block/vd*/serial")
	if err != nil {
		return "", err
	}
	for _, file := range found {
		if b, err := os.ReadFile(file); err == nil && strings.TrimSpace(string(b)) == serial {
			return filepath.Join("/dev", filepath.Base(filepath.Dir(file))), nil
		}
	}
	return "", fmt.Errorf("the machine has no disk %q among %d", serial, len(found))
}

// household records what a log does on the disk.
func household(data, record string, sectors int64) ([]known, error) {
	if err := os.MkdirAll(place, 0o755); err != nil {
		return nil, err
	}
	d, err := recording(data, record, sectors)
	if err != nil {
		return nil, err
	}
	if err := mount("/dev/dm-0"); err != nil {
		return nil, err
	}
	told, err := live(logDir, d.mark)
	if err != nil {
		return nil, fmt.Errorf("the log's life: %w", err)
	}
	return told, errors.Join(unix.Unmount(place, 0), d.mark("end"), d.remove())
}

// replay starts anew after each cut.
func replay(c *first.Console, base []byte, log []logwrites.Entry, told []known, again string) error {
	out, err := os.OpenFile(again, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	defer out.Close()
	possible := len(log)
	for _, e := range log {
		if e.Flush {
			possible++
		}
	}
	plan := logwrites.Plan{Every: max(1, possible/most), Random: rand.New(rand.NewPCG(3, 4))}
	good, faults, lossy := 0, 0, 0
	for cut, err := range plan.Cuts(base, log) {
		if err != nil {
			return err
		}
		if err := restore(out, cut.Disk); err != nil {
			return err
		}
		if err := restart(again, heard(cut.Marks, told)); err != nil {
			if faults++; faults <= maxFaults {
				where := fmt.Sprintf("cut after entry %d of %d, %d writes lost", cut.At, len(log), cut.Lost)
				if err := c.Put(report.Line{Case: &report.Case{Name: where, Outcome: "bad", Problems: []string{err.Error()}}}); err != nil {
					return err
				}
			}
			continue
		}
		good++
		if cut.Lost > 0 {
			lossy++
		}
	}
	c.Say(fmt.Sprintf("started anew after %d cuts of %d that are possible, %d of them with writes that were lost, %s after power-on", good+faults, possible, lossy, first.Uptime()))
	if err := c.Figure("image/replay_points_ok", float64(good), "starts"); err != nil {
		return err
	}
	return c.Put(report.Line{End: &report.End{Kernel: "cuts", Cases: good + faults}})
}

// heard is what was known when the last of these marks was made.
func heard(marks []string, told []known) known {
	if len(marks) == 0 {
		return known{}
	}
	n, err := strconv.Atoi(marks[len(marks)-1])
	if err != nil { // the end
		n = len(told) - 1
	}
	return told[n]
}

// restore writes a disk.
func restore(out *os.File, disk []byte) error {
	const piece = 1 << 20
	for at := 0; at < len(disk); at += piece {
		if _, err := out.WriteAt(disk[at:min(len(disk), at+piece)], int64(at)); err != nil {
			return err
		}
	}
	// What the last mount left in memory of this disk must not be read again.
	if err := out.Sync(); err != nil {
		return err
	}
	if err := unix.IoctlSetInt(int(out.Fd()), unix.BLKFLSBUF, 0); err != nil {
		return err
	}
	return nil
}
