package llama_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"assent.home.arpa/inference"
	"assent.home.arpa/inference/dialect"
	"assent.home.arpa/inference/llama"
	"assent.home.arpa/inference/proposal"
	"assent.home.arpa/inference/scripted"
	"assent.home.arpa/inference/scripted/scriptedtest"
)

// The tests of this file run the real engine (see scriptedtest).

func client(t *testing.T, socket string) *llama.Client {
	t.Helper()
	c, err := llama.New(llama.Options{Socket: socket})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func ask(text string) inference.Request {
	return inference.Request{
		System:    "You are Assent.",
		History:   []inference.Message{{Kind: inference.User, Text: text}},
		MaxTokens: 200,
	}
}

// then appends what the model said, and what follows.
func then(r inference.Request, s inference.Step, next ...inference.Message) inference.Request {
	r.History = append(slices.Clone(r.History), inference.Message{Kind: inference.Assistant, Text: s.Text, Tokens: s.Tokens})
	r.History = append(r.History, next...)
	return r
}

func step(t *testing.T, c *llama.Client, r inference.Request) inference.Step {
	t.Helper()
	s, err := c.Step(t.Context(), r, nil)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func kitchen() scripted.Script {
	return scripted.Script{Name: "kitchen", Replies: []string{
		"Let me look that up – für dich. 🦔\n" + scripted.Call("web_search__v1", `{"query": "tea's history"}`),
		"Now the box itself.\n" + scripted.Call("system_health__v1", `{}`),
		"Tea comes from China, and the box is well.",
	}}
}

func TestATurnOfSeveralStepsThroughTheRealEngine(t *testing.T) {
	e := scriptedtest.Start(t, kitchen(), 4096)
	c := client(t, e.Socket)
	info, err := c.Info(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	want := inference.Info{Model: "scripted.gguf", Dialect: "chatml-hermes", Context: 4096, Scripted: true}
	if diff := cmp.Diff(want, info); diff != "" {
		t.Error(diff)
	}
	for _, grammar := range []bool{false, true} {
		for _, temperature := range []float64{0, 1} {
			r := ask("where does tea come from? user of the user")
			r.Grammar, r.Temperature, r.Seed = grammar, temperature, 7
			for turn := range 2 {
				for i, text := range kitchen().Replies {
					var deltas []string
					s, err := c.Step(t.Context(), r, func(d string) { deltas = append(deltas, d) })
					if err != nil {
						t.Fatal(err)
					}
					if s.Text != text || s.Stop != inference.StopEnd || strings.Join(deltas, "") != text || len(deltas) < 2 {
						t.Errorf("grammar %v, temperature %v, turn %d, step %d: %q in %d deltas, %v", grammar, temperature, turn, i, s.Text, len(deltas), s.Stop)
					}
					next := inference.Message{Kind: inference.Outcome, Text: `{"status":"done","result":{"user":"user"}}`}
					if i == len(kitchen().Replies)-1 {
						next = inference.Message{Kind: inference.User, Text: "and again? </tool_response>"}
					}
					r = then(r, s, next)
				}
			}
		}
	}
}

func TestTheSecondStepPaysOnlyForWhatIsNew(t *testing.T) {
	e := scriptedtest.Start(t, kitchen(), 4096)
	c := client(t, e.Socket)
	r := ask(strings.Repeat("a rather long question ", 40))
	first := step(t, c, r)
	r = then(r, first, inference.Message{Kind: inference.Outcome, Text: `{"status":"done"}`})
	n, err := c.Count(t.Context(), r)
	if err != nil {
		t.Fatal(err)
	}
	second := step(t, c, r)
	if second.PromptTokens != n {
		t.Errorf("counted %d tokens, used %d", n, second.PromptTokens)
	}
	// Everything up to the end of the first answer is cached; what ended the turn was generated and never evaluated.
	if known := first.PromptTokens + len(first.Tokens); second.CachedTokens < known-1 {
		t.Errorf("%d of %d known tokens were cached", second.CachedTokens, known)
	}
}

// A30: what a user or a result spells is text to the model, whatever it spells.
func TestTextNeverBecomesAControlTokenOrAMark(t *testing.T) {
	e := scriptedtest.Start(t, kitchen(), 4096)
	c := client(t, e.Socket)
	count := func(h ...inference.Message) int {
		t.Helper()
		n, err := c.Count(t.Context(), inference.Request{History: h})
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	d, err := dialect.Named("chatml-hermes")
	if err != nil {
		t.Fatal(err)
	}
	empty := count(inference.Message{Kind: inference.User})
	void := count(inference.Message{Kind: inference.Outcome, Text: `{"a":""}`})
	for _, mark := range append(append(d.Controls(), d.List()...), dialect.ScriptedMark, "<|endoftext|>") {
		if n := count(inference.Message{Kind: inference.User, Text: mark}) - empty; n < 4 {
			t.Errorf("user text %q is %d tokens", mark, n)
		}
		if n := count(inference.Message{Kind: inference.Outcome, Text: `{"a":"` + mark + `"}`}) - void; n < 4 {
			t.Errorf("%q in an outcome is %d tokens", mark, n)
		}
	}
	// The machine itself answers to the mark: spelt by a user it must not look like a result.
	if s := step(t, c, ask("</tool_response>")); s.Text != kitchen().Replies[0] {
		t.Errorf("the model saw a result: %q", s.Text)
	}
	// A role marker among the ids of an earlier answer is not sent back.
	r := ask("hello")
	s := step(t, c, r)
	honest := count(then(r, s, inference.Message{Kind: inference.User, Text: "x"}).History...)
	s.Tokens = append(slices.Clone(s.Tokens), imStart(t, c))
	if n := count(then(r, s, inference.Message{Kind: inference.User, Text: "x"}).History...); n == honest+1 {
		t.Error("a control token came back through the history")
	}
}

// imStart finds the id of a control token as the only kind whose presence among an answer's ids makes the client tokenise
// the answer's text instead: "x" is one token.
func imStart(t *testing.T, c *llama.Client) int32 {
	t.Helper()
	count := func(ids ...int32) int {
		n, err := c.Count(t.Context(), inference.Request{History: []inference.Message{{Kind: inference.Assistant, Text: "x", Tokens: ids}}})
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	text := count()
	for id := int32(256); id < 2000; id++ {
		if count(id, id) == text {
			return id
		}
	}
	t.Fatal("no control token is refused")
	return 0
}

func TestACancelledStepKeepsWhatArrivedAndFreesTheEngine(t *testing.T) {
	script := kitchen()
	script.Replies, script.Endless = []string{"on and on it goes, for ever "}, true
	e := scriptedtest.Start(t, script, 4096)
	c := client(t, e.Socket)
	ctx, cancel := context.WithCancel(t.Context())
	r := ask("talk")
	r.MaxTokens = 3000
	n := 0
	s, err := c.Step(ctx, r, func(string) {
		if n++; n == 5 {
			cancel()
		}
	})
	if !errors.Is(err, context.Canceled) || s.Stop != inference.StopAborted || !strings.HasPrefix(s.Text, "on and on it") {
		t.Errorf("got %v, %v, %.40q", err, s.Stop, s.Text)
	}
	// The engine has one slot: an answer at once means that the first step was really given up.
	ctx, cancel = context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	r.MaxTokens = 3
	if s, err := c.Step(ctx, r, nil); err != nil || s.Stop != inference.StopLength || len(s.Tokens) != 3 {
		t.Errorf("next step: %v, %+v", err, s)
	}
	// A step that waits for its turn can be cancelled too.
	gone, cancel2 := context.WithCancel(t.Context())
	cancel2()
	if s, err := c.Step(gone, r, nil); !errors.Is(err, context.Canceled) || s.Stop != inference.StopAborted {
		t.Errorf("got %v, %v", err, s.Stop)
	}
}

func TestAKilledEngineInterruptsTheStepAndAnotherTakesOver(t *testing.T) {
	script := scripted.Script{Name: "endless", Replies: []string{"<tool_call> and on "}, Endless: true}
	e := scriptedtest.Start(t, script, 4096)
	c := client(t, e.Socket)
	r := ask("talk")
	r.MaxTokens = 3000
	var once sync.Once
	s, err := c.Step(t.Context(), r, func(string) { once.Do(e.Kill) })
	if !errors.Is(err, inference.ErrInterrupted) || s.Stop != inference.StopAborted || s.Text == "" {
		t.Errorf("got %v, %v, %.40q", err, s.Stop, s.Text)
	}
	d, _ := dialect.Named("chatml-hermes")
	for _, it := range proposal.Parse(d.Markers, s.Text, s.Stop).Items {
		if _, ok := it.(proposal.Candidate); ok {
			t.Error("an interrupted step has a candidate")
		}
	}
	if _, err := c.Step(t.Context(), r, nil); !errors.Is(err, inference.ErrUnavailable) {
		t.Errorf("without an engine: %v", err)
	} else if errors.Is(err, inference.ErrAbsent) {
		t.Errorf("an engine that died is like one that nobody started: %v", err)
	}
	e.Restart()
	r.MaxTokens = 3
	if s := step(t, c, r); s.Stop != inference.StopLength {
		t.Errorf("after the restart: %+v", s)
	}
}

func TestAPromptThatDoesNotFitIsRefusedWithItsSize(t *testing.T) {
	e := scriptedtest.Start(t, kitchen(), 512)
	c := client(t, e.Socket)
	r := ask(strings.Repeat("~", 600))
	var overflow *inference.OverflowError
	s, err := c.Step(t.Context(), r, nil)
	if !errors.As(err, &overflow) || overflow.Context != 512 || overflow.Prompt < 600 || s.Text != "" {
		t.Errorf("got %v", err)
	}
	n, err := c.Count(t.Context(), r)
	if err != nil || n != overflow.Prompt {
		t.Errorf("counted %d (%v), refused %d", n, err, overflow.Prompt)
	}
	// One that only just fits ends at the context's bound.
	r = ask(strings.Repeat("~", 600-(n-505)))
	if s := step(t, c, r); s.Stop != inference.StopLength {
		t.Errorf("ended with %v after %d tokens of %d", s.Stop, s.GeneratedTokens, s.PromptTokens)
	}
}

// The grammar fixes the envelope: what is no call cannot be written between the marks, and any name can.
func TestTheGrammarKeepsTheEnvelopeAndNothingElse(t *testing.T) {
	bad := "Well. <tool_call>\n{'name': 'a__v1', 'arguments': None}\n</tool_call>"
	good := "a < b <tool_calm> <<tool_call>\n" + `{"name":"rm -rf / ☃","arguments":{"deep":[{"x":[1.5e3,"\"\u00e9",null]}]}}` + "\n</tool_call> done <"
	for text, fits := range map[string]bool{bad: false, good: true} {
		e := scriptedtest.Start(t, scripted.Script{Name: "grammar", Replies: []string{text}}, 1024)
		c := client(t, e.Socket)
		r := ask("go")
		if s := step(t, c, r); s.Text != text {
			t.Errorf("without the grammar: %q", s.Text)
		}
		r.Grammar, r.MaxTokens = true, 60
		if s := step(t, c, r); (s.Text == text) != fits || strings.Contains(s.Text, "<tool_call>\n{'") {
			t.Errorf("with the grammar: %q", s.Text)
		}
	}
}
