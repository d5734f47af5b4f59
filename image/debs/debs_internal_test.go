package debs

import (
	"crypto/sha256"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestURIs(t *testing.T) {
	const archive = "http://mirror.home.arpa/debian/"
	sums := []string{strings.Repeat("ab", 32), strings.Repeat("cd", 32)}
	out := fmt.Sprintf("'%spool/main/l/a%%2b1.deb' a+1.deb 12 SHA256:%s\n'%spool/main/l/b.deb' b.deb 34 SHA256:%s\n", archive, sums[0], archive, sums[1])
	l, err := parseURIs(out, archive)
	if err != nil {
		t.Fatal(err)
	}
	want := fmt.Sprintf("pool/main/l/a%%2b1.deb 12 %s\npool/main/l/b.deb 34 %s\n", sums[0], sums[1])
	if diff := cmp.Diff(want, l.String()); diff != "" {
		t.Error(diff)
	}
	for _, bad := range []string{"", strings.ReplaceAll(out, "SHA256", "MD5Sum"), strings.Replace(out, archive, "http://other.home.arpa/debian/", 1)} {
		if l, err := parseURIs(bad, archive); err == nil {
			t.Errorf("%q made %v", bad, l)
		}
	}
}

// TestOnlyTheLockedPackagePasses takes no file for a package that is not the one of the lock.
func TestOnlyTheLockedPackagePasses(t *testing.T) {
	data := []byte("package")
	p := Package{Path: "pool/a.deb", Size: int64(len(data)), Sum: sha256.Sum256(data)}
	file := filepath.Join(t.TempDir(), "a.deb")
	for _, wrong := range []string{"", "packagE", "package and more"} {
		if err := os.WriteFile(file, []byte(wrong), 0o644); err != nil {
			t.Fatal(err)
		}
		if check(file, p) == nil {
			t.Errorf("%q passes for the package", wrong)
		}
	}
	if err := os.WriteFile(file, data, 0o644); err != nil {
		t.Fatal(err)
	}
	if err := check(file, p); err != nil {
		t.Error(err)
	}
}
