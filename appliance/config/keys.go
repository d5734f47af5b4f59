package config

import (
	"bytes"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/BurntSushi/toml"
)

// key is one setting: its field's tags say what it is for people (is), and what it may be: a range of numbers, of a length or of a
// count (from, to, unit), one of some words (oneof), or what only Validate can tell (rule).
type key struct {
	name  string // section.key
	value reflect.Value
	tag   reflect.StructTag
}

// keys lists all settings, in the order of the struct.
func (c Config) keys() (all []key) {
	sections := reflect.ValueOf(c)
	for i := range sections.NumField() {
		section := sections.Field(i)
		for j := range section.NumField() {
			field := section.Type().Field(j)
			all = append(all, key{sections.Type().Field(i).Tag.Get("toml") + "." + field.Tag.Get("toml"), section.Field(j), field.Tag})
		}
	}
	return all
}

// must says what a setting may be; empty where it may be anything of its type.
func (k key) must() string {
	words := []string{}
	switch from, to := k.tag.Get("from"), k.tag.Get("to"); {
	case from != "":
		words = append(words, from, "to", to)
	case k.tag.Get("oneof") != "":
		words = append(words, strings.Join(strings.Fields(k.tag.Get("oneof")), " or "))
	case k.tag.Get("rule") != "":
		return k.tag.Get("rule")
	}
	if unit := k.tag.Get("unit"); unit != "" {
		words = append(words, unit)
	}
	return strings.Join(words, " ")
}

// inRange reports whether a setting is within its range, or among its words.
func (k key) inRange() bool {
	if words := k.tag.Get("oneof"); words != "" {
		return slices.Contains(strings.Fields(words), k.value.String())
	}
	from, to := k.tag.Get("from"), k.tag.Get("to")
	if from == "" {
		return true
	}
	n := k.number()
	return n >= bound(from) && n <= bound(to) // false for what is no number
}

// number is what a range is about: a number, a length of time, a length in bytes, or a count.
func (k key) number() float64 {
	switch k.value.Kind() {
	case reflect.Int, reflect.Int64:
		return float64(k.value.Int())
	case reflect.Float64:
		return k.value.Float()
	}
	return float64(k.value.Len())
}

// bound reads one end of a range, as a tag has it. Tags are the program's own.
func bound(s string) float64 {
	if n, err := strconv.ParseFloat(s, 64); err == nil {
		return n
	}
	d, err := time.ParseDuration(s)
	if err != nil {
		panic("config: internal error: a range ends with " + s)
	}
	return float64(d)
}

// Explain returns c as a file in which each setting has a comment that says what it is, what it may be, and what it is by default,
// which is what standard has. What is as standard has it is commented out: standard may be that of a PC, which has neither a box's
// lines nor its port, and a box that was given this file must not lose them.
func (c Config) Explain(standard Config) []byte {
	var b bytes.Buffer
	b.WriteString("# What begins with # and a name is what this machine has by itself. A box has the lines of its board and is open on port 443\n" +
		"# whatever stands here: take away the # only before what you change.\n\n")
	section := ""
	defaults := standard.keys()
	for i, k := range c.keys() {
		of, name, _ := strings.Cut(k.name, ".")
		if of != section {
			if section != "" {
				b.WriteByte('\n')
			}
			fmt.Fprintf(&b, "[%s]\n", of)
			section = of
		}
		fmt.Fprintf(&b, "# %s", k.tag.Get("is"))
		if must := k.must(); must != "" {
			fmt.Fprintf(&b, "; %s", must)
		} else if k.value.Kind() == reflect.Bool {
			b.WriteString("; true or false")
		}
		standing := inTOML(defaults[i].value)
		fmt.Fprintf(&b, "; default %s\n", standing)
		if inTOML(k.value) == standing {
			b.WriteByte('#')
		}
		fmt.Fprintf(&b, "%s = %s\n", name, inTOML(k.value))
	}
	return b.Bytes()
}

// mistyped says in plain words that a value is of the wrong type. The decoder tells of it in no other way than in its text, which is
// kept where it is another.
func (c Config) mistyped(err error) error {
	var line int
	var name string
	if _, no := fmt.Sscanf(err.Error(), "toml: line %d (last key %q): incompatible types", &line, &name); no != nil {
		return err
	}
	if kind := c.kindOf(name); kind != "" {
		return fmt.Errorf("%s must be %s (line %d)", name, kind, line)
	}
	return err
}

// kindOf says what kind of value a setting takes, and what it may be; empty for what is no setting.
func (c Config) kindOf(name string) string {
	for _, k := range c.keys() {
		if k.name != name {
			continue
		}
		kind := "text in quotation marks"
		switch k.value.Kind() {
		case reflect.Bool:
			kind = "true or false"
		case reflect.Int, reflect.Float64:
			kind = "a number without quotation marks"
		case reflect.Slice:
			kind = "a list in square brackets"
		}
		if must := k.must(); must != "" {
			kind += ": " + must
		}
		return kind
	}
	return ""
}

// inTOML writes a value as a file has it.
func inTOML(v reflect.Value) string {
	b, err := toml.Marshal(map[string]any{"x": v.Interface()})
	if err != nil {
		panic("config: internal error: " + err.Error())
	}
	return strings.TrimSpace(strings.TrimPrefix(string(b), "x = "))
}
