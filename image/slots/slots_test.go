package slots_test

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"hash/crc32"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"assent.home.arpa/image/slots"
)

// disk opens a file of two megabytes.
func disk(t *testing.T) *os.File {
	t.Helper()
	f, err := os.Create(filepath.Join(t.TempDir(), "disk"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	if err := f.Truncate(2 << 20); err != nil {
		t.Fatal(err)
	}
	return f
}

// TestGoldenBytes has the bytes that U-Boot 2025.01 wrote for this state (env export -c -s 0x200).
func TestGoldenBytes(t *testing.T) {
	b, err := slots.State{Order: []slots.Slot{slots.A}, Left: map[slots.Slot]int{slots.A: 2, slots.B: 0}}.Encode()
	if err != nil {
		t.Fatal(err)
	}
	const text = "BOOT_A_LEFT=2\x00BOOT_B_LEFT=0\x00BOOT_ORDER=A\x00"
	want := append(golden(t), append([]byte(text), make([]byte, slots.Size-4-len(text))...)...)
	if diff := cmp.Diff(want, b); diff != "" {
		t.Error(diff)
	}
}

// uBootSum is the checksum that U-Boot put in front of it.
const uBootSum = "727da2c7"

// summed is a copy with these variables.
func summed(text string) []byte {
	b := make([]byte, slots.Size)
	copy(b[4:], text)
	binary.LittleEndian.PutUint32(b, crc32.ChecksumIEEE(b[4:]))
	return b
}

func golden(t *testing.T) []byte {
	t.Helper()
	sum, err := hex.DecodeString(uBootSum)
	if err != nil {
		t.Fatal(err)
	}
	return sum
}

func TestAnyStateComesBack(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := slots.State{
			Order: rapid.SampledFrom([][]slots.Slot{{slots.A}, {slots.B}, {slots.A, slots.B}, {slots.B, slots.A}}).Draw(t, "order"),
			Left:  map[slots.Slot]int{slots.A: rapid.IntRange(0, slots.Tries).Draw(t, "a"), slots.B: rapid.IntRange(0, slots.Tries).Draw(t, "b")},
		}
		b, err := s.Encode()
		if err != nil {
			t.Fatal(err)
		}
		got, err := slots.Decode(b)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(s, got); diff != "" {
			t.Error(diff)
		}
	})
}

func TestDecodeRefuses(t *testing.T) {
	good, err := slots.Fresh().Encode()
	if err != nil {
		t.Fatal(err)
	}
	for i := range good {
		bad := bytes.Clone(good)
		bad[i] ^= 0x10
		if s, err := slots.Decode(bad); err == nil {
			t.Fatalf("byte %d changed: %v", i, s)
		}
	}
	for name, text := range map[string]string{
		"a number that is none":  "BOOT_A_LEFT=x\x00",
		"too many tries":         "BOOT_A_LEFT=9\x00",
		"another variable":       "bootcmd=reset\x00",
		"a slot that is none":    "BOOT_ORDER=C\x00",
		"a slot twice":           "BOOT_ORDER=A A\x00",
		"more slots than places": "BOOT_ORDER=A B A\x00",
		"nothing to start":       "BOOT_ORDER=\x00",
		"no order":               "BOOT_A_LEFT=3\x00",
	} {
		if s, err := slots.Decode(summed(text)); err == nil {
			t.Errorf("%s: %v", name, s)
		}
	}
	if _, err := slots.Decode(nil); !errors.Is(err, slots.ErrNoState) {
		t.Error(err)
	}
}

// tornDisk loses power in its n-th write, after some of its bytes.
type tornDisk struct {
	*os.File
	write, bytes int
}

var errPower = errors.New("the power is gone")

func (d *tornDisk) WriteAt(b []byte, at int64) (int, error) {
	d.write--
	if d.write == 0 {
		_, err := d.File.WriteAt(b[:d.bytes], at)
		return d.bytes, errors.Join(err, errPower)
	}
	return d.File.WriteAt(b, at)
}

func TestATornWriteLeavesTheOldStateOrTheNew(t *testing.T) {
	before := slots.State{Order: []slots.Slot{slots.A, slots.B}, Left: map[slots.Slot]int{slots.A: 1, slots.B: 3}}
	after := before.Good(slots.B)
	for write := 1; write <= 2; write++ {
		for n := 0; n <= slots.Size; n += 8 {
			f := disk(t)
			if err := slots.Write(f, before); err != nil {
				t.Fatal(err)
			}
			if err := slots.Write(&tornDisk{f, write, n}, after); !errors.Is(err, errPower) {
				t.Fatal(err)
			}
			got, err := slots.Read(f)
			if err != nil {
				t.Fatalf("write %d torn after %d bytes: %v", write, n, err)
			}
			if !cmp.Equal(got, before) && !cmp.Equal(got, after) {
				t.Fatalf("write %d torn after %d bytes: %v", write, n, got)
			}
		}
	}
}

func TestBothCopiesAreWritten(t *testing.T) {
	f := disk(t)
	if err := slots.Write(f, slots.Fresh()); err != nil {
		t.Fatal(err)
	}
	for _, at := range []int64{slots.First, slots.Second} {
		b := make([]byte, slots.Size)
		if _, err := f.ReadAt(b, at); err != nil {
			t.Fatal(err)
		}
		if got, err := slots.Decode(b); err != nil || !cmp.Equal(got, slots.Fresh()) {
			t.Errorf("the copy at %d is %v, %v", at, got, err)
		}
	}
}

func TestConfirm(t *testing.T) {
	state := func(order string, a, b int) slots.State {
		s := slots.State{Left: map[slots.Slot]int{slots.A: a, slots.B: b}}
		for word := range strings.FieldsSeq(order) {
			s.Order = append(s.Order, slots.Slot(word))
		}
		return s
	}
	for _, c := range []struct {
		name    string
		before  slots.State
		started slots.Slot
		after   slots.State
		writes  bool
	}{
		{"a first start", state("A", 2, 0), slots.A, state("A", 3, 0), true},
		{"already known", state("A", 3, 0), slots.A, state("A", 3, 0), false},
		{"an update starts", state("B A", 3, 2), slots.B, state("B A", 3, 3), true},
		{"an update failed", state("B A", 2, 0), slots.A, state("A B", 3, 0), true},
	} {
		t.Run(c.name, func(t *testing.T) {
			f := disk(t)
			if err := slots.Write(f, c.before); err != nil {
				t.Fatal(err)
			}
			wrote, err := slots.Confirm(f, c.started)
			if err != nil || wrote != c.writes {
				t.Fatalf("%v, %v", wrote, err)
			}
			got, err := slots.Read(f)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(c.after, got); diff != "" {
				t.Error(diff)
			}
		})
	}
	t.Run("both copies torn", func(t *testing.T) {
		f := disk(t)
		if wrote, err := slots.Confirm(f, slots.B); err != nil || !wrote {
			t.Fatalf("%v, %v", wrote, err)
		}
		got, err := slots.Read(f)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(state("B A", 3, 3), got); diff != "" {
			t.Error(diff)
		}
	})
}
