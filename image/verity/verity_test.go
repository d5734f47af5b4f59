package verity_test

import (
	"encoding/binary"
	"encoding/hex"
	"strings"
	"testing"

	"assent.home.arpa/image/verity"
)

const hash = "a5465f59a39acc8048e70bf3422a4016d25ab33efe590e66ee8213149526b8ad"

// TestPartitionsFollowFromTheHash has what systemd-repart 262 made of this root hash.
func TestPartitionsFollowFromTheHash(t *testing.T) {
	h, err := verity.FromCommandLine("ro roothash=" + hash + " quiet\n")
	if err != nil {
		t.Fatal(err)
	}
	if got := h.DataUUID(); got != "a5465f59-a39a-cc80-48e7-0bf3422a4016" {
		t.Errorf("the root is %s", got)
	}
	if got := h.HashUUID(); got != "d25ab33e-fe59-0e66-ee82-13149526b8ad" {
		t.Errorf("its hashes are %s", got)
	}
}

func TestCommandLinesThatNameNoRoot(t *testing.T) {
	for _, line := range []string{"", "ro quiet", "roothash=", "roothash=" + hash[2:], "roothash=" + strings.Replace(hash, "a", "g", 1), "xroothash=" + hash} {
		if h, err := verity.FromCommandLine(line); err == nil {
			t.Errorf("%q names %s", line, h)
		}
	}
}

// superblock is one as veritysetup makes it.
func superblock() []byte {
	le := binary.LittleEndian
	b := make([]byte, verity.SuperblockBytes)
	copy(b, "verity\x00\x00")
	le.PutUint32(b[8:], 1)
	le.PutUint32(b[12:], 1)
	copy(b[32:], "sha256")
	le.PutUint32(b[64:], 4096)
	le.PutUint32(b[68:], 4096)
	le.PutUint64(b[72:], 1000)
	le.PutUint16(b[80:], 4)
	copy(b[88:], "\x01\x02\x03\x04")
	return b
}

func TestTable(t *testing.T) {
	s, err := verity.Parse(superblock())
	if err != nil {
		t.Fatal(err)
	}
	root, err := hex.DecodeString(hash)
	if err != nil {
		t.Fatal(err)
	}
	got := s.Table("/dev/vda2", "/dev/vda3", verity.RootHash(root))
	want := "1 /dev/vda2 /dev/vda3 4096 4096 1000 1 sha256 " + hash + " 01020304 1 restart_on_corruption"
	if got != want {
		t.Errorf("the table is %q", got)
	}
	if s.Sectors() != 8000 {
		t.Errorf("%d sectors", s.Sectors())
	}
	unsalted := superblock()
	unsalted[80] = 0
	if s, err = verity.Parse(unsalted); err != nil {
		t.Fatal(err)
	}
	if got := s.Table("a", "b", verity.RootHash(root)); !strings.Contains(got, hash+" - 1 ") {
		t.Errorf("without salt the table is %q", got)
	}
}

func TestSuperblocksThatAreNotTaken(t *testing.T) {
	for name, change := range map[string]func(b []byte) []byte{
		"too short":               func(b []byte) []byte { return b[:100] },
		"no superblock":           func(b []byte) []byte { b[0] = 'V'; return b },
		"another version":         func(b []byte) []byte { b[8] = 2; return b },
		"another kind of hash":    func(b []byte) []byte { b[12] = 0; return b },
		"another algorithm":       func(b []byte) []byte { copy(b[32:], "sha1\x00\x00"); return b },
		"an algorithm of options": func(b []byte) []byte { copy(b[32:], "sha256 1 ignore_corruption\x00"); return b },
		"small blocks":            func(b []byte) []byte { b[65] = 2; return b },
		"no blocks":               func(b []byte) []byte { clear(b[72:80]); return b },
		"absurdly many blocks":    func(b []byte) []byte { b[77] = 1; return b },
		"a salt without end":      func(b []byte) []byte { b[81] = 0xff; return b },
	} {
		if s, err := verity.Parse(change(superblock())); err == nil {
			t.Errorf("%s: %+v", name, s)
		}
	}
}

func FuzzParse(f *testing.F) {
	f.Add(superblock())
	f.Fuzz(func(t *testing.T, b []byte) {
		s, err := verity.Parse(b)
		if err != nil {
			return
		}
		// Whatever was in the superblock, the table stays one of eleven fields with the option that restarts.
		if fields := strings.Fields(s.Table("d", "h", verity.RootHash{})); len(fields) != 12 || fields[11] != "restart_on_corruption" {
			t.Errorf("the table has %d fields: %v", len(fields), fields)
		}
	})
}
