package kernel

import (
	"context"
	"crypto/sha256"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"assent.home.arpa/image/debs"
)

// TestGetUsesWhatIsThere gives a kernel that was taken out before without asking anybody.
func TestGetUsesWhatIsThere(t *testing.T) {
	dir := t.TempDir()
	data := []byte("package")
	l := debs.Lock{{Path: "pool/a.deb", Size: int64(len(data)), Sum: sha256.Sum256(data)}}
	home := filepath.Join(dir, "kernel-"+key(l, []string{"m"}))
	if err := os.Mkdir(home, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(home, orderFile), []byte("b.ko\na.ko\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	k, err := Get(context.Background(), dir, l, []string{"m"}, func(line string) { t.Errorf("says %q", line) })
	if err != nil {
		t.Fatal(err)
	}
	if k.Image != filepath.Join(home, imageFile) || !slices.Equal(k.Modules, []string{filepath.Join(home, "b.ko"), filepath.Join(home, "a.ko")}) {
		t.Errorf("the kernel is %+v", k)
	}
	if key(l, []string{"m"}) == key(l, []string{"n"}) {
		t.Error("another list of modules has the same name")
	}
}
