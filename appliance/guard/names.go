package guard

import (
	"errors"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/cases"
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
		case screen.Everyday(r):
			letters++
		case unicode.IsLetter(r):
			return errors.New("the name has a rare letter that could be mistaken; use those of an everyday alphabet")
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
	if ownWord(name) {
		return errors.New("the name has a word that the box uses itself; choose another name")
	}
	for _, other := range existing {
		if twins(name, other) {
			return errors.New("another phone has this name, or one that looks like it; choose another")
		}
	}
	return nil
}

// ownWord reports whether a name, or a word of it, could be one that the panel says of itself: it stands there right before what
// is asked for, and "Refused" or "Mum approves" would be read as the box's own.
func ownWord(name string) bool {
	words := strings.FieldsFunc(name, func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) && r != '\'' })
	if len(words) > 1 {
		words = append(words, name)
	}
	for _, w := range words {
		if slices.ContainsFunc(ownWords(), func(own string) bool { return twins(w, own) }) {
			return true
		}
	}
	return false
}

// ownWords are those of the panel's bars and outcomes, of what people say of them, and the product's names.
func ownWords() []string {
	return strings.Fields(`
		admin administrator approve approved approves approval armed ask asked asks assent adult audit becomes box boxes busy cancel cancelled caution
		change changed changes code confirm confirmed confirms copied copying copy denied denies deny details device done dropped
		error expired expires export failed freeze frozen goes granted grant guard hold holding idle let lost next notice ok owner page
		pages pair paired pairing panel panic permitted press pressed record refuse refused refuses reject rejected rejects release
		released request requests reset revoked root safe scan screen sent stick system tap taps test text thaw trouble trusted
		unfreeze unknown update updated updates verified waiting warning withdrawn withdraws`)
}

// twins reports whether people could take one name for the other: they look alike, or are one but for case, as ß and SS are.
func twins(a, b string) bool {
	fold := cases.Fold()
	return skeleton(a) == skeleton(b) || skeleton(fold.String(a)) == skeleton(fold.String(b))
}

// skeleton maps names that people could take for each other to one string, in the manner of UTS #39 section 4: without
// case, accents, strokes, spaces and punctuation, and with the letters that panels and eyes confuse made one.
func skeleton(name string) string {
	var b strings.Builder
	for _, r := range norm.NFKD.String(name) {
		switch {
		case unicode.Is(unicode.Mn, r), unicode.IsSpace(r), unicode.IsPunct(r):
			continue
		}
		b.WriteRune(lookalike(r))
	}
	return strings.NewReplacer("rn", "m", "vv", "w", "cl", "d", "æ", "ae", "œ", "oe", "ы", "bl", "ю", "lo").Replace(b.String())
}

// lookalike maps a Greek or Cyrillic letter, a digit, or one with a stroke or a hook to the plain Latin letter that it looks like, and
// all to lower case. NFKD has taken off what is a mark of its own.
func lookalike(r rune) rune {
	switch r { // the other case of these looks like another letter
	case 'η', 'Ν':
		return 'n'
	case 'Μ':
		return 'm'
	case 'Γ':
		return 'r'
	case 'Υ':
		return 'y'
	}
	r = unicode.ToLower(r)
	for _, group := range lookalikes() {
		if plain, rest := group[0], group[1:]; slices.Contains(rest, r) {
			return plain
		}
	}
	return r
}

// lookalikes has groups of lower-case letters and digits, each after the letter that stands for it.
func lookalikes() [][]rune {
	return [][]rune{
		[]rune("aаαəә4"), []rune("bвβßъьб68"), []rune("cсϲ"), []rune("dđðԁδд"), []rune("eеєεэз3"), []rune("hħнηһћђњ"),
		[]rune("jј"), []rune("kкκĸ"), []rune("lłıiіι1ӏ7"), []rune("mм"), []rune("nŋплπλ"), []rune("oøоοσςθфφ0"), []rune("pрρþ"), []rune("gq9"),
		[]rune("rгґя"), []rune("sѕ5"), []rune("tŧтτ"), []rune("uμυцџи"), []rune("vνѵ"), []rune("wшщωѡ"), []rune("xхχж"), []rune("yуγч"), []rune("zζ2"),
	}
}
