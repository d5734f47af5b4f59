package executortest

import (
	"bytes"
	"encoding/json"
	"net/url"
	"sync"
	"time"

	"assent.home.arpa/capabilities"
)

// Adapter is a capability whose declaration and plan a test can change while it is registered.
type Adapter struct {
	mu   sync.Mutex
	spec capabilities.Spec
	plan func(raw []byte) (capabilities.Plan, error)
}

var _ capabilities.Adapter = (*Adapter)(nil)

// Spec implements capabilities.Adapter.
func (a *Adapter) Spec() capabilities.Spec {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.spec
}

// Plan implements capabilities.Adapter.
func (a *Adapter) Plan(raw []byte) (capabilities.Plan, error) {
	a.mu.Lock()
	plan := a.plan
	a.mu.Unlock()
	return plan(raw)
}

// Change alters what the adapter declares.
func (a *Adapter) Change(f func(*capabilities.Spec)) {
	a.mu.Lock()
	defer a.mu.Unlock()
	f(&a.spec)
}

// Replan alters what the adapter renders.
func (a *Adapter) Replan(f func(capabilities.Plan) capabilities.Plan) {
	a.mu.Lock()
	defer a.mu.Unlock()
	before := a.plan
	a.plan = func(raw []byte) (capabilities.Plan, error) {
		p, err := before(raw)
		if err != nil {
			return p, err
		}
		return f(p), nil
	}
}

const (
	noArguments = `{"type":"object","properties":{},"additionalProperties":false}`
	okResult    = `{"type":"object","properties":{"ok":{"type":"boolean"}},"required":["ok"],"additionalProperties":false}`
	oneQuery    = `{"type":"object","properties":{"query":{"type":"string"}},"required":["query"],"additionalProperties":false}`
)

// Local is "box.state": reads the box, needs no press, takes {}.
func Local() *Adapter {
	return &Adapter{
		spec: capabilities.Spec{
			Name: "box.state", Version: 1, Revision: "state/1", Description: "Says how the box is.",
			ArgsSchema: json.RawMessage(noArguments), ResultShape: json.RawMessage(okResult),
			Effect: capabilities.Read, Network: capabilities.NetworkNone, Privacy: capabilities.PrivacyBox,
			Class: capabilities.ClassNone, Log: capabilities.LogView,
			Bounds: capabilities.Bounds{PerTurn: 3, ArgBytes: 64, Shown: 16, Body: 512, Timeout: 5 * time.Second}, Idempotent: true,
		},
		plan: func(raw []byte) (capabilities.Plan, error) {
			if !bytes.Equal(raw, []byte("{}")) {
				return capabilities.Plan{}, &capabilities.ArgumentError{Code: capabilities.CodeUnknownArgument, Problem: "there are no arguments"}
			}
			return capabilities.Plan{Args: []byte("{}"), Title: "Look at the box"}, nil
		},
	}
}

// Search is "find.pages": asks a public host, needs a press, takes {"query": string}.
func Search() *Adapter {
	return &Adapter{
		spec: capabilities.Spec{
			Name: "find.pages", Version: 1, Revision: "pages/1", Description: "Finds pages about something.",
			ArgsSchema: json.RawMessage(oneQuery), ResultShape: json.RawMessage(okResult),
			Effect: capabilities.Read, Network: capabilities.NetworkInternet, Privacy: capabilities.PrivacyPersonal,
			Class: capabilities.ClassNet, Log: capabilities.LogView,
			Bounds: capabilities.Bounds{PerTurn: 3, ArgBytes: 2048, Shown: 256, Body: 4096, Timeout: 20 * time.Second}, Idempotent: true,
		},
		plan: planSearch,
	}
}

func planSearch(raw []byte) (capabilities.Plan, error) {
	var args struct {
		Query *string `json:"query"`
	}
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.DisallowUnknownFields()
	if err := dec.Decode(&args); err != nil {
		return capabilities.Plan{}, &capabilities.ArgumentError{Code: capabilities.CodeUnknownArgument, Problem: "only a query is taken"}
	}
	if args.Query == nil {
		return capabilities.Plan{}, &capabilities.ArgumentError{Code: capabilities.CodeMissingArgument, Argument: "query", Problem: "it is missing"}
	}
	normal, err := json.Marshal(args)
	if err != nil {
		return capabilities.Plan{}, err
	}
	return capabilities.Plan{
		Args: normal, Title: "Search the pages for", Text: *args.Query, Destination: "pages.example", Note: "asks, changes nothing",
		Request: &capabilities.Request{
			Scheme: "https", Host: "www.pages.example", Port: 443, Address: capabilities.AddressPublic,
			Bytes: []byte("GET /?q=" + url.QueryEscape(*args.Query) + " HTTP/1.1\r\nHost: www.pages.example\r\nConnection: close\r\n\r\n"),
		},
	}, nil
}
