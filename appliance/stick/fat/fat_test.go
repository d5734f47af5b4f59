package fat_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"flag"
	"fmt"
	"io"
	"io/fs"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/diskfs/go-diskfs/filesystem"

	"assent.home.arpa/appliance/stick/fat"
	"assent.home.arpa/appliance/stick/sticktest"
)

var stride = flag.Int("stride", often, "at every so many writes, in the mean, a stick is pulled out, besides at every sync; 1 is every write")

// kinds are volumes of each kind, with what its owner has on it.
var kinds = []struct {
	kind int
	size int64
}{{12, 2 << 20}, {16, 5 << 20}, {32, 33 << 20}}

// owned returns a volume that belongs to somebody: with long names, an umlaut in a short one, and a hole among its entries.
func owned(t testing.TB, kind int, size int64) []byte {
	t.Helper()
	b := sticktest.Format(t, size, "HOLIDAY")
	files := map[string][]byte{"XBER.TXT": []byte("umlaut")}
	for i := range letters {
		files[fmt.Sprintf("Letter to the landlord %d.txt", i)] = letter(i)
	}
	b = sticktest.Put(t, kind, b, files)
	b[bytes.Index(b, []byte("XBER    TXT"))] = 0x9a // Ü of code page 850: what Windows writes, and what no ASCII is
	m := sticktest.NewStick(b)
	v := open(t, m, size)
	for _, name := range []string{"a-name-of-some-length.txt", "TAIL.TXT"} {
		if err := put(v, name, nil); err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(v.RemoveAll("a-name-of-some-length.txt"), v.Close()); err != nil {
		t.Fatal(err)
	}
	b = m.Content()
	if kind == 32 { // go-diskfs leaves the count of free clusters as it was
		free, err := v.Free()
		if err != nil {
			t.Fatal(err)
		}
		binary.LittleEndian.PutUint32(b[512+488:], uint32(free/512))
	}
	sound(t, b)
	return b
}

const letters = 12

func letter(i int) []byte { return bytes.Repeat([]byte{byte(i)}, 3000) }

// untouched demands that the owner's files are as they were.
func untouched(t testing.TB, fsys filesystem.FileSystem) {
	t.Helper()
	for i := range letters {
		if got := read(t, fsys, fmt.Sprintf("Letter to the landlord %d.txt", i)); !bytes.Equal(got, letter(i)) {
			t.Errorf("letter %d is another", i)
		}
	}
}

func open(t testing.TB, m fat.Medium, size int64) *fat.Volume {
	t.Helper()
	v, err := fat.Open(m, 0, size)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

func put(v *fat.Volume, name string, content []byte) error {
	f, err := v.Create(name)
	if err != nil {
		return err
	}
	for len(content) > 0 {
		n := min(len(content), 7000) // not a multiple of anything
		if _, err := f.Write(content[:n]); err != nil {
			return errors.Join(err, f.Discard())
		}
		content = content[n:]
	}
	return f.Close()
}

// sound demands that a program of somebody else's finds nothing wrong, where it is installed.
func sound(t testing.TB, volume []byte) {
	t.Helper()
	check, err := exec.LookPath("fsck.fat")
	if err != nil {
		check = "/usr/sbin/fsck.fat"
		if _, err := os.Stat(check); err != nil {
			t.Log("fsck.fat is not installed: only go-diskfs has looked")
			return
		}
	}
	file := filepath.Join(t.TempDir(), "volume")
	if err := os.WriteFile(file, volume, 0o600); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command(check, "-n", "-v", file).CombinedOutput(); err != nil {
		t.Fatalf("fsck.fat: %v\n%s", err, out)
	}
}

func read(t testing.TB, fsys filesystem.FileSystem, name string) []byte {
	t.Helper()
	f, err := fsys.OpenFile(name, os.O_RDONLY)
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	b := make([]byte, 1<<20) // read at once: go-diskfs v1.9.4 reads past a file's end where it is read in parts
	n, err := f.Read(b)
	if err != nil && err != io.EOF {
		t.Fatalf("%s: %v", name, err)
	}
	return b[:n]
}

func random(n int) []byte {
	r := rand.New(rand.NewPCG(1, uint64(n)))
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(r.Uint32())
	}
	return b
}

// D4: what is written can be read by others, and what was there before is as it was.
func TestFilesAreWrittenBesideWhatIsThere(t *testing.T) {
	for _, k := range kinds {
		t.Run(fmt.Sprint("FAT", k.kind), func(t *testing.T) {
			before := owned(t, k.kind, k.size)
			m := sticktest.NewStick(before)
			v := open(t, m, k.size)
			if v.String() != fmt.Sprint("FAT", k.kind) || string(v.Label()) != "HOLIDAY" {
				t.Fatalf("%s called %q", v, v.Label())
			}
			files := map[string][]byte{
				"AUDIT-1/README.txt":  []byte("hello"),
				"AUDIT-1/empty":       nil,
				"AUDIT-1/log/one":     random(150_001),
				"AUDIT-1/SHA256SUMS":  random(512 * 8),
				"AUDIT-1/log/A.B.C":   random(1),
				"AUDIT-1/log/AUDIT-1": random(4096),
			}
			for i := range 60 { // the directory outgrows its cluster
				files[fmt.Sprintf("AUDIT-1/log/seg-%08d.cborseq", i)] = random(900 + i)
			}
			for _, dir := range []string{"AUDIT-unfinished", "AUDIT-unfinished/log"} {
				if err := v.Mkdir(dir); err != nil {
					t.Fatal(err)
				}
			}
			for name, content := range files {
				if err := put(v, strings.Replace(name, "AUDIT-1", "AUDIT-unfinished", 1), content); err != nil {
					t.Fatalf("%s: %v", name, err)
				}
			}
			if err := v.Mkdir("audit-UNFINISHED"); !errors.Is(err, fs.ErrExist) {
				t.Errorf("a name in other letters: %v", err)
			}
			if err := v.Rename("AUDIT-unfinished", "letter to the LANDLORD"); err == nil {
				t.Error("a name with blanks")
			}
			if err := v.Rename("AUDIT-unfinished", "AUDIT-1"); err != nil {
				t.Fatal(err)
			}
			if err := v.Close(); err != nil {
				t.Fatal(err)
			}
			after := m.Content()
			sound(t, after)
			fsys := sticktest.Reader(t, k.kind, after)
			for name, content := range files {
				if len(content) == 0 { // which go-diskfs cannot read
					continue
				}
				if got := read(t, fsys, name); !bytes.Equal(got, content) {
					t.Errorf("%s has %d bytes, or others, of %d", name, len(got), len(content))
				}
				got := make([]byte, len(content))
				if _, err := v.ReadAt(name, got, 0); err != nil || !bytes.Equal(got, content) {
					t.Errorf("%s is read as something else: %v", name, err)
				}
			}
			untouched(t, fsys)
			if !bytes.Contains(after, []byte("\x9aBER    TXT")) {
				t.Error("a short name with an umlaut is another")
			}
			if err := v.RemoveAll("AUDIT-1"); err != nil {
				t.Fatal(err)
			}
			if err := v.RemoveAll("AUDIT-1"); err != nil {
				t.Errorf("nothing to remove: %v", err)
			}
			if err := v.Close(); err != nil {
				t.Fatal(err)
			}
			sound(t, m.Content())
			was, err := open(t, sticktest.NewStick(before), k.size).Free()
			if is, err2 := v.Free(); err != nil || err2 != nil || is > was || is < was-64<<10 { // the root may have grown
				t.Errorf("%d bytes free, and %d before; %v %v", is, was, err, err2)
			}
		})
	}
}

// A stick that is pulled out at any write, with any part of its cache lost, has its owner's files and no half copy under a
// copy's name.
func TestPulledAtAnyWrite(t *testing.T) {
	for _, k := range kinds {
		t.Run(fmt.Sprint("FAT", k.kind), func(t *testing.T) {
			before := owned(t, k.kind, k.size)
			content := random(20_000)
			copyTo := func(v *fat.Volume) error {
				if err := v.RemoveAll("AUDIT-unfinished"); err != nil {
					return err
				}
				for _, dir := range []string{"AUDIT-unfinished", "AUDIT-unfinished/log"} {
					if err := v.Mkdir(dir); err != nil {
						return err
					}
				}
				for i := range 3 {
					if err := put(v, fmt.Sprintf("AUDIT-unfinished/log/seg-%08d.cborseq", i), content); err != nil {
						return err
					}
				}
				if err := v.Rename("AUDIT-unfinished", finished); err != nil {
					return err
				}
				return v.Close()
			}
			// Once onto a stick that never had a copy, and once where a try was broken off before.
			whole := sticktest.NewStick(before)
			if err := copyTo(open(t, whole, k.size)); err != nil {
				t.Fatal(err)
			}
			tried := sticktest.NewStick(before)
			tried.PullAt(whole.Writes() * 3 / 4)
			if err := copyTo(open(t, tried, k.size)); !errors.Is(err, sticktest.ErrPulled) {
				t.Fatal(err)
			}
			r := rand.New(rand.NewPCG(7, uint64(k.kind)))
			for _, from := range [][]byte{before, tried.Content()} {
				whole := sticktest.NewStick(from)
				if err := copyTo(open(t, whole, k.size)); err != nil {
					t.Fatal(err)
				}
				moments := whole.Syncs() // when most is in the stick's cache
				for at := 1; at < whole.Writes(); at += 1 + r.IntN(2*(*stride)-1) {
					moments = append(moments, at)
				}
				if k.kind == 32 && *stride > 1 { // a large one takes its time
					r.Shuffle(len(moments), func(i, j int) { moments[i], moments[j] = moments[j], moments[i] })
					moments = moments[:5]
				}
				for _, at := range moments {
					m := sticktest.NewStick(from)
					m.PullAt(at)
					if err := copyTo(open(t, m, k.size)); !errors.Is(err, sticktest.ErrPulled) {
						t.Fatalf("write %d: %v", at, err)
					}
					left := m.After(func(int64) bool { return r.IntN(2) == 0 })
					untouched(t, sticktest.Reader(t, k.kind, sameTables(t, left)))
					v := open(t, sticktest.NewStick(left), k.size)
					unfinished := whatThereIs(t, v, "AUDIT-unfinished", content)
					done := whatThereIs(t, v, finished, content)
					if unfinished >= 0 && done >= 0 {
						t.Fatalf("write %d: two names for one directory", at)
					}
					if done < 0 {
						if err := copyTo(v); err != nil {
							t.Fatalf("write %d: the next try: %v", at, err)
						}
						done = whatThereIs(t, v, finished, content)
					}
					if done != 3 {
						t.Fatalf("write %d: a copy of %d files", at, done)
					}
				}
			}
		})
	}
}

const finished = "AUDIT-1f2e3d4c-123456789012"

// whatThereIs counts the files of a copy, each of which must be whole; -1 is no copy.
func whatThereIs(t *testing.T, v *fat.Volume, dir string, content []byte) (files int) {
	t.Helper()
	if ok, err := v.Exists(dir); err != nil || !ok {
		if err != nil {
			t.Fatal(err)
		}
		return -1
	}
	if ok, err := v.Exists(dir + "/log"); err != nil || !ok {
		if err != nil {
			t.Fatal(err)
		}
		return 0
	}
	for i := range 3 {
		name := fmt.Sprintf("%s/log/seg-%08d.cborseq", dir, i)
		ok, err := v.Exists(name)
		if err != nil {
			t.Fatal(err)
		}
		if !ok {
			continue
		}
		files++
		got := make([]byte, len(content))
		if _, err := v.ReadAt(name, got, 0); err != nil || !bytes.Equal(got, content) {
			t.Fatalf("%s has a name and is not whole: %v", name, err)
		}
	}
	return files
}

// sameTables makes the second table like the first, as every system does when it mounts: go-diskfs refuses two that differ.
func sameTables(t *testing.T, volume []byte) []byte {
	t.Helper()
	u16 := func(at int) int { return int(binary.LittleEndian.Uint16(volume[at:])) }
	sector, reserved, size := u16(11), u16(14), u16(22)
	if size == 0 {
		size = int(binary.LittleEndian.Uint32(volume[36:]))
	}
	first, bytes := reserved*sector, size*sector
	copy(volume[first+bytes:first+2*bytes], volume[first:first+bytes])
	return volume
}

func TestFullVolume(t *testing.T) {
	for _, k := range kinds {
		t.Run(fmt.Sprint("FAT", k.kind), func(t *testing.T) {
			m := sticktest.NewStick(owned(t, k.kind, k.size))
			v := open(t, m, k.size)
			was, err := v.Free()
			if err != nil {
				t.Fatal(err)
			}
			if err := put(v, "big", make([]byte, k.size)); !errors.Is(err, fat.ErrFull) {
				t.Fatalf("more than there is room for: %v", err)
			}
			if err := v.Close(); err != nil {
				t.Fatal(err)
			}
			if is, err := v.Free(); err != nil || is != was {
				t.Errorf("%d bytes free of %d, %v", is, was, err)
			}
			sound(t, m.Content())
			if ok, err := v.Exists("big"); ok || err != nil {
				t.Errorf("half a file has a name: %v", err)
			}
		})
	}
	t.Run("root directory", func(t *testing.T) {
		m := sticktest.NewStick(sticktest.Format(t, 5<<20, "X"))
		v := open(t, m, 5<<20)
		var err error
		made := 0
		for ; err == nil && made < 600; made++ {
			err = put(v, fmt.Sprintf("F%d", made), nil)
		}
		if err := v.Close(); err != nil {
			t.Fatal(err)
		}
		if !errors.Is(err, fat.ErrFull) || made < 80 {
			t.Errorf("after %d files: %v", made, err)
		}
		sound(t, m.Content())
	})
}

// Bits that are not this package's stay as they are, and the clean bit is off while the volume is changed.
func TestTableKeepsWhatIsNotOurs(t *testing.T) {
	b := sticktest.Format(t, 33<<20, "X")
	table := int(binary.LittleEndian.Uint16(b[14:])) * 512
	free, second := table+4*100, table+512*int(binary.LittleEndian.Uint32(b[36:]))
	b[free+3], b[second+4*100+3] = 0xf0, 0xf0 // the four reserved bits of a free entry
	m := sticktest.NewStick(b)
	v := open(t, m, 33<<20)
	f, err := v.Create("big")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.Write(make([]byte, 512*200)); err != nil {
		t.Fatal(err)
	}
	if m.Content()[table+7]&0x08 != 0 {
		t.Error("the volume looks clean while it is changed")
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	if err := v.Close(); err != nil {
		t.Fatal(err)
	}
	after := m.Content()
	if after[table+7]&0x08 == 0 {
		t.Error("the volume was left as unclean")
	}
	if after[free+3]&0xf0 != 0xf0 {
		t.Error("reserved bits were changed")
	}
	sound(t, after)
}

func TestNamesThatAreNotMade(t *testing.T) {
	m := sticktest.NewStick(sticktest.Format(t, 5<<20, "X"))
	v := open(t, m, 5<<20)
	for _, name := range []string{"", ".", "..", "/a", "a/", "a//b", "a/../b", "a b", "ü", "a\x00", "a\\b", "CON:", ".hidden", "end.", strings.Repeat("a", fat.MaxName+1), "missing/file"} {
		if err := v.Mkdir(name); err == nil {
			t.Errorf("mkdir %q", name)
		}
		if _, err := v.Create(name); err == nil {
			t.Errorf("create %q", name)
		}
	}
	if m.Writes() != 0 {
		t.Error("something was written")
	}
}
