package main

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"assent.home.arpa/appliance/cable"
	"assent.home.arpa/appliance/ipc"
	"assent.home.arpa/image/emulator/first"
	"assent.home.arpa/image/hil/report"
)

// offTheCable is how every case of the cable must end.
const offTheCable = "off the cable"

// cableCase is a box whose record is read over a cable: a controller that leads to the machine itself (dummy_hcd), so that its
// kernel is the box's at one end and a PC's at the other.
type cableCase struct {
	exporter *exporter
	problems []string
	content  map[string][]byte
}

// pc is where the PC mounts what it finds.
const pc = "/pc"

// runCableCases tries the cable and returns how many cases there were.
func runCableCases(c *first.Console) (int, error) {
	for _, dir := range []string{exporterDir, pc} {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			return 0, err
		}
	}
	if err := unix.Mount("image", exporterDir, "tmpfs", 0, fmt.Sprintf("size=96m,mode=0700,uid=%d,gid=%d", exporterUser, exporterUser)); err != nil {
		return 0, fmt.Errorf("mounting a place for the image: %w", err)
	}
	cases := []struct {
		name string
		do   func(*cableCase) error
	}{
		{name: "cable: read, and ejected", do: (*cableCase).readAndEject},
		{name: "cable: taken back while it is read", do: (*cableCase).takenBack},
		{name: "cable: the guard goes", do: (*cableCase).guardGoes},
		{name: "cable: the exporter is killed", do: (*cableCase).exporterKilled},
	}
	for _, s := range cases {
		began := time.Now()
		t := &cableCase{content: map[string][]byte{
			"README.TXT":   []byte("what this is\r\n"),
			"log/seg-0001": bytes.Repeat([]byte{0xa1, 'r', 'e', 'c'}, 200_000),
			"view/data.js": bytes.Repeat([]byte("x"), 33_000),
		}}
		err := t.begin()
		if err == nil {
			err = s.do(t)
		}
		if err != nil {
			t.problem("%v", err)
		}
		outcome := offTheCable
		if err := t.end(); err != nil {
			outcome = err.Error()
		}
		if err := c.Put(report.Line{Case: &report.Case{Name: s.name, Outcome: outcome, Problems: t.problems, Millis: time.Since(began).Milliseconds()}}); err != nil {
			return 0, err
		}
	}
	return len(cases), nil
}

func (t *cableCase) problem(format string, args ...any) {
	t.problems = append(t.problems, fmt.Sprintf(format, args...))
}

// begin describes the disk, starts an exporter, and has it write what a PC is to read. Until then nothing may be on the cable.
func (t *cableCase) begin() (err error) {
	if err := cable.SetUp(cable.Gadgets, cable.Controllers, exporterUser, exporterUser); err != nil {
		return err
	}
	if t.exporter, err = startExporter(); err != nil {
		return err
	}
	select {
	case h := <-t.exporter.hello:
		if !h.Cable {
			t.problem("the exporter says that there is a stick")
		}
	case <-time.After(patience):
		return errors.New("the exporter says nothing: " + t.exporter.said.String())
	}
	ops := []*ipc.StickOp{{Verb: ipc.StickMake, Room: 2 << 20}, {Verb: ipc.StickMkdir, Name: "log"}, {Verb: ipc.StickMkdir, Name: "view"}}
	for name, content := range t.content {
		ops = append(ops, &ipc.StickOp{Verb: ipc.StickCreate, Name: name, Handle: 1})
		for chunk := range slices.Chunk(content, ipc.MaxStickChunk) {
			ops = append(ops, &ipc.StickOp{Verb: ipc.StickWrite, Handle: 1, Data: chunk})
		}
		ops = append(ops, &ipc.StickOp{Verb: ipc.StickClose, Handle: 1})
	}
	for _, op := range append(ops, &ipc.StickOp{Verb: ipc.StickEnd}) {
		if _, err := t.exporter.do(op); err != nil {
			return err
		}
	}
	if found := gadgets(); len(found) != 0 || attached() != "" {
		t.problem("before the guard says so %v is on the cable", found)
	}
	return nil
}

// end has whoever is left go, and fails while anything is on the cable or on the card.
func (t *cableCase) end() error {
	_ = unix.Unmount(pc, unix.MNT_DETACH) // where a case ended early
	if t.exporter != nil {
		t.exporter.client.Close()
		select {
		case <-t.exporter.ended:
		case <-time.After(patience):
			t.problem("the exporter stays")
			_ = t.exporter.cmd.Process.Kill()
		}
	}
	if !soon(func() bool { return len(gadgets()) == 0 && attached() == "" }) {
		return fmt.Errorf("%v is on the cable, at %q", gadgets(), attached())
	}
	left, err := os.ReadDir(exporterDir)
	if err != nil || len(left) > 0 {
		return fmt.Errorf("%d files are left, %v", len(left), err)
	}
	return nil
}

// plugIn shows the disk, and waits until the PC has it as a block device with nothing beside it.
func (t *cableCase) plugIn() (dev string, err error) {
	if _, err := t.exporter.do(&ipc.StickOp{Verb: ipc.StickShow}); err != nil {
		return "", err
	}
	if !soon(func() bool { dev = disk(); return dev != "" }) {
		return "", errors.New("the PC sees no disk")
	}
	found := gadgets()
	if len(found) != 1 {
		return "", fmt.Errorf("the PC sees %v", found)
	}
	interfaces, err := filepath.Glob(filepath.Join(found[0], "*:*", "bInterfaceClass"))
	if err != nil || len(interfaces) != 1 || line(interfaces[0]) != "08" || line(filepath.Join(found[0], "bNumConfigurations")) != "1" {
		t.problem("the PC sees interfaces %v", interfaces)
	}
	return dev, nil
}

// mounted mounts the disk as a PC does, and compares what is in it with what was written.
func (t *cableCase) mounted(dev string) error {
	if !soon(func() bool {
		return unix.Mount(dev, pc, "vfat", 0, "") == nil || unix.Mount(dev, pc, "vfat", unix.MS_RDONLY, "") == nil
	}) {
		return errors.New("the PC cannot mount it")
	}
	if err := os.WriteFile(filepath.Join(pc, "x"), nil, 0o644); !errors.Is(err, unix.EROFS) {
		t.problem("a file can be made on it: %v", err)
	}
	n := 0
	err := filepath.WalkDir(pc, func(path string, e os.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		n++
		name, err := filepath.Rel(pc, path)
		if err != nil {
			return err
		}
		got, err := os.ReadFile(path)
		if want, there := t.content[name]; err != nil || !there || !bytes.Equal(got, want) {
			t.problem("the PC reads other bytes of %q: %d, %v", name, len(got), err)
		}
		return nil
	})
	if n != len(t.content) {
		t.problem("the PC sees %d files", n)
	}
	return err
}

// unwritable tries to write to the disk itself, past what Linux believes of it: the disk has to refuse.
func (t *cableCase) unwritable(dev string) error {
	image := filepath.Join(exporterDir, "record.img")
	before, err := os.ReadFile(image)
	if err != nil {
		return err
	}
	if f, err := os.OpenFile(dev, os.O_WRONLY, 0); err == nil {
		t.problem("the PC takes it for writable")
		f.Close()
	}
	f, err := os.OpenFile(dev, os.O_RDONLY, 0)
	if err != nil {
		return err
	}
	defer f.Close()
	if err := unix.IoctlSetPointerInt(int(f.Fd()), unix.BLKROSET, 0); err != nil {
		return fmt.Errorf("calling it writable: %w", err)
	}
	w, err := os.OpenFile(dev, os.O_WRONLY|unix.O_SYNC, 0)
	if err == nil {
		_, err = w.WriteAt(make([]byte, 4096), 0)
		w.Close()
	}
	if err == nil {
		t.problem("a write was taken")
	}
	after, err := os.ReadFile(image)
	if err != nil {
		return err
	}
	if sha256.Sum256(before) != sha256.Sum256(after) {
		t.problem("the image is another one")
	}
	return nil
}

func (t *cableCase) shown() bool {
	r, err := t.exporter.do(&ipc.StickOp{Verb: ipc.StickShown})
	if err != nil {
		t.problem("%v", err)
		return false
	}
	return r.Yes
}

func (t *cableCase) readAndEject() error {
	dev, err := t.plugIn()
	if err != nil {
		return err
	}
	if err := t.mounted(dev); err != nil {
		return err
	}
	if err := unix.Unmount(pc, 0); err != nil {
		return err
	}
	if err := t.unwritable(dev); err != nil {
		return err
	}
	if !t.shown() {
		t.problem("it counts as ejected before")
	}
	if err := eject(dev); err != nil {
		return err
	}
	if t.shown() {
		t.problem("it was ejected, and counts as shown")
	}
	_, err = t.exporter.do(&ipc.StickOp{Verb: ipc.StickHide})
	return err
}

// takenBack has the guard take it away, as it does when time is over or after a panic, while the PC has it mounted and its
// drive locked.
func (t *cableCase) takenBack() error {
	dev, err := t.plugIn()
	if err != nil {
		return err
	}
	if err := t.mounted(dev); err != nil {
		return err
	}
	if _, err := t.exporter.do(&ipc.StickOp{Verb: ipc.StickHide}); err != nil {
		return err
	}
	if attached() != "" || t.shown() {
		t.problem("it is still at %q", attached())
	}
	return nil
}

func (t *cableCase) guardGoes() error {
	_, err := t.plugIn()
	return err // and then end hangs up
}

// exporterKilled leaves the disk on the cable for as long as no exporter starts; the next one takes it off.
func (t *cableCase) exporterKilled() error {
	if _, err := t.plugIn(); err != nil {
		return err
	}
	if err := t.exporter.cmd.Process.Kill(); err != nil {
		return err
	}
	<-t.exporter.ended
	t.exporter.client.Close()
	next, err := startExporter()
	if err != nil {
		return err
	}
	t.exporter = next
	select {
	case <-next.hello:
	case <-time.After(patience):
		return errors.New("the next exporter says nothing: " + next.said.String())
	}
	if attached() != "" {
		t.problem("the next exporter leaves it at %q", attached())
	}
	return nil
}

// gadgets are the devices on the PC's USB that are the box: those that call themselves so.
func gadgets() (found []string) {
	names, _ := filepath.Glob("/sys/bus/usb/devices/*/product")
	for _, n := range names {
		if line(n) == "Record, read-only" {
			found = append(found, filepath.Dir(n))
		}
	}
	return found
}

// disk is the PC's name for the disk, once it has found its size.
func disk() string {
	names, _ := filepath.Glob("/sys/block/sd*")
	for _, n := range names {
		if line(filepath.Join(n, "size")) != "0" && strings.TrimSpace(line(filepath.Join(n, "device", "vendor"))) == "Assent" {
			return "/dev/" + filepath.Base(n)
		}
	}
	return ""
}

// attached is the controller that the kernel says the disk is at.
func attached() string { return line(filepath.Join(cable.Dir, "UDC")) }

func line(path string) string {
	b, err := os.ReadFile(path)
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(b))
}

// eject does what a PC's "eject" does: it unlocks the drive and has the medium taken out (SCSI START STOP UNIT).
func eject(dev string) error {
	const doorUnlock, takeOut = 0x5381, 0x5309 // scsi/scsi_ioctl.h, linux/cdrom.h
	f, err := os.OpenFile(dev, os.O_RDONLY|unix.O_NONBLOCK, 0)
	if err != nil {
		return err
	}
	defer f.Close()
	for _, request := range []uint{doorUnlock, takeOut} {
		if _, err := unix.IoctlRetInt(int(f.Fd()), request); err != nil {
			return fmt.Errorf("ejecting: %w", err)
		}
	}
	return nil
}

// soon waits for something that should come at once.
func soon(is func() bool) bool {
	for end := time.Now().Add(patience); !is(); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(end) {
			return false
		}
	}
	return true
}
