package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"assent.home.arpa/image/card"
	"assent.home.arpa/image/emulator"
	"assent.home.arpa/image/slots"
)

// slotsLimit is how long a case may take: three tries of a slot and the start of the other.
const slotsLimit = 4 * time.Minute

// slotsCase is one way in which a slot does not start, as the disk is found and as it is left.
type slotsCase struct {
	name          string
	before, after slots.State
	harm          func(disk *os.File) error
	says          []string // lines of the console, in this order; the last one ends the machine
}

// slotsCases are about the image as it is shipped: its slot B is empty.
func slotsCases() []slotsCase {
	state := func(order []slots.Slot, a, b int) slots.State {
		return slots.State{Order: order, Left: map[slots.Slot]int{slots.A: a, slots.B: b}}
	}
	onlyA, newB := []slots.Slot{slots.A}, []slots.Slot{slots.B, slots.A}
	unharmed := func(*os.File) error { return nil }
	return []slotsCase{
		{
			"an update that does not start gives way to what ran before", state(newB, 2, 2), state(newB, 1, 0), unharmed,
			[]string{"slot b", "slot b", "slot a", "initrd: the root is root_a"},
		},
		{
			"a root with one wrong block restarts the box", state(onlyA, 1, 0), state([]slots.Slot{slots.A, slots.B}, 2, 3), wrongBlock,
			[]string{"slot a", "no slot has a try left", "slot a"},
		},
		{
			"a torn state is not lost", state(onlyA, 2, 0), state(onlyA, 1, 0),
			func(disk *os.File) error { _, err := disk.WriteAt(make([]byte, 100), slots.First); return err },
			[]string{"slot a", "initrd: the root is root_a"},
		},
	}
}

// wrongBlock changes one byte of the root: of its superblock, which everybody reads.
func wrongBlock(disk *os.File) error {
	table, err := card.ReadTable(disk)
	if err != nil {
		return err
	}
	root, err := table.Lookup(card.RootA)
	if err != nil {
		return err
	}
	_, err = disk.WriteAt([]byte{0xff}, root.Start+1024)
	return err
}

// rollback lets slots fail and looks at what the boot loader makes of it.
func rollback(ctx context.Context, t *test, _ options) error {
	for n, c := range slotsCases() {
		disk := filepath.Join(t.dir, fmt.Sprintf("slots-%d.disk", n))
		if err := copySparse(filepath.Join(t.image, imageFile), disk); err != nil {
			return err
		}
		err := c.try(ctx, t, disk, filepath.Join(t.dir, fmt.Sprintf("slots-%d.log", n)))
		t.step(c.name, err)
		if err := os.Remove(disk); err != nil {
			return err
		}
	}
	return nil
}

func (c slotsCase) try(ctx context.Context, t *test, disk, log string) error {
	f, err := os.OpenFile(disk, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	defer f.Close()
	if err := slots.Write(f, c.before); err != nil {
		return err
	}
	if err := c.harm(f); err != nil {
		return err
	}
	if err := f.Sync(); err != nil {
		return err
	}
	heard := make(chan struct{})
	wanted := c.says
	m, err := emulator.Start(ctx, emulator.Machine{
		// No -no-reboot: the box is to try again.
		Args: []string{
			"-machine", "virt", "-cpu", "max,pauth-impdef=on", "-accel", "tcg,thread=multi", "-smp", "2", "-m", "1G", "-bios", filepath.Join(t.image, biosFile),
			"-monitor", "none", "-nic", "none", "-drive", "if=none,id=card,format=raw,file=" + disk, "-device", "virtio-blk-pci,drive=card",
		},
		Log: log,
		Line: func(line string) {
			if len(wanted) > 0 && strings.Contains(line, wanted[0]) {
				if wanted = wanted[1:]; len(wanted) == 0 {
					close(heard)
				}
			}
		},
	})
	if err != nil {
		return err
	}
	defer m.Kill()
	timer := time.NewTimer(slotsLimit)
	defer timer.Stop()
	select {
	case <-heard:
	case <-m.Done():
		return fmt.Errorf("the machine ended; its last words:\n%s", m.Last())
	case <-timer.C:
		return fmt.Errorf("the console did not say %q in this order; its last words:\n%s", c.says, m.Last())
	case <-ctx.Done():
		return fmt.Errorf("%w: interrupted", emulator.ErrUntried)
	}
	m.Kill()
	got, err := slots.Read(f)
	if err != nil {
		return err
	}
	if !slices.Equal(got.Order, c.after.Order) || got.Left[slots.A] != c.after.Left[slots.A] || got.Left[slots.B] != c.after.Left[slots.B] {
		return fmt.Errorf("the state is %v, not %v", got, c.after)
	}
	return nil
}
