package fat_test

import (
	"encoding/binary"
	"errors"
	"io/fs"
	"testing"

	"assent.home.arpa/appliance/stick/fat"
	"assent.home.arpa/appliance/stick/sticktest"
)

// fenced is a volume in the middle of a medium, which counts what is done to it.
type fenced struct {
	*sticktest.Stick
	t         testing.TB
	from, to  int64
	operation int
}

func (f *fenced) ReadAt(p []byte, off int64) (int, error) {
	f.touch(p, off)
	return f.Stick.ReadAt(p, off)
}

func (f *fenced) WriteAt(p []byte, off int64) (int, error) {
	f.touch(p, off)
	return f.Stick.WriteAt(p, off)
}

func (f *fenced) touch(p []byte, off int64) {
	if f.operation++; f.operation > 100_000 {
		f.t.Fatal("it does not end")
	}
	if off < f.from || off+int64(len(p)) > f.to {
		f.t.Fatalf("%d bytes at %d are outside of the volume", len(p), off)
	}
}

// FuzzHostileVolume: whatever a volume says, the package ends, stays within it, and says what is wrong.
func FuzzHostileVolume(f *testing.F) {
	const fence = 1 << 20
	var volumes [][]byte
	for _, k := range kinds {
		m := sticktest.NewStick(sticktest.Format(f, k.size, "X"))
		v := open(f, m, k.size)
		for _, dir := range []string{"AUDIT-unfinished", "AUDIT-unfinished/log"} {
			if err := v.Mkdir(dir); err != nil {
				f.Fatal(err)
			}
		}
		if err := errors.Join(put(v, "AUDIT-unfinished/log/seg-00000000.cborseq", random(5000)), v.Close()); err != nil {
			f.Fatal(err)
		}
		volumes = append(volumes, m.Content())
	}
	poke := func(kind byte, at uint32, values ...byte) []byte {
		b := []byte{kind}
		for i, v := range values {
			b = append(binary.BigEndian.AppendUint32(b, at+uint32(i)), v)
		}
		return b
	}
	u16 := func(i, at int) uint32 { return uint32(binary.LittleEndian.Uint16(volumes[i][at:])) }
	f.Add(poke(0, 11, 0, 0))                      // sectors of no size
	f.Add(poke(1, 13, 3))                         // a cluster that is no power of two
	f.Add(poke(2, 44, 0xff, 0xff))                // a root directory far away
	f.Add(poke(2, 36, 0xff, 0xff, 0xff))          // a table of gigabytes
	f.Add(poke(2, 32, 1, 0, 0, 0))                // a volume of one sector
	f.Add(poke(1, 17, 0, 0))                      // a root directory of no slots
	f.Add(poke(2, 40, 0x8f))                      // a table in use that is none
	f.Add(poke(2, u16(2, 14)*512+8, 2, 0, 0, 0))  // a root directory that is a loop
	f.Add(poke(2, u16(2, 14)*512+12, 3, 0, 0, 0)) // a directory that is a loop
	f.Add(poke(2, u16(2, 14)*512+12, 2, 0, 0, 0)) // a directory that goes on as its parent
	f.Add(poke(1, u16(1, 14)*512+4, 2, 0))        // the same, in a small table
	f.Add(poke(0, u16(0, 14)*512+3, 2, 0xf0))     // and in the smallest
	f.Add(poke(2, 512+492, 0xff, 0xff))           // a hint that leads nowhere
	f.Add(poke(0, u16(0, 14)*512+2, 0xf))         // a media byte
	f.Fuzz(func(t *testing.T, b []byte) {
		if len(b) == 0 || len(b) > 500 {
			return
		}
		i := int(b[0]) % len(volumes)
		size := int64(len(volumes[i]))
		disk := make([]byte, fence, fence+size+fence)
		disk = append(append(disk, volumes[i]...), make([]byte, fence)...)
		for b = b[1:]; len(b) >= 5; b = b[5:] {
			disk[fence+int64(binary.BigEndian.Uint32(b))%size] = b[4]
		}
		m := &fenced{Stick: sticktest.NewStick(disk), t: t, from: fence, to: fence + size}
		v, err := fat.Open(m, fence, size)
		if err != nil {
			typed(t, err)
			return
		}
		v.Label()
		_, err = v.Free()
		typed(t, err)
		_, err = v.ReadAt("AUDIT-unfinished/log/seg-00000000.cborseq", make([]byte, 6000), 0)
		if err == nil {
			t.Error("more was read than there is")
		}
		typed(t, v.RemoveAll("AUDIT-unfinished"))
		typed(t, v.Mkdir("AUDIT-unfinished"))
		typed(t, put(v, "AUDIT-unfinished/one", random(3000)))
		typed(t, v.Rename("AUDIT-unfinished", "AUDIT-1f2e3d4c-5120"))
		typed(t, v.Close())
	})
}

// typed demands that an error says what sort of thing is wrong.
func typed(t testing.TB, err error) {
	t.Helper()
	for _, kind := range []error{nil, fat.ErrNotFAT, fat.ErrDamaged, fat.ErrUnsupported, fat.ErrFull, fs.ErrExist, fs.ErrNotExist, fs.ErrInvalid} {
		if errors.Is(err, kind) {
			return
		}
	}
	t.Errorf("%v", err)
}
