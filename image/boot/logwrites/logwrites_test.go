package logwrites_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"assent.home.arpa/image/boot/logwrites"
)

const block = 512

// recorder writes a log as the kernel does.
type recorder struct {
	out bytes.Buffer
	n   uint64
}

func (r *recorder) add(start, blocks, flags uint64, text string, data []byte) {
	if r.n == 0 {
		r.out.Write(make([]byte, block))
	}
	r.n++
	head := make([]byte, block)
	for i, v := range []uint64{start, blocks, flags, uint64(len(text))} {
		binary.LittleEndian.PutUint64(head[8*i:], v)
	}
	copy(head[32:], text)
	r.out.Write(head)
	r.out.Write(data)
}

func (r *recorder) log() []byte {
	b := r.out.Bytes()
	binary.LittleEndian.PutUint64(b[0:], 0x6a736677736872)
	binary.LittleEndian.PutUint64(b[8:], 1)
	binary.LittleEndian.PutUint64(b[16:], r.n)
	binary.LittleEndian.PutUint32(b[24:], block)
	return b
}

func fill(c byte) []byte { return bytes.Repeat([]byte{c}, block) }

// life is: two writes, a flush, a forced write beside a lazy one, a mark, a discard, a flush.
func life() []byte {
	r := &recorder{}
	r.add(0, 1, 0, "", fill('a'))
	r.add(1, 1, 16, "", fill('b'))
	r.add(0, 0, 1, "", nil)
	r.add(2, 1, 2, "", fill('c'))
	r.add(0, 1, 0, "", fill('d'))
	r.add(0, 0, 8, "said", nil)
	r.add(1, 1, 4, "", nil)
	r.add(0, 0, 1, "", nil)
	return r.log()
}

func TestRead(t *testing.T) {
	got, err := logwrites.Read(bytes.NewReader(life()), 100)
	if err != nil {
		t.Fatal(err)
	}
	want := []logwrites.Entry{
		{Data: fill('a')},
		{Offset: block, Data: fill('b')},
		{Flush: true},
		{Offset: 2 * block, Data: fill('c'), Forced: true},
		{Data: fill('d')},
		{Mark: "said"},
		{Offset: block, Discard: block},
		{Flush: true},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

// TestCuts looks at every disk that can be left: what was flushed or forced is always there.
func TestCuts(t *testing.T) {
	log, err := logwrites.Read(bytes.NewReader(life()), 100)
	if err != nil {
		t.Fatal(err)
	}
	seen := map[string]bool{}
	for seed := range uint64(20) {
		plan := logwrites.Plan{Every: 1, Random: rand.New(rand.NewPCG(seed, 0))}
		for c, err := range plan.Cuts(make([]byte, 3*block), log) {
			if err != nil {
				t.Fatal(err)
			}
			disk := string([]byte{c.Disk[0], c.Disk[block], c.Disk[2*block]})
			seen[disk] = true
			if c.At > 2 && c.Disk[0] == 0 || c.At > 3 && c.Disk[2*block] != 'c' {
				t.Errorf("after entry %d with %d writes lost the disk is %q: something durable is gone", c.At, c.Lost, disk)
			}
			if said := slices.Equal(c.Marks, []string{"said"}); said != (c.At >= 6) {
				t.Errorf("after entry %d there were the marks %q", c.At, c.Marks)
			}
		}
	}
	for _, disk := range []string{"a\x00\x00", "\x00b\x00", "\x00\x00\x00", "ab\x00", "abc", "dbc", "a\x00c", "d\x00c"} {
		if !seen[disk] {
			t.Errorf("the disk %q was never left", disk)
		}
	}
}

func TestWhatIsNoLog(t *testing.T) {
	spoilt := func(at int, b byte) []byte {
		l := bytes.Clone(life())
		l[at] = b
		return l
	}
	for name, log := range map[string][]byte{
		"nothing":             nil,
		"another magic":       spoilt(0, 1),
		"another version":     spoilt(8, 2),
		"more entries":        spoilt(18, 1),
		"a block too small":   spoilt(25, 0),
		"an unknown flag":     spoilt(block+16, 32),
		"more than there is":  spoilt(block+8, 200),
		"a write of a planet": spoilt(block+12, 200),
		"the end is missing":  life()[:4*block],
	} {
		if _, err := logwrites.Read(bytes.NewReader(log), 100); !errors.Is(err, logwrites.ErrLog) {
			t.Errorf("%s: %v", name, err)
		}
	}
	log, err := logwrites.Read(bytes.NewReader(life()), 100)
	if err != nil {
		t.Fatal(err)
	}
	for _, err := range (logwrites.Plan{Every: 1}).Cuts(make([]byte, block), log) {
		if err != nil {
			return
		}
	}
	t.Error("a log of a larger disk was replayed")
}

// FuzzRead: whatever is read fits into what was there.
func FuzzRead(f *testing.F) {
	f.Add(life())
	f.Fuzz(func(t *testing.T, b []byte) {
		log, err := logwrites.Read(bytes.NewReader(b), 1000)
		if err != nil {
			return
		}
		n := block
		for _, e := range log {
			n += len(e.Data) + 512
		}
		if n > len(b)+block {
			t.Errorf("%d bytes were read from %d", n, len(b))
		}
	})
}
