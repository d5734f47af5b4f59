package rootlist_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"

	"assent.home.arpa/image/rootlist"
)

// D2: no program of the root gives anybody rights that they do not have.
func TestRights(t *testing.T) {
	root := t.TempDir()
	for name, mode := range map[string]fs.FileMode{
		"usr/bin/assentd": 0o755,
		"usr/bin/mount":   0o755 | fs.ModeSetuid,
		"usr/bin/wall":    0o755 | fs.ModeSetgid,
		"usr/bin/open":    0o757,
		"usr/bin/ping":    0o755,
	} {
		file := filepath.Join(root, name)
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, nil, 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(file, mode); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Mkdir(filepath.Join(root, "tmp"), 0o777); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(filepath.Join(root, "tmp"), 0o777|fs.ModeSticky); err != nil {
		t.Fatal(err)
	}
	want := map[string]bool{"usr/bin/mount": true, "usr/bin/wall": true, "usr/bin/open": true}
	// Revision 2 with CAP_NET_RAW; only root may set it, and not every file system has it.
	raw := []byte{1, 0, 0, 2, 0, 32, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0}
	switch err := unix.Setxattr(filepath.Join(root, "usr/bin/ping"), "security.capability", raw, 0); {
	case err == nil:
		want["usr/bin/ping"] = true
	case !errors.Is(err, unix.EPERM) && !errors.Is(err, unix.ENOTSUP):
		t.Fatal(err)
	}
	found, err := rootlist.Rights(root)
	if err != nil || len(found) != len(want) {
		t.Errorf("%v, %v", found, err)
	}
	for _, p := range found {
		if !want[p.Path] || p.Why == "" {
			t.Errorf("%v", p)
		}
	}
	if err := rootlist.Plain(root); err != nil {
		t.Fatal(err)
	}
	if found, err := rootlist.Rights(root); err != nil || len(found) != 1 || found[0].Path != "usr/bin/open" {
		t.Errorf("once they are taken away: %v, %v", found, err)
	}
	if info, err := os.Stat(filepath.Join(root, "usr/bin/mount")); err != nil || info.Mode() != 0o755 {
		t.Errorf("mount is %v, %v", info.Mode(), err)
	}
}
