package stick_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"hash/crc32"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"assent.home.arpa/appliance/ipc"
	"assent.home.arpa/appliance/stick"
	"assent.home.arpa/appliance/stick/sticktest"
)

// exported is a guard's end of an exporter.
type exported struct {
	*ipc.Client
	hello ipc.StickHello
}

// export runs the exporter for a medium, and waits for its hello.
func export(t testing.TB, open func() (stick.Medium, error)) exported {
	t.Helper()
	near, far := net.Pipe()
	done := make(chan error, 1)
	go func() {
		done <- stick.Run(context.Background(), ipc.NewConn(far), open, slog.New(slog.DiscardHandler))
	}()
	hello := make(chan ipc.StickHello, 1)
	c := ipc.NewClient(ipc.NewConn(near), func(m ipc.Message) {
		if h, ok := m.(*ipc.StickHello); ok {
			hello <- *h
		}
	})
	t.Cleanup(func() {
		c.Close()
		if err := <-done; err != nil {
			t.Errorf("the exporter failed: %v", err)
		}
	})
	return exported{c, <-hello}
}

func of(m stick.Medium) func() (stick.Medium, error) {
	return func() (stick.Medium, error) { return m, nil }
}

func (x exported) do(t testing.TB, op ipc.StickOp) ipc.StickReply {
	t.Helper()
	m, err := x.Call(context.Background(), &op, nil)
	if err != nil {
		t.Fatal(err)
	}
	return *m.(*ipc.StickReply)
}

// guided puts volumes behind a GUID partition table, each with the type of the same place.
func guided(types []string, volumes ...[]byte) []byte {
	const first = 2048 * 512
	disk := make([]byte, first)
	entries := make([]byte, 128*128)
	for i, v := range volumes {
		e := entries[128*i:]
		copy(e, types[i])
		binary.LittleEndian.PutUint64(e[32:], uint64(len(disk)/512))
		disk = append(disk, v...)
		binary.LittleEndian.PutUint64(e[40:], uint64(len(disk)/512-1))
	}
	disk = append(disk, make([]byte, 34*512)...)
	disk[446+4], disk[510], disk[511] = 0xee, 0x55, 0xaa
	binary.LittleEndian.PutUint32(disk[446+8:], 1)
	binary.LittleEndian.PutUint32(disk[446+12:], 0xffffffff)
	copy(disk[1024:], entries)
	h := disk[512:]
	copy(h, "EFI PART\x00\x00\x01\x00\x5c\x00\x00\x00")
	binary.LittleEndian.PutUint64(h[72:], 2)
	binary.LittleEndian.PutUint32(h[80:], 128)
	binary.LittleEndian.PutUint32(h[84:], 128)
	binary.LittleEndian.PutUint32(h[88:], crc32.ChecksumIEEE(entries))
	binary.LittleEndian.PutUint32(h[16:], crc32.ChecksumIEEE(h[:92]))
	return disk
}

const (
	basicData = "\xa2\xa0\xd0\xeb\xe5\xb9\x33\x44\x87\xc0\x68\xb6\xb7\x26\x99\xc7"
	efiSystem = "\x28\x73\x2a\xc1\x1f\xf8\xd2\x11\xba\x4b\x00\xa0\xc9\x3e\xc9\x3b"
)

func changed(b []byte, at int, by string) []byte {
	b = bytes.Clone(b)
	copy(b[at:], by)
	return b
}

// D4: exactly one FAT volume is taken, wherever it lies, and anything else is refused for what it is.
func TestWhatIsOnAStick(t *testing.T) {
	v := sticktest.Format(t, 4<<20, "HOLIDAY")
	gpt := guided([]string{basicData}, v)
	for _, c := range []struct {
		event string
		disk  []byte
		want  ipc.StickProblem
	}{
		{"a volume without a table", v, 0},
		{"one partition", sticktest.Partitioned(0x0c, v), 0},
		{"one partition of another type's name", sticktest.Partitioned(0x07, v), 0},
		{"a guided partition", gpt, 0},
		{"as a Mac makes it", guided([]string{efiSystem, basicData}, v, v), 0},
		{"two", sticktest.Partitioned(0x0c, v, v), ipc.StickSeveral},
		{"two guided", guided([]string{basicData, basicData}, v, v), ipc.StickSeveral},
		{"FAT beside something else", sticktest.Partitioned(0x0c, v, changed(v, 3, "NTFS    ")), 0},
		{"exFAT behind a table", sticktest.Partitioned(0x07, changed(v, 3, "EXFAT   ")), ipc.StickExFAT},
		{"only a system partition", guided([]string{efiSystem}, v), ipc.StickBoot},
		{"a table of tables", sticktest.Partitioned(0x05, v), ipc.StickSeveral},
		{"a partition that is nothing", sticktest.Partitioned(0x83, make([]byte, 1<<20)), ipc.StickEmpty},
		{"a partition beyond the end", changed(sticktest.Partitioned(0x0c, v), 446+12, "\xff\xff\xff\x7f"), ipc.StickDamaged},
		{"a guided table of another sum", changed(gpt, 1024+56, "X"), ipc.StickDamaged},
		{"a guided header of another sum", changed(gpt, 512+72, "\x03"), ipc.StickDamaged},
		{"a guided table that is not there", changed(gpt, 512, "XXX"), ipc.StickDamaged},
		{"encrypted", changed(v, 3, "-FVE-FS-"), ipc.StickEncrypted},
		{"btrfs", changed(v, 65600, "_BHRfS_M"), ipc.StickLinux},
		{"a Mac's", changed(v, 1024, "H+\x00\x04"), ipc.StickApple},
		{"nothing at all", nil, ipc.StickEmpty},
		{"one sector", make([]byte, 512), ipc.StickEmpty},
		{"text", bytes.Repeat([]byte("hello, world\n"), 10000), ipc.StickEmpty},
	} {
		t.Run(c.event, func(t *testing.T) {
			m := sticktest.NewStick(c.disk)
			x := export(t, of(m))
			if x.hello.Problem != c.want {
				t.Fatalf("problem %d, want %d", x.hello.Problem, c.want)
			}
			if c.want == 0 && (string(x.hello.Label) != "HOLIDAY" || x.hello.Size != int64(len(c.disk))) {
				t.Errorf("%+v", x.hello)
			}
			r := x.do(t, ipc.StickOp{Verb: ipc.StickMkdir, Name: "AUDIT-1"})
			if (r.Problem == 0) != (c.want == 0) || (m.Writes() > 0) != (c.want == 0) {
				t.Errorf("mkdir: %d, %d writes", r.Problem, m.Writes())
			}
		})
	}
}

// panics is a medium whose bytes nobody was prepared for.
type panics struct{ *sticktest.Stick }

func (panics) ReadAt([]byte, int64) (int, error) { panic("slice bounds out of range") }

func TestWhatHappensInTheExporterStaysThere(t *testing.T) {
	for event, c := range map[string]struct {
		open func() (stick.Medium, error)
		want ipc.StickProblem
	}{
		"a panic":            {of(panics{sticktest.NewStick(make([]byte, 4096))}), ipc.StickDamaged},
		"no file":            {func() (stick.Medium, error) { return stick.OpenDevice(filepath.Join(t.TempDir(), "none")) }, ipc.StickMissing},
		"no device":          {func() (stick.Medium, error) { return stick.OpenDevice("/dev/null") }, ipc.StickUnreadable},
		"in use":             {func() (stick.Medium, error) { return nil, &stick.Error{Problem: ipc.StickBusy, Err: syscall.EBUSY} }, ipc.StickBusy},
		"an error of nobody": {func() (stick.Medium, error) { return nil, errors.New("x") }, ipc.StickUnreadable},
	} {
		t.Run(event, func(t *testing.T) {
			x := export(t, c.open)
			if x.hello.Problem != c.want {
				t.Errorf("problem %d, want %d", x.hello.Problem, c.want)
			}
			if r := x.do(t, ipc.StickOp{Verb: ipc.StickFree}); r.Problem != ipc.StickUnreadable {
				t.Errorf("%+v", r)
			}
		})
	}
}

// An exporter does what makes sense, and refuses the rest, whoever asks.
func TestOperationsThatMakeNoSense(t *testing.T) {
	m := sticktest.NewStick(sticktest.Format(t, 4<<20, "X"))
	x := export(t, of(m))
	large := make([]byte, ipc.MaxStickChunk+1)
	for event, op := range map[string]ipc.StickOp{
		"no verb":              {},
		"a verb that is none":  {Verb: 99},
		"to no file":           {Verb: ipc.StickWrite, Handle: 7, Data: []byte("x")},
		"no file closed":       {Verb: ipc.StickClose, Handle: 7},
		"too much to read":     {Verb: ipc.StickRead, Name: "a", Size: ipc.MaxStickChunk + 1},
		"a path out of it":     {Verb: ipc.StickMkdir, Name: "../a"},
		"a name of the device": {Verb: ipc.StickCreate, Name: "/dev/sda", Handle: 1},
		"before the beginning": {Verb: ipc.StickRead, Name: "a", Offset: -1, Size: 1},
	} {
		if r := x.do(t, op); r.Problem != ipc.StickRefused && !(op.Verb == ipc.StickRead && r.Problem == ipc.StickMissing) {
			t.Errorf("%s: %+v", event, r)
		}
	}
	opened := 0
	for h := range uint32(64) {
		if r := x.do(t, ipc.StickOp{Verb: ipc.StickCreate, Name: "a", Handle: h + 1}); r.Problem == 0 {
			opened++
		}
	}
	if opened == 0 || opened > 16 {
		t.Errorf("%d files are open", opened)
	}
	if r := x.do(t, ipc.StickOp{Verb: ipc.StickCreate, Name: "b", Handle: 1}); r.Problem != ipc.StickRefused {
		t.Errorf("a handle twice: %+v", r)
	}
	if r := x.do(t, ipc.StickOp{Verb: ipc.StickWrite, Handle: 1, Data: large}); r.Problem != ipc.StickRefused {
		t.Errorf("a chunk that is too large: %+v", r)
	}
	if m.Writes() > 1 { // the clean bit
		t.Errorf("%d writes", m.Writes())
	}
	if r := x.do(t, ipc.StickOp{Verb: ipc.StickEnd}); r.Problem != 0 {
		t.Errorf("end: %+v", r)
	}
	if r := x.do(t, ipc.StickOp{Verb: ipc.StickMkdir, Name: "late"}); r.Problem != ipc.StickUnreadable {
		t.Errorf("after the end: %+v", r)
	}
}

// unclosable is a stick of which the kernel says at its end that something was not written.
type unclosable struct{ *sticktest.Stick }

func (unclosable) Close() error { return syscall.EIO }

func TestWhatIsSaidLast(t *testing.T) {
	x := export(t, of(unclosable{sticktest.NewStick(sticktest.Format(t, 4<<20, "X"))}))
	if r := x.do(t, ipc.StickOp{Verb: ipc.StickEnd}); r.Problem != ipc.StickUnreadable {
		t.Errorf("%+v", r)
	}
}

// A file stands in for a block device: it is read past the page cache where its file system can, and never grows.
func TestDevice(t *testing.T) {
	file := filepath.Join(t.TempDir(), "stick.img")
	b := sticktest.Format(t, 4<<20, "X")
	if err := os.WriteFile(file, b, 0o600); err != nil {
		t.Fatal(err)
	}
	d, err := stick.OpenDevice(file)
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	big := bytes.Repeat([]byte("0123456789abcde\n"), 40_000)
	for _, c := range []struct{ off, n int64 }{{0, 1}, {511, 3}, {4095, 4098}, {1 << 20, 640_000}, {4<<20 - 7, 7}, {12345, 131072}} {
		if _, err := d.WriteAt(big[:c.n], c.off); err != nil {
			t.Fatal(err)
		}
		if err := d.Sync(); err != nil {
			t.Fatal(err)
		}
		got := make([]byte, c.n)
		if n, err := d.ReadAt(got, c.off); int64(n) != c.n || err != nil || !bytes.Equal(got, big[:c.n]) {
			t.Errorf("%d bytes at %d: %d, %v", c.n, c.off, n, err)
		}
	}
	if _, err := d.WriteAt([]byte("xx"), 4<<20-1); err == nil {
		t.Error("written beyond the end")
	}
	if _, err := d.ReadAt(make([]byte, 2), 4<<20-1); err == nil {
		t.Error("read beyond the end")
	}
	if info, err := os.Stat(file); err != nil || info.Size() != 4<<20 {
		t.Errorf("%v, %v", info.Size(), err)
	}
}
