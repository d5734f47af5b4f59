package fat

import (
	"encoding/binary"
	"fmt"
	"io/fs"
	"path"
	"strings"
	"unicode/utf16"
)

// MaxName bounds a name that this package makes, in bytes.
const MaxName = 64

const (
	slotSize    = 32
	lettersSlot = 13 // UTF-16 units of a long name that one slot holds
	maxLong     = 20 // slots of a long name
)

// attributes of a slot.
const (
	attrVolume    = 0x08
	attrDirectory = 0x10
	attrArchive   = 0x20
	attrLong      = 0x0f
)

// checkName admits names that this package makes.
func checkName(name string) error {
	bad := strings.IndexFunc(name, func(r rune) bool {
		return (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (r < '0' || r > '9') && r != '-' && r != '.' && r != '_'
	})
	if bad >= 0 || len(name) > MaxName || strings.Trim(name, ".") != name || name == "" {
		return &fs.PathError{Op: "name", Path: name, Err: fs.ErrInvalid}
	}
	return nil
}

// split takes a slash-separated path apart and checks each element.
func split(name string) (dir []string, base string, err error) {
	if !fs.ValidPath(name) || name == "." {
		return nil, "", &fs.PathError{Op: "name", Path: name, Err: fs.ErrInvalid}
	}
	parts := strings.Split(name, "/")
	for _, p := range parts {
		if err := checkName(p); err != nil {
			return nil, "", err
		}
	}
	return parts[:len(parts)-1], path.Base(name), nil
}

// short makes a short name that none of those taken is: as it is where it can be, else six letters and a number.
func short(name string, taken map[[11]byte]bool) ([11]byte, error) {
	stem, ext := name, ""
	if dot := strings.LastIndexByte(name, '.'); dot > 0 {
		stem, ext = name[:dot], name[dot+1:]
	}
	fits := len(stem) <= 8 && len(ext) <= 3 && !strings.Contains(stem, ".") && strings.ToUpper(name) == name
	if s := pack(stem, ext); fits && !taken[s] {
		return s, nil
	}
	stem = strings.ReplaceAll(strings.ToUpper(stem), ".", "")
	ext = strings.ToUpper(ext)
	for n := 1; n < 1_000_000; n++ {
		tail := fmt.Sprintf("~%d", n)
		if s := pack(stem[:min(len(stem), 8-len(tail))]+tail, ext[:min(len(ext), 3)]); !taken[s] {
			return s, nil
		}
	}
	return [11]byte{}, ErrFull
}

func pack(stem, ext string) (s [11]byte) {
	copy(s[:], "           ")
	copy(s[:8], stem)
	copy(s[8:], ext)
	return s
}

// sum is the check that ties a long name to its short one.
func sum(short [11]byte) (s byte) {
	for _, b := range short {
		s = s<<7 | s>>1
		s += b
	}
	return s
}

// places are the offsets of the thirteen letters in a slot of a long name.
func places() [lettersSlot]int { return [...]int{1, 3, 5, 7, 9, 14, 16, 18, 20, 22, 24, 28, 30} }

// slotsOf returns the slots of an entry: its long name's, last part first, and then the short one with what it is.
func slotsOf(name string, short [11]byte, attr byte, first, size uint32) []byte {
	letters := utf16.Encode([]rune(name))
	parts := (len(letters) + lettersSlot - 1) / lettersSlot
	if s, ext, _ := strings.Cut(name, "."); pack(s, ext) == short {
		parts = 0
	}
	var b []byte
	for n := parts; n > 0; n-- {
		slot := make([]byte, slotSize)
		slot[0], slot[11], slot[13] = byte(n), attrLong, sum(short)
		if n == parts {
			slot[0] |= 0x40
		}
		for i, at := range places() {
			letter := uint16(0xffff)
			switch k := (n-1)*lettersSlot + i; {
			case k < len(letters):
				letter = letters[k]
			case k == len(letters):
				letter = 0
			}
			binary.LittleEndian.PutUint16(slot[at:], letter)
		}
		b = append(b, slot...)
	}
	slot := make([]byte, slotSize)
	copy(slot, short[:])
	slot[11] = attr
	// The date of the whole product's copies is in what they hold; here it is the format's first day, which every check takes.
	const day = 0<<9 | 1<<5 | 1
	for _, at := range []int{16, 18, 24} {
		binary.LittleEndian.PutUint16(slot[at:], day)
	}
	binary.LittleEndian.PutUint16(slot[20:], uint16(first>>16))
	binary.LittleEndian.PutUint16(slot[26:], uint16(first))
	binary.LittleEndian.PutUint32(slot[28:], size)
	return append(b, slot...)
}

// long collects the parts of a long name as they come, last part first.
type long struct {
	letters []uint16
	next    byte // number of the part that must come, 0 where the name is whole or none
	sum     byte
	ok      bool
}

func (l *long) take(slot []byte) {
	n := slot[0] & 0x1f
	if slot[0]&0x40 != 0 {
		*l = long{letters: make([]uint16, int(min(n, maxLong))*lettersSlot), next: n, sum: slot[13], ok: n >= 1 && n <= maxLong}
	}
	if !l.ok || n != l.next || n == 0 || slot[13] != l.sum {
		*l = long{}
		return
	}
	for i, at := range places() {
		l.letters[int(n-1)*lettersSlot+i] = binary.LittleEndian.Uint16(slot[at:])
	}
	l.next--
}

// name returns the long name of the slot with that short name, or "" where it has none.
func (l *long) name(short [11]byte) string {
	if !l.ok || l.next != 0 || l.sum != sum(short) {
		return ""
	}
	for i, u := range l.letters {
		if u == 0 {
			l.letters = l.letters[:i]
			break
		}
	}
	return string(utf16.Decode(l.letters))
}
