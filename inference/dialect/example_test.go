package dialect_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"assent.home.arpa/inference"
	"assent.home.arpa/inference/dialect"
)

// Examples are stable text of ours: they come before the history, in the marks of the family, and nothing of a history
// moves them.
func TestExamplesComeBeforeTheHistoryInTheFamilysMarks(t *testing.T) {
	for _, name := range dialect.Names() {
		d, err := dialect.Named(name)
		if err != nil {
			t.Fatal(err)
		}
		r := inference.Request{System: "system text", Examples: []inference.Example{
			{Question: "how is the box", Name: "system_health__v1", Arguments: "{}"},
			{Question: "two and two", Answer: "four"},
		}}
		text := func(history ...inference.Message) (all string, ours string) {
			r.History = history
			pieces, err := d.Render(r)
			if err != nil {
				t.Fatal(err)
			}
			for _, p := range pieces {
				all += p.Text
				if p.Source == dialect.Ours {
					ours += p.Text
				}
			}
			return all, ours
		}
		all, ours := text(inference.Message{Kind: inference.User, Text: "the question"})
		call := d.CallOpen + "\n" + `{"name": "system_health__v1", "arguments": {}}` + "\n" + d.CallClose
		at := -1
		for _, part := range []string{"system text", "how is the box", call, "two and two", "four", "the question"} {
			i := strings.Index(all, part)
			if i <= at {
				t.Errorf("%s: %q is out of its place in\n%s", name, part, all)
			}
			at = i
		}
		if strings.Contains(ours, "the question") || !strings.Contains(ours, call) {
			t.Errorf("%s: ours is\n%s", name, ours)
		}
		if strings.Count(all, "system text") != 1 {
			t.Errorf("%s: the system text is there %d times", name, strings.Count(all, "system text"))
		}
		stable, _, _ := strings.Cut(all, "the question")
		if other, _ := text(inference.Message{Kind: inference.User, Text: "another"}); !strings.HasPrefix(other, stable) {
			t.Errorf("%s: the stable part depends on the question", name)
		}
	}
}

// A model whose tokens for the marks were never taught is given, and recognises, the marks in the pieces that it writes.
func TestSpelledMarksAreCutWhereTheModelCutsThem(t *testing.T) {
	const ours = "use <tool_call>\n{}\n</tool_call>, not <think>"
	for _, tc := range []struct {
		dialect string
		source  dialect.Source
		want    []string
	}{
		{"chatml-hermes", dialect.Ours, []string{ours}},
		{"chatml-hermes-spelled", dialect.Ours, []string{"use <tool", "_call>\n{}\n</tool", "_call>, not <", "think>"}},
		{"chatml-hermes-spelled", dialect.Said, []string{"use <tool", "_call>\n{}\n</tool", "_call>, not <", "think>"}},
		{"chatml-hermes-spelled", dialect.Foreign, []string{"use <", "tool_call>\n{}\n<", "/tool_call>, not <", "think>"}},
	} {
		d, err := dialect.Named(tc.dialect)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(tc.want, d.Parts(dialect.Piece{Source: tc.source, Text: ours})); diff != "" {
			t.Errorf("%s, source %d (-want +got):\n%s", tc.dialect, tc.source, diff)
		}
	}
}
