package audit

import (
	"reflect"
	"strings"
	"unicode"
)

// Field is one field of a payload, for readers that show whatever a record says.
type Field struct {
	Name  string // "args-digest", as in audit.cddl
	Value any    // of the field's own type
}

// Fields lists the fields of a payload that say something, in the order of their keys.
func Fields(p Payload) []Field {
	if p == nil {
		return nil
	}
	v := reflect.Indirect(reflect.ValueOf(p))
	var fields []Field
	for i := range v.NumField() {
		f := v.Type().Field(i)
		if !f.IsExported() || v.Field(i).IsZero() {
			continue
		}
		fields = append(fields, Field{Name: kebab(f.Name), Value: v.Field(i).Interface()})
	}
	return fields
}

// kebab turns ArgsDigest into args-digest and HTTPStatus into http-status.
func kebab(name string) string {
	var b strings.Builder
	runes := []rune(name)
	for i, r := range runes {
		begins := i > 0 && unicode.IsUpper(r) && (!unicode.IsUpper(runes[i-1]) || (i+1 < len(runes) && unicode.IsLower(runes[i+1])))
		if begins {
			b.WriteByte('-')
		}
		b.WriteRune(unicode.ToLower(r))
	}
	return b.String()
}
