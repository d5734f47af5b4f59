// Package capabilities describes what the box can do, as plain data, and what became of an attempt to do it.
//
// It is a leaf: every other package may import it, and it imports none of them. Spec is what an adapter declares about
// itself; Outcome codes are the closed vocabulary in which model, phone and audit hear the same thing.
package capabilities

import (
	"encoding/hex"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"time"
)

// Name is a capability's dotted name: lower-case segments of [a-z0-9], as in "web.search".
type Name string

// Version counts a capability's incompatible revisions, from 1.
type Version uint16

// InvocationID names one proposal instance, for ever: 16 random bytes chosen by the guard.
type InvocationID [16]byte

func (i InvocationID) String() string { return hex.EncodeToString(i[:]) }

// ArgsDigest is SHA-256 over the normalised arguments.
type ArgsDigest [32]byte

func (d ArgsDigest) String() string { return hex.EncodeToString(d[:]) }

// Effect says what a call does to the world. The zero value is invalid and never allowed.
type Effect uint8

// The effects. Do not renumber.
const (
	Read            Effect = 1
	WriteReversible Effect = 2
	Write           Effect = 3
)

// Network says how far a call reaches. The zero value is invalid and never allowed.
type Network uint8

// The network classes. Do not renumber.
const (
	NetworkNone     Network = 1 // nothing leaves the box
	NetworkFeed     Network = 2 // reads the last snapshot of a fixed, argument-free request that the owner set up
	NetworkLAN      Network = 3
	NetworkInternet Network = 4
)

// Privacy says whose data a call reads. The zero value is invalid and never allowed.
type Privacy uint8

// The privacy classes. Do not renumber.
const (
	PrivacyBox       Privacy = 1
	PrivacyPersonal  Privacy = 2
	PrivacyHousehold Privacy = 3
)

// LogPolicy says how much of a call the audit may show. The zero value is treated as LogOmit.
type LogPolicy uint8

// The log policies. Do not renumber.
const (
	LogOmit   LogPolicy = 1 // digests only, and the panel picture withheld
	LogDigest LogPolicy = 2 // digests, and the panel picture
	LogView   LogPolicy = 3 // digests, picture and a readable view
)

// Class is the sandbox of the worker that runs a call. The zero value is invalid.
type Class uint8

// The worker classes. Do not renumber: the numbers are in grants.
const (
	ClassNone  Class = 1 // no descriptor
	ClassFiles Class = 2 // one directory
	ClassLocal Class = 3 // one unix socket of a unit without network
	ClassNet   Class = 4 // one connected descriptor
)

func (c Class) String() string {
	switch c {
	case ClassNone:
		return "none"
	case ClassFiles:
		return "files"
	case ClassLocal:
		return "local"
	case ClassNet:
		return "net"
	}
	return fmt.Sprintf("class(%d)", uint8(c))
}

// Bounds limits one capability. All are required.
type Bounds struct {
	PerTurn  int           // calls of this capability in one turn
	ArgBytes int           // size of the raw arguments
	Shown    int           // code points of literal text on the panel
	Body     int           // bytes of result body, at most 64 KiB
	Timeout  time.Duration // from grant to result
}

// Spec is everything that the box knows of a capability before it is called. Only WireName, the version, ArgsSchema and
// Description are ever shown to the model.
type Spec struct {
	Name        Name
	Version     Version
	Revision    string // adapter revision, as in "mediawiki/1"; named by approvals and grants
	Description string // one line, ours, written for the model
	ArgsSchema  json.RawMessage
	ResultShape json.RawMessage // JSON Schema of the result body
	Effect      Effect
	Network     Network
	Privacy     Privacy
	Class       Class
	Log         LogPolicy
	Bounds      Bounds
	Idempotent  bool // a repeated call has no further effect
}

// WireName is the name that the model uses: "web.search" version 1 is "web_search__v1". It is reversible, since names
// hold no underscore.
func (s Spec) WireName() string { return WireName(s.Name, s.Version) }

// WireName joins a name and a version; see Spec.WireName.
func WireName(n Name, v Version) string {
	return strings.ReplaceAll(string(n), ".", "_") + "__v" + strconv.Itoa(int(v))
}

// ParseWireName undoes WireName. It accepts exactly what WireName can produce and corrects nothing.
func ParseWireName(s string) (Name, Version, bool) {
	base, ver, found := strings.Cut(s, "__v")
	if !found || base == "" {
		return "", 0, false
	}
	v, err := strconv.ParseUint(ver, 10, 16)
	if err != nil || v == 0 {
		return "", 0, false
	}
	n := Name(strings.ReplaceAll(base, "_", "."))
	if !n.Valid() || WireName(n, Version(v)) != s {
		return "", 0, false
	}
	return n, Version(v), true
}

// Valid reports whether n is one to four dotted segments of [a-z0-9], at most 64 bytes.
func (n Name) Valid() bool {
	if len(n) == 0 || len(n) > 64 {
		return false
	}
	segments := strings.Split(string(n), ".")
	if len(segments) > 4 {
		return false
	}
	for _, seg := range segments {
		if seg == "" || strings.Trim(seg, "abcdefghijklmnopqrstuvwxyz0123456789") != "" {
			return false
		}
	}
	return true
}

// Entry is one line of the catalog that the model sees: these fields and no others.
type Entry struct {
	Name        string          `json:"name"` // the wire name
	Version     Version         `json:"version"`
	Description string          `json:"description"`
	Parameters  json.RawMessage `json:"parameters"` // JSON Schema
}

// Entry returns what the model may know of s.
func (s Spec) Entry() Entry {
	return Entry{Name: s.WireName(), Version: s.Version, Description: s.Description, Parameters: s.ArgsSchema}
}
