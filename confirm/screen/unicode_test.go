package screen_test

import (
	"bufio"
	"errors"
	"os"
	"strconv"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/bidi"
	"golang.org/x/text/unicode/norm"

	"assent.home.arpa/confirm/screen"
	"assent.home.arpa/confirm/screen/font"
	"assent.home.arpa/device"
)

// textTop is where the first row of a text page begins.
const textTop = 8

// firstRow reads what is drawn at the start of a text page: after an optional tag, a box, or the glyph of r.
func firstRow(f *device.Frame, r rune) (tagged, boxed, glyph bool) {
	x := 0
	if solid(f, 0, textTop+1) { // a tag is inverse, and three columns wide
		tagged, x = true, 24
	}
	return tagged, isBox(f, x, textTop), isGlyph(f, x, textTop, r)
}

// solid reports whether seven pixels in a row are lit: no glyph is, but a tag and the edge of a box are.
func solid(f *device.Frame, x, y int) bool {
	for i := range 7 {
		if !f.At(x+i, y) {
			return false
		}
	}
	return f.At(x, y+13)
}

// isBox looks for a frame that is sixteen rows high and at least five columns wide.
func isBox(f *device.Frame, x, y int) bool {
	for i := range 40 {
		if !f.At(x+i, y) || !f.At(x+i, y+15) {
			return false
		}
	}
	for i := range 16 {
		if !f.At(x, y+i) {
			return false
		}
	}
	return true
}

func isGlyph(f *device.Frame, x, y int, r rune) bool {
	g, ok := font.Lookup(r)
	width := 8
	if g.Wide {
		width = 16
	}
	for dy := range font.Height {
		for dx := range width {
			if f.At(x+dx, y+dy) != (g.Rows[dy]>>(15-dx)&1 == 1) {
				return false
			}
		}
	}
	return ok
}

// literalPage is the first page of a text.
func literalPage(t *testing.T, text string) screen.Page {
	t.Helper()
	return mustPages(t, screen.Card{Title: "?", Text: text})[1]
}

// grounds says of each reason what must be true of a code point that is refused for it.
func grounds() map[screen.Reason]func(rune) bool {
	in := func(tables ...*unicode.RangeTable) func(rune) bool {
		return func(r rune) bool { return unicode.In(r, tables...) }
	}
	assigned := in(unicode.L, unicode.M, unicode.N, unicode.P, unicode.S, unicode.Z, unicode.Cc, unicode.Cf, unicode.Co, unicode.Cs)
	glyphless := func(r rune) bool { _, ok := font.Lookup(r); return !ok }
	return map[screen.Reason]func(rune) bool{
		screen.NotNFC:            func(r rune) bool { return !norm.NFC.IsNormalString(string(r)) },
		screen.Noncharacter:      in(unicode.Noncharacter_Code_Point),
		screen.BidiControl:       in(unicode.Bidi_Control),
		screen.Tag:               func(r rune) bool { return r>>7 == 0xE0000>>7 },
		screen.VariationSelector: in(unicode.Variation_Selector),
		screen.ZeroWidth:         in(unicode.Cf, unicode.Other_Default_Ignorable_Code_Point),
		screen.Control:           in(unicode.Cc),
		screen.PrivateUse:        in(unicode.Co),
		screen.NeedsShaping: func(r rune) bool {
			p, _ := bidi.LookupRune(r)
			class := p.Class()
			return assigned(r) && glyphless(r) && (class == bidi.R || class == bidi.AL || class == bidi.AN || !unicode.In(r, unicode.Common, unicode.Inherited, unicode.Latin, unicode.Greek, unicode.Cyrillic, unicode.Han))
		},
		screen.CombiningMark: in(unicode.M),
		screen.Emoji:         func(r rune) bool { return glyphless(r) && (0x2600 <= r && r <= 0x27BF || 0x1F000 <= r && r <= 0x1FAFF) },
		screen.Unassigned:    func(r rune) bool { return !assigned(r) },
		screen.NoGlyph:       func(r rune) bool { return glyphless(r) && unicode.In(r, unicode.L, unicode.N, unicode.P, unicode.S) },
	}
}

// TestEveryCodePoint goes through all of Unicode: a code point is refused on grounds that hold, or is drawn as its glyph, as a
// mark or as a box, in a picture that no other has, and is read back from it.
func TestEveryCodePoint(t *testing.T) {
	why := grounds()
	owner := make(map[device.Frame]rune)
	kinds := make(map[string]int)
	for i, reason := range reasons() {
		r := rune(i)
		if !utf8.ValidRune(r) {
			continue
		}
		if reason != screen.Displayable {
			if good, ok := why[reason]; !ok || !good(r) {
				t.Errorf("%U is refused, %q, which is not so", r, reason)
			}
			kinds[reason.String()]++
			continue
		}
		text := string(r)
		p := literalPage(t, text)
		if other, ok := owner[p.Frame]; ok {
			t.Errorf("%U and %U look the same", other, r)
		}
		owner[p.Frame] = r
		if got, err := screen.Decode(p); err != nil || got != text {
			t.Errorf("%U is read back as %q, %v", r, got, err)
		}
		tagged, boxed, glyph := firstRow(&p.Frame, r)
		if foreign := unicode.In(r, unicode.Greek, unicode.Cyrillic); tagged != foreign {
			t.Errorf("%U: tagged is %v", r, tagged)
		}
		switch {
		case boxed && glyph, !boxed && !glyph && !strings.ContainsRune(" \n\t", r):
			t.Errorf("%U is neither its glyph nor a box", r)
		case unicode.IsSpace(r) && r > 0x80 && !boxed:
			t.Errorf("%U passes for a space", r)
		case boxed:
			kinds["boxed"]++
		default:
			kinds["drawn"]++
		}
	}
	if kinds["drawn"] < 2000 || kinds["boxed"] > 160 || len(kinds) != len(why)+2 {
		t.Errorf("counts: %v", kinds)
	}
}

// TestTwins tries every letter of Greek and Cyrillic beside an unmistakable one of its script, and beside a Latin one: in its
// own word it is its glyph, and in a mixed one it is a box if an earlier letter of another script has its glyph.
func TestTwins(t *testing.T) {
	pictures := make(map[font.Glyph][]rune)
	for _, r := range accepted() {
		if g, ok := font.Lookup(r); ok {
			pictures[g] = append(pictures[g], r)
		}
	}
	script := func(r rune) string {
		for name, table := range map[string]*unicode.RangeTable{"latin": unicode.Latin, "greek": unicode.Greek, "cyrillic": unicode.Cyrillic} {
			if unicode.Is(table, r) {
				return name
			}
		}
		return "common"
	}
	rank := func(r rune) int { // in order of precedence
		at := 0
		for _, block := range font.Ranges() {
			if block.Lo <= r && r <= block.Hi {
				return at + int(r-block.Lo)
			}
			at += int(block.Hi-block.Lo) + 1
		}
		return at
	}
	twins := 0
	for _, runes := range pictures {
		for _, r := range runes {
			own := script(r)
			if own == "common" || own == "latin" {
				continue
			}
			shared, rival := false, false
			for _, other := range runes {
				shared = shared || script(other) != own && rank(other) < rank(r)
				rival = rival || other != r && (script(other) == own || script(other) == "common")
			}
			p := literalPage(t, string(r))
			if _, boxed, _ := firstRow(&p.Frame, r); boxed && !rival && !strings.ContainsRune("ϴӨ", r) { // nearly an 8
				t.Errorf("%U is a box in its own word, and nothing there looks like it", r)
			}
			p = literalPage(t, string(r)+"q")
			if _, boxed, _ := firstRow(&p.Frame, r); shared && !boxed {
				t.Errorf("%U is not a box beside a Latin letter", r)
			}
			if got, err := screen.Decode(p); err != nil || got != string(r)+"q" {
				t.Errorf("%U beside a Latin letter is read back as %q, %v", r, got, err)
			}
			if shared {
				twins++
			}
		}
	}
	if twins < 50 {
		t.Errorf("only %d twins of other scripts", twins)
	}
}

// TestScriptGoesOnToTheNextParagraph: the phone's name and the title stand on one page.
func TestScriptGoesOnToTheNextParagraph(t *testing.T) {
	for _, c := range []screen.Card{
		{Phone: "Кухня", Title: "aеop"}, {Phone: "сор", Title: "cop"}, {Phone: "сор", Title: "сор"}, {Phone: "cop", Title: "сор"}, {Phone: "ΑΒ", Title: "АВ"},
	} {
		p := mustPages(t, c)[0]
		if got, err := screen.Read(p); err != nil || strings.ReplaceAll(got, " ", "") != c.Phone+c.Title {
			t.Errorf("%q and %q are read back as %q, %v", c.Phone, c.Title, got, err)
		}
	}
}

// TestTextTable tries the examples of TEXT.md.
func TestTextTable(t *testing.T) {
	f, err := os.Open("TEXT.md")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	rows := 0
	for s := bufio.NewScanner(f); s.Scan(); {
		fields := strings.Split(strings.Trim(s.Text(), "| "), " | ")
		if len(fields) != 3 || !strings.HasPrefix(fields[1], "`") {
			continue
		}
		rows++
		event, outcome := fields[0], fields[2]
		text, err := strconv.Unquote(strings.Trim(fields[1], "`"))
		if err != nil {
			t.Fatalf("%s: %v", event, err)
		}
		refused := screen.Check(text)
		if reason, ok := strings.CutPrefix(outcome, "refused: "); ok {
			var u *screen.UndisplayableError
			if !errors.As(refused, &u) || u.Reason.String() != reason {
				t.Errorf("%s: %v, want %s", event, refused, outcome)
			}
			continue
		}
		if refused != nil {
			t.Errorf("%s: %v, want %s", event, refused, outcome)
			continue
		}
		if err := roundTrip(text); err != nil {
			t.Errorf("%s: %v", event, err)
		}
		tagged, boxed := marks(literalPage(t, text).Frame)
		if boxed != (outcome == "boxed") || !boxed && tagged != strings.Contains(outcome, "tag") {
			t.Errorf("%s: tagged %v, boxed %v, want %s", event, tagged, boxed, outcome)
		}
	}
	if rows < 30 {
		t.Errorf("only %d rows", rows)
	}
}

// marks looks for tags and boxes anywhere on a text page.
func marks(f device.Frame) (tagged, boxed bool) {
	for y := textTop; y < textTop+3*font.Height; y += font.Height {
		for x := 0; x < device.Width; x += 8 {
			tagged = tagged || solid(&f, x, y+1)
			boxed = boxed || isBox(&f, x, y)
		}
	}
	return tagged, boxed
}
