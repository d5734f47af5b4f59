package websearch_test

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"assent.home.arpa/capabilities"
	"assent.home.arpa/capabilities/websearch"
)

func wikipedia(t interface{ Fatal(...any) }) *websearch.Adapter {
	a, err := websearch.MediaWiki("https://en.wikipedia.org/w/api.php", "Wikipedia")
	if err != nil {
		t.Fatal(err)
	}
	return a
}

func searx(t interface{ Fatal(...any) }) *websearch.Adapter {
	a, err := websearch.SearXNG("http://192.168.1.5:8888/search", "SearXNG")
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// W6: these bytes are what is shown, signed and sent. A change of any of them is a new adapter revision.
func TestRequestIsExactlyThis(t *testing.T) {
	const tail = "User-Agent: Assent/1 (home box; each search is approved by a person)\r\nAccept: application/json\r\nAccept-Encoding: identity\r\nConnection: close\r\n\r\n"
	for event, c := range map[string]struct {
		adapter *websearch.Adapter
		want    capabilities.Plan
	}{
		"mediawiki": {wikipedia(t), capabilities.Plan{
			Args: []byte(`{"query":"tea & <cake>"}`), Title: "Search Wikipedia for", Text: "tea & <cake>", Destination: "wikipedia.org", Note: "asks, changes nothing",
			Request: &capabilities.Request{Scheme: "https", Host: "en.wikipedia.org", Port: 443, Address: capabilities.AddressPublic, Bytes: []byte(
				"GET /w/api.php?action=query&list=search&format=json&formatversion=2&utf8=1&srlimit=5&srprop=snippet%7Ctimestamp&srsearch=tea%20%26%20%3Ccake%3E HTTP/1.1\r\n" +
					"Host: en.wikipedia.org\r\n" + tail)},
		}},
		"searxng": {searx(t), capabilities.Plan{
			Args: []byte(`{"query":"tea & <cake>"}`), Title: "Search SearXNG for", Text: "tea & <cake>", Destination: "192.168.1.5", Note: "asks, changes nothing",
			Request: &capabilities.Request{Scheme: "http", Host: "192.168.1.5", Port: 8888, Address: capabilities.AddressLAN, Bytes: []byte(
				"GET /search?format=json&q=tea%20%26%20%3Ccake%3E HTTP/1.1\r\nHost: 192.168.1.5:8888\r\n" + tail)},
		}},
	} {
		got, err := c.adapter.Plan([]byte(`{"query":"tea & <cake>"}`))
		if err != nil {
			t.Errorf("%s: %v", event, err)
		}
		if diff := cmp.Diff(c.want, got); diff != "" {
			t.Errorf("%s: %s", event, diff)
		}
	}
}

// W6: whatever the query holds, the request has it as one value, and nothing else depends on it.
func TestSentEqualsShown(t *testing.T) {
	for event, c := range map[string]struct {
		adapter   *websearch.Adapter
		parameter string
	}{"mediawiki": {wikipedia(t), "srsearch"}, "searxng": {searx(t), "q"}} {
		base, err := c.adapter.Plan([]byte(`{"query":"x"}`))
		if err != nil {
			t.Fatal(err)
		}
		t.Run(event, rapid.MakeCheck(func(t *rapid.T) {
			query := rapid.OneOf(
				rapid.StringN(1, 256, 1024),
				rapid.StringOfN(rapid.RuneFrom([]rune("a+%&=#?;\r\n\x00\t \\\"'/.\u00e9e\u0301\u202e\u200b😀HTTP1: ")), 1, 256, -1),
			).Draw(t, "query")
			raw, err := json.Marshal(map[string]string{"query": query})
			if err != nil {
				t.Fatal(err)
			}
			p, err := c.adapter.Plan(raw)
			if err != nil {
				var arg *capabilities.ArgumentError
				if !errors.As(err, &arg) || strings.TrimSpace(query) != "" && arg.Code != capabilities.CodeArgumentTooLong {
					t.Fatalf("%q: %v", query, err)
				}
				return
			}
			if p.Text != query {
				t.Fatalf("the model wrote %q, %q is shown", query, p.Text)
			}
			req, err := http.ReadRequest(bufio.NewReader(bytes.NewReader(p.Request.Bytes)))
			if err != nil {
				t.Fatalf("%q: %v", query, err)
			}
			values, err := url.ParseQuery(req.URL.RawQuery)
			if err != nil || len(values[c.parameter]) != 1 || values[c.parameter][0] != query {
				t.Fatalf("%q is shown, %q is sent, %v", query, values[c.parameter], err)
			}
			// The request with the query taken out again is the constant that any other query gives.
			begin := bytes.Index(p.Request.Bytes, []byte("&"+c.parameter+"=")) + len(c.parameter) + 2
			end := bytes.Index(p.Request.Bytes, []byte(" HTTP/1.1\r\n"))
			rest := slices.Concat(p.Request.Bytes[:begin], []byte("x"), p.Request.Bytes[end:])
			if !bytes.Equal(rest, base.Request.Bytes) {
				t.Fatalf("%q changes more than its own value: %q", query, p.Request.Bytes)
			}
			// The normal form reads back as the same plan.
			again, err := c.adapter.Plan(p.Args)
			if err != nil || !cmp.Equal(again, p) {
				t.Fatalf("%s gives another plan: %v", p.Args, err)
			}
		}))
	}
}

func TestArgumentsThatAreRefused(t *testing.T) {
	for event, c := range map[string]struct {
		raw  string
		code capabilities.Code
	}{
		"a token too":          {`{"query":"tea","token":"9F3A"}`, capabilities.CodeUnknownArgument},
		"another name":         {`{"q":"tea"}`, capabilities.CodeUnknownArgument},
		"nothing":              {`{}`, capabilities.CodeMissingArgument},
		"empty":                {`{"query":""}`, capabilities.CodeInvalidArguments},
		"only spaces":          {`{"query":" \t\u00a0\n"}`, capabilities.CodeInvalidArguments},
		"a list":               {`{"query":["tea"]}`, capabilities.CodeInvalidArguments},
		"twice":                {`{"query":"a","query":"b"}`, capabilities.CodeInvalidArguments},
		"257 characters":       {`{"query":"` + strings.Repeat("é", 257) + `"}`, capabilities.CodeArgumentTooLong},
		"4,000 characters":     {`{"query":"` + strings.Repeat("a", 4000) + `"}`, capabilities.CodeArgumentTooLong},
		"5,000 bytes of space": {`{"query":"a"` + strings.Repeat(" ", 5000) + `}`, capabilities.CodeArgumentTooLong},
	} {
		_, err := wikipedia(t).Plan([]byte(c.raw))
		var arg *capabilities.ArgumentError
		if !errors.As(err, &arg) || arg.Code != c.code {
			t.Errorf("%s: got %v, want %s", event, err, c.code)
		}
	}
	if _, err := wikipedia(t).Plan([]byte(`{"query":"` + strings.Repeat(`\ud83d\ude00`, 256) + `"}`)); err != nil {
		t.Errorf("256 characters in the longest form: %v", err)
	}
}

func TestEndpoints(t *testing.T) {
	for address, want := range map[string]capabilities.Request{
		"https://en.wikipedia.org/w/api.php":    {Scheme: "https", Host: "en.wikipedia.org", Port: 443, Address: capabilities.AddressPublic},
		"https://EN.Wikipedia.org:8443/w/a.php": {Scheme: "https", Host: "en.wikipedia.org", Port: 8443, Address: capabilities.AddressPublic},
		"https://bücher.example.com/api.php":    {Scheme: "https", Host: "xn--bcher-kva.example.com", Port: 443, Address: capabilities.AddressPublic},
		"https://93.184.215.14/api.php":         {Scheme: "https", Host: "93.184.215.14", Port: 443, Address: capabilities.AddressPublic},
		"http://192.168.1.5:8888/search":        {Scheme: "http", Host: "192.168.1.5", Port: 8888, Address: capabilities.AddressLAN},
		"http://[fd00::5]/search":               {Scheme: "http", Host: "fd00::5", Port: 80, Address: capabilities.AddressLAN},
		"https://169.254.7.7/search":            {Scheme: "https", Host: "169.254.7.7", Port: 443, Address: capabilities.AddressLAN},
		"http://127.0.0.1:9000/w/api.php":       {Scheme: "http", Host: "127.0.0.1", Port: 9000, Address: capabilities.AddressLoopback},
	} {
		a, err := websearch.MediaWiki(address, "Test")
		if err != nil {
			t.Errorf("%s: %v", address, err)
			continue
		}
		p, err := a.Plan([]byte(`{"query":"x"}`))
		if err != nil {
			t.Errorf("%s: %v", address, err)
			continue
		}
		want.Bytes = p.Request.Bytes
		if diff := cmp.Diff(want, *p.Request); diff != "" {
			t.Errorf("%s: %s", address, diff)
		}
		req, err := http.ReadRequest(bufio.NewReader(bytes.NewReader(p.Request.Bytes)))
		if err != nil {
			t.Errorf("%s: %v", address, err)
			continue
		}
		u := url.URL{Scheme: want.Scheme, Host: req.Host}
		if u.Hostname() != want.Host {
			t.Errorf("%s: Host is %q", address, req.Host)
		}
	}
}

func TestEndpointsThatAreRefused(t *testing.T) {
	for _, address := range []string{
		"", "en.wikipedia.org", "//en.wikipedia.org/", "ftp://en.wikipedia.org/", "file:///etc/passwd", "https:en.wikipedia.org",
		"https://user@en.wikipedia.org/", "https://en.wikipedia.org/?x=1", "https://en.wikipedia.org/?", "https://en.wikipedia.org/#x",
		`https://en.wikipedia.org\@evil.example/`, "https://en.wikipedia.org/\r\nX: y", "https://en.wikipedia.org/a b",
		"https://en.wikipedia.org./", "https://en.wikipedia.org:0/", "https://en.wikipedia.org:99999/", "https://en.wikipedia.org:/",
		"http://en.wikipedia.org/w/api.php", "http://93.184.215.14/", "https://localhost/", "https://searx/", "https://searx.lan/", "https://com/",
		"https://127.1/", "https://0x7f.1/", "https://2130706433/", "https://1.2.3.04/", "http://[::ffff:10.0.0.1]/", "http://[fe80::1%25eth0]/",
		"https://0.0.0.0/", "https://224.0.0.1/", "https://[ff02::1]/", "https://a_b.example.com/", "https://-.example.com/",
	} {
		if a, err := websearch.MediaWiki(address, "Test"); err == nil {
			p, _ := a.Plan([]byte(`{"query":"x"}`))
			t.Errorf("%q was taken as %+v", address, p.Request)
		}
	}
	for _, label := range []string{"", strings.Repeat("x", 25), "Wiki\npedia", "Wikipédia"} {
		if _, err := websearch.MediaWiki("https://en.wikipedia.org/w/api.php", label); err == nil {
			t.Errorf("label %q was taken", label)
		}
	}
}

// A19 and C47: both adapters are one capability with one consequence; only the destination differs.
func TestSpecNeedsAPressAndANetworkWorker(t *testing.T) {
	for want, a := range map[capabilities.Network]*websearch.Adapter{capabilities.NetworkInternet: wikipedia(t), capabilities.NetworkLAN: searx(t)} {
		s := a.Spec()
		if s.WireName() != "web_search__v1" || s.Network != want || s.Class != capabilities.ClassNet || s.Effect != capabilities.Read {
			t.Errorf("%+v", s)
		}
		if s.Bounds.Shown != 256 || s.Bounds.Body > 64<<10 || s.Bounds.Timeout <= 0 || s.Bounds.PerTurn < 1 {
			t.Errorf("bounds %+v", s.Bounds)
		}
	}
}
