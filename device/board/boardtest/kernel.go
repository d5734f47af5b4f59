package boardtest

import (
	"encoding/binary"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Numbers and layouts are those of linux/gpio.h, written down a second time so that a mistake shows.
const (
	getChipInfo = 0x8044b401
	getLineInfo = 0xc100b405
	getLine     = 0xc250b407
	getValues   = 0xc010b40e
	setValues   = 0xc010b40f
)

// Flags of a request and of a line.
const (
	FlagUsed   = 1
	flagsAsked = 1<<1 | 1<<2 | 1<<4 | 1<<5 | 1<<8 // active low, input, both edges, pull-up
	flagOutput = 1 << 3
)

// Line is one line of a chip.
type Line struct {
	Name, Consumer string
	Used           bool
	Active         bool
	Gone           bool
	seqno          uint32
}

// Kernel is a /sys and a /dev below Root, and the calls that their devices take.
type Kernel struct {
	Root string

	t      *testing.T
	mu     sync.Mutex // guards all below
	chips  map[string][]*Line
	now    time.Duration
	asked  []*Line
	driven map[int]*Line // outputs, by descriptor
	events *os.File
	seqno  uint32
	asks   int    // how often the clock was read
	behind func() // an edge that comes as it is read next
}

// NewKernel returns a kernel without devices.
func NewKernel(t *testing.T) *Kernel {
	k := &Kernel{Root: t.TempDir(), t: t, chips: map[string][]*Line{}, driven: map[int]*Line{}, now: time.Hour}
	for _, dir := range []string{"dev", "sys/devices", "sys/bus"} {
		k.must(os.MkdirAll(filepath.Join(k.Root, dir), 0o755))
	}
	t.Cleanup(k.Unplug)
	return k
}

// AddChip adds GPIO chip n at a place below /sys/devices.
func (k *Kernel) AddChip(n int, place string, lines ...*Line) {
	name := fmt.Sprintf("gpiochip%d", n)
	k.addDevice("gpio", name, place)
	k.mu.Lock()
	defer k.mu.Unlock()
	k.chips[name] = lines
}

// AddBus adds I2C bus n at a place below /sys/devices.
func (k *Kernel) AddBus(n int, place string) {
	k.addDevice("i2c", fmt.Sprintf("i2c-%d", n), place)
}

// AddSPI adds an SPI bus with one chip select at a place below /sys/devices.
func (k *Kernel) AddSPI(bus, cs int, place string) {
	name := fmt.Sprintf("spidev%d.%d", bus, cs)
	real := filepath.Join(k.Root, "sys/devices", place, name)
	k.must(os.MkdirAll(real, 0o755))
	dir := filepath.Join(k.Root, "sys/class/spidev")
	k.must(os.MkdirAll(dir, 0o755))
	k.must(os.Symlink(real, filepath.Join(dir, name)))
}

// RemoveBus takes I2C bus n away again.
func (k *Kernel) RemoveBus(n int, place string) {
	name := fmt.Sprintf("i2c-%d", n)
	k.must(os.Remove(filepath.Join(k.Root, "dev", name)))
	k.must(os.Remove(filepath.Join(k.Root, "sys/bus/i2c/devices", name)))
	k.must(os.Remove(filepath.Join(k.Root, "sys/devices", place, name)))
}

func (k *Kernel) addDevice(class, name, place string) {
	real := filepath.Join(k.Root, "sys/devices", place, name)
	k.must(os.MkdirAll(real, 0o755))
	dir := filepath.Join(k.Root, "sys/bus", class, "devices")
	k.must(os.MkdirAll(dir, 0o755))
	k.must(os.Symlink(real, filepath.Join(dir, name)))
	k.must(os.WriteFile(filepath.Join(k.Root, "dev", name), nil, 0o600))
}

// Mono is CLOCK_MONOTONIC.
func (k *Kernel) Mono() time.Duration {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.asks++
	if report := k.behind; report != nil {
		k.behind = nil
		report()
	}
	return k.now
}

// Asks counts how often the clock was read.
func (k *Kernel) Asks() int {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.asks
}

// Behind makes it now, and moves a line at a time before that; the edge is reported just before the clock is read next, as for
// a reader that was kept from looking.
func (k *Kernel) Behind(i int, at, now time.Duration, active bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.now = now
	k.behind = func() {
		k.move(i, at, active)
		k.report(i, at)
	}
}

// Edge moves the i-th requested line at a time, which becomes the present, and reports it.
func (k *Kernel) Edge(i int, at time.Duration, active bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.move(i, at, active)
	k.report(i, at)
}

// Lose moves a line and drops the event, as a full queue does.
func (k *Kernel) Lose(i int, at time.Duration, active bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.move(i, at, active)
}

// Advance lets time pass.
func (k *Kernel) Advance(d time.Duration) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.now += d
}

func (k *Kernel) move(i int, at time.Duration, active bool) {
	l := k.asked[i]
	l.Active = active
	l.seqno++
	k.seqno++
	k.now = max(k.now, at)
}

func (k *Kernel) report(i int, at time.Duration) {
	l := k.asked[i]
	var ev [48]byte
	order := binary.NativeEndian
	order.PutUint64(ev[0:], uint64(at))
	order.PutUint32(ev[8:], 2)
	if l.Active {
		order.PutUint32(ev[8:], 1)
	}
	order.PutUint32(ev[12:], k.offsetOf(l))
	order.PutUint32(ev[16:], k.seqno)
	order.PutUint32(ev[20:], l.seqno)
	k.queue(ev[:])
}

// Raw puts bytes into the queue of events.
func (k *Kernel) Raw(b []byte) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.queue(b)
}

func (k *Kernel) queue(b []byte) {
	_, err := k.events.Write(b)
	k.must(err)
}

// Unplug takes the chip away under its user.
func (k *Kernel) Unplug() {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.events != nil {
		k.events.Close()
		k.events = nil
	}
}

func (k *Kernel) offsetOf(l *Line) uint32 {
	for _, lines := range k.chips {
		if i := slices.Index(lines, l); i >= 0 {
			return uint32(i)
		}
	}
	k.t.Fatal("boardtest: no such line")
	return 0
}

// Ioctl is the call of that name.
func (k *Kernel) Ioctl(f *os.File, req uint, arg unsafe.Pointer) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	if _, err := f.Stat(); err != nil { // closed
		return err
	}
	k.freeOutputs()
	b := unsafe.Slice((*byte)(arg), req>>16&0x3fff) // the number carries the size: asm-generic/ioctl.h
	lines := k.chips[filepath.Base(f.Name())]
	switch req {
	case getChipInfo:
		copy(b[0:32], filepath.Base(f.Name()))
		binary.NativeEndian.PutUint32(b[64:], uint32(len(lines)))
		return nil
	case getLineInfo:
		return lineInfo(lines, b)
	case getLine:
		return k.getLine(lines, b)
	case getValues:
		return k.getValues(f, b)
	case setValues:
		return k.setValues(f, b)
	}
	return unix.ENOTTY
}

func lineInfo(lines []*Line, b []byte) error {
	offset := binary.NativeEndian.Uint32(b[64:])
	if int(offset) >= len(lines) {
		return unix.EINVAL
	}
	l := lines[offset]
	copy(b[0:32], l.Name)
	copy(b[32:64], l.Consumer)
	if l.Used {
		binary.NativeEndian.PutUint64(b[72:], FlagUsed)
	}
	return nil
}

// getLine takes struct gpio_v2_line_request: offsets at 0, consumer at 256, flags at 288, number of attributes (none: the kernel is
// not to debounce) at 296, number of lines at 560, size of the queue at 564, descriptor at 588.
func (k *Kernel) getLine(lines []*Line, b []byte) error {
	order := binary.NativeEndian
	n := order.Uint32(b[560:])
	if order.Uint64(b[288:]) == flagOutput {
		return k.getOutput(lines, b)
	}
	if n == 0 || n > 64 || order.Uint64(b[288:]) != flagsAsked || order.Uint32(b[296:]) != 0 || !strings.HasPrefix(string(b[256:288]), "assent\x00") || order.Uint32(b[564:]) == 0 {
		return unix.EINVAL
	}
	var asked []*Line
	for i := range n {
		offset := order.Uint32(b[4*i:])
		if int(offset) >= len(lines) {
			return unix.EINVAL
		}
		if lines[offset].Used {
			return unix.EBUSY
		}
		lines[offset].Used = true
		asked = append(asked, lines[offset])
	}
	var pipe [2]int
	if err := unix.Pipe2(pipe[:], unix.O_CLOEXEC); err != nil {
		return err
	}
	k.asked, k.events = asked, os.NewFile(uintptr(pipe[1]), "events")
	order.PutUint32(b[588:], uint32(pipe[0]))
	return nil
}

// getOutput takes the same structure for one output.
func (k *Kernel) getOutput(lines []*Line, b []byte) error {
	order := binary.NativeEndian
	offset := order.Uint32(b)
	if order.Uint32(b[560:]) != 1 || order.Uint32(b[296:]) != 0 || int(offset) >= len(lines) {
		return unix.EINVAL
	}
	if lines[offset].Used {
		return unix.EBUSY
	}
	fd, err := unix.Eventfd(0, unix.EFD_CLOEXEC)
	if err != nil {
		return err
	}
	lines[offset].Used, lines[offset].Active = true, false
	k.driven[fd] = lines[offset]
	order.PutUint32(b[588:], uint32(fd))
	return nil
}

// freeOutputs frees the lines whose users have closed them.
func (k *Kernel) freeOutputs() {
	for fd, l := range k.driven {
		if _, err := unix.FcntlInt(uintptr(fd), unix.F_GETFD, 0); err != nil {
			l.Used = false
			delete(k.driven, fd)
		}
	}
}

func (k *Kernel) setValues(f *os.File, b []byte) error {
	l := k.driven[int(f.Fd())]
	if l == nil || l.Gone {
		return unix.ENODEV
	}
	if binary.NativeEndian.Uint64(b[8:]) != 1 {
		return unix.EINVAL
	}
	l.Active = binary.NativeEndian.Uint64(b) == 1
	return nil
}

// Lit reports whether a line is active.
func (k *Kernel) Lit(l *Line) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	return l.Active
}

// LoseOutput takes an output away under its user.
func (k *Kernel) LoseOutput(l *Line) {
	k.mu.Lock()
	defer k.mu.Unlock()
	l.Gone = true
}

// FindOutput ends LoseOutput.
func (k *Kernel) FindOutput(l *Line) {
	k.mu.Lock()
	defer k.mu.Unlock()
	l.Gone = false
}

func (k *Kernel) getValues(f *os.File, b []byte) error {
	if !strings.HasSuffix(f.Name(), " lines") || k.events == nil {
		return unix.ENODEV
	}
	mask := binary.NativeEndian.Uint64(b[8:])
	var bits uint64
	for i, l := range k.asked {
		if l.Active {
			bits |= 1 << i
		}
	}
	binary.NativeEndian.PutUint64(b, bits&mask)
	return nil
}

func (k *Kernel) must(err error) {
	if err != nil {
		k.t.Helper()
		k.t.Fatal(err)
	}
}
