// Package registry holds the capabilities that this box has, and is the only source of the catalog that a model sees.
//
// Nothing in a catalog is written by hand: it is made from the adapters' specs on every call, so an adapter that is added,
// removed or changed shows there with no second edit. What a registry was built from is pinned: an adapter that later
// declares something else about itself has drifted, and is refused until a registry is built anew.
package registry

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"

	"assent.home.arpa/capabilities"
)

// Errors of Lookup.
var (
	// ErrUnknown says that no capability has exactly that wire name.
	ErrUnknown = errors.New("registry: no such capability")
	// ErrDrift says that an adapter no longer declares what it declared when the registry was built.
	ErrDrift = errors.New("registry: the adapter has changed since it was registered")
)

// Capability is one registered adapter with what it declared.
type Capability struct {
	capabilities.Adapter
	Pinned       capabilities.Spec
	SchemaDigest [32]byte // SHA-256 of the argument schema
	Digest       [32]byte // SHA-256 of the whole spec
}

// Registry is an immutable set of capabilities. It is safe for concurrent use.
type Registry struct {
	byName map[string]Capability
	digest [32]byte
}

// New registers adapters. It refuses a spec that is incomplete, unbounded, contradicts itself or has an open schema, and
// two adapters for one name and version.
func New(adapters ...capabilities.Adapter) (*Registry, error) {
	r := &Registry{byName: make(map[string]Capability, len(adapters))}
	for _, a := range adapters {
		s := a.Spec()
		if err := check(s); err != nil {
			return nil, fmt.Errorf("registry: %q: %w", s.Name, err)
		}
		if _, twice := r.byName[s.WireName()]; twice {
			return nil, fmt.Errorf("registry: two adapters are called %s", s.WireName())
		}
		r.byName[s.WireName()] = Capability{Adapter: a, Pinned: s, SchemaDigest: sha256.Sum256(s.ArgsSchema), Digest: digest(s)}
	}
	h := sha256.New()
	h.Write([]byte("assent/registry/v1\x00"))
	for _, wire := range r.names() {
		d := r.byName[wire].Digest
		h.Write(d[:])
	}
	r.digest = [32]byte(h.Sum(nil))
	return r, nil
}

// Lookup finds a capability by its wire name, byte for byte. It helps with no misspelling.
func (r *Registry) Lookup(wire string) (Capability, error) {
	c, ok := r.byName[wire]
	if !ok {
		return Capability{}, ErrUnknown
	}
	if digest(c.Spec()) != c.Digest {
		return Capability{}, fmt.Errorf("%w: %s", ErrDrift, wire)
	}
	return c, nil
}

// Specs returns what the adapters declare now, in the order of their wire names, without those that have drifted.
func (r *Registry) Specs() []capabilities.Spec {
	var out []capabilities.Spec
	for _, wire := range r.names() {
		if c, err := r.Lookup(wire); err == nil {
			out = append(out, c.Spec())
		}
	}
	return out
}

// Catalog returns what a model may know of the capabilities for which may is true, in the order of their wire names.
func (r *Registry) Catalog(may func(capabilities.Spec) bool) []capabilities.Entry {
	var out []capabilities.Entry
	for _, s := range r.Specs() {
		if may(s) {
			out = append(out, s.Entry())
		}
	}
	return out
}

// Digest names this registry's exact contents. Equal sets have equal digests, whatever the order they were given in.
func (r *Registry) Digest() [32]byte { return r.digest }

// Revision is Digest in hexadecimal, as receipts name it.
func (r *Registry) Revision() string { return hex.EncodeToString(r.digest[:]) }

func (r *Registry) names() []string { return slices.Sorted(maps.Keys(r.byName)) }

// digest covers every field of a spec: encoding/json writes a struct's fields in their order and all of them.
func digest(s capabilities.Spec) [32]byte {
	b, err := json.Marshal(struct {
		capabilities.Spec
		ArgsSchema, ResultShape []byte // as they are: as RawMessage they would be compacted
	}{s, s.ArgsSchema, s.ResultShape})
	if err != nil {
		panic("registry: internal error: " + err.Error())
	}
	return sha256.Sum256(b)
}
