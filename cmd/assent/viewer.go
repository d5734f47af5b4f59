package main

import (
	"context"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"os"
	"path"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"time"

	"assent.home.arpa/appliance/audit"
	"assent.home.arpa/appliance/audit/export"
	"assent.home.arpa/appliance/audit/view"
)

// viewer keeps the page about a log, made anew where the log has changed since.
type viewer struct {
	log      fs.FS
	options  audit.VerifyOptions
	secret   string
	root     *os.Root // a directory for each generation of the page
	progress func(step export.Step, done, total int64)

	mu         sync.Mutex
	generation int // 0 before the first
	stamp      string
	report     finding
}

// maxAttempts bounds how often a log is read anew because it was being written.
const maxAttempts = 3

const viewPolicy = "default-src 'none'; script-src 'self'; style-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; " +
	"require-trusted-types-for 'script'; trusted-types assent"

func newViewer(log fs.FS, o audit.VerifyOptions) (*viewer, error) {
	root, err := workspace()
	if err != nil {
		return nil, err
	}
	return &viewer{log: log, options: o, secret: newSecret(), root: root, progress: func(export.Step, int64, int64) {}}, nil
}

func (v *viewer) close() {
	v.root.Close()
	// It is in the system's directory for what may be lost.
	_ = os.RemoveAll(v.root.Name())
}

func (v *viewer) latest() finding {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.report
}

// refresh checks the log where it has changed, and returns the verdict.
func (v *viewer) refresh(ctx context.Context) (finding, error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	for range maxAttempts {
		stamp, err := stampOf(v.log)
		if err != nil {
			return finding{}, err
		}
		if stamp == v.stamp {
			break
		}
		report, err := v.write(ctx, v.generation+1)
		if err != nil {
			return finding{}, err
		}
		if v.generation > 0 {
			if err := v.root.RemoveAll(strconv.Itoa(v.generation)); err != nil {
				return finding{}, err
			}
		}
		v.generation++
		v.stamp, v.report = stamp, report
		if report.Status != audit.Incomplete {
			break
		}
		// A batch that was half written is torn to whoever reads it: if there is more now, that was it.
	}
	return v.report, nil
}

func (v *viewer) write(ctx context.Context, generation int) (finding, error) {
	dir := strconv.Itoa(generation)
	if err := v.root.RemoveAll(dir); err != nil { // of an attempt that failed
		return finding{}, err
	}
	if err := v.root.MkdirAll(path.Join(dir, "data"), 0o700); err != nil {
		return finding{}, err
	}
	total, err := sizeOf(v.log)
	if err != nil {
		return finding{}, err
	}
	o, by := accepting(v.log, v.options)
	o.Visit = func(e audit.Entered) error {
		v.progress(export.StepCheck, int64(e.Segment)*audit.SegmentSize+e.Offset, total)
		return nil
	}
	r, err := view.Write(ctx, v.log, func(name string) (io.WriteCloser, error) {
		return v.root.OpenFile(path.Join(dir, name), os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	}, view.Options{Statement: view.ByThisComputer, Made: time.Now(), Redacted: by == withheldByCopy, Verify: o})
	return found(r, v.options, by), err
}

// handler serves the newest page below /SECRET/GENERATION/. Opening the page, or reloading it, looks at the log again.
func (v *viewer) handler(host string) http.Handler {
	page := regexp.MustCompile(`^/` + regexp.QuoteMeta(v.secret) + `/(?:([0-9]+)/([a-z]+\.(?:js|css)|data/[a-z]+(?:-[0-9]+)?\.js|events\.(?:csv|jsonl))?)?$`)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h := w.Header()
		h.Set("Content-Security-Policy", viewPolicy)
		h.Set("Referrer-Policy", "no-referrer")
		h.Set("X-Content-Type-Options", "nosniff")
		h.Set("Cross-Origin-Opener-Policy", "same-origin")
		h.Set("Cross-Origin-Resource-Policy", "same-origin")
		h.Set("Cache-Control", "no-store")
		m := page.FindStringSubmatch(r.URL.Path)
		switch {
		case r.Host != host: // a name that somebody else made to point here
			http.Error(w, "open the address as it was printed", http.StatusMisdirectedRequest)
			return
		case m == nil:
			http.Error(w, "there is no such page", http.StatusNotFound)
			return
		case r.Method != http.MethodGet && r.Method != http.MethodHead:
			http.Error(w, "there is only reading here", http.StatusMethodNotAllowed)
			return
		}
		generation, name := m[1], m[2]
		if name == "" {
			if _, err := v.refresh(r.Context()); err != nil {
				http.Error(w, "the log cannot be read: "+err.Error(), http.StatusInternalServerError)
				return
			}
			if now := v.current(); generation != now {
				http.Redirect(w, r, "/"+v.secret+"/"+now+"/", http.StatusSeeOther)
				return
			}
			name = "index.html"
		}
		v.serveFile(w, r, generation, name)
	})
}

func (v *viewer) current() string {
	v.mu.Lock()
	defer v.mu.Unlock()
	return strconv.Itoa(v.generation)
}

func (v *viewer) serveFile(w http.ResponseWriter, r *http.Request, generation, name string) {
	kinds := map[string]string{
		".html": "text/html", ".js": "text/javascript", ".css": "text/css", ".csv": "text/csv", ".jsonl": "application/jsonl",
	}
	f, err := v.root.Open(path.Join(generation, name))
	if err != nil {
		http.Error(w, "the log has changed since; reload the page", http.StatusNotFound)
		return
	}
	defer f.Close()
	w.Header().Set("Content-Type", kinds[path.Ext(name)]+"; charset=utf-8")
	http.ServeContent(w, r, "", time.Time{}, f)
}

// stampOf tells one state of a log's files from another.
func stampOf(log fs.FS) (string, error) {
	var b strings.Builder
	err := logFiles(log, func(info fs.FileInfo) {
		fmt.Fprintln(&b, info.Name(), info.Size(), info.ModTime().UnixNano())
	})
	return b.String(), err
}

func sizeOf(log fs.FS) (total int64, err error) {
	err = logFiles(log, func(info fs.FileInfo) { total += info.Size() })
	return total, err
}

// logFiles shows each file of a log.
func logFiles(log fs.FS, see func(fs.FileInfo)) error {
	names, err := fs.Glob(log, "*.cborseq")
	if err != nil {
		return err
	}
	for _, name := range names {
		info, err := fs.Stat(log, name)
		if err != nil {
			return err
		}
		see(info)
	}
	return nil
}
