package story_test

import (
	"bytes"
	"encoding/csv"
	"slices"
	"strings"
	"testing"

	"assent.home.arpa/appliance/audit/story"
)

func TestCSVIsInertInASpreadsheet(t *testing.T) {
	for _, c := range []struct{ event, text, cell string }{
		{"plain", "Search Wikipedia for “tide times”", "Search Wikipedia for “tide times”"},
		{"formula", "=cmd|' /C calc'!A0", "'=cmd|' /C calc'!A0"},
		{"plus", "+1", "'+1"},
		{"minus", "-1+1", "'-1+1"},
		{"function", "@SUM(1)", "'@SUM(1)"},
		{"after spaces", "   =1+1", "'   =1+1"},
		{"full-width", "＝1+1", "'＝1+1"},
		{"tab", "\t=1+1", `\t=1+1`},
		{"carriage return", "\r=1+1", `\r=1+1`},
		{"no-break space", "\u00a0=1", `\u00a0=1`},
		{"terminal and bidi", "\x1b[2J\u202e", `\x1b[2J\u202e`},
		{"quotes, commas and lines", "a\",\"b\nc", `a","b\nc`},
		{"only spaces", "  ", "  "},
	} {
		t.Run(c.event, func(t *testing.T) {
			var b bytes.Buffer
			w := story.NewCSV(&b)
			if err := w.Write(story.Story{Kind: story.KindCall, Headline: c.text}); err != nil {
				t.Fatal(err)
			}
			if err := w.Flush(); err != nil {
				t.Fatal(err)
			}
			rows, err := csv.NewReader(bytes.NewReader(b.Bytes())).ReadAll()
			if err != nil || len(rows) != 2 {
				t.Fatalf("%d rows: %v", len(rows), err)
			}
			if got := rows[1][slices.Index(rows[0], "headline")]; got != c.cell {
				t.Errorf("the cell is %q, want %q", got, c.cell)
			}
			if strings.Count(b.String(), "\r\n") != 2 || strings.Count(b.String(), "\n") != 2 {
				t.Errorf("lines do not end as RFC 4180 says: %q", b.String())
			}
		})
	}
}

func TestCSVOfNothingHasItsHeader(t *testing.T) {
	var b bytes.Buffer
	if err := story.NewCSV(&b).Flush(); err != nil || !strings.HasPrefix(b.String(), "when,clock,kind,outcome,headline,") {
		t.Errorf("%q, %v", b.String(), err)
	}
}
