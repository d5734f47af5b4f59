// Package strictjson checks JSON that a model wrote, and corrects nothing.
//
// encoding/json is lenient where leniency gives a text two readings: it keeps the last of two equal keys, replaces bytes
// that are not UTF-8 and escapes of lone surrogates by U+FFFD, and rounds numbers. Here each of these is an error, as
// RFC 7493 (I-JSON) sections 2.1 to 2.3 advise, and a value that passes is kept as the bytes it was written in.
//
// Numbers stay text for ever: 9007199254740993 is accepted and keeps its last digit, since nothing here turns it into a
// float. A number beyond the range of an IEEE 754 double (1e999) has no reading that all readers share, and fails.
package strictjson

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

// Depth is the deepest nesting of objects and arrays that Check accepts.
const Depth = 32

// ErrDuplicateKey says that an object holds a key twice, so it can be read in two ways.
var ErrDuplicateKey = errors.New("an object has a key twice")

// SyntaxError says where a text stops being acceptable JSON. It quotes nothing of the text.
type SyntaxError struct {
	Offset int
	Reason string
}

func (e *SyntaxError) Error() string { return fmt.Sprintf("%s at byte %d", e.Reason, e.Offset) }

// Member is one key of an object, decoded, and its value as the bytes it was written in.
type Member struct {
	Key   string
	Value []byte
}

// Check fails unless data is exactly one JSON value, with white space around it at most. The error is a *SyntaxError, or
// wraps ErrDuplicateKey; a text that is both gives the *SyntaxError.
func Check(data []byte) error {
	_, err := parse(data)
	return err
}

// Object returns the members of the object that data is, in order. Its errors are those of Check.
func Object(data []byte) ([]Member, error) {
	p, err := parse(data)
	if err != nil {
		return nil, err
	}
	if !p.object {
		return nil, &SyntaxError{p.start, "not an object"}
	}
	return p.top, nil
}

// Array returns the elements of the array that data is, in order. Its errors are those of Check.
func Array(data []byte) ([][]byte, error) {
	if err := Check(data); err != nil {
		return nil, err
	}
	p := &parser{data: data}
	if !p.accept('[') {
		return nil, &SyntaxError{p.at, "not an array"}
	}
	var out [][]byte
	for !p.accept(']') {
		p.accept(',')
		p.space()
		from := p.at
		if err := p.value(2); err != nil {
			return nil, err
		}
		out = append(out, data[from:p.at:p.at])
	}
	return out, nil
}

// String decodes the JSON string that data is.
func String(data []byte) (string, error) {
	p := &parser{data: data}
	p.space()
	s, err := p.string()
	if err != nil {
		return "", err
	}
	p.space()
	if p.at != len(data) {
		return "", p.fail("unexpected text after the string")
	}
	return s, nil
}

func parse(data []byte) (*parser, error) {
	p := &parser{data: data}
	p.space()
	p.start = p.at
	p.object = p.at < len(data) && data[p.at] == '{'
	if err := p.value(1); err != nil {
		return nil, err
	}
	p.space()
	if p.at != len(data) {
		return nil, p.fail("unexpected text after the value")
	}
	if p.duplicate {
		return nil, ErrDuplicateKey
	}
	return p, nil
}

type parser struct {
	data      []byte
	at        int
	start     int
	object    bool     // the value is an object
	top       []Member // and these are its members
	duplicate bool
}

func (p *parser) fail(reason string) error { return &SyntaxError{p.at, reason} }

func (p *parser) space() {
	for p.at < len(p.data) && strings.IndexByte(" \t\r\n", p.data[p.at]) >= 0 {
		p.at++
	}
}

// accept consumes c after white space.
func (p *parser) accept(c byte) bool {
	p.space()
	if p.at < len(p.data) && p.data[p.at] == c {
		p.at++
		return true
	}
	return false
}

func (p *parser) value(depth int) error {
	if p.at == len(p.data) {
		return p.fail("unexpected end")
	}
	switch c := p.data[p.at]; {
	case c == '{' || c == '[':
		if depth > Depth {
			return p.fail("nested too deeply")
		}
		p.at++
		if c == '{' {
			return p.members(depth)
		}
		return p.elements(depth)
	case c == '"':
		_, err := p.string()
		return err
	case c == '-' || c >= '0' && c <= '9':
		return p.number()
	}
	for _, word := range []string{"true", "false", "null"} {
		if strings.HasPrefix(string(p.data[p.at:min(p.at+len(word), len(p.data))]), word) {
			p.at += len(word)
			return nil
		}
	}
	return p.fail("unexpected character")
}

func (p *parser) members(depth int) error {
	seen := map[string]bool{}
	if p.accept('}') {
		return nil
	}
	for {
		p.space()
		key, err := p.string()
		if err != nil {
			return err
		}
		p.duplicate = p.duplicate || seen[key]
		seen[key] = true
		if !p.accept(':') {
			return p.fail("expected a colon")
		}
		p.space()
		from := p.at
		if err := p.value(depth + 1); err != nil {
			return err
		}
		if depth == 1 {
			p.top = append(p.top, Member{key, p.data[from:p.at:p.at]})
		}
		if p.accept('}') {
			return nil
		}
		if !p.accept(',') {
			return p.fail("expected a comma or the object's end")
		}
	}
}

func (p *parser) elements(depth int) error {
	if p.accept(']') {
		return nil
	}
	for {
		p.space()
		if err := p.value(depth + 1); err != nil {
			return err
		}
		if p.accept(']') {
			return nil
		}
		if !p.accept(',') {
			return p.fail("expected a comma or the array's end")
		}
	}
}

func (p *parser) string() (string, error) {
	if p.at == len(p.data) || p.data[p.at] != '"' {
		return "", p.fail("expected a string")
	}
	p.at++
	var s strings.Builder
	for p.at < len(p.data) {
		switch c := p.data[p.at]; {
		case c == '"':
			p.at++
			return s.String(), nil
		case c == '\\':
			r, err := p.escape()
			if err != nil {
				return "", err
			}
			s.WriteRune(r)
		case c < ' ':
			return "", p.fail("raw control character in a string")
		default:
			r, n := utf8.DecodeRune(p.data[p.at:])
			if r == utf8.RuneError && n == 1 {
				return "", p.fail("invalid utf-8")
			}
			s.WriteRune(r)
			p.at += n
		}
	}
	return "", p.fail("unexpected end of a string")
}

func (p *parser) escape() (rune, error) {
	if p.at+1 == len(p.data) {
		return 0, p.fail("unexpected end of a string")
	}
	c := p.data[p.at+1]
	if c == 'u' {
		r, err := p.unit()
		if err != nil || !utf16.IsSurrogate(r) {
			return r, err
		}
		low, err := p.unit()
		if pair := utf16.DecodeRune(r, low); err == nil && pair != utf8.RuneError {
			return pair, nil
		}
		return 0, p.fail("lone surrogate")
	}
	i := strings.IndexByte(`"\/bfnrt`, c)
	if i < 0 {
		return 0, p.fail("unknown escape")
	}
	p.at += 2
	return rune("\"\\/\b\f\n\r\t"[i]), nil
}

// unit reads one \uXXXX.
func (p *parser) unit() (rune, error) {
	if p.at+6 > len(p.data) || p.data[p.at] != '\\' || p.data[p.at+1] != 'u' {
		return 0, p.fail("expected an escape of four digits")
	}
	v, err := strconv.ParseUint(string(p.data[p.at+2:p.at+6]), 16, 16)
	if err != nil {
		return 0, p.fail("expected an escape of four digits")
	}
	p.at += 6
	return rune(v), nil
}

// number follows the grammar of RFC 8259 section 6.
func (p *parser) number() error {
	from := p.at
	digits := func() bool {
		n := p.at
		for p.at < len(p.data) && p.data[p.at] >= '0' && p.data[p.at] <= '9' {
			p.at++
		}
		return p.at > n
	}
	next := func(set string) bool {
		if p.at < len(p.data) && strings.IndexByte(set, p.data[p.at]) >= 0 {
			p.at++
			return true
		}
		return false
	}
	next("-")
	if !next("0") && !digits() {
		return p.fail("malformed number")
	}
	if next(".") && !digits() {
		return p.fail("malformed number")
	}
	if next("eE") {
		next("+-")
		if !digits() {
			return p.fail("malformed number")
		}
	}
	if _, err := strconv.ParseFloat(string(p.data[from:p.at]), 64); err != nil {
		return &SyntaxError{from, "number out of range"}
	}
	return nil
}
