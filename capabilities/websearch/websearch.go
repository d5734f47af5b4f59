// Package websearch is web.search: one query to the search engine that the owner chose, and citations back.
//
// The capability has one argument and one consequence text, and an adapter for each kind of engine: MediaWiki's own search
// (Wikipedia, or a wiki in the house) and SearXNG. Both need a press, because the query leaves the box.
//
// # What leaves
//
// The guard's half renders the whole request. Everything in it but the query is a constant of the adapter's revision and of
// the configured endpoint: no cookie, no Referer, no language, nothing that tells one box from another. The query is
// percent-encoded (RFC 3986 section 2.1) byte by byte outside the unreserved characters, so that whatever it holds, it is
// one value of one parameter; decoding that value gives exactly Plan.Text, which is what the panel shows.
//
// The query is not rewritten: not trimmed, not brought to a Unicode normal form, not lower-cased. What the model wrote is
// what is shown and what is sent; whether all of it can be shown is for the panel's own rule to say, later.
//
// # What comes back
//
// The worker's half turns the engine's answer, which is hostile until shown otherwise, into at most five citations of
// bounded plain text. Markup is removed, not interpreted; an item without a well-formed web address is left out. What an
// item says, it says as data.
package websearch

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"
	"unicode/utf8"

	"assent.home.arpa/capabilities"
	"assent.home.arpa/capabilities/arguments"
)

// The adapter revisions. A change of a request's form or of an answer's reading is a new revision.
const (
	RevisionMediaWiki = "mediawiki/1"
	RevisionSearXNG   = "searxng/1"
)

const (
	maxItems = 5
	argBytes = 4 << 10 // 256 code points, each as a pair of \u escapes, and room for the object
	maxQuery = 256     // code points, as for all text that leaves
	maxLabel = 24      // bytes
)

const argsSchema = `{"type":"object","properties":{"query":{"type":"string","minLength":1,"maxLength":256,"description":"words to search for"}},"required":["query"],"additionalProperties":false}`

const resultShape = `{
	"type": "object",
	"additionalProperties": false,
	"required": ["citations"],
	"properties": {
		"citations": {
			"type": "array",
			"maxItems": 5,
			"items": {
				"type": "object",
				"additionalProperties": false,
				"required": ["title", "url", "content", "retrieved_at"],
				"properties": {
					"title": {"type": "string", "minLength": 1, "maxLength": 200},
					"url": {"type": "string", "pattern": "^https?://", "maxLength": 1024},
					"content": {"type": "string", "maxLength": 600},
					"retrieved_at": {"type": "string", "maxLength": 20, "description": "RFC 3339 in UTC; empty where the box has no date"}
				}
			}
		}
	}
}`

// Adapter is the guard's half, for one endpoint.
type Adapter struct {
	endpoint endpoint
	label    string
	revision string
	query    string // the constant part of the query string, up to the search text
}

var _ capabilities.Adapter = (*Adapter)(nil)

// MediaWiki searches a wiki through its action API: endpoint is the address of api.php, label what the panel calls it.
// The answer's pages are cited as /wiki/Title on the same host.
func MediaWiki(address, label string) (*Adapter, error) {
	return newAdapter(address, label, RevisionMediaWiki,
		"action=query&list=search&format=json&formatversion=2&utf8=1&srlimit=5&srprop=snippet%7Ctimestamp&srsearch=")
}

// SearXNG searches through an instance whose settings allow the json format: endpoint is the address of its search page.
func SearXNG(address, label string) (*Adapter, error) {
	return newAdapter(address, label, RevisionSearXNG, "format=json&q=")
}

func newAdapter(address, label, revision, query string) (*Adapter, error) {
	e, err := parseEndpoint(address)
	if err != nil {
		return nil, fmt.Errorf("websearch: %w", err)
	}
	if label == "" || len(label) > maxLabel || strings.ContainsFunc(label, func(r rune) bool { return r < ' ' || r > '~' }) {
		return nil, fmt.Errorf("websearch: the label must be 1 to %d printable ASCII characters", maxLabel)
	}
	return &Adapter{endpoint: e, label: label, revision: revision, query: query}, nil
}

// Spec implements capabilities.Adapter.
func (a *Adapter) Spec() capabilities.Spec {
	network := capabilities.NetworkInternet
	if a.endpoint.address != capabilities.AddressPublic {
		network = capabilities.NetworkLAN
	}
	return capabilities.Spec{
		Name:        "web.search",
		Version:     1,
		Revision:    a.revision,
		Description: "Search the web for facts, news, weather, prices, opening hours or anything current.",
		ArgsSchema:  json.RawMessage(argsSchema),
		ResultShape: json.RawMessage(resultShape),
		Effect:      capabilities.Read,
		Network:     network,
		Privacy:     capabilities.PrivacyPersonal,
		Class:       capabilities.ClassNet,
		Log:         capabilities.LogDigest,
		Bounds:      capabilities.Bounds{PerTurn: 3, ArgBytes: argBytes, Shown: maxQuery, Body: 16 << 10, Timeout: 30 * time.Second},
		Idempotent:  true,
	}
}

// Plan implements capabilities.Adapter.
func (a *Adapter) Plan(raw []byte) (capabilities.Plan, error) {
	members, err := arguments.Object(raw, argBytes, "query")
	if err != nil {
		return capabilities.Plan{}, err
	}
	query, err := arguments.Text(members, "query")
	if err != nil {
		return capabilities.Plan{}, err
	}
	if strings.TrimSpace(query) == "" {
		return capabilities.Plan{}, &capabilities.ArgumentError{Code: capabilities.CodeInvalidArguments, Argument: "query", Problem: "it is empty"}
	}
	if utf8.RuneCountInString(query) > maxQuery {
		return capabilities.Plan{}, &capabilities.ArgumentError{
			Code: capabilities.CodeArgumentTooLong, Argument: "query", Problem: fmt.Sprintf("it is over %d characters", maxQuery),
		}
	}
	return capabilities.Plan{
		Args: arguments.Encode(struct {
			Query string `json:"query"`
		}{query}),
		Title:       "Search " + a.label + " for",
		Text:        query,
		Destination: a.endpoint.shown,
		Note:        "asks, changes nothing",
		Request:     a.endpoint.get(a.query + percentEncode(query)),
	}, nil
}

// percentEncode writes every byte outside RFC 3986's unreserved characters as %XX. Unlike url.QueryEscape it has no "+",
// which means a space in some places and a plus in others.
func percentEncode(s string) string {
	const hex = "0123456789ABCDEF"
	var b strings.Builder
	for i := range len(s) {
		c := s[i]
		if 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' || strings.IndexByte("-._~", c) >= 0 {
			b.WriteByte(c)
			continue
		}
		b.Write([]byte{'%', hex[c>>4], hex[c&15]})
	}
	return b.String()
}
