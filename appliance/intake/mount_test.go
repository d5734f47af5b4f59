package intake_test

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"assent.home.arpa/appliance/intake"
	"assent.home.arpa/image/card"
)

// mounted makes a partition with a small ext4 file system in it and mounts it, as a box does with a card it starts from for
// the first time. It needs root.
func mounted(t *testing.T, size int64, smaller string) (device string, at string) {
	t.Helper()
	if os.Getuid() != 0 {
		t.Skip("SKIPPED: mounting needs root")
	}
	dir := t.TempDir()
	disk := filepath.Join(dir, "partition")
	run := func(name string, args ...string) string {
		out, err := exec.Command(name, args...).CombinedOutput()
		if err != nil {
			t.Skipf("SKIPPED: %s: %v\n%s", name, err, out)
		}
		return strings.TrimSpace(string(out))
	}
	if err := os.WriteFile(disk, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Truncate(disk, size); err != nil {
		t.Fatal(err)
	}
	run("mkfs.ext4", "-q", "-b", "4096", disk, smaller)
	device = run("losetup", "--find", "--show", disk)
	t.Cleanup(func() { _ = exec.Command("losetup", "--detach", device).Run() })
	at = filepath.Join(dir, "var")
	if err := os.Mkdir(at, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := unix.Mount(device, at, "ext4", 0, ""); err != nil {
		t.Skipf("SKIPPED: ext4 cannot be mounted here: %v", err)
	}
	t.Cleanup(func() {
		if err := unix.Unmount(at, 0); err != nil {
			t.Error(err)
		}
		// Another program's opinion of what was grown while it was mounted.
		if out, err := exec.Command("e2fsck", "-fn", device).CombinedOutput(); err != nil {
			t.Errorf("e2fsck: %v\n%s", err, out)
		}
	})
	return device, at
}

// grow is how a mounted file system grows, where the kernel lets this process do it.
func grow(t *testing.T, at string) func(int64) error {
	return func(to int64) error {
		err := intake.Mounted(at).Grow(to)
		if errors.Is(err, unix.EPERM) {
			t.Skip("SKIPPED: growing a mounted file system needs CAP_SYS_RESOURCE")
		}
		return err
	}
}

// The whole of it on a real file system, grown by the kernel while it is mounted. Twice the model fits exactly: what package
// card calls room is room.
func TestAModelIsTakenOnARealFileSystem(t *testing.T) {
	const small, length = 64 << 20, 200 << 20
	size := card.Room(length, small)
	device, at := mounted(t, size, "64M")
	b := bytes.Repeat(content()[:mib], length/mib)
	a := card.Area{Name: "practice", Length: length, SHA256: sha256.Sum256(b)}
	header, err := a.Encode()
	if err != nil {
		t.Fatal(err)
	}
	partition, err := intake.OpenPartition(device)
	if err != nil {
		t.Fatal(err)
	}
	defer partition.Close()
	if _, err := partition.WriteAt(b, a.Start(size)); err != nil {
		t.Fatal(err)
	}
	if _, err := partition.WriteAt(header, size-card.AreaHeaderBytes); err != nil {
		t.Fatal(err)
	}
	models, closer, err := intake.OpenDir(filepath.Join(at, "models"))
	if err != nil {
		t.Fatal(err)
	}
	defer closer.Close()
	m := intake.Model{Partition: partition, Models: models, Grow: grow(t, at)}
	for range 2 { // the second finds nothing to do, and may do it
		taken, err := m.Take(t.Context())
		if err != nil || taken.Problem != "" {
			t.Fatalf("%+v, %v", taken, err)
		}
		got, err := os.ReadFile(filepath.Join(at, "models", modelFile))
		if err != nil || sha256.Sum256(got) != a.SHA256 {
			t.Fatalf("the model is not the one that waited: %v", err)
		}
	}
	if n, err := card.FileSystemSize(partition); err != nil || size-n > 8*mib {
		t.Errorf("the file system has %d of %d bytes, %v", n, size, err)
	}
	var st unix.Stat_t
	if err := unix.Stat(device, &st); err != nil {
		t.Fatal(err)
	}
	found, err := intake.Mounted(at).Partition()
	if err != nil {
		t.Fatal(err)
	}
	if want := unix.Major(st.Rdev); !strings.HasPrefix(found, "/dev/block/") || !strings.Contains(found, "7:") || want != 7 {
		t.Errorf("the partition is %s", found)
	}
}

// A file system that grows a thousandfold while it is mounted: from the image's to a large card's.
func TestALargeCard(t *testing.T) {
	const size = 128 << 30 // nothing but the file system's own tables is written
	device, at := mounted(t, size, "128M")
	if err := grow(t, at)(size); err != nil {
		t.Fatal(err)
	}
	partition, err := intake.OpenPartition(device)
	if err != nil {
		t.Fatal(err)
	}
	defer partition.Close()
	if n, err := card.FileSystemSize(partition); err != nil || n != size {
		t.Errorf("the file system has %d of %d bytes, %v", n, int64(size), err)
	}
}

func TestWhatIsNotExt4DoesNotGrow(t *testing.T) {
	if err := intake.Mounted("/proc").Grow(mib); err == nil || !strings.Contains(err.Error(), "not ext4") {
		t.Errorf("got %v", err)
	}
}
