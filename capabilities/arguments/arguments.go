// Package arguments reads what a model wrote as the arguments of a call, strictly.
//
// The arguments of a capability are one JSON object (RFC 8259) whose members all have names from our schema. Nothing is
// corrected: a repeated name, an unknown one, text after the object, a value of another type, bytes that are not UTF-8 and
// half of a surrogate pair are each an error, where encoding/json would pick the last value or put U+FFFD. Every failure is
// a *capabilities.ArgumentError, which repeats no byte that the model wrote.
package arguments

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"unicode/utf16"
	"unicode/utf8"

	"assent.home.arpa/capabilities"
)

// Object reads raw, of at most limit bytes, as an object that has no members but names. Members may be absent.
func Object(raw []byte, limit int, names ...string) (map[string]json.RawMessage, error) {
	if len(raw) > limit {
		return nil, &capabilities.ArgumentError{Code: capabilities.CodeArgumentTooLong, Problem: fmt.Sprintf("the arguments are over %d bytes", limit)}
	}
	// One value and nothing behind it: the decoder's token stream alone is laxer.
	if !utf8.Valid(raw) || !json.Valid(raw) {
		return nil, invalid("", "the arguments are not JSON in UTF-8")
	}
	dec := json.NewDecoder(bytes.NewReader(raw))
	if t, err := dec.Token(); err != nil || t != json.Delim('{') {
		return nil, invalid("", "the arguments must be an object")
	}
	members := make(map[string]json.RawMessage, len(names))
	for dec.More() {
		var v json.RawMessage
		t, err := dec.Token()
		if err == nil {
			err = dec.Decode(&v)
		}
		if err != nil {
			return nil, invalid("", "the arguments are not JSON in UTF-8")
		}
		name := t.(string) // the grammar of an object
		if !slices.Contains(names, name) {
			return nil, &capabilities.ArgumentError{Code: capabilities.CodeUnknownArgument, Problem: "there is an argument that this capability does not have"}
		}
		if _, twice := members[name]; twice {
			return nil, invalid(name, "it is given twice")
		}
		members[name] = v
	}
	return members, nil
}

// Text returns the member name as the exact string that was written. It must be there.
func Text(members map[string]json.RawMessage, name string) (string, error) {
	v, ok := members[name]
	if !ok {
		return "", &capabilities.ArgumentError{Code: capabilities.CodeMissingArgument, Argument: name, Problem: "it is missing"}
	}
	var s string
	if v[0] != '"' || loneSurrogate(v) || json.Unmarshal(v, &s) != nil {
		return "", invalid(name, "it must be text")
	}
	return s, nil
}

// Encode returns the normal form of v, whose members must be in the order of their names.
func Encode(v any) []byte {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false) // what people read in the log should be what was written
	if err := enc.Encode(v); err != nil {
		panic("arguments: internal error: " + err.Error())
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n"))
}

func invalid(argument, problem string) error {
	return &capabilities.ArgumentError{Code: capabilities.CodeInvalidArguments, Argument: argument, Problem: problem}
}

// loneSurrogate reports whether the JSON string literal s escapes half of a surrogate pair, which stands for no character.
func loneSurrogate(s []byte) bool {
	for i := 0; i < len(s); i++ {
		if s[i] != '\\' {
			continue
		}
		r, ok := unicodeEscape(s[i:])
		if !ok {
			i++ // a two-byte escape
			continue
		}
		i += 5
		if !utf16.IsSurrogate(r) {
			continue
		}
		low, ok := unicodeEscape(s[i+1:])
		if !ok || utf16.DecodeRune(r, low) == utf8.RuneError {
			return true
		}
		i += 6
	}
	return false
}

func unicodeEscape(s []byte) (rune, bool) {
	if len(s) < 6 || s[0] != '\\' || s[1] != 'u' {
		return 0, false
	}
	v, err := strconv.ParseUint(string(s[2:6]), 16, 16)
	return rune(v), err == nil
}
