package main

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// An image has its name only once its sums are there.
func TestImagesAreNamedLast(t *testing.T) {
	out := t.TempDir()
	put := func(name string) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(out, name), []byte(name), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	names := func() (all []string) {
		t.Helper()
		entries, err := os.ReadDir(out)
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range entries {
			all = append(all, e.Name())
		}
		return all
	}
	put("box.img" + partial)
	put("root.list")
	// The build ends here: something that is to be summed is not there.
	if err := publish(out, []string{"box.img.xz", "box.img"}, "root.list"); err == nil || slices.Contains(names(), "box.img") {
		t.Errorf("%v, %v", names(), err)
	}
	put("box.img.xz" + partial)
	if err := publish(out, []string{"box.img.xz", "box.img"}, "root.list"); err != nil {
		t.Fatal(err)
	}
	if want := []string{"SHA256SUMS", "box.img", "box.img.sha256", "box.img.xz", "box.img.xz.sha256", "root.list"}; !slices.Equal(names(), want) {
		t.Errorf("%v", names())
	}
	all, err := os.ReadFile(filepath.Join(out, "SHA256SUMS"))
	if err != nil || strings.Count(string(all), "\n") != 3 || strings.Contains(string(all), partial) {
		t.Errorf("%s, %v", all, err)
	}
}
