// Package inference is the contract between a conversation and whatever runs the language model.
//
// A Provider turns a Request (system text, catalog, history) into one Step: raw generated text, the ids it was made
// of, and the reason for which generation stopped. It promises nothing about what the text means. Finding proposals in
// it is inference/proposal's job, deciding about them is the executor's, and neither is reachable from here: this
// package imports only the plain data of capabilities.
//
// # Trust
//
// Everything in a Step is untrusted. Everything in a Request except System and Catalog is untrusted too, and a
// Provider must put it before the model as text: whatever a user types or a web page says, it can never become one of
// the control tokens that separate the roles.
//
// # Data
//
// Requests and Steps hold what people said. They are never logged; whoever stores them states for how long
// (inference/runs).
package inference

import (
	"context"
	"fmt"

	"assent.home.arpa/capabilities"
)

// Kind says who a Message comes from. The zero value is invalid.
type Kind uint8

// The kinds. Do not renumber: the numbers are in stored conversations.
const (
	User      Kind = 1 // somebody with a phone
	Assistant Kind = 2 // the model
	Outcome   Kind = 3 // what became of a proposal; data, whoever wrote it
)

func (k Kind) String() string {
	switch k {
	case User:
		return "user"
	case Assistant:
		return "assistant"
	case Outcome:
		return "outcome"
	}
	return fmt.Sprintf("kind(%d)", uint8(k))
}

// Message is one entry of a conversation.
type Message struct {
	Kind Kind
	// Text is the user's text, the assistant's raw text with its call markers, or the canonical JSON object of an
	// outcome.
	Text string
	// Tokens are the very ids that the engine generated for an assistant message. Sending them back unchanged is what
	// keeps the engine's prefix cache valid; nil means that Text is tokenised anew, as text without control tokens.
	Tokens []int32
	// Call is the wire name of the proposal that an outcome answers, as the model wrote it. It is diagnostic and may be
	// hostile; no Provider puts it before the model.
	Call string
}

// Request is everything that one step depends on. Equal requests give equal prompts, byte for byte.
type Request struct {
	System      string
	Catalog     []capabilities.Entry // in the order in which the model is to see it
	Examples    []Example            // before the history; stable like the system text
	History     []Message
	MaxTokens   int // bound of this step; at least 1
	Seed        uint32
	Temperature float64 // 0 picks the likeliest token always
	// Grammar asks the engine to keep the envelope of a call well-formed. It never limits a name or a value.
	Grammar bool
}

// Example shows a model how it is to answer: a question, and either an answer or, where Name is set, a call. Small models
// write calls in marks of their own without one. Examples are ours; nothing that anybody said may become one.
type Example struct {
	Question  string
	Answer    string
	Name      string // wire name of the call
	Arguments string // JSON object
}

// Stop says why a step ended. The zero value is invalid, and only StopEnd lets a call count.
type Stop uint8

// The stops. Do not renumber: the numbers are in stored runs.
const (
	StopEnd     Stop = 1 // the model ended its turn
	StopLength  Stop = 2 // a token bound or the context was reached
	StopAborted Stop = 3 // cancelled, or the engine died
)

func (s Stop) String() string {
	switch s {
	case StopEnd:
		return "end"
	case StopLength:
		return "length"
	case StopAborted:
		return "aborted"
	}
	return fmt.Sprintf("stop(%d)", uint8(s))
}

// Step is what the model generated, and what it cost.
type Step struct {
	Text   string  // raw, markers included
	Tokens []int32 // the ids of Text, without the one that ended the turn
	Stop   Stop

	PromptTokens    int // tokens of the whole prompt
	CachedTokens    int // of these, found in the engine's prefix cache
	GeneratedTokens int
	PromptMillis    float64 // spent on the part that was not cached
	DecodeMillis    float64
}

// Info describes the model behind a Provider.
type Info struct {
	Model    string // as the model's file names itself; untrusted
	Dialect  string // name of the inference/dialect in use
	Context  int    // tokens of prompt and answer together
	Scripted bool   // the model recites a script, and nothing it says is an answer; to be said wherever it shows
}

// Provider runs one model. Its methods may be called from several goroutines; steps are run one at a time, in order of
// arrival.
type Provider interface {
	// Info fails with ErrUnavailable while the engine is down or loading.
	Info(ctx context.Context) (Info, error)

	// Count returns the number of prompt tokens of r, without running the model.
	Count(ctx context.Context, r Request) (int, error)

	// Step runs the model once and hands every piece of raw text to text, in order, from the calling goroutine. text
	// may be nil. The error is nil exactly when Stop is StopEnd or StopLength. ErrInterrupted and a cancelled ctx leave
	// in the Step what had arrived, with StopAborted; after ErrUnavailable and *OverflowError the Step is empty.
	Step(ctx context.Context, r Request, text func(delta string)) (Step, error)
}
