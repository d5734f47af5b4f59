package main

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/chromedp"

	"assent.home.arpa/appliance/audit"
)

const viewerHost = "127.0.0.1:7777"

// served is a log in a directory of its own, and what serves it.
func served(t *testing.T) (dir string, v *viewer) {
	t.Helper()
	dir = filepath.Join(t.TempDir(), "log")
	segment, _, err := recordDay(dir, false)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, firstSegment), segment, 0o644); err != nil {
		t.Fatal(err)
	}
	log, err := openLog(dir)
	if err != nil {
		t.Fatal(err)
	}
	if v, err = newViewer(log, audit.VerifyOptions{}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(v.close)
	return dir, v
}

func ask(v *viewer, method, path, host string) *httptest.ResponseRecorder {
	r := httptest.NewRequest(method, "http://"+viewerHost+"/", nil)
	r.URL.Path, r.Host = path, host
	w := httptest.NewRecorder()
	v.handler(viewerHost).ServeHTTP(w, r)
	return w
}

func TestViewerServesItsOwnFilesOnly(t *testing.T) {
	_, v := served(t)
	base := "/" + v.secret + "/"
	first := ask(v, "GET", base, viewerHost)
	if first.Code != http.StatusSeeOther || first.Header().Get("Location") != base+"1/" {
		t.Fatalf("%d to %q", first.Code, first.Header().Get("Location"))
	}
	for _, c := range []struct {
		event, method, path, host string
		want                      int
	}{
		{"page", "GET", base + "1/", viewerHost, 200},
		{"style", "GET", base + "1/style.css", viewerHost, 200},
		{"data", "GET", base + "1/data/rows.js", viewerHost, 200},
		{"stories", "HEAD", base + "1/data/stories-0000.js", viewerHost, 200},
		{"table", "GET", base + "1/events.csv", viewerHost, 200},
		{"a name that points here", "GET", base + "1/", "evil.example:7777", 421},
		{"localhost by another name", "GET", base + "1/", "localhost:7777", 421},
		{"without the secret", "GET", "/", viewerHost, 404},
		{"another secret", "GET", "/" + strings.Repeat("A", len(v.secret)) + "/1/", viewerHost, 404},
		{"out of the directory", "GET", base + "1/../../etc/passwd", viewerHost, 404},
		{"a directory", "GET", base + "1/data/", viewerHost, 404},
		{"writing", "POST", base + "1/", viewerHost, 405},
		{"a page that is gone", "GET", base + "7/style.css", viewerHost, 404},
	} {
		w := ask(v, c.method, c.path, c.host)
		if w.Code != c.want {
			t.Errorf("%s: %d, want %d", c.event, w.Code, c.want)
		}
		h := w.Header()
		if !strings.HasPrefix(h.Get("Content-Security-Policy"), "default-src 'none'; ") || h.Get("X-Content-Type-Options") != "nosniff" || h.Get("Cache-Control") != "no-store" {
			t.Errorf("%s: headers %v", c.event, h)
		}
	}
}

// Reloading checks again where the log has changed, and only there.
func TestViewerChecksAgain(t *testing.T) {
	dir, v := served(t)
	base := "/" + v.secret + "/"
	about := func(generation string) string {
		t.Helper()
		w := ask(v, "GET", base+generation+"/", viewerHost)
		if w.Code == http.StatusSeeOther {
			generation = strings.TrimSuffix(strings.TrimPrefix(w.Header().Get("Location"), base), "/")
		}
		b, err := io.ReadAll(ask(v, "GET", base+generation+"/data/about.js", viewerHost).Body)
		if err != nil {
			t.Fatal(err)
		}
		return generation + string(b)
	}
	if got := about("1"); !strings.HasPrefix(got, "1assent.about(") || !strings.Contains(got, `"status":"intact"`) || !strings.Contains(got, `"statement":"here"`) {
		t.Errorf("at first: %s", got)
	}
	if got := about("1"); !strings.HasPrefix(got, "1") {
		t.Errorf("unchanged: %s", got)
	}
	segment, err := os.ReadFile(filepath.Join(dir, firstSegment))
	if err != nil {
		t.Fatal(err)
	}
	segment[8300] ^= 1
	if err := os.WriteFile(filepath.Join(dir, firstSegment), segment, 0o644); err != nil {
		t.Fatal(err)
	}
	if err := os.Chtimes(filepath.Join(dir, firstSegment), time.Time{}, time.Now().Add(time.Minute)); err != nil {
		t.Fatal(err)
	}
	if got := about("1"); !strings.HasPrefix(got, "2") || !strings.Contains(got, `"status":"altered"`) {
		t.Errorf("after the change: %s", got)
	}
	if v.latest().Status != audit.Altered {
		t.Errorf("the exit status would be that of a log that is %s", v.latest().Status)
	}
	if entries, err := os.ReadDir(v.root.Name()); err != nil || len(entries) != 1 {
		t.Errorf("%d pages are kept, %v", len(entries), err)
	}
}

// The served page works under the headers that it is served with.
func TestViewerInBrowser(t *testing.T) {
	path := os.Getenv("ASSENT_BROWSER")
	for _, name := range []string{"chromium", "chromium-browser", "google-chrome"} {
		if found, err := exec.LookPath(name); path == "" && err == nil {
			path = found
		}
	}
	if path == "" {
		t.Skip("no chromium here: install Debian's chromium, or set ASSENT_BROWSER to a browser's path")
	}
	_, v := served(t)
	server := httptest.NewUnstartedServer(nil)
	server.Config.Handler = v.handler(server.Listener.Addr().String())
	server.Start()
	defer server.Close()
	alloc, cancelAlloc := chromedp.NewExecAllocator(context.Background(), append(slices.Clone(chromedp.DefaultExecAllocatorOptions[:]),
		chromedp.ExecPath(path), chromedp.NoSandbox, chromedp.DisableGPU, chromedp.Flag("host-resolver-rules", "MAP * ~NOTFOUND, EXCLUDE 127.0.0.1"))...)
	defer cancelAlloc()
	ctx, cancel := chromedp.NewContext(alloc)
	defer cancel()
	ctx, stop := context.WithTimeout(ctx, time.Minute)
	defer stop()
	faults := make(chan string, 100)
	if err := chromedp.Listen(ctx, func(ev any) {
		if e, ok := ev.(*log.EventEntryAdded); ok && !strings.HasSuffix(e.Entry.URL, "/favicon.ico") {
			faults <- e.Entry.Text
		}
	}); err != nil {
		t.Fatal(err)
	}
	if _, err := chromedp.Call(ctx, log.Enable, cdp.Empty{}); err != nil {
		t.Fatal(err)
	}
	if err := chromedp.Do(ctx, chromedp.Navigate(server.URL+"/"+v.secret+"/"), chromedp.WaitVisible(chromedp.CSS("#days .event")),
		chromedp.Click(chromedp.CSS("#days .event[href]")), chromedp.WaitVisible(chromedp.CSS("#story .steps"))); err != nil {
		t.Fatal(err)
	}
	verdict, err := chromedp.Run(ctx, chromedp.Evaluate[string](`document.getElementById('verdict').innerText`))
	if err != nil || !strings.Contains(verdict, "Nothing in this record was changed") {
		t.Errorf("the page says %q, %v", verdict, err)
	}
	if len(faults) > 0 {
		t.Errorf("the browser complains: %s", <-faults)
	}
}
