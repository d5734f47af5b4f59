package strictjson

import (
	"slices"
	"strconv"
	"strings"
)

// Canonical rewrites a value so that equal values are equal bytes: no white space, keys in ascending order of their
// UTF-8 bytes, strings with the shortest escapes. It is RFC 8785 with two differences: keys are ordered by UTF-8 and not
// UTF-16, and numbers stay as they were written, since rounding them to doubles would change what a person approved.
func Canonical(data []byte) ([]byte, error) {
	if err := Check(data); err != nil {
		return nil, err
	}
	p := &parser{data: data}
	p.space()
	return p.canonical(nil)
}

// canonical relies on data having passed Check.
func (p *parser) canonical(out []byte) ([]byte, error) {
	switch p.data[p.at] {
	case '{':
		return p.canonicalObject(out)
	case '[':
		p.at++
		out = append(out, '[')
		for first := true; !p.accept(']'); first = false {
			if !first {
				p.accept(',')
				out = append(out, ',')
			}
			p.space()
			var err error
			if out, err = p.canonical(out); err != nil {
				return nil, err
			}
		}
		return append(out, ']'), nil
	case '"':
		s, err := p.string()
		return appendString(out, s), err
	}
	from := p.at
	err := p.value(1)
	return append(out, p.data[from:p.at]...), err
}

func (p *parser) canonicalObject(out []byte) ([]byte, error) {
	p.at++
	var members []Member
	for !p.accept('}') {
		p.accept(',')
		p.space()
		key, err := p.string()
		if err != nil {
			return nil, err
		}
		p.accept(':')
		p.space()
		value, err := p.canonical(nil)
		if err != nil {
			return nil, err
		}
		members = append(members, Member{key, value})
	}
	slices.SortFunc(members, func(a, b Member) int { return strings.Compare(a.Key, b.Key) })
	out = append(out, '{')
	for i, m := range members {
		if i > 0 {
			out = append(out, ',')
		}
		out = append(append(appendString(out, m.Key), ':'), m.Value...)
	}
	return append(out, '}'), nil
}

func appendString(out []byte, s string) []byte {
	out = append(out, '"')
	for _, r := range s {
		if i := strings.IndexRune("\"\\\b\f\n\r\t", r); i >= 0 {
			out = append(out, '\\', `"\bfnrt`[i])
		} else if r < ' ' {
			out = append(out, `\u00`...)
			out = append(out, strconv.FormatUint(uint64(r)+0x100, 16)[1:]...)
		} else {
			out = append(out, string(r)...)
		}
	}
	return append(out, '"')
}
