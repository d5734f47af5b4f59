// Package dialect knows how each family of models was taught to see a conversation: which control tokens separate the
// roles, and between which marks a call, a result and a train of thought stand.
//
// A Dialect is data. Render turns a request into pieces, and each piece says where it comes from, because that decides
// how it may be tokenised:
//
//   - Control is a control token, named; only Render makes these, and none comes from a text.
//   - Ours is our own text. The tokenizer may find a mark in it (some vocabularies have a token for "<tool_call>").
//   - Foreign is what people, results and other programs wrote. Parts cuts every mark in it in two, so that it reaches
//     the model as the characters it was written in and never as the mark.
//   - Said is what the model itself said earlier: its marks are marks again, and the names of control tokens are text.
//
// Cutting is needed besides the engine's parse_special:false, which spares control tokens alone: llama.cpp still turns
// what a vocabulary lists as "user defined" into single tokens, and that is how Qwen's files list "<tool_call>" and
// Gemma's the role markers themselves.
//
// Stable text comes first (system, catalog, oldest turns), so that the engine's prefix cache holds from turn to turn.
package dialect

import (
	"fmt"
	"slices"
	"strings"
)

// Markers are the texts between which a model of a family writes calls and thoughts, and reads data.
type Markers struct {
	CallOpen, CallClose     string
	ReasonOpen, ReasonClose string
	DataOpen, DataClose     string
}

// Dialect describes one family. Layout of a turn: TurnOpen, role, RoleEnd (or a line break), text, TurnClose, line break.
type Dialect struct {
	Name string
	Markers

	Begin     string // control token before everything, or empty
	TurnOpen  string // control token
	RoleEnd   string // control token after the role's name; empty: a line break
	TurnClose string // control token, and the one with which the model ends its turn

	// Spelled says that the model was not taught the tokens that its vocabulary has for the marks: it writes and reads them
	// letter by letter, so they are put before it in that way, in the pieces in which it writes them.
	Spelled bool

	System    string // role names; an empty System puts that text before the first user turn
	User      string
	Assistant string
}

// The families, most specific first: Detect takes the first whose control tokens a model has.
func families() []Dialect {
	hermes := Markers{
		CallOpen: "<tool_call>", CallClose: "</tool_call>",
		ReasonOpen: "<think>", ReasonClose: "</think>",
		DataOpen: "<tool_response>", DataClose: "</tool_response>",
	}
	return []Dialect{
		{
			// Qwen 2.5 and 3, SmolLM2, Hermes, and the scripted models of the tests.
			Name: "chatml-hermes", Markers: hermes,
			TurnOpen: "<|im_start|>", TurnClose: "<|im_end|>",
			System: "system", User: "user", Assistant: "assistant",
		},
		{
			// Qwen 2.5 Coder: the same layout, and the vocabulary of Qwen 2.5 with its tokens for the marks untaught.
			Name: "chatml-hermes-spelled", Markers: hermes, Spelled: true,
			TurnOpen: "<|im_start|>", TurnClose: "<|im_end|>",
			System: "system", User: "user", Assistant: "assistant",
		},
		{
			// Granite 4. It uses the Hermes marks.
			Name: "granite", Markers: hermes,
			TurnOpen: "<|start_of_role|>", RoleEnd: "<|end_of_role|>", TurnClose: "<|end_of_text|>",
			System: "system", User: "user", Assistant: "assistant",
		},
		{
			// Gemma 3. It was taught neither a system role nor marks for calls; the Hermes marks are explained to it.
			Name: "gemma", Markers: hermes,
			Begin: "<bos>", TurnOpen: "<start_of_turn>", TurnClose: "<end_of_turn>",
			User: "user", Assistant: "model",
		},
	}
}

// ScriptedMark is the control token that only a scripted model has (inference/scripted). It sits in the model's own file,
// so that a script shows as one under whatever name it is started.
const ScriptedMark = "<|assent-scripted|>"

// UnknownError names a dialect that does not exist.
type UnknownError struct{ Name string }

func (e *UnknownError) Error() string {
	return fmt.Sprintf("dialect: %q is unknown; it is one of %s", e.Name, strings.Join(Names(), ", "))
}

// Names lists the families in the order in which detection tries them.
func Names() []string {
	var names []string
	for _, d := range families() {
		names = append(names, d.Name)
	}
	return names
}

// Named returns one family. The error is an *UnknownError.
func Named(name string) (Dialect, error) {
	for _, d := range families() {
		if d.Name == name {
			return d, nil
		}
	}
	return Dialect{}, &UnknownError{name}
}

// Controls lists the names of the control tokens that d cannot do without. Each must be exactly one token of the model.
func (d Dialect) Controls() []string {
	all := []string{d.Begin, d.TurnOpen, d.RoleEnd, d.TurnClose}
	return slices.DeleteFunc(all, func(s string) bool { return s == "" })
}

// List returns the marks, each once.
func (m Markers) List() []string {
	return []string{m.CallOpen, m.CallClose, m.ReasonOpen, m.ReasonClose, m.DataOpen, m.DataClose}
}

// syllable is where a mark falls into two pieces when a model spells it: "<tool" and "_call>".
func syllable(mark string) int { return max(1, strings.IndexByte(mark, '_')) }

// Parts cuts the text of a piece into what is to be tokenised separately; joined, the parts are the text. A foreign text
// is cut after the first byte of every mark and every control token's name that it spells, so no tokenizer can find one in
// it. What the model said keeps its own marks, and is cut at the names of control tokens alone.
func (d Dialect) Parts(p Piece) []string {
	var marks, spelled []string
	if d.Spelled {
		spelled = d.List()
	}
	switch p.Source {
	case Ours:
	case Foreign:
		marks, spelled = append(d.Controls(), d.List()...), nil
	default:
		marks = d.Controls()
	}
	var parts []string
	from := 0
	cut := func(at int) {
		parts = append(parts, p.Text[from:at])
		from = at
	}
	for i := range len(p.Text) {
		begins := func(m string) bool { return strings.HasPrefix(p.Text[i:], m) }
		if slices.ContainsFunc(marks, begins) {
			cut(i + 1)
		} else if n := slices.IndexFunc(spelled, begins); n >= 0 {
			cut(i + syllable(spelled[n]))
		}
	}
	if from < len(p.Text) {
		parts = append(parts, p.Text[from:])
	}
	return parts
}
