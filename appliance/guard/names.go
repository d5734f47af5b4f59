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
	if scriptOf(name) == nil {
		return errors.New("the name mixes alphabets; write it in one")
	}
	if digits > 3 {
		return errors.New("the name has more than three digits, which could be mistaken for the phone's number on the panel; leave some out")
	}
	if ownWord(name) {
		return errors.New("the name has a word that the box uses itself; choose another name")
	}
	l := lookOf(name)
	for _, other := range existing {
		if l.like(lookOf(other)) {
			return errors.New("another phone has this name, or one that looks like it; choose another")
		}
	}
	return nil
}

// longWord is how many letters make a word the panel's wherever in a name it stands. Shorter ones are parts of people's names.
const longWord = 7

// ownWord reports whether a name could be read as a word that the panel says of itself: it stands there right before what is asked
// for, and "Refused" or "Mum approves" would be read as the box's own. Neighbours are tried as one word, because "app-roves" and
// "O K" are read so.
func ownWord(name string) bool {
	words := strings.FieldsFunc(name, func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) })
	var runs []look
	for i := range words {
		for j := i; j < len(words); j++ {
			runs = append(runs, lookOf(strings.Join(words[i:j+1], "")))
		}
	}
	whole := skeleton(name)
	return slices.ContainsFunc(ownWords(), func(word string) bool {
		own := lookOf(word)
		return len(word) >= longWord && strings.Contains(whole, own.plain) || slices.ContainsFunc(runs, own.like)
	})
}

// ownWords are those of the panel's bars, prompts and outcomes, of what people say of them, what else means yes, and the product's
// names. They are English, as all that the panel says.
func ownWords() []string {
	return strings.Fields(`
		accept accepted accepts admin administrator agree agreed agrees allow allowed allows approve approved approves approval armed
		ask asked asks assent adult audit becomes both box boxes busy cable cancel cancelled caution change changed changes check
		checked code confirm confirmed confirms copied copying copy delete deleted denied denies deny details device done dropped
		eject ejected error expired expires export failed freeze frozen goes granted grant guard hold holding idle let lost next nothing
		notice ok okay owner page pages pair paired pairing panel panic permitted press pressed readonly record refuse refused refuses
		reject rejected rejects release released remove removed request requests reset revoked root safe scan screen sent stick system
		tap taps test text thaw trouble trust trusted unfreeze unknown update updated updates usb verified waiting warning withdrawn
		withdraws yes`)
}

// scriptOf is the one script that a name's letters are of, digits and signs being of every script as in UTS #39 section 5.1. It is nil
// if they are of several, or there is no letter.
func scriptOf(name string) *unicode.RangeTable {
	var found *unicode.RangeTable
	for _, script := range []*unicode.RangeTable{unicode.Latin, unicode.Greek, unicode.Cyrillic} {
		switch {
		case !strings.ContainsFunc(name, func(r rune) bool { return unicode.Is(script, r) }):
		case found != nil:
			return nil
		default:
			found = script
		}
	}
	return found
}

// look is what people see of a name.
type look struct {
	script        *unicode.RangeTable
	plain, folded string // skeletons of the name as it is, and without case, as ß is SS
	// The Latin letters that each letter could be taken for, in capitals or not: of the name as it is, and with pairs that look
	// like one letter made one.
	drawn, joined []string
}

func lookOf(name string) look {
	low := strings.ToLower(bare(name))
	return look{
		script: scriptOf(name),
		plain:  skeleton(name), folded: skeleton(cases.Fold().String(name)),
		drawn: drawings(low), joined: drawings(join(low)),
	}
}

// like reports whether people could take one name for the other. Who knows a script tells its letters apart, so two names of one
// script are compared by their skeletons alone. A name of another script than the one expected is read by its outlines.
func (l look) like(m look) bool {
	if l.plain == m.plain || l.folded == m.folded {
		return true
	}
	meet := func(a, b string) bool { return strings.ContainsAny(a, b) }
	return l.script != m.script && (slices.EqualFunc(l.drawn, m.drawn, meet) || slices.EqualFunc(l.joined, m.joined, meet))
}

// skeleton maps names of one script that people could take for each other to one string, in the manner of UTS #39 section 4: without
// case, accents, strokes, spaces and punctuation, and with the letters that panels and eyes confuse made one.
func skeleton(name string) string { return join(strings.Map(lookalike, bare(name))) }

// bare is a name without accents, spaces and punctuation, with letters that look like two taken apart.
func bare(name string) string {
	name = strings.Map(func(r rune) rune {
		if unicode.Is(unicode.Mn, r) || unicode.IsSpace(r) || unicode.IsPunct(r) {
			return -1
		}
		return r
	}, norm.NFKD.String(name))
	return strings.NewReplacer("æ", "ae", "Æ", "ae", "œ", "oe", "Œ", "oe", "ы", "bl", "Ы", "bl", "ю", "lo", "Ю", "lo", "љ", "ль", "Љ", "ль").Replace(name)
}

// join makes one of letters that look like one together.
func join(letters string) string {
	return strings.NewReplacer("rn", "m", "vv", "w", "cl", "d").Replace(letters)
}

// drawings are what each letter could be taken for, in capitals or not.
func drawings(letters string) []string {
	var all []string
	for _, r := range letters {
		could := []rune{lookalike(r), lookalike(unicode.ToUpper(r))}
		for _, group := range likeness() {
			if strings.ContainsRune(group[1:], r) {
				could = append(could, rune(group[0]))
			}
		}
		all = append(all, string(could))
	}
	return all
}

// likeness has what else Greek and Cyrillic letters, small or capital, printed or written, look like beside those of lookalikes, after
// that Latin letter. A letter may look like several.
func likeness() []string {
	return []string{
		"aдлλδч", "cє", "eσςξ", "fгґγ", "gд", "hη", "lцг", "mтш", "nинην",
		"oω", "sς", "tгґγћђ", "vυγ", "wψ", "xξ", "yψ", "zз",
	}
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
		if strings.ContainsRune(group[1:], r) {
			return rune(group[0])
		}
	}
	return r
}

// lookalikes has groups of lower-case letters and digits, each after the letter that stands for it.
func lookalikes() []string {
	return []string{
		"aаαəә4", "bвβßъьб68", "cсϲ", "dđðԁδд", "eеєεэз3", "hħнηһћђњ",
		"jј", "kкκĸ", "lłıiіι1ӏ7", "mм", "nŋплπλ", "oøоοσςθфφ0", "pрρþ", "gq9",
		"rгґя", "sѕ5", "tŧтτ", "uμυцџи", "vνѵ", "wшщωѡ", "xхχж", "yуγч", "zζ2",
	}
}
