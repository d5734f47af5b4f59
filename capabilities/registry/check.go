package registry

import (
	"encoding/json"
	"errors"
	"fmt"
	"time"
	"unicode"
	"unicode/utf8"

	"assent.home.arpa/capabilities"
)

// Limits of any spec. An adapter may set itself tighter ones, never wider.
const (
	maxDescription = 200 // bytes
	maxRevision    = 64  // bytes; what a receipt holds
	maxPerTurn     = 64
	maxArgBytes    = 64 << 10
	maxShown       = 2000 // code points
	maxBody        = 64 << 10
	maxTimeout     = 5 * time.Minute
	maxDepth       = 16 // nested schemas
)

func check(s capabilities.Spec) error {
	within := func(n, low, high int) bool { return n >= low && n <= high }
	switch {
	case !s.Name.Valid():
		return errors.New("the name must be 1 to 4 dotted segments of a-z and 0-9")
	case s.Version == 0:
		return errors.New("the version must be at least 1")
	case !line(s.Revision, maxRevision):
		return fmt.Errorf("the adapter revision must be one printable line of 1 to %d bytes", maxRevision)
	case !line(s.Description, maxDescription):
		return fmt.Errorf("the description must be one printable line of 1 to %d bytes", maxDescription)
	case s.Effect < capabilities.Read || s.Effect > capabilities.Write:
		return errors.New("the effect must be declared")
	case s.Network < capabilities.NetworkNone || s.Network > capabilities.NetworkInternet:
		return errors.New("the network class must be declared")
	case s.Privacy < capabilities.PrivacyBox || s.Privacy > capabilities.PrivacyHousehold:
		return errors.New("the privacy class must be declared")
	case s.Class < capabilities.ClassNone || s.Class > capabilities.ClassNet:
		return errors.New("the worker class must be declared")
	case s.Log > capabilities.LogView:
		return errors.New("there is no such log policy")
	case (s.Network >= capabilities.NetworkLAN) != (s.Class == capabilities.ClassNet):
		return errors.New("the worker class net and a network class beyond the box need each other")
	case !within(s.Bounds.PerTurn, 1, maxPerTurn):
		return fmt.Errorf("calls in one turn must be 1 to %d", maxPerTurn)
	case !within(s.Bounds.ArgBytes, 2, maxArgBytes):
		return fmt.Errorf("the arguments' bound must be 2 to %d bytes", maxArgBytes)
	case !within(s.Bounds.Shown, 1, maxShown):
		return fmt.Errorf("the shown text's bound must be 1 to %d code points", maxShown)
	case !within(s.Bounds.Body, 2, maxBody):
		return fmt.Errorf("the result's bound must be 2 to %d bytes", maxBody)
	case s.Bounds.Timeout <= 0 || s.Bounds.Timeout > maxTimeout:
		return fmt.Errorf("the timeout must be positive and at most %v", maxTimeout)
	}
	if err := closed(s.ArgsSchema); err != nil {
		return fmt.Errorf("argument schema: %w", err)
	}
	if err := closed(s.ResultShape); err != nil {
		return fmt.Errorf("result schema: %w", err)
	}
	return nil
}

// line reports whether s is one printable line of 1 to limit bytes.
func line(s string, limit int) bool {
	if s == "" || len(s) > limit || !utf8.ValidString(s) {
		return false
	}
	for _, r := range s {
		if !unicode.IsPrint(r) {
			return false
		}
	}
	return true
}

// closed reports why raw is not the JSON Schema of an object that admits no unknown property at any depth.
func closed(raw json.RawMessage) error {
	var root map[string]any
	if err := json.Unmarshal(raw, &root); err != nil {
		return errors.New("it must be a JSON object")
	}
	if root["type"] != "object" {
		return errors.New(`its type must be "object"`)
	}
	return closedAt(root, 0)
}

// closedAt walks every value in a schema, wherever the vocabulary nests schemas, and demands that each one that describes an
// object says additionalProperties: false.
func closedAt(v any, depth int) error {
	if depth > 2*maxDepth { // properties and its members are a level each
		return fmt.Errorf("it is nested more than %d deep", maxDepth)
	}
	switch v := v.(type) {
	case map[string]any:
		_, hasProperties := v["properties"].(map[string]any)
		if (v["type"] == "object" || hasProperties) && v["additionalProperties"] != false {
			return errors.New("every object in it must say additionalProperties: false")
		}
		for _, sub := range v {
			if err := closedAt(sub, depth+1); err != nil {
				return err
			}
		}
	case []any:
		for _, sub := range v {
			if err := closedAt(sub, depth+1); err != nil {
				return err
			}
		}
	}
	return nil
}
