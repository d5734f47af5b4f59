// Package cuts takes the power from the box's audit at every instant that matters, on the box's own kernel and file system, in a
// machine of its own (see command guest). Of such a machine the emulator forgets nothing, so it is Linux that records what was
// durable when, and what else could have been lost.
package cuts

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"assent.home.arpa/image/emulator"
	"assent.home.arpa/image/hil/kernel"
	"assent.home.arpa/image/hil/report"
)

// Sizes of the machine's disks, in MiB.
const (
	dataSize   = 24
	recordSize = 512
)

// modules are what the machine needs besides what is built into its kernel.
func modules() []string { return []string{"virtio_blk", "dm_mod", "dm_log_writes", "ext4"} }

// Result is what came of it.
type Result struct {
	Good   int      // starts after a cut that found everything
	Cuts   int      // all
	Faults []string // what was wrong at others; the first of them
	Notes  []string // for people
}

// Run makes the machine in dir, which keeps its console, runs it, and says what it found. cache holds what was downloaded.
func Run(ctx context.Context, cache, dir string, limit time.Duration, say func(string)) (Result, error) {
	lock, err := kernel.Locked()
	if err != nil {
		return Result{}, err
	}
	k, err := kernel.Get(ctx, cache, lock, modules(), say)
	if err != nil {
		return Result{}, fmt.Errorf("%w: %w", emulator.ErrUntried, err)
	}
	initrd, err := emulator.Pack(ctx, dir, "./image/boot/cuts/guest", k.Modules)
	if err != nil {
		return Result{}, fmt.Errorf("%w: %w", emulator.ErrUntried, err)
	}
	args := []string{
		"-machine", "virt", "-cpu", "max,pauth-impdef=on", "-accel", "tcg,thread=multi", "-smp", "2", "-m", "512M",
		"-kernel", k.Image, "-initrd", initrd, "-append", "console=ttyAMA0 loglevel=4 panic=-1",
		"-monitor", "none", "-nic", "none", "-no-reboot",
	}
	for _, d := range []struct {
		name string
		size int64
	}{{"data", dataSize}, {"record", recordSize}, {"again", dataSize}} {
		file := filepath.Join(dir, d.name+".disk")
		if err := disk(ctx, file, d.size<<20, d.name == "data"); err != nil {
			return Result{}, fmt.Errorf("%w: %w", emulator.ErrUntried, err)
		}
		defer os.Remove(file)
		args = append(args,
			"-drive", fmt.Sprintf("if=none,id=%s,format=raw,cache=unsafe,discard=unmap,file=%s", d.name, file),
			"-device", fmt.Sprintf("virtio-blk-pci,drive=%s,serial=%s", d.name, d.name))
	}
	var r Result
	ended := false
	machine, err := emulator.Start(ctx, emulator.Machine{Args: args, Log: filepath.Join(dir, "cuts.log"), Line: func(console string) {
		ended = r.line(console) || ended
	}})
	if err != nil {
		return Result{}, err
	}
	if _, err := machine.Wait(ctx, limit); err != nil {
		return r, err
	}
	if !ended {
		return r, errors.New("the machine of the power cuts ended before it was done; its last words:\n" + machine.Last())
	}
	return r, nil
}

// line takes one line of the console, and reports whether it is the last.
func (r *Result) line(console string) bool {
	l, ok, err := report.Parse(console)
	switch {
	case err != nil:
		r.Faults = append(r.Faults, fmt.Sprintf("a line that cannot be relied on: %.80q", console))
	case !ok:
	case l.Note != "":
		r.Notes = append(r.Notes, l.Note)
	case l.Case != nil:
		r.Faults = append(r.Faults, l.Case.Name+": "+strings.Join(l.Case.Problems, "; "))
	case l.Figure != nil:
		r.Good = int(l.Figure.Value)
	case l.End != nil:
		r.Cuts = l.End.Cases
		return true
	}
	return false
}

// disk makes an empty disk, or one with the file system that the box's audit lives on.
func disk(ctx context.Context, file string, size int64, formatted bool) error {
	f, err := os.Create(file)
	if err != nil {
		return err
	}
	if err := errors.Join(f.Truncate(size), f.Close()); err != nil || !formatted {
		return err
	}
	// Without lazy initialisation, which would go on writing after the mount.
	out, err := exec.CommandContext(ctx, "mke2fs", "-q", "-F", "-t", "ext4", "-E", "lazy_itable_init=0,lazy_journal_init=0", file).CombinedOutput()
	if err != nil {
		return fmt.Errorf("mke2fs: %w: %.300s", err, out)
	}
	return nil
}
