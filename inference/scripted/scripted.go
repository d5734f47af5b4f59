// Package scripted writes model files that make a real llama.cpp engine recite a chosen text.
//
// Tests and demonstrations that must not depend on what a language model feels like saying use such a file instead of a
// fake engine, so that tokenizer, prompt, cache, stream and cancellation are the real ones. Nothing that a scripted model
// says is an answer. Its vocabulary holds dialect.ScriptedMark, by which inference.Info.Scripted is set whatever name the
// file was given, and its general.name begins with "scripted".
//
// # The machine
//
// The file is a GGUF (version 3) of a llama architecture with one layer, in the dialect chatml-hermes. Each reply is cut
// at white space into pieces, and each piece is a token of its own that occurs nowhere else. Embeddings are one-hot, the
// feed-forward part is zero, and the output matrix leads from each piece to the next: a bigram machine. The last piece of
// a reply leads to <|im_end|>, which ends the turn.
//
// Which reply to begin cannot be seen in the last token, since every prompt ends in "assistant\n". Two attention heads
// look back instead. Each has one constant query and a key that is zero except for its landmarks, and both lie in one
// slow plane of the rotary position embedding, so that the score of a landmark falls with its distance and the softmax
// picks the nearest one:
//
//   - the first head finds whether the word "user" or the mark "</tool_response>" is nearer: somebody asked, or a result came;
//   - the second finds the last piece of the reply that was said last.
//
// After an ask reply 1 begins; after a result, the reply after the last one said. So Replies are one turn: reply 1 with a
// call, reply 2 after its outcome, and so on; the last one repeats; the next ask begins the script anew.
//
// Ordinary text is tokenised byte by byte, with merges for common words to keep prompts short.
package scripted

import (
	"fmt"
	"io"
	"strings"
)

// Context is the number of tokens that a scripted model was "trained" for.
const Context = 8192

// MaxReplies bounds a script: a reply is one component of the second head's value.
const MaxReplies = headSize

// Script is what a model says.
type Script struct {
	Name    string   // for people; the model calls itself "scripted: " and this
	Replies []string // of one turn, in order
	Endless bool     // the last reply begins again at its end and never stops
}

// Error says which part of a script cannot be recited, and why.
type Error struct {
	Reply  int // from 1; 0 means the script as a whole
	Reason string
}

func (e *Error) Error() string {
	if e.Reply == 0 {
		return "scripted: " + e.Reason
	}
	return fmt.Sprintf("scripted: reply %d %s", e.Reply, e.Reason)
}

// Call spells a proposal as the dialect chatml-hermes does. It quotes nothing, so that a script can also say what is
// malformed.
func Call(name, arguments string) string {
	return fmt.Sprintf("<tool_call>\n{\"name\": \"%s\", \"arguments\": %s}\n</tool_call>", name, arguments)
}

// Write writes the model's file. Equal scripts give equal bytes. The error is an *Error, or w's.
func Write(w io.Writer, s Script) error {
	if len(s.Replies) == 0 || len(s.Replies) > MaxReplies {
		return &Error{Reason: fmt.Sprintf("a script has 1 to %d replies", MaxReplies)}
	}
	v := newVocabulary()
	replies := make([][]int, len(s.Replies))
	for i, text := range s.Replies {
		if strings.TrimSpace(text) == "" {
			return &Error{i + 1, "is empty"}
		}
		pieces := v.cut(text)
		if pieces == nil {
			return &Error{i + 1, "has no part that is not in an earlier reply; change a word of it"}
		}
		for _, p := range pieces {
			replies[i] = append(replies[i], v.add(p, normalToken))
		}
	}
	m := newMachine(v, replies, s.Endless)
	return writeGGUF(w, metadata(s.Name, v, m.width), m.tensors())
}
