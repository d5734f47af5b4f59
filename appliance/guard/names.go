package guard

import (
	"errors"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"

	"assent.home.arpa/appliance/wire"
	"assent.home.arpa/confirm/screen"
)

// checkName reports why a phone cannot be called name. The panel shows the name beside what it asks for, so it must not
// look like another phone's, or like a word of the panel's own.
func checkName(name string, existing []string) error {
	switch {
	case name == "":
		return errors.New("the name is empty; choose one")
	case utf8.RuneCountInString(name) > wire.MaxPhoneName:
		return errors.New("the name is too long; 24 characters are the most")
	case strings.TrimSpace(name) != name:
		return errors.New("the name begins or ends with a space; leave it out")
	case screen.Check(name) != nil:
		return errors.New("the box's panel cannot show this name; use letters and digits")
	}
	letters, digits := 0, 0
	for _, r := range name {
		switch {
		case unicode.IsLetter(r):
			letters++
		case unicode.IsDigit(r):
			digits++
		case strings.ContainsRune(" -'._", r):
		default:
			return errors.New("the name holds a sign that could be mistaken; use letters, digits, spaces, - ' . and _")
		}
	}
	if letters == 0 {
		return errors.New("the name has no letter")
	}
	if digits > 3 {
		return errors.New("the name has more than three digits, which could be mistaken for the phone's number on the panel; leave some out")
	}
	s := skeleton(name)
	for _, word := range []string{"approved", "approve", "denied", "deny", "expired", "withdrawn", "panic", "frozen", "next request", "assent", "box", "owner"} {
		if s == skeleton(word) {
			return errors.New("the box uses this word itself; choose another name")
		}
	}
	for _, other := range existing {
		if s == skeleton(other) {
			return errors.New("another phone has this name, or one that looks like it; choose another")
		}
	}
	return nil
}

// skeleton maps names that people could take for each other to one string, in the manner of UTS #39 section 4: without
// case, accents, spaces and punctuation, and with the letters that panels and eyes confuse made one.
func skeleton(name string) string {
	var b strings.Builder
	for _, r := range norm.NFKD.String(name) {
		switch {
		case unicode.Is(unicode.Mn, r), unicode.IsSpace(r), unicode.IsPunct(r):
			continue
		}
		b.WriteRune(lookalike(r))
	}
	return strings.NewReplacer("rn", "m", "vv", "w", "cl", "d").Replace(b.String())
}

// lookalike maps a Greek or Cyrillic letter, or a digit, to the Latin letter that it looks like, and all to lower case.
func lookalike(r rune) rune {
	if r == 'η' { // its capital looks like an H
		return 'n'
	}
	switch r = unicode.ToLower(r); r {
	case 'а', 'α':
		return 'a'
	case 'в', 'β':
		return 'b'
	case 'с', 'ϲ':
		return 'c'
	case 'ԁ':
		return 'd'
	case 'е', 'ε', 'ё', 'є':
		return 'e'
	case 'ѓ', 'г':
		return 'r'
	case 'н', 'η', 'һ':
		return 'h'
	case 'і', 'ι', 'ı', 'i', '1', 'ӏ', '7':
		return 'l'
	case 'ј':
		return 'j'
	case 'к', 'κ':
		return 'k'
	case 'м', 'μ':
		return 'm'
	case 'ν':
		return 'v'
	case 'о', 'ο', '0', 'σ':
		return 'o'
	case 'р', 'ρ':
		return 'p'
	case 'ѕ', '5':
		return 's'
	case 'т', 'τ':
		return 't'
	case 'υ', 'у', 'γ':
		return 'y'
	case 'х', 'χ':
		return 'x'
	case 'ζ', '2':
		return 'z'
	case '8':
		return 'b'
	}
	return r
}
