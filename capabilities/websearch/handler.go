package websearch

import (
	"context"
	"encoding/json"
	"errors"
	"net"
	"strings"
	"time"

	"assent.home.arpa/capabilities"
	"assent.home.arpa/capabilities/arguments"
	"assent.home.arpa/capabilities/httpcall"
)

// maxAnswer bounds the engine's answer in bytes. Five results of Wikipedia are about 3 KiB, a page of SearXNG about 60 KiB.
const maxAnswer = 1 << 20

// Handler is the worker's half, for one kind of engine.
type Handler struct {
	revision string
	read     func(answer []byte, req *capabilities.Request) ([]item, error)
	now      func() time.Time
}

var _ capabilities.Handler = (*Handler)(nil)

// MediaWikiHandler makes the calls that MediaWiki plans. now dates the citations; it returns the zero time where the box
// has no date.
func MediaWikiHandler(now func() time.Time) *Handler {
	return &Handler{revision: RevisionMediaWiki, read: readMediaWiki, now: now}
}

// SearXNGHandler makes the calls that SearXNG plans; see MediaWikiHandler.
func SearXNGHandler(now func() time.Time) *Handler {
	return &Handler{revision: RevisionSearXNG, read: readSearXNG, now: now}
}

// Revision implements capabilities.Handler.
func (h *Handler) Revision() string { return h.revision }

var (
	errBadAnswer   = errors.New("websearch: the answer is not a search result")
	errRemoteError = errors.New("websearch: the engine says that it failed")
)

// Run implements capabilities.Handler. A search has no effect, so one without an answer has failed; it is never unknown.
func (h *Handler) Run(ctx context.Context, _ []byte, req *capabilities.Request, _ []byte, conn net.Conn, bound int) capabilities.Answer {
	if req == nil || conn == nil {
		return capabilities.Answer{Status: capabilities.Failed, Code: capabilities.CodeInternal}
	}
	resp, err := httpcall.Exchange(ctx, conn, req.Bytes, httpcall.Limits{Body: maxAnswer, Types: []string{"application/json"}})
	if err != nil {
		var e *httpcall.Error
		if !errors.As(err, &e) {
			e = &httpcall.Error{Code: capabilities.CodeInternal, Sent: true}
		}
		return e.Answer(capabilities.Read)
	}
	a := capabilities.Answer{Status: capabilities.Failed, Code: capabilities.CodeBadResponse, Sent: true, HTTPStatus: 200, Answer: resp.Digest}
	items, err := h.read(resp.Body, req)
	if err != nil {
		if errors.Is(err, errRemoteError) {
			a.Code = capabilities.CodeRemoteError
		}
		return a
	}
	body, n, truncated := h.cite(items, bound)
	if body == nil {
		return a
	}
	a.Status, a.Code = capabilities.Done, ""
	a.Body, a.Items, a.Truncated = body, uint16(n), truncated
	return a
}

// item is one result in plain text, not yet bounded.
type item struct{ title, url, content string }

// citation is one record of the result (A29).
type citation struct {
	Title       string `json:"title"`
	URL         string `json:"url"`
	Content     string `json:"content"`
	RetrievedAt string `json:"retrieved_at"`
}

// cite bounds the items and writes as many as fit into bound bytes, in the engine's order.
func (h *Handler) cite(items []item, bound int) (body []byte, n int, truncated bool) {
	at := ""
	if t := h.now(); !t.IsZero() {
		at = t.UTC().Format(time.RFC3339)
	}
	citations := []citation{} // an empty result is a list, not null
	for _, it := range items {
		if len(citations) == maxItems {
			truncated = true
			break
		}
		title, cutTitle := shorten(it.title, maxTitle)
		content, cutContent := shorten(it.content, maxContent)
		if title == "" {
			title = it.url[:min(len(it.url), maxTitle)]
		}
		truncated = truncated || cutTitle || cutContent
		citations = append(citations, citation{Title: title, URL: it.url, Content: content, RetrievedAt: at})
	}
	for {
		body = arguments.Encode(struct {
			Citations []citation `json:"citations"`
		}{citations})
		if len(body) <= bound {
			return body, len(citations), truncated
		}
		if len(citations) == 0 {
			return nil, 0, false
		}
		citations, truncated = citations[:len(citations)-1], true
	}
}

// readMediaWiki reads the answer of list=search in format version 2.
func readMediaWiki(answer []byte, req *capabilities.Request) ([]item, error) {
	var a struct {
		Error json.RawMessage `json:"error"`
		Query *struct {
			Search []struct {
				Title   string `json:"title"`
				Snippet string `json:"snippet"`
			} `json:"search"`
		} `json:"query"`
	}
	if err := json.Unmarshal(answer, &a); err != nil {
		return nil, errBadAnswer
	}
	if a.Error != nil {
		return nil, errRemoteError
	}
	if a.Query == nil || a.Query.Search == nil {
		return nil, errBadAnswer
	}
	var items []item
	for _, r := range a.Query.Search {
		title := clean(r.Title)
		address, ok := pageURL(req, title)
		if !ok {
			continue
		}
		items = append(items, item{title: title, url: address, content: stripHTML(r.Snippet)})
	}
	return items, nil
}

// readSearXNG reads the answer of SearXNG's json format. Its texts are plain already.
func readSearXNG(answer []byte, _ *capabilities.Request) ([]item, error) {
	var a struct {
		Results []struct {
			URL     string `json:"url"`
			Title   string `json:"title"`
			Content string `json:"content"`
		} `json:"results"`
	}
	if err := json.Unmarshal(answer, &a); err != nil || a.Results == nil {
		return nil, errBadAnswer
	}
	var items []item
	for _, r := range a.Results {
		address, ok := webURL(r.URL)
		if !ok {
			continue
		}
		items = append(items, item{title: clean(r.Title), url: address, content: clean(strings.TrimSpace(r.Content))})
	}
	return items, nil
}
