package proposal_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"assent.home.arpa/capabilities"
	"assent.home.arpa/inference"
	"assent.home.arpa/inference/dialect"
	"assent.home.arpa/inference/proposal"
)

func markers(t testing.TB) dialect.Markers {
	t.Helper()
	d, err := dialect.Named("chatml-hermes")
	if err != nil {
		t.Fatal(err)
	}
	return d.Markers
}

const corpus = "../../testdata/proposal"

type example struct {
	stop inference.Stop
	text string
	want string // prose and items, as summary writes them
}

func readExample(t testing.TB, path string) example {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	header, text, found := strings.Cut(string(data), "\n---\n")
	first, want, _ := strings.Cut(header, "\n")
	stop, ok := map[string]inference.Stop{
		"stop: end": inference.StopEnd, "stop: length": inference.StopLength, "stop: aborted": inference.StopAborted,
	}[first]
	if !found || !ok {
		t.Fatalf("%s: malformed example", path)
	}
	return example{stop, strings.TrimSuffix(text, "\n"), want}
}

func summary(p proposal.Parsed) string {
	lines := []string{"prose: " + strconv.Quote(p.Prose)}
	for _, it := range p.Items {
		switch it := it.(type) {
		case proposal.Candidate:
			lines = append(lines, strings.TrimRight(fmt.Sprintf("candidate: %s %s %s", it.Name, it.Arguments, it.ID), " "))
		case proposal.Failure:
			lines = append(lines, "failure: "+string(it.Code))
		}
	}
	return strings.Join(lines, "\n")
}

// A5, A6, A8, A9, A10, A11: what each text of the corpus becomes.
func TestCorpus(t *testing.T) {
	for _, set := range []string{"accept", "reject"} {
		files, err := filepath.Glob(filepath.Join(corpus, set, "*.txt"))
		if err != nil || len(files) < 15 {
			t.Fatalf("%s: %d examples (%v)", set, len(files), err)
		}
		for _, path := range files {
			t.Run(set+"/"+strings.TrimSuffix(filepath.Base(path), ".txt"), func(t *testing.T) {
				e := readExample(t, path)
				p := proposal.Parse(markers(t), e.text, e.stop)
				if diff := cmp.Diff(e.want, summary(p)); diff != "" {
					t.Errorf("%s\n(-want +got):\n%s", e.text, diff)
				}
				if failed := strings.Contains(summary(p), "\nfailure: "); failed != (set == "reject") {
					t.Errorf("filed under %s", set)
				}
				checkAccounting(t, e.text, p)
			})
		}
	}
}

// checkAccounting verifies that no byte of a step is lost and no candidate says more than its bytes.
func checkAccounting(t interface{ Fatalf(string, ...any) }, text string, p proposal.Parsed) {
	sum := len(p.Prose) + p.Hidden
	for _, it := range p.Items {
		switch it := it.(type) {
		case proposal.Candidate:
			sum += len(it.Raw)
			var object map[string]json.RawMessage
			if err := json.Unmarshal(it.Arguments, &object); err != nil || object == nil {
				t.Fatalf("arguments %q are no object: %v", it.Arguments, err)
			}
			if !bytes.Contains(it.Raw, it.Arguments) || !strings.Contains(text, string(it.Raw)) {
				t.Fatalf("candidate is not made of the text's bytes: %q", it.Raw)
			}
		case proposal.Failure:
			sum += len(it.Raw)
			if it.Detail == "" || it.Code == "" {
				t.Fatalf("failure without a reason: %+v", it)
			}
		}
	}
	if p.More == 0 && sum != len(text) {
		t.Fatalf("%d of %d bytes are accounted for in %q", sum, len(text), text)
	}
}

func call(body string) string { return "<tool_call>" + body + "</tool_call>" }

func TestBounds(t *testing.T) {
	m := markers(t)
	nested := func(n int) string {
		return call(`{"name":"a__v1","arguments":` + strings.Repeat(`{"a":`, n) + "1" + strings.Repeat("}", n) + "}")
	}
	long := func(n int) string {
		s := call(`{"name":"a__v1","arguments":{"q":""}}`)
		return strings.Replace(s, `""`, `"`+strings.Repeat("x", n-len(s))+`"`, 1)
	}
	id := func(n int) string {
		return call(`{"id":"` + strings.Repeat("i", n) + `","name":"a__v1","arguments":{}}`)
	}
	for name, c := range map[string]struct {
		text string
		want string
	}{
		"31 deep in the call":     {nested(31), "candidate"},
		"32 deep in the call":     {nested(32), "failure: malformed_call"},
		"10,000 deep":             {nested(10_000), "failure: malformed_call"},
		"64 KiB":                  {long(proposal.MaxCall), "candidate"},
		"64 KiB and a byte":       {long(proposal.MaxCall + 1), "failure: malformed_call"},
		"2 MB":                    {long(2 << 20), "failure: malformed_call"},
		"id of 64 bytes":          {id(64), "candidate"},
		"id of 65 bytes":          {id(65), "failure: malformed_call"},
		"2 MB of closing marks":   {strings.Repeat("</tool_call>", 170_000), "failure: malformed_call"},
		"2 MB of opening marks":   {strings.Repeat("<tool_call>", 170_000), "failure: ambiguous_call"},
		"2 MB of thoughts in one": {strings.Repeat("<think><tool_call>", 110_000), "failure: ambiguous_call"},
	} {
		p := proposal.Parse(m, c.text, inference.StopEnd)
		if got := summary(p); !strings.HasPrefix(got, "prose: \"\"\n"+c.want) {
			t.Errorf("%s: %.80s", name, got)
		}
	}
}

// B7: every call that the model returned is counted, also where it is not looked at.
func TestCallsBeyondTheBoundAreCountedAndNeverCandidates(t *testing.T) {
	p := proposal.Parse(markers(t), strings.Repeat(call(`{"name":"a__v1","arguments":{}}`), proposal.MaxItems+3), inference.StopEnd)
	if len(p.Items) != proposal.MaxItems || p.More != 3 || p.Count() != proposal.MaxItems+3 {
		t.Errorf("%d items, %d more", len(p.Items), p.More)
	}
}

func TestAnUnknownStopNeverCounts(t *testing.T) {
	for _, stop := range []inference.Stop{0, inference.StopLength, inference.StopAborted, 99} {
		p := proposal.Parse(markers(t), call(`{"name":"a__v1","arguments":{}}`), stop)
		f, ok := p.Items[0].(proposal.Failure)
		if !ok || f.Code != capabilities.CodeTruncated {
			t.Errorf("%v: %+v", stop, p.Items[0])
		}
	}
}

// fragments builds texts in which marks collide.
func fragments(m dialect.Markers) *rapid.Generator[string] {
	parts := append(m.List(), "<", "</tool", "_call>", "think>", "prose ", "ü", `"`, `\`, "{", "}", `{"name":"a__v1","arguments":{}}`,
		`{"id":"1","name":"b","arguments":{"q":"x"}}`, call(`{"name":"a__v1","arguments":{}}`))
	return rapid.Map(rapid.SliceOfN(rapid.SampledFrom(parts), 0, 14), func(s []string) string { return strings.Join(s, "") })
}

func TestProseShownLiveIsTheProseParsed(t *testing.T) {
	m := markers(t)
	rapid.Check(t, func(t *rapid.T) {
		text := fragments(m).Draw(t, "text")
		stop := rapid.SampledFrom([]inference.Stop{inference.StopEnd, inference.StopLength}).Draw(t, "stop")
		p := proposal.Parse(m, text, stop)
		checkAccounting(t, text, p)
		s := proposal.NewStreamer(m)
		shown := ""
		for rest := text; rest != ""; {
			n := rapid.IntRange(1, len(rest)).Draw(t, "cut")
			shown += s.Write(rest[:n])
			rest = rest[n:]
			if !strings.HasPrefix(p.Prose, shown) {
				t.Fatalf("showed %q of %q", shown, p.Prose)
			}
		}
		if shown += s.Close(stop); shown != p.Prose {
			t.Fatalf("showed %q, parsed %q", shown, p.Prose)
		}
	})
}

func TestNeitherCallsNorHalfMarksAreEverShown(t *testing.T) {
	s := proposal.NewStreamer(markers(t))
	var got []string
	for _, delta := range []string{"Let me", " see.\n<", "tool", "_call", ">{\"name\":", "\"a\",\"arguments\":{}}</tool", "_call>", " Wait. <thi", "nk>hm</think", "> a <", " b <tool_cal"} {
		got = append(got, s.Write(delta))
	}
	got = append(got, s.Close(inference.StopLength))
	want := []string{"Let me", " see.\n", "", "", "", "", "", " Wait. ", "", " a ", "< b ", ""}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

// FuzzParse states what holds for any text: no panic, every byte accounted for, candidates made of the text's own bytes,
// no call without its mark, and the same prose live.
func FuzzParse(f *testing.F) {
	for _, set := range []string{"accept", "reject"} {
		files, _ := filepath.Glob(filepath.Join(corpus, set, "*.txt"))
		for _, path := range files {
			e := readExample(f, path)
			f.Add(e.text, uint8(e.stop))
		}
	}
	m := markers(f)
	f.Fuzz(func(t *testing.T, text string, stop uint8) {
		p := proposal.Parse(m, text, inference.Stop(stop))
		checkAccounting(t, text, p)
		marks := 0
		for _, mark := range []string{m.CallOpen, m.CallClose, m.DataOpen, m.DataClose} {
			marks += strings.Count(text, mark)
		}
		if p.Count() > marks {
			t.Fatalf("%d calls in %q", p.Count(), text)
		}
		for _, it := range p.Items {
			if _, ok := it.(proposal.Candidate); ok && inference.Stop(stop) != inference.StopEnd {
				t.Fatal("a candidate of a step that did not end")
			}
		}
		s := proposal.NewStreamer(m)
		shown := s.Write(text[:len(text)/2]) + s.Write(text[len(text)/2:]) + s.Close(inference.Stop(stop))
		if shown != p.Prose {
			t.Fatalf("showed %q, parsed %q", shown, p.Prose)
		}
	})
}
