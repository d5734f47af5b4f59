// Package web is the phone page: plain HTML, CSS and ES modules, embedded and served as they are.
//
// The page has no framework, no build step and nothing from elsewhere. What a model or a web site wrote reaches the
// document as text nodes only; the policy that Protect sets (no inline script, no foreign origin, no string that becomes
// markup) would stop a mistake as well. There is exactly one place where an address can be opened: a sheet that shows
// all of it and asks.
package web

import (
	"bytes"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"fmt"
	"io/fs"
	"net/http"
	"path"
	"strings"
	"time"
)

//go:embed page
var files embed.FS

// policy is the page's content security policy (CSP level 3).
const policy = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self'; manifest-src 'self'; " +
	"base-uri 'none'; form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'"

// Protect sets the headers that every answer of the gateway carries.
func Protect(h http.Header) {
	h.Set("Content-Security-Policy", policy)
	h.Set("Referrer-Policy", "no-referrer")
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("X-Frame-Options", "DENY")
	h.Set("Cross-Origin-Opener-Policy", "same-origin")
	h.Set("Cross-Origin-Resource-Policy", "same-origin")
	h.Set("Permissions-Policy", "camera=(), geolocation=(), microphone=(), payment=(), usb=()")
}

type asset struct {
	body []byte
	kind string
	tag  string
}

// contentType is what the page consists of; anything else in the directory is a mistake.
func contentType(name string) (string, bool) {
	switch path.Ext(name) {
	case ".html":
		return "text/html; charset=utf-8", true
	case ".css":
		return "text/css; charset=utf-8", true
	case ".js":
		return "text/javascript; charset=utf-8", true
	case ".svg":
		return "image/svg+xml", true
	case ".webmanifest":
		return "application/manifest+json", true
	}
	return "", false
}

// Handler serves the page's files, by their exact names, and nothing else: there is no listing and no redirect.
func Handler() http.Handler {
	assets := map[string]asset{}
	err := fs.WalkDir(files, "page", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		kind, ok := contentType(name)
		if !ok {
			return fmt.Errorf("%s has no content type", name)
		}
		b, err := files.ReadFile(name)
		if err != nil {
			return err
		}
		sum := sha256.Sum256(b)
		a := asset{body: b, kind: kind, tag: `"` + hex.EncodeToString(sum[:8]) + `"`}
		url := strings.TrimPrefix(name, "page")
		if url == "/index.html" {
			url = "/"
		}
		assets[url] = a
		return nil
	})
	if err != nil {
		panic("web: internal error: " + err.Error())
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		a, ok := assets[r.URL.Path]
		if !ok {
			http.Error(w, "there is no such page", http.StatusNotFound)
			return
		}
		w.Header().Set("Content-Type", a.kind)
		w.Header().Set("ETag", a.tag)
		w.Header().Set("Cache-Control", "no-cache") // revalidated, so that an updated box is never half old
		http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(a.body))
	})
}
