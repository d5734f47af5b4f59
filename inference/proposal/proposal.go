// Package proposal finds, in the raw text of one model step, the calls that the model proposes. It is a pure function of
// text: it knows no capability, judges no argument, and corrects nothing.
//
// # What is a call
//
// A call is a JSON object between the dialect's call marks, with white space around the object at most:
//
//	<tool_call>{"name":"web_search__v1","arguments":{"query":"tea"}}</tool_call>
//
// It has the members "name" (a string, which resolve will see as it is), "arguments" (an object, kept as the exact bytes
// in which it was written) and, if the model likes, "id" (a string of 1 to 64 bytes). It has no others. The JSON is
// checked as in RFC 7493: no key twice at any depth, valid UTF-8, no lone surrogates, no number beyond a double's range.
// Numbers stay text: 9007199254740993 keeps its last digit, because nothing here makes a float of it.
//
// Everything else between call marks is a Failure. Text that merely looks like a call (a fenced block, JSON without
// marks) is prose.
//
// # What fails closed because it can be read in two ways
//
//   - a call mark inside a call, even inside a JSON string; and every call after it
//   - a call whose closing mark falls into the middle of a JSON string; and every call after it
//   - calls with the same id: all of them
//   - a call in a reasoning part that is never closed, or after a reasoning part that was opened inside another
//   - a call before a reasoning part that was closed and never opened
//
// # What only the box writes
//
// A result, or half of one, between the marks in which a model reads data is a Failure as well: shown as prose it would
// look as if something had been done.
//
// A call in a closed reasoning part is a thought: neither a call nor prose.
//
// # What counts
//
// A step that did not end by itself (any Stop but StopEnd) has no candidates: each call in it is CodeTruncated, also the
// complete ones, because nobody knows what the model was about to add.
package proposal

import (
	"strings"

	"assent.home.arpa/capabilities"
	"assent.home.arpa/inference"
	"assent.home.arpa/inference/dialect"
)

// Bounds of one step.
const (
	MaxItems  = 64       // calls that are looked at; more are only counted
	MaxCall   = 64 << 10 // bytes of one call, marks included
	MaxIDSize = 64       // bytes of an id
)

// Item is one thing that the model returned as a call: a Candidate or a Failure.
type Item interface{ item() }

// Candidate is a well-formed call, and nothing more than that: whether there is such a capability and whether these are
// arguments of it is for the executor to say.
type Candidate struct {
	ID        string // as the model wrote it; empty if it wrote none
	Name      string // decoded, otherwise untouched
	Arguments []byte // the object's exact bytes
	Raw       []byte // the whole call, marks included
}

// Failure is a call that has no reading, or more than one. Detail is ours and quotes nothing; Raw is what the model wrote.
type Failure struct {
	Code   capabilities.Code // CodeMalformed, CodeAmbiguous or CodeTruncated
	Detail string
	Raw    []byte
}

func (Candidate) item() {}
func (Failure) item()   {}

// Parsed is what one step holds.
type Parsed struct {
	Prose  string // what may be shown, exactly as it was written
	Items  []Item // in the order of their opening marks, at most MaxItems
	More   int    // calls beyond MaxItems: they were proposed, and none of them may be executed
	Hidden int    // bytes that are neither prose nor part of a call: thoughts, and half a mark at a cut
}

// Count is the number of calls that the model returned, whatever became of them.
func (p Parsed) Count() int { return len(p.Items) + p.More }

// Parse reads the whole text of one step. Every byte of it ends up in Prose, in one item's Raw, in a call counted by More,
// or in Hidden.
func Parse(m dialect.Markers, text string, stop inference.Stop) Parsed {
	c := collector{text: text}
	l := newLexer(m, c.part)
	l.write(text)
	l.close(stop)
	return c.parsed(m, stop)
}

// span is one call in the text.
type span struct {
	from, to  int
	complete  bool // the closing mark was there
	ambiguous string
	forged    bool
}

type collector struct {
	text   string
	prose  strings.Builder
	spans  []span
	more   int
	hidden int
}

func (c *collector) part(p part) {
	switch p.kind {
	case partProse:
		c.prose.WriteString(c.text[p.from:p.to])
	case partHidden:
		c.hidden += p.to - p.from
	case partStray:
		for i := range c.spans {
			c.spans[i].ambiguous = "a reasoning part was closed after it and never opened"
		}
	case partCall:
		if len(c.spans) == MaxItems {
			c.more++
			return
		}
		c.spans = append(c.spans, span{p.from, p.to, p.complete, p.ambiguous, p.forged})
	}
}

func (c *collector) parsed(m dialect.Markers, stop inference.Stop) Parsed {
	out := Parsed{Prose: c.prose.String(), More: c.more, Hidden: c.hidden}
	ids := make([]string, len(c.spans))
	times := map[string]int{}
	for i, s := range c.spans {
		raw := []byte(c.text[s.from:s.to])
		var it Item
		if it, ids[i] = s.item(m, raw, stop); ids[i] != "" {
			times[ids[i]]++
		}
		out.Items = append(out.Items, it)
	}
	for i, it := range out.Items {
		if c, ok := it.(Candidate); ok && times[ids[i]] > 1 {
			out.Items[i] = Failure{capabilities.CodeAmbiguous, "several calls have the same id", c.Raw}
		}
	}
	return out
}

// item reads one call. The id is also given where the call fails for a reason that leaves its id readable.
func (s span) item(m dialect.Markers, raw []byte, stop inference.Stop) (Item, string) {
	fail := func(code capabilities.Code, detail string) Item { return Failure{code, detail, raw} }
	switch {
	case stop != inference.StopEnd:
		return fail(capabilities.CodeTruncated, "the answer was cut off, so no call in it counts"), ""
	case s.ambiguous != "":
		return fail(capabilities.CodeAmbiguous, s.ambiguous), ""
	case s.forged:
		return fail(capabilities.CodeMalformed, "results are written by the box alone; this one was the model's own, and was not shown"), ""
	case len(raw) > MaxCall:
		return fail(capabilities.CodeMalformed, "the call is too long"), ""
	case s.complete:
	case strings.HasPrefix(string(raw), m.CallOpen):
		return fail(capabilities.CodeTruncated, "the call has no closing mark"), ""
	default:
		return fail(capabilities.CodeMalformed, "a closing mark without a call"), ""
	}
	c, err := envelope(raw[len(m.CallOpen) : len(raw)-len(m.CallClose)])
	if err != nil {
		return fail(err.code, err.detail), c.ID
	}
	c.Raw = raw
	return c, c.ID
}
