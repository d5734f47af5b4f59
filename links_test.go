package assent

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// Documents point at what is there.
func TestDocumentsPointAtWhatIsThere(t *testing.T) {
	links := regexp.MustCompile(`\]\(([^)#\s]+)[^)]*\)|<img src="([^"]+)"`)
	seen := 0
	err := filepath.WalkDir(".", func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && path != "." && (strings.HasPrefix(d.Name(), ".") || d.Name() == "bin") {
			return filepath.SkipDir
		}
		if filepath.Ext(path) != ".md" {
			return nil
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		for _, m := range links.FindAllStringSubmatch(string(text), -1) {
			to := m[1] + m[2]
			if strings.Contains(to, "://") {
				continue
			}
			seen++
			if _, err := os.Stat(filepath.Join(filepath.Dir(path), to)); err != nil {
				t.Errorf("%s points at %s, which is not there", path, to)
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if seen < 20 {
		t.Errorf("only %d links were found", seen)
	}
}
