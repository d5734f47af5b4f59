package export_test

import (
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/fstest"

	"assent.home.arpa/appliance/audit"
	"assent.home.arpa/appliance/audit/audittest"
	"assent.home.arpa/appliance/audit/export"
	"assent.home.arpa/appliance/clock/clocktest"
	"assent.home.arpa/capabilities"
)

// literal is what every call of record has sent, shown and logged.
const literal = "tide times"

// house is a log that a test writes.
type house struct {
	*audit.Log
	t     testing.TB
	disk  *audittest.Disk
	clock *clocktest.Clock
	calls uint16
}

func newHouse(t testing.TB) *house {
	t.Helper()
	h := &house{t: t, disk: audittest.NewDisk(), clock: clocktest.New()}
	l, err := audit.Open(t.Context(), audittest.Options(h.clock, h.disk))
	if err != nil {
		t.Fatal(err)
	}
	h.Log = l
	t.Cleanup(func() { l.Close() })
	return h
}

// call records one approved search from its proposal to its end.
func (h *house) call() {
	c := audittest.Required(h.clock, 1)
	h.calls++
	c.Inv[1], c.Inv[2] = byte(h.calls>>8), byte(h.calls)
	for i := range c.Blobs {
		c.Blobs[i].Inv = c.Inv
	}
	c.Claims.Inv = c.Inv
	c.Approval.Receipt = audittest.Sign(audittest.ReceiptKey(), c.Claims)
	i, err := h.Intend(h.t.Context(), c.Entries(), c.Intent, c.Inv)
	if err != nil {
		h.t.Error(err)
		return
	}
	if _, err := h.Effect(h.t.Context(), i, audit.EffectRecord{Status: capabilities.Done, Sent: true}); err != nil {
		h.t.Error(err)
	}
}

// record is a log with as many calls, closed.
func record(t testing.TB, calls int) fstest.MapFS {
	t.Helper()
	h := newHouse(t)
	for range calls {
		h.call()
	}
	if err := h.Close(); err != nil {
		t.Fatal(err)
	}
	return snapshot(t, h.disk.FS())
}

func snapshot(t testing.TB, log fs.FS) fstest.MapFS {
	t.Helper()
	names, err := fs.Glob(log, "*.cborseq")
	if err != nil {
		t.Fatal(err)
	}
	m := fstest.MapFS{}
	for _, name := range names {
		b, err := fs.ReadFile(log, name)
		if err != nil {
			t.Fatal(err)
		}
		m[name] = &fstest.MapFile{Data: b, Mode: 0o600}
	}
	return m
}

// newest is the last segment's name.
func newest(log fstest.MapFS) (name string) {
	for n := range log {
		if strings.HasPrefix(n, "seg-") {
			name = max(name, n)
		}
	}
	return name
}

// changed is a copy of a log with one byte changed.
func changed(log fstest.MapFS, name string, at int) fstest.MapFS {
	m := fstest.MapFS{}
	for n, f := range log {
		m[n] = &fstest.MapFile{Data: slices.Clone(f.Data), Mode: 0o600}
	}
	m[name].Data[at] ^= 1
	return m
}

// stick is an empty medium.
func stick(t testing.TB) (export.Volume, string) {
	t.Helper()
	dir := t.TempDir()
	root, err := os.OpenRoot(dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { root.Close() })
	return export.Directory(root), dir
}

// quick is a stick without the time that syncing takes.
func quick(t testing.TB) (export.Volume, string) {
	t.Helper()
	vol, dir := stick(t)
	return unsynced{vol, dir}, dir
}

type unsynced struct {
	export.Volume
	dir string
}

func (u unsynced) Create(name string) (io.WriteCloser, error) {
	return os.OpenFile(filepath.Join(u.dir, name), os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
}

func (unsynced) Sync(string) error { return nil }

func options() export.Options { return export.Options{Clock: clocktest.New()} }

// contents reads every file below dir.
func contents(t testing.TB, dir string) map[string][]byte {
	t.Helper()
	all := map[string][]byte{}
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		b, err := os.ReadFile(path)
		name, _ := filepath.Rel(dir, path)
		all[name] = b
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

func empty(t testing.TB, dir string) bool {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	return len(entries) == 0
}

// failing is a volume whose operation number fail does not work, and every one after it that writes.
type failing struct {
	export.Volume
	mu   sync.Mutex
	ops  int
	fail int
	err  error
}

func (v *failing) step() error {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.ops++; v.fail > 0 && v.ops >= v.fail {
		return v.err
	}
	return nil
}

func (v *failing) Mkdir(name string) error {
	if err := v.step(); err != nil {
		return err
	}
	return v.Volume.Mkdir(name)
}

func (v *failing) Rename(from, to string) error {
	if err := v.step(); err != nil {
		return err
	}
	return v.Volume.Rename(from, to)
}

func (v *failing) Sync(dir string) error {
	if err := v.step(); err != nil {
		return err
	}
	return v.Volume.Sync(dir)
}

func (v *failing) Create(name string) (io.WriteCloser, error) {
	if err := v.step(); err != nil {
		return nil, err
	}
	f, err := v.Volume.Create(name)
	return failingFile{f, v}, err
}

type failingFile struct {
	io.WriteCloser
	v *failing
}

func (f failingFile) Write(b []byte) (int, error) {
	if err := f.v.step(); err != nil {
		n, _ := f.WriteCloser.Write(b[:len(b)/2]) // as much as there was room for
		return n, err
	}
	return f.WriteCloser.Write(b)
}

func (f failingFile) Close() error {
	err := f.v.step()
	if closed := f.WriteCloser.Close(); err == nil {
		err = closed
	}
	return err
}
