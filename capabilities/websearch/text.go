package websearch

import (
	"net/url"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/net/html"
	"golang.org/x/net/idna"

	"assent.home.arpa/capabilities"
)

// The bounds of a citation: code points of text, bytes of address.
const (
	maxTitle   = 200
	maxContent = 600
	maxURL     = 1024
)

// stripHTML returns the text of an HTML fragment. Tags, comments and what stands in scripts and styles are gone; entities
// are read once, so that "&lt;b&gt;" is the text "<b>" and nothing else.
func stripHTML(fragment string) string {
	var b strings.Builder
	z := html.NewTokenizer(strings.NewReader(fragment))
	hidden := "" // the element whose content is not text
	for {
		switch z.Next() {
		case html.ErrorToken:
			return clean(b.String())
		case html.TextToken:
			if hidden == "" {
				b.Write(z.Text())
			}
		case html.StartTagToken:
			name, _ := z.TagName()
			if n := string(name); hidden == "" && (n == "script" || n == "style") {
				hidden = n
			}
		case html.EndTagToken:
			if name, _ := z.TagName(); string(name) == hidden {
				hidden = ""
			}
		}
	}
}

// clean turns runs of white space into one space and drops the other control characters (C0, C1 and DEL). All else stays:
// the text is somebody's, and whoever displays it decides how.
func clean(s string) string {
	var b strings.Builder
	b.Grow(len(s))
	gap := false
	for _, r := range s {
		switch {
		case unicode.IsSpace(r):
			gap = b.Len() > 0
		case unicode.IsControl(r):
		default:
			if gap {
				b.WriteByte(' ')
				gap = false
			}
			b.WriteRune(r)
		}
	}
	return b.String()
}

// shorten cuts s to at most n code points, the last of which then says so.
func shorten(s string, n int) (string, bool) {
	if utf8.RuneCountInString(s) <= n {
		return s, false
	}
	r := []rune(s)[:n-1]
	return strings.TrimRight(string(r), " ") + "…", true
}

// pageURL is the address of a wiki page on the host that answered. It reports false for what cannot be a page's title.
func pageURL(req *capabilities.Request, title string) (string, bool) {
	// These cannot be in a title (MediaWiki's Manual:Page title); a dot segment would lead elsewhere.
	if title == "" || strings.ContainsAny(title, "#<>[]|{}") {
		return "", false
	}
	for segment := range strings.SplitSeq(title, "/") {
		if segment == "." || segment == ".." {
			return "", false
		}
	}
	u := url.URL{Scheme: req.Scheme, Host: authority(req.Scheme, req.Host, req.Port), Path: "/wiki/" + strings.ReplaceAll(title, " ", "_")}
	s := u.String()
	return s, len(s) <= maxURL
}

// webURL returns the ASCII form of a result's address. It reports false for anything that is not a plain web address.
func webURL(s string) (string, bool) {
	if len(s) > maxURL || strings.ContainsFunc(s, func(r rune) bool { return r <= ' ' || r == '\\' || unicode.IsControl(r) || unicode.Is(unicode.Cf, r) }) {
		return "", false
	}
	u, err := url.Parse(s)
	if err != nil || u.Scheme != "https" && u.Scheme != "http" || u.User != nil || u.Hostname() == "" {
		return "", false
	}
	if !strings.HasPrefix(u.Host, "[") {
		// In A-labels a look-alike name looks like what it is.
		host, err := idna.Lookup.ToASCII(u.Hostname())
		if err != nil {
			return "", false
		}
		if port := u.Port(); port != "" {
			host += ":" + port
		}
		u.Host = host
	}
	out := u.String()
	return out, len(out) <= maxURL
}
