package audit

import (
	"bytes"
	"errors"
	"fmt"
	"reflect"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"
)

// A layout is how a struct lies in CBOR, taken once from the tags that the encoder goes by, so that reading a record looks
// at bytes and not at tags.
//
// Its reader accepts exactly the bytes that the encoder makes of some value. It reads keys in the one order in which they
// can come, every head in its shortest form, a field that may not be left out always, and one that may be only where it
// says something. This is as strict as decoding, encoding again and comparing, in one pass; a fuzz target holds the two
// against each other.
type layout struct {
	fields []field // in the order of their keys
	array  bool    // an array of all fields, without keys
}

type field struct {
	shape
	at       int // of the struct's fields
	name     string
	key      uint64
	optional bool // left out where zero
}

// shape is how a value lies in CBOR, and its limits.
type shape struct {
	kind   reflect.Kind // Array stands for an array of bytes, Slice for a list, and Bytes are told apart by raw
	raw    bool         // a byte string without a fixed length
	most   uint64       // of an unsigned integer, by its width
	last   uint64       // of an enumeration, 0 where it is none
	clock  bool         // a time on a clock that begins at 0
	free   bool         // has a limit of its own, elsewhere
	elem   *shape       // of a list
	layout *layout      // of a struct
}

// newLayout reads the tags of a struct of this package. What it cannot place is a mistake in this package.
func newLayout(t reflect.Type) *layout {
	l := &layout{}
	next := uint64(0)
	for i := range t.NumField() {
		f := t.Field(i)
		tag := strings.Split(f.Tag.Get("cbor"), ",")
		if !f.IsExported() {
			l.array = l.array || (len(tag) > 1 && tag[1] == "toarray")
			continue
		}
		p := field{shape: newShape(f.Type), at: i, name: f.Name}
		if !l.array {
			key, err := strconv.ParseUint(tag[0], 10, 8)
			if err != nil || key < next || tag[1] != "keyasint" {
				panic("audit: internal error: the fields of " + t.Name() + " are not in the order of their keys")
			}
			p.key, next = key, key+1
			p.optional = len(tag) > 2 && (tag[2] == "omitzero" || tag[2] == "omitempty")
		}
		p.free = t == reflect.TypeFor[Blob]() && f.Name == "Bytes"
		l.fields = append(l.fields, p)
	}
	return l
}

func newShape(t reflect.Type) shape {
	s := shape{kind: t.Kind(), last: lastOf(reflect.Zero(t).Interface())}
	switch s.kind {
	case reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		s.most = 1<<t.Bits() - 1
	case reflect.Int64:
		s.clock = t == reflect.TypeFor[time.Duration]()
	case reflect.Bool, reflect.String:
	case reflect.Array:
		if t.Elem().Kind() != reflect.Uint8 {
			panic("audit: internal error: no layout for " + t.String())
		}
	case reflect.Slice:
		if s.raw = t.Elem().Kind() == reflect.Uint8; !s.raw {
			elem := newShape(t.Elem())
			s.elem = &elem
		}
	case reflect.Struct:
		s.layout = newLayout(t)
	default:
		panic("audit: internal error: no layout for " + t.String())
	}
	return s
}

// read fills v, a zero struct, and checks every field's limits on the way where limits is true.
func (l *layout) read(d *cursor, v reflect.Value, limits bool) error {
	if l.array {
		if n := d.head(majorArray); d.err == nil && n != uint64(len(l.fields)) {
			d.fail("%d elements where %d were expected", n, len(l.fields))
		}
		for i := range l.fields {
			l.fields[i].read(d, v.Field(l.fields[i].at))
		}
		return d.err
	}
	pairs := d.head(majorMap)
	for i := range l.fields {
		f := &l.fields[i]
		if pairs == 0 || d.err != nil {
			if d.err == nil && !f.optional {
				d.fail("%s is missing", f.name)
			}
			continue
		}
		if f.optional && (len(d.rest) == 0 || !f.begins(d.rest)) {
			continue
		}
		pairs--
		d.key(f.key)
		value := v.Field(f.at)
		f.read(d, value)
		if d.err != nil {
			return fmt.Errorf("field %s: %w", f.name, d.err)
		}
		if f.optional && (value.IsZero() || (f.kind == reflect.Slice && value.Len() == 0)) {
			d.fail("%s is there and says nothing", f.name)
		}
		if limits {
			if err := f.check(value); err != nil {
				return fmt.Errorf("%w: field %s: %w", ErrMalformed, f.name, err)
			}
		}
	}
	if d.err == nil && pairs > 0 {
		d.fail("%d fields too many, or in another order", pairs)
	}
	return d.err
}

// begins reports whether b begins with the field's key. Keys are below 256; d.key checks the whole head afterwards.
func (f *field) begins(b []byte) bool {
	if f.key < 24 {
		return b[0] == byte(f.key)
	}
	return len(b) > 1 && b[0] == 0x18 && b[1] == byte(f.key)
}

func (s *shape) read(d *cursor, v reflect.Value) {
	switch s.kind {
	case reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		v.SetUint(d.uint(s.most))
	case reflect.Int64:
		v.SetInt(d.int())
	case reflect.Bool:
		v.SetBool(d.bool())
	case reflect.String:
		b := d.string(majorText)
		if !utf8.Valid(b) {
			d.fail("text is not valid utf-8")
			return
		}
		v.SetString(string(b))
	case reflect.Array:
		d.fixed(v.Bytes())
	case reflect.Slice:
		if s.raw {
			v.SetBytes(bytes.Clone(d.string(majorBytes)))
			return
		}
		s.readList(d, v)
	case reflect.Struct:
		_ = s.layout.read(d, v, false) // d keeps the error
	}
}

func (s *shape) readList(d *cursor, v reflect.Value) {
	n := d.head(majorArray)
	if n > maxList {
		d.fail("%d elements, at most %d are allowed", n, maxList)
		return
	}
	// Every element takes a byte at least, so that a head alone makes nothing large.
	if n > uint64(len(d.rest)) {
		d.fail("the bytes end within a list")
		return
	}
	list := reflect.MakeSlice(v.Type(), int(n), int(n))
	for i := range int(n) {
		s.elem.read(d, list.Index(i))
	}
	v.Set(list)
}

// check applies the limits that hold for every field of that type.
func (s *shape) check(v reflect.Value) error {
	switch s.kind {
	case reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		if s.last > 0 && v.Uint() > s.last {
			return fmt.Errorf("there is no number %d", v.Uint())
		}
	case reflect.Int64:
		if s.clock && v.Int() < 0 {
			return errors.New("a time before the clock began")
		}
	case reflect.String:
		return checkText(v.String())
	case reflect.Slice:
		switch {
		case s.free:
		case s.raw && v.Len() > MaxBytes:
			return fmt.Errorf("%d bytes, at most %d are allowed", v.Len(), MaxBytes)
		case !s.raw:
			return s.checkList(v)
		}
	}
	return nil
}

func (s *shape) checkList(v reflect.Value) error {
	if v.Len() > maxList {
		return fmt.Errorf("%d elements, at most %d are allowed", v.Len(), maxList)
	}
	for i := range v.Len() {
		if err := s.elem.check(v.Index(i)); err != nil {
			return err
		}
	}
	return nil
}
