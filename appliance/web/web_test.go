package web_test

import (
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"testing"

	"golang.org/x/net/html"

	"assent.home.arpa/appliance/web"
)

func get(t *testing.T, path string) *httptest.ResponseRecorder {
	t.Helper()
	w := httptest.NewRecorder()
	web.Handler().ServeHTTP(w, httptest.NewRequest("GET", path, nil))
	return w
}

// all follows the page's references and returns every file of it.
func all(t *testing.T) map[string]string {
	t.Helper()
	imports := regexp.MustCompile(`from '\./([a-z]+\.js)'`)
	found := map[string]string{}
	var visit func(string)
	visit = func(path string) {
		if _, ok := found[path]; ok {
			return
		}
		w := get(t, path)
		if w.Code != http.StatusOK {
			t.Errorf("%s: %d", path, w.Code)
		}
		found[path] = w.Body.String()
		if strings.HasSuffix(path, ".js") {
			for _, m := range imports.FindAllStringSubmatch(found[path], -1) {
				visit("/js/" + m[1])
			}
		}
	}
	visit("/")
	doc, err := html.Parse(strings.NewReader(found["/"]))
	if err != nil {
		t.Fatal(err)
	}
	for n := range doc.Descendants() {
		if n.Data == "style" || n.Data == "script" && n.FirstChild != nil {
			t.Errorf("an inline %s", n.Data)
		}
		for _, a := range n.Attr {
			switch {
			case a.Key == "style" || strings.HasPrefix(a.Key, "on"):
				t.Errorf("%s has the attribute %s", n.Data, a.Key)
			case a.Key == "src" || a.Key == "href":
				visit(a.Val)
			}
		}
	}
	return found
}

// The page holds nothing from elsewhere and nothing inline, and no script turns text into markup.
func TestPageHoldsNothingForeign(t *testing.T) {
	files := all(t)
	for path, body := range files {
		if regexp.MustCompile(`\burl\(|(src|href|import|fetch)[^\n]{0,20}https?://`).MatchString(body) {
			t.Errorf("%s refers to something elsewhere", path)
		}
		for _, bad := range []string{"innerHTML", "outerHTML", "insertAdjacentHTML", "document.write", "DOMParser", "eval(", "Function(", "createContextualFragment", "setAttribute('style", "localStorage"} {
			if strings.Contains(body, bad) {
				t.Errorf("%s uses %s", path, bad)
			}
		}
	}
	if len(files) < 10 {
		t.Errorf("only %d files were found", len(files))
	}
}

func TestFilesAreServedByName(t *testing.T) {
	for path, want := range map[string]int{"/": 200, "/style.css": 200, "/js/app.js": 200, "/js/": 404, "/page/index.html": 404, "/web.go": 404, "": 404, "/js/../style.css": 404} {
		w := httptest.NewRecorder()
		r := httptest.NewRequest("GET", "/", nil)
		r.URL.Path = path
		web.Handler().ServeHTTP(w, r)
		if w.Code != want {
			t.Errorf("%q: %d, want %d", path, w.Code, want)
		}
	}
}

// An updated box is never half old: a browser asks again, and is told that nothing has changed.
func TestFilesAreRevalidated(t *testing.T) {
	first := get(t, "/js/app.js")
	if c := first.Header().Get("Cache-Control"); c != "no-cache" {
		t.Errorf("Cache-Control %q", c)
	}
	r := httptest.NewRequest("GET", "/js/app.js", nil)
	r.Header.Set("If-None-Match", first.Header().Get("ETag"))
	w := httptest.NewRecorder()
	web.Handler().ServeHTTP(w, r)
	if w.Code != http.StatusNotModified {
		t.Errorf("%d, want 304", w.Code)
	}
}
