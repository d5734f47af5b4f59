// Package slots reads and writes which slot the box starts from and how many tries each slot has left.
//
// That state is U-Boot's to keep, since it must count a try before it starts anything. It is an environment as U-Boot has them
// (its env_t without a flag byte: CRC-32 of what follows, little-endian, then name=value texts that end with a zero each, and a
// zero), of one sector, with the names that RAUC uses too:
//
//	BOOT_ORDER    "A B": which slot is tried first
//	BOOT_A_LEFT   tries of slot A; U-Boot takes one off before it starts the slot, a good start gives them back
//	BOOT_B_LEFT   the same of slot B
//
// The sector is on the disk twice, in the gap between the partition table and the first partition, where nothing else writes.
// Whoever writes, writes the second copy first; whoever reads takes the first that is whole. So a write that is torn by a power
// cut leaves one copy as it was, or as it was to be. Where both are torn, slot A is tried, then B; so it is where no slot is left to try, after all of
// them have got new tries.
package slots

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"slices"
	"strconv"
	"strings"
)

// Size of a copy in bytes, and where the copies are on the disk.
const (
	Size   = 512
	First  = 512 << 10
	Second = 768 << 10
)

// Tries is how often a slot is tried before the other one gets its turn.
const Tries = 3

// Slot is one of the two places that a system can be in.
type Slot string

// The slots.
const (
	A Slot = "A"
	B Slot = "B"
)

// State is what is kept.
type State struct {
	Order []Slot // which slot is tried first; one that is not there is not tried; never empty
	Left  map[Slot]int
}

// ErrNoState says that neither copy is whole.
var ErrNoState = errors.New("slots: neither copy of the boot state is whole")

// Fresh is the state of a box that was just flashed: its slot B is empty.
func Fresh() State { return State{Order: []Slot{A}, Left: map[Slot]int{A: Tries, B: 0}} }

// Confirm gives a slot that started its tries back and makes it the first to be tried, and reports whether it had to write for it:
// the copies of an unlucky disk may be torn, or say that already.
func Confirm(disk interface {
	io.ReaderAt
	Disk
}, started Slot,
) (bool, error) {
	now, err := Read(disk)
	if errors.Is(err, ErrNoState) {
		now = State{Order: []Slot{A, B}, Left: map[Slot]int{A: Tries, B: Tries}} // what U-Boot took it for
	} else if err != nil {
		return false, err
	}
	good := now.Good(started)
	if err == nil && slices.Equal(now.Order, good.Order) && now.Left[started] == good.Left[started] {
		return false, nil
	}
	return true, Write(disk, good)
}

// Good returns the state after a good start from a slot: it is tried first from now on, with all its tries.
func (s State) Good(started Slot) State {
	order := []Slot{started}
	for _, other := range s.Order {
		if other != started {
			order = append(order, other)
		}
	}
	left := map[Slot]int{A: s.Left[A], B: s.Left[B]}
	left[started] = Tries
	return State{Order: order, Left: left}
}

// Encode returns one copy.
func (s State) Encode() ([]byte, error) {
	if err := s.valid(); err != nil {
		return nil, err
	}
	words := make([]string, len(s.Order))
	for i, slot := range s.Order {
		words[i] = string(slot)
	}
	b := make([]byte, Size)
	// Sorted by name, as U-Boot writes them.
	text := fmt.Sprintf("BOOT_A_LEFT=%x\x00BOOT_B_LEFT=%x\x00BOOT_ORDER=%s\x00", s.Left[A], s.Left[B], strings.Join(words, " "))
	copy(b[4:], text)
	binary.LittleEndian.PutUint32(b, crc32.ChecksumIEEE(b[4:]))
	return b, nil
}

func (s State) valid() error {
	if len(s.Order) == 0 || len(s.Order) > 2 || len(s.Order) == 2 && s.Order[0] == s.Order[1] {
		return fmt.Errorf("slots: the order %v", s.Order)
	}
	for _, slot := range s.Order {
		if slot != A && slot != B {
			return fmt.Errorf("slots: the order %v", s.Order)
		}
	}
	for _, slot := range []Slot{A, B} {
		if left := s.Left[slot]; left < 0 || left > Tries {
			return fmt.Errorf("slots: slot %s has %d tries", slot, left)
		}
	}
	return nil
}

// Decode reads one copy. What it does not know is an error: it would be lost by the next write.
func Decode(b []byte) (State, error) {
	if len(b) != Size || binary.LittleEndian.Uint32(b) != crc32.ChecksumIEEE(b[4:]) {
		return State{}, ErrNoState
	}
	s := State{Left: map[Slot]int{A: 0, B: 0}}
	text, _, _ := bytes.Cut(b[4:], []byte("\x00\x00"))
	for field := range strings.SplitSeq(strings.TrimRight(string(text), "\x00"), "\x00") {
		name, value, _ := strings.Cut(field, "=")
		switch name {
		case "":
		case "BOOT_ORDER":
			for word := range strings.FieldsSeq(value) {
				s.Order = append(s.Order, Slot(word))
			}
		case "BOOT_A_LEFT", "BOOT_B_LEFT":
			n, err := strconv.ParseInt(value, 16, 8) // U-Boot counts in hexadecimal
			if err != nil {
				return State{}, fmt.Errorf("slots: %s is %.20q", name, value)
			}
			s.Left[Slot(name[5:6])] = int(n)
		default:
			return State{}, fmt.Errorf("slots: unknown variable %.20q", name)
		}
	}
	return s, s.valid()
}

// Read returns the state that is on a disk. The error is ErrNoState, or one of reading.
func Read(disk io.ReaderAt) (State, error) {
	for _, at := range []int64{First, Second} {
		b := make([]byte, Size)
		if _, err := disk.ReadAt(b, at); err != nil {
			return State{}, fmt.Errorf("slots: %w", err)
		}
		if s, err := Decode(b); err == nil {
			return s, nil
		}
	}
	return State{}, ErrNoState
}

// Disk is what a state is written to.
type Disk interface {
	io.WriterAt
	Sync() error
}

// Write puts a state on a disk.
func Write(disk Disk, s State) error {
	b, err := s.Encode()
	if err != nil {
		return err
	}
	for _, at := range slices.Backward([]int64{First, Second}) {
		if _, err := disk.WriteAt(b, at); err != nil {
			return fmt.Errorf("slots: %w", err)
		}
		if err := disk.Sync(); err != nil {
			return fmt.Errorf("slots: %w", err)
		}
	}
	return nil
}
