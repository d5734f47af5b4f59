package gateway

import (
	"bytes"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"reflect"
	"strings"
	"unicode/utf8"

	"assent.home.arpa/appliance/ipc"
	"assent.home.arpa/appliance/wire"
)

// decodeFrame reads one frame. The frame's id is returned even where the rest is wrong, so that the error can say what it
// answers.
func decodeFrame(b []byte) (wire.Upstream, error) {
	var f wire.Upstream
	if err := strict(b, &f); err != nil {
		return wire.Upstream{ID: bounded(f.ID)}, err
	}
	switch {
	case f.V != wire.Version:
		return wire.Upstream{ID: bounded(f.ID)}, fmt.Errorf("version %d is not spoken here, only %d", f.V, wire.Version)
	case len(f.ID) > wire.MaxID:
		return wire.Upstream{}, fmt.Errorf("an id may have %d bytes", wire.MaxID)
	}
	return f, nil
}

func bounded(id string) string {
	if len(id) > wire.MaxID {
		return ""
	}
	return id
}

// strict decodes one JSON object whose keys are exactly fields of v, each at most once. encoding/json alone would let a
// frame say a thing twice, or under another spelling, and repair text that is not UTF-8; a question must be the very
// bytes that were signed.
func strict(b []byte, v any) error {
	if !utf8.Valid(b) {
		return errors.New("not UTF-8")
	}
	if err := exactKeys(b, fields(reflect.TypeOf(v).Elem())); err != nil {
		return err
	}
	d := json.NewDecoder(bytes.NewReader(b))
	d.DisallowUnknownFields()
	if err := d.Decode(v); err != nil {
		return errors.New("a field has the wrong type")
	}
	return nil
}

// exactKeys leaves values undecoded, so nesting costs no more than encoding/json's own bound.
func exactKeys(b []byte, known map[string]bool) error {
	d := json.NewDecoder(bytes.NewReader(b))
	if t, err := d.Token(); err != nil || t != json.Delim('{') {
		return errors.New("not a JSON object")
	}
	for d.More() {
		t, err := d.Token()
		if err != nil {
			return errors.New("not well-formed JSON")
		}
		key, _ := t.(string)
		fresh, ok := known[key]
		if !ok {
			return errors.New("an unknown field")
		}
		if !fresh {
			return errors.New("a field twice")
		}
		known[key] = false
		var value json.RawMessage
		if err := d.Decode(&value); err != nil {
			return errors.New("not well-formed JSON")
		}
	}
	if _, err := d.Token(); err != nil {
		return errors.New("not well-formed JSON")
	}
	if _, err := d.Token(); err != io.EOF {
		return errors.New("more than one JSON value")
	}
	return nil
}

func fields(t reflect.Type) map[string]bool {
	known := map[string]bool{}
	for _, field := range reflect.VisibleFields(t) {
		if name, _, _ := strings.Cut(field.Tag.Get("json"), ","); name != "" {
			known[name] = true
		}
	}
	return known
}

// binary undoes base64url without padding, of exactly n bytes.
func binary(s string, n int) ([]byte, bool) {
	if len(s) != base64.RawURLEncoding.EncodedLen(n) {
		return nil, false
	}
	b, err := base64.RawURLEncoding.Strict().DecodeString(s)
	return b, err == nil && len(b) == n
}

// identifier undoes the one spelling of an id: 32 lower-case hex digits.
func identifier(s string) (ipc.ID, bool) {
	b, err := hex.DecodeString(s)
	if err != nil || len(b) != 16 || hex.EncodeToString(b) != s {
		return ipc.ID{}, false
	}
	return ipc.ID(b), true
}
