package dialect

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"assent.home.arpa/capabilities"
	"assent.home.arpa/inference"
	"assent.home.arpa/inference/internal/strictjson"
)

// Source says where a piece of a prompt comes from. The zero value is invalid.
type Source uint8

// The sources; see the package's documentation.
const (
	Control Source = 1
	Ours    Source = 2
	Foreign Source = 3
	Said    Source = 4
)

// Piece is a part of a prompt. Text is the name of the token for Control. Tokens, only in what was Said, are the ids that
// the model generated for Text.
type Piece struct {
	Source Source
	Text   string
	Tokens []int32
}

// ErrOutcome says that a message of kind Outcome does not hold a JSON object. What is not data cannot be shown as data.
var ErrOutcome = errors.New("dialect: an outcome must be one json object")

// Render lays r out as the pieces of a prompt that ends where the assistant's turn begins. Equal requests give equal
// pieces, and a longer history changes none but the last few.
func (d Dialect) Render(r inference.Request) ([]Piece, error) {
	w := &writer{d: d}
	if d.Begin != "" {
		w.add(Control, d.Begin)
	}
	preamble, err := d.preamble(r)
	if err != nil {
		return nil, err
	}
	if d.System != "" {
		w.open(d.System)
		w.add(Ours, preamble)
		w.close()
		preamble = ""
	}
	for _, e := range r.Examples {
		w.example(e, preamble)
		preamble = ""
	}
	for i, m := range r.History {
		follows := i > 0 && r.History[i-1].Kind == inference.Outcome
		if err := w.message(m, preamble, follows); err != nil {
			return nil, err
		}
		if m.Kind != inference.Assistant {
			preamble = ""
		}
	}
	if preamble != "" {
		w.open(d.User)
		w.add(Ours, preamble)
	}
	w.close()
	w.open(d.Assistant)
	return w.pieces, nil
}

type writer struct {
	d      Dialect
	pieces []Piece
	inTurn bool
}

func (w *writer) add(s Source, text string) {
	if text != "" {
		w.pieces = append(w.pieces, Piece{Source: s, Text: text})
	}
}

func (w *writer) open(role string) {
	w.add(Control, w.d.TurnOpen)
	if w.d.RoleEnd == "" {
		w.add(Ours, role+"\n")
	} else {
		w.add(Ours, role)
		w.add(Control, w.d.RoleEnd)
	}
	w.inTurn = true
}

// close ends the open turn, if there is one.
func (w *writer) close() {
	if w.inTurn {
		w.add(Control, w.d.TurnClose)
		w.add(Ours, "\n")
		w.inTurn = false
	}
}

// example writes a question and its answer as turns.
func (w *writer) example(e inference.Example, preamble string) {
	w.close()
	w.open(w.d.User)
	w.add(Ours, preamble)
	w.add(Ours, e.Question)
	w.close()
	w.open(w.d.Assistant)
	if e.Name == "" {
		w.add(Ours, e.Answer)
		return
	}
	w.add(Ours, fmt.Sprintf("%s\n{\"name\": %q, \"arguments\": %s}\n%s", w.d.CallOpen, e.Name, e.Arguments, w.d.CallClose))
}

// message writes one message. Outcomes that follow each other share a user turn, as the models were taught.
func (w *writer) message(m inference.Message, preamble string, follows bool) error {
	if m.Kind == inference.Outcome && follows {
		w.add(Ours, "\n")
		return w.outcome(m)
	}
	w.close()
	switch m.Kind {
	case inference.User:
		w.open(w.d.User)
		w.add(Ours, preamble)
		w.add(Foreign, m.Text)
	case inference.Assistant:
		w.open(w.d.Assistant)
		if m.Text != "" {
			w.pieces = append(w.pieces, Piece{Said, m.Text, m.Tokens})
		}
	case inference.Outcome:
		w.open(w.d.User)
		w.add(Ours, preamble)
		return w.outcome(m)
	default:
		return fmt.Errorf("dialect: message of %v", m.Kind)
	}
	return nil
}

// outcome writes data inside data marks. The marks that the data spells are broken by a JSON escape too, since in a
// vocabulary without a token for them a model reads the mark from its characters: inside strings, the only place where
// JSON can hold a "<", "\u003c" is the same value and closes nothing.
func (w *writer) outcome(m inference.Message) error {
	if _, err := strictjson.Object([]byte(m.Text)); err != nil {
		return fmt.Errorf("%w: %w", ErrOutcome, err)
	}
	text := m.Text
	for _, mark := range w.d.List() {
		text = strings.ReplaceAll(text, mark, `\u003c`+mark[1:])
	}
	w.add(Ours, w.d.DataOpen+"\n")
	w.add(Foreign, text)
	w.add(Ours, "\n"+w.d.DataClose)
	return nil
}

// preamble is the system text with the catalog. The wording of the catalog's frame is the one that Qwen 2.5 and Hermes
// models were trained with; without a catalog nothing is said about calls at all.
func (d Dialect) preamble(r inference.Request) (string, error) {
	if len(r.Catalog) == 0 {
		if d.System == "" && r.System != "" {
			return r.System + "\n\n", nil
		}
		return r.System, nil
	}
	var b strings.Builder
	if r.System != "" {
		b.WriteString(r.System + "\n\n")
	}
	b.WriteString("# Tools\n\nYou may call one or more functions to assist with the user query.\n\n" +
		"You are provided with function signatures within <tools></tools> XML tags:\n<tools>")
	for _, e := range r.Catalog {
		line, err := entry(e)
		if err != nil {
			return "", err
		}
		b.WriteString("\n" + line)
	}
	fmt.Fprintf(&b, "\n</tools>\n\nFor each function call, return a json object with function name and arguments within %[1]s%[2]s XML tags:\n"+
		"%[1]s\n{\"name\": <function-name>, \"arguments\": <args-json-object>}\n%[2]s", d.CallOpen, d.CallClose)
	if d.System == "" {
		b.WriteString("\n\n")
	}
	return b.String(), nil
}

func entry(e capabilities.Entry) (string, error) {
	var b strings.Builder
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	err := enc.Encode(struct {
		Type     string             `json:"type"`
		Function capabilities.Entry `json:"function"`
	}{"function", e})
	if err != nil {
		return "", fmt.Errorf("dialect: catalog entry %s: %w", e.Name, err)
	}
	return strings.TrimSuffix(b.String(), "\n"), nil
}
