package screen_test

import (
	"errors"
	"strings"
	"testing"

	"assent.home.arpa/confirm/screen"
)

func TestCheckRefuses(t *testing.T) {
	tests := []struct {
		event  string
		text   string
		offset int
		rune   rune
		reason screen.Reason
	}{
		{"right-to-left override", "pay \u202etxet", 4, 0x202E, screen.BidiControl},
		{"right-to-left mark", "a\u200fb", 1, 0x200F, screen.BidiControl},
		{"isolate", "a\u2066b", 1, 0x2066, screen.BidiControl},
		{"arabic letter mark", "a\u061cb", 1, 0x061C, screen.BidiControl},
		{"zero-width space", "wea\u200bther", 3, 0x200B, screen.ZeroWidth},
		{"zero-width joiner", "a\u200db", 1, 0x200D, screen.ZeroWidth},
		{"word joiner", "a\u2060b", 1, 0x2060, screen.ZeroWidth},
		{"byte order mark", "\ufeffa", 0, 0xFEFF, screen.ZeroWidth},
		{"soft hyphen", "a\u00adb", 1, 0x00AD, screen.ZeroWidth},
		{"combining grapheme joiner", "a\u034fb", 1, 0x034F, screen.ZeroWidth},
		{"hangul filler, a letter without ink", "a\u3164", 1, 0x3164, screen.ZeroWidth},
		{"interlinear annotation", "a\ufff9", 1, 0xFFF9, screen.ZeroWidth},
		{"tag characters", "a\U000e0041", 1, 0xE0041, screen.Tag},
		{"emoji with a variation selector", "I \u2764\ufe0f it", 2, 0x2764, screen.Emoji},
		{"variation selector on a digit", "1\ufe0f", 1, 0xFE0F, screen.VariationSelector},
		{"supplementary variation selector", "a\U000e0100", 1, 0xE0100, screen.VariationSelector},
		{"emoji", "ok \U0001f44d", 3, 0x1F44D, screen.Emoji},
		{"null", "a\x00", 1, 0, screen.Control},
		{"escape", "a\x1b[31m", 1, 0x1B, screen.Control},
		{"carriage return", "a\r\n", 1, '\r', screen.Control},
		{"c1 control", "a\u0085", 1, 0x85, screen.Control},
		{"private use", "a\ue000", 1, 0xE000, screen.PrivateUse},
		{"plane 16 private use", "a\U00100000", 1, 0x100000, screen.PrivateUse},
		{"noncharacter", "a\ufdd0", 1, 0xFDD0, screen.Noncharacter},
		{"last of a plane", "a\U0001ffff", 1, 0x1FFFF, screen.Noncharacter},
		{"unassigned", "a\u0378", 1, 0x0378, screen.Unassigned},
		{"persian with a legitimate non-joiner", "می\u200cخواهم", 0, 0x0645, screen.NeedsShaping},
		{"hebrew", "a שלום", 2, 0x05E9, screen.NeedsShaping},
		{"hindi", "हिन्दी", 0, 0x0939, screen.NeedsShaping},
		{"thai without spaces", "สวัสดี", 0, 0x0E2A, screen.NeedsShaping},
		{"han", "天", 0, 0x5929, screen.NoGlyph},
		{"box drawing, which could imitate the bar", "a█", 1, 0x2588, screen.NoGlyph},
		{"fullwidth latin", "ａ", 0, 0xFF41, screen.NoGlyph},
		{"decomposed letter", "cafe\u0301", 4, 0x0301, screen.NotNFC},
		{"mark without a composed form", "x\u0301", 1, 0x0301, screen.CombiningMark},
		{"pile-up of marks", "e\u0316" + strings.Repeat("\u0317", 50), 1, 0x0316, screen.CombiningMark},
		{"mark at the start", "\u0301a", 0, 0x0301, screen.CombiningMark},
		{"cyrillic titlo", "а\u0483", 2, 0x0483, screen.CombiningMark},
		{"enclosing mark", "1\u20dd", 1, 0x20DD, screen.CombiningMark},
		{"greek question mark, a singleton", "a\u037e", 1, 0x037E, screen.NotNFC},
		{"invalid utf-8", "a\xff", 1, 0xFFFD, screen.InvalidUTF8},
		{"encoded surrogate", "a\xed\xa0\x80", 1, 0xFFFD, screen.InvalidUTF8},
		{"one code point too many", strings.Repeat("a", screen.MaxCodePoints+1), screen.MaxCodePoints, 'a', screen.TooLong},
	}
	for _, tt := range tests {
		t.Run(tt.event, func(t *testing.T) {
			for name, err := range map[string]error{"Check": screen.Check(tt.text), "Pages": second(screen.Pages(screen.Card{Text: tt.text}))} {
				var u *screen.UndisplayableError
				if !errors.As(err, &u) {
					t.Fatalf("%s(%+q) = %v, want an UndisplayableError", name, tt.text, err)
				}
				if u.Offset != tt.offset || u.Rune != tt.rune || u.Reason != tt.reason {
					t.Errorf("%s(%+q) = %+v (%v), want offset %d, %U, %v", name, tt.text, *u, u, tt.offset, tt.rune, tt.reason)
				}
				if u.Code() != "undisplayable_text" {
					t.Errorf("code %q", u.Code())
				}
				if strings.ContainsRune(u.Error(), tt.rune) && tt.rune > 0x7F {
					t.Error("the error draws the code point that it refuses")
				}
			}
		})
	}
}

func second[A, B any](_ A, b B) B { return b }

func TestCheckAccepts(t *testing.T) {
	for _, text := range []string{
		"", " ", "what's on at the cinema's late show", "naïve café, Łódź, Đà Nẵng, İzmir, ẞ",
		"Ελληνικά ᾧ", "Привет, мир", "5 € – “quoted” … 1/2 ½ → 20 °C ± 3 × 4 ≤ 9", "tab\there\nand there",
		"no-break\u00a0space\u3000ideographic\u2003em\u2028line", strings.Repeat("a", screen.MaxCodePoints),
	} {
		if err := screen.Check(text); err != nil {
			t.Errorf("Check(%.40q) = %v", text, err)
		}
	}
}

func TestEveryFieldIsChecked(t *testing.T) {
	const bad = "x\u202ey"
	for name, c := range map[string]screen.Card{
		"title":       {Title: bad},
		"text":        {Title: "t", Text: bad},
		"destination": {Title: "t", Destination: bad},
		"note":        {Title: "t", Note: bad},
		"phone":       {Title: "t", Phone: bad},
		"taint":       {Title: "t", Taint: bad},
	} {
		_, err := screen.Pages(c)
		var u *screen.UndisplayableError
		if !errors.As(err, &u) || !strings.HasPrefix(err.Error(), name+":") {
			t.Errorf("%s: %v", name, err)
		}
	}
}
