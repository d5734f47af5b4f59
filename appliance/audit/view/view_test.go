package view_test

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/net/html"

	"assent.home.arpa/appliance/audit"
	"assent.home.arpa/appliance/audit/story"
	"assent.home.arpa/appliance/audit/view"
)

func read(t *testing.T, dir, name string) string {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(dir, name))
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// The page holds nothing from elsewhere and nothing inline, and no script turns text into markup.
func TestPageHoldsNothingForeign(t *testing.T) {
	dir, _ := write(t, record(t).disk.FS(), view.Options{})
	doc, err := html.Parse(strings.NewReader(read(t, dir, "index.html")))
	if err != nil {
		t.Fatal(err)
	}
	files := map[string]string{}
	policy := ""
	for n := range doc.Descendants() {
		if n.Data == "style" || n.Data == "script" && n.FirstChild != nil {
			t.Errorf("an inline %s", n.Data)
		}
		for _, a := range n.Attr {
			switch {
			case a.Key == "style" || strings.HasPrefix(a.Key, "on"):
				t.Errorf("%s has the attribute %s", n.Data, a.Key)
			case a.Key == "src" || a.Key == "href":
				files[a.Val] = read(t, dir, a.Val)
			case a.Key == "content" && strings.HasPrefix(a.Val, "default-src 'none'"):
				policy = a.Val
			}
		}
	}
	if strings.Contains(policy, "unsafe") || !strings.Contains(policy, "require-trusted-types-for 'script'") {
		t.Errorf("the policy is %q", policy)
	}
	for name, body := range files {
		if regexp.MustCompile(`\burl\(|(src|href|import|fetch)[^\n]{0,20}https?://`).MatchString(body) && !strings.HasPrefix(name, "data/") {
			t.Errorf("%s refers to something elsewhere", name)
		}
		for _, bad := range []string{"innerHTML", "outerHTML", "insertAdjacentHTML", "document.write", "DOMParser", "eval(", "Function(", "createContextualFragment", "setAttribute('style", "localStorage"} {
			if strings.Contains(body, bad) {
				t.Errorf("%s uses %s", name, bad)
			}
		}
	}
	if len(files) < 11 {
		t.Errorf("only %d files were found", len(files))
	}
}

// Data files are ASCII, one literal a line, and nothing in the log ends a literal or a script.
func TestDataCannotBecomeScript(t *testing.T) {
	dir, _ := write(t, record(t).disk.FS(), view.Options{Name: evil})
	line := regexp.MustCompile(`^(assent\.(rows\(\[|stories\(0,\[)|'(\\['\\]|\\u[0-9a-f]{4}|[ -&(-\[\]-~])*',|\]\);|assent\.about\('(\\['\\]|\\u[0-9a-f]{4}|[ -&(-\[\]-~])*'\);)$`)
	lines := 0
	for _, name := range []string{"data/about.js", "data/rows.js", "data/stories-0000.js"} {
		for l := range strings.Lines(read(t, dir, name)) {
			lines++
			if !line.MatchString(strings.TrimSuffix(l, "\n")) || strings.ContainsAny(l, "<>") {
				t.Errorf("%s: %q", name, l)
			}
		}
	}
	if lines < 30 {
		t.Errorf("only %d lines", lines)
	}
}

// The files for machines hold each story, and no cell that a spreadsheet would run.
func TestFilesForMachines(t *testing.T) {
	h := record(t)
	h.note(audit.Admin{Action: audit.AdminFeed, Outcome: audit.Approved, By: audit.ByBox, Subject: "x", Code: "  +1"})
	dir, _ := write(t, h.disk.FS(), view.Options{})
	var stories []story.Story
	dec := json.NewDecoder(strings.NewReader(read(t, dir, "events.jsonl")))
	for dec.More() {
		var s story.Story
		if err := dec.Decode(&s); err != nil {
			t.Fatal(err)
		}
		stories = append(stories, s)
		for _, step := range s.Steps {
			if step.Pages != nil && len(step.Pages.Frames) > 0 {
				t.Error("a picture in a line of text")
			}
		}
	}
	table := read(t, dir, "events.csv")
	if strings.Count(table, "\r\n") != len(stories)+1 || strings.ContainsRune(strings.ReplaceAll(table, "\r\n", ""), '\n') {
		t.Errorf("%d lines for %d stories", strings.Count(table, "\r\n"), len(stories))
	}
	rows, err := csv.NewReader(strings.NewReader(table)).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	quoted := 0
	for i, row := range rows[1:] {
		if !strings.Contains(row[4], stories[i].Headline[len(stories[i].Headline)/2:]) {
			t.Errorf("line %d is about %q, and the story about %q", i, row[4], stories[i].Headline)
		}
		for _, c := range row {
			if strings.HasPrefix(c, "'") {
				quoted++
			}
			if trimmed := strings.TrimLeft(c, " "); trimmed != "" && strings.ContainsRune("=+-@\t\r", rune(trimmed[0])) {
				t.Errorf("the cell %q is a formula", c)
			}
		}
	}
	if quoted == 0 {
		t.Error("no cell had to be quoted: the test proves nothing")
	}
}

func TestVerdicts(t *testing.T) {
	whole := func(t *testing.T) fstest.MapFS {
		h := newHouse(t)
		for range 400 {
			h.answered(h.search(2, "tide times"))
		}
		if err := h.Close(); err != nil {
			t.Fatal(err)
		}
		m := fstest.MapFS{}
		for _, name := range []string{"seg-00000000.cborseq", "seg-00000001.cborseq", "seg-00000002.cborseq"} {
			m[name] = &fstest.MapFile{Data: h.disk.Content(name)}
		}
		return m
	}(t)
	damaged := func(name string, at int) fstest.MapFS {
		m := fstest.MapFS{}
		for n, f := range whole {
			m[n] = &fstest.MapFile{Data: bytes.Clone(f.Data)}
		}
		m[name].Data[at] ^= 1
		return m
	}
	without := func(names ...string) fstest.MapFS {
		m := fstest.MapFS{}
		for n, f := range whole {
			m[n] = f
		}
		for _, n := range names {
			delete(m, n)
		}
		return m
	}
	for _, c := range []struct {
		event  string
		log    fstest.MapFS
		o      audit.VerifyOptions
		status string
		cause  string
	}{
		{"whole", whole, audit.VerifyOptions{}, "intact", ""},
		{"a byte changed", damaged("seg-00000000.cborseq", 9000), audit.VerifyOptions{}, "altered", ""},
		{"bytes after the last seal", damaged("seg-00000002.cborseq", audit.SegmentSize-9), audit.VerifyOptions{}, "incomplete", "torn"},
		{"a segment missing", without("seg-00000001.cborseq"), audit.VerifyOptions{}, "incomplete", "missing"},
		{"another head noted", whole, audit.VerifyOptions{Head: "00000000"}, "incomplete", "other"},
	} {
		t.Run(c.event, func(t *testing.T) {
			dir, _ := write(t, c.log, view.Options{Verify: c.o})
			about := read(t, dir, "data/about.js")
			for name, want := range map[string]string{"status": c.status, "cause": c.cause} {
				got := ""
				if m := regexp.MustCompile(`"` + name + `":"([a-z]*)"`).FindStringSubmatch(about); m != nil {
					got = m[1]
				}
				if got != want {
					t.Errorf("%s is %q, want %q", name, got, want)
				}
			}
		})
	}
}

type brokenFile struct{}

func (brokenFile) Write([]byte) (int, error) { return 0, errBroken }
func (brokenFile) Close() error              { return nil }

var errBroken = errors.New("the stick was pulled")

// A file that cannot be written is an error, whichever it is, and never a page that is not complete.
func TestEveryFileMatters(t *testing.T) {
	log := record(t).disk.FS()
	dir, _ := write(t, log, view.Options{})
	var names []string
	for _, pattern := range []string{"*.*", "data/*"} {
		found, err := filepath.Glob(filepath.Join(dir, pattern))
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range found {
			name, err := filepath.Rel(dir, f)
			if err != nil {
				t.Fatal(err)
			}
			names = append(names, name)
		}
	}
	for _, bad := range names {
		_, err := view.Write(t.Context(), log, func(name string) (io.WriteCloser, error) {
			if name == bad {
				return brokenFile{}, nil
			}
			return os.OpenFile(os.DevNull, os.O_WRONLY, 0)
		}, view.Options{})
		if !errors.Is(err, errBroken) {
			t.Errorf("%s could not be written, and the error is %v", bad, err)
		}
	}
	if diff := cmp.Diff(15, len(names)); diff != "" {
		t.Errorf("files: %s", names)
	}
}
