package audit_test

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"assent.home.arpa/appliance/audit"
	"assent.home.arpa/appliance/audit/audittest"
	"assent.home.arpa/appliance/clock/clocktest"
	"assent.home.arpa/capabilities"
)

// mounted returns a directory on a small file system of its own, and how to mount it anew with other flags.
func mounted(t *testing.T) (dir string, remount func(flags uintptr) error) {
	t.Helper()
	dir = t.TempDir()
	const options = "size=4m,mode=0700"
	if err := unix.Mount("tmpfs", dir, "tmpfs", 0, options); err != nil {
		t.Skipf("a file system of its own cannot be mounted here: %v", err)
	}
	t.Cleanup(func() {
		if err := unix.Unmount(dir, unix.MNT_DETACH); err != nil {
			t.Error(err)
		}
	})
	return dir, func(flags uintptr) error { return unix.Mount("", dir, "", unix.MS_REMOUNT|flags, options) }
}

// fillDisk writes a file until nothing more fits, and returns how to remove it.
func fillDisk(t *testing.T, dir string) (free func()) {
	t.Helper()
	path := filepath.Join(dir, "somebody else's")
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for err == nil {
		_, err = f.Write(make([]byte, 4096))
	}
	if !errors.Is(err, syscall.ENOSPC) {
		t.Fatal(err)
	}
	return func() {
		if err := os.Remove(path); err != nil {
			t.Fatal(err)
		}
	}
}

// D3: a file system that is really full, by somebody else's doing. What is under way is settled, nothing new begins, and it
// passes by itself.
func TestAFileSystemThatIsFull(t *testing.T) {
	dir, _ := mounted(t)
	o := audittest.Options(clocktest.New(), nil)
	o.Dir = filepath.Join(dir, "audit")
	l, err := audit.Open(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { l.Close() }()
	under := []audit.Intent{intend(t, l, audittest.Automatic(1)), intend(t, l, audittest.Automatic(2))}
	free := fillDisk(t, dir)
	for n := byte(0); err == nil; n++ {
		e, _ := audit.BlobOf(audit.BlobRaw, [16]byte{}, bytes.Repeat([]byte{n}, audit.MaxBlob))
		_, err = l.Barrier(t.Context(), e)
	}
	if !errors.Is(err, audit.ErrFull) || errors.Is(err, audit.ErrPoisoned) {
		t.Fatalf("got %v", err)
	}
	c := audittest.Automatic(3)
	if _, err := l.Intend(t.Context(), c.Entries(), c.Intent, c.Inv); !errors.Is(err, audit.ErrFull) {
		t.Errorf("a new call: %v", err)
	}
	if _, err := l.Effect(t.Context(), under[0], audit.EffectRecord{Status: capabilities.Done}); err != nil {
		t.Errorf("an outcome does not fit: %v", err)
	}
	audittest.Verify(t, o.Dir)

	// A start cannot promise the next key on a full disk. It says so, and changes nothing.
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := audit.Open(t.Context(), o); !errors.Is(err, audit.ErrUnavailable) {
		t.Errorf("a start: %v", err)
	}
	if r := audittest.Verify(t, o.Dir); len(r.Open) != 1 {
		t.Errorf("%d calls are under way", len(r.Open))
	}
	free()
	if l, err = audit.Open(t.Context(), o); err != nil {
		t.Fatal(err)
	}
	intend(t, l, c)
	if r := audittest.Verify(t, o.Dir); r.Kinds[audit.KindEffect] != 2 {
		t.Errorf("%d effects: the one that was under way is unknown, the other is done", r.Kinds[audit.KindEffect])
	}
}

// A file system that the kernel made read-only, as it does after errors of the device.
func TestAFileSystemThatIsReadOnly(t *testing.T) {
	dir, remount := mounted(t)
	o := audittest.Options(clocktest.New(), nil)
	o.Dir = filepath.Join(dir, "audit")
	l, err := audit.Open(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	head := l.Head()
	// The kernel refuses this while files are open to be written, unless it does it itself.
	if err := remount(unix.MS_RDONLY); !errors.Is(err, syscall.EBUSY) {
		t.Errorf("made read-only under an open log: %v", err)
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	if err := remount(unix.MS_RDONLY); err != nil {
		t.Fatal(err)
	}
	if _, err := audit.Open(t.Context(), o); !errors.Is(err, audit.ErrUnavailable) || !errors.Is(err, syscall.EROFS) {
		t.Errorf("read-only: %v", err)
	}
	if r := audittest.Verify(t, o.Dir); r.Head.Link != head.Link {
		t.Error("the log was changed")
	}
	if err := remount(0); err != nil {
		t.Fatal(err)
	}
	if l, err = audit.Open(t.Context(), o); err != nil {
		t.Fatal(err)
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
}
