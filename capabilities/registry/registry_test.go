package registry_test

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"assent.home.arpa/capabilities"
	"assent.home.arpa/capabilities/registry"
)

// adapter is a capability whose declaration a test can change.
type adapter struct{ spec capabilities.Spec }

func (a *adapter) Spec() capabilities.Spec { return a.spec }

func (a *adapter) Plan(raw []byte) (capabilities.Plan, error) {
	return capabilities.Plan{Args: raw}, nil
}

func spec(name capabilities.Name) capabilities.Spec {
	const closed = `{"type":"object","properties":{},"additionalProperties":false}`
	return capabilities.Spec{
		Name: name, Version: 1, Revision: "test/1", Description: "Says how " + string(name) + " is.",
		ArgsSchema: json.RawMessage(closed), ResultShape: json.RawMessage(closed),
		Effect: capabilities.Read, Network: capabilities.NetworkNone, Privacy: capabilities.PrivacyBox,
		Class: capabilities.ClassNone, Log: capabilities.LogView,
		Bounds: capabilities.Bounds{PerTurn: 3, ArgBytes: 64, Shown: 10, Body: 512, Timeout: time.Second},
	}
}

func all(capabilities.Spec) bool { return true }

func TestCatalogIsMadeFromTheRegistryEachTime(t *testing.T) {
	a, b := &adapter{spec("a.one")}, &adapter{spec("b.two")}
	r, err := registry.New(b, a)
	if err != nil {
		t.Fatal(err)
	}
	want := []capabilities.Entry{a.spec.Entry(), b.spec.Entry()}
	if diff := cmp.Diff(want, r.Catalog(all)); diff != "" {
		t.Fatal(diff)
	}
	if got := r.Catalog(func(s capabilities.Spec) bool { return s.Name == "b.two" }); len(got) != 1 || got[0].Name != "b_two__v1" {
		t.Fatalf("the filter was not applied: %v", got)
	}
	// A registry with one more adapter shows it, and nothing else was edited.
	r, err = registry.New(a, b, &adapter{spec("c.three")})
	if err != nil {
		t.Fatal(err)
	}
	if got := r.Catalog(all); len(got) != 3 || got[2].Name != "c_three__v1" {
		t.Fatalf("the new capability is missing: %v", got)
	}
}

func TestCatalogEntryHoldsFourFieldsAndNoClasses(t *testing.T) {
	r, err := registry.New(&adapter{spec("a.one")})
	if err != nil {
		t.Fatal(err)
	}
	b, err := json.Marshal(r.Catalog(all)[0])
	if err != nil {
		t.Fatal(err)
	}
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(b, &fields); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"name", "version", "description", "parameters"} {
		if _, ok := fields[want]; !ok {
			t.Errorf("no field %q", want)
		}
		delete(fields, want)
	}
	if len(fields) > 0 {
		t.Errorf("the model sees more than it may: %v", fields)
	}
}

func TestLookupCorrectsNothing(t *testing.T) {
	r, err := registry.New(&adapter{spec("web.search")})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := r.Lookup("web_search__v1"); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"", "web.search", "web_search", "web_search__v2", "web_serch__v1", "Web_search__v1", "web_search__v1 "} {
		if _, err := r.Lookup(name); !errors.Is(err, registry.ErrUnknown) {
			t.Errorf("%q was found: %v", name, err)
		}
	}
}

func TestDriftedAdapterIsNeitherOfferedNorFound(t *testing.T) {
	for what, change := range map[string]func(*capabilities.Spec){
		"description": func(s *capabilities.Spec) { s.Description += " Also shares it." },
		"schema":      func(s *capabilities.Spec) { s.ArgsSchema = json.RawMessage(string(s.ArgsSchema) + " ") },
		"revision":    func(s *capabilities.Spec) { s.Revision = "test/2" },
		"effect":      func(s *capabilities.Spec) { s.Effect = capabilities.Write },
		"log policy":  func(s *capabilities.Spec) { s.Log = capabilities.LogOmit },
		"timeout":     func(s *capabilities.Spec) { s.Bounds.Timeout++ },
	} {
		a := &adapter{spec("a.one")}
		r, err := registry.New(a)
		if err != nil {
			t.Fatal(err)
		}
		before := r.Digest()
		change(&a.spec)
		if _, err := r.Lookup("a_one__v1"); !errors.Is(err, registry.ErrDrift) {
			t.Errorf("%s: a drifted adapter was found: %v", what, err)
		}
		if got := r.Catalog(all); len(got) != 0 {
			t.Errorf("%s: a drifted adapter was offered", what)
		}
		again, err := registry.New(a)
		if err != nil {
			t.Fatal(err)
		}
		if again.Digest() == before {
			t.Errorf("%s: the registry's digest does not cover it", what)
		}
	}
}

func TestDigestDoesNotDependOnOrder(t *testing.T) {
	a, b := &adapter{spec("a.one")}, &adapter{spec("b.two")}
	x, err := registry.New(a, b)
	if err != nil {
		t.Fatal(err)
	}
	y, err := registry.New(b, a)
	if err != nil {
		t.Fatal(err)
	}
	if x.Digest() != y.Digest() || x.Revision() != y.Revision() || len(x.Revision()) != 64 {
		t.Fatal("one set of capabilities has two digests")
	}
}

func TestNewRefusesIncompleteSpecs(t *testing.T) {
	open := json.RawMessage(`{"type":"object","properties":{"q":{"type":"string"}}}`)
	for what, change := range map[string]func(*capabilities.Spec){
		"no name":                   func(s *capabilities.Spec) { s.Name = "" },
		"name with upper case":      func(s *capabilities.Spec) { s.Name = "Web.search" },
		"version 0":                 func(s *capabilities.Spec) { s.Version = 0 },
		"no revision":               func(s *capabilities.Spec) { s.Revision = "" },
		"no description":            func(s *capabilities.Spec) { s.Description = "" },
		"description of two lines":  func(s *capabilities.Spec) { s.Description = "one\ntwo" },
		"description of 201 bytes":  func(s *capabilities.Spec) { s.Description = strings.Repeat("x", 201) },
		"description with bidi":     func(s *capabilities.Spec) { s.Description = "x\u202ey" },
		"no effect":                 func(s *capabilities.Spec) { s.Effect = 0 },
		"no network":                func(s *capabilities.Spec) { s.Network = 0 },
		"no privacy":                func(s *capabilities.Spec) { s.Privacy = 0 },
		"no class":                  func(s *capabilities.Spec) { s.Class = 0 },
		"a class that is not there": func(s *capabilities.Spec) { s.Class = 5 },
		"internet without a net":    func(s *capabilities.Spec) { s.Network = capabilities.NetworkInternet },
		"net without internet":      func(s *capabilities.Spec) { s.Class = capabilities.ClassNet },
		"no cap per turn":           func(s *capabilities.Spec) { s.Bounds.PerTurn = 0 },
		"no bound of arguments":     func(s *capabilities.Spec) { s.Bounds.ArgBytes = 0 },
		"no bound of shown text":    func(s *capabilities.Spec) { s.Bounds.Shown = 0 },
		"no bound of the body":      func(s *capabilities.Spec) { s.Bounds.Body = 0 },
		"body over 64 KiB":          func(s *capabilities.Spec) { s.Bounds.Body = 64<<10 + 1 },
		"no timeout":                func(s *capabilities.Spec) { s.Bounds.Timeout = 0 },
		"schema that is not JSON":   func(s *capabilities.Spec) { s.ArgsSchema = json.RawMessage(`{`) },
		"schema of an array":        func(s *capabilities.Spec) { s.ArgsSchema = json.RawMessage(`{"type":"array"}`) },
		"open argument schema":      func(s *capabilities.Spec) { s.ArgsSchema = open },
		"open result schema":        func(s *capabilities.Spec) { s.ResultShape = open },
		"nested open schema": func(s *capabilities.Spec) {
			s.ResultShape = json.RawMessage(`{"type":"object","additionalProperties":false,"properties":{"l":{"type":"array","items":` + string(open) + `}}}`)
		},
	} {
		s := spec("a.one")
		change(&s)
		if _, err := registry.New(&adapter{s}); err == nil {
			t.Errorf("%s: was registered", what)
		}
	}
	if _, err := registry.New(&adapter{spec("a.one")}, &adapter{spec("a.one")}); err == nil {
		t.Error("two adapters took one name")
	}
}
