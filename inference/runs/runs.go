// Package runs records what was asked of the model and what the model asked for.
//
// Three records are easily confused, and kept apart here:
//
//   - RunInvocation is one model call: what went in, and the tool calls that the model requested. A request is never
//     counted as an execution.
//   - ToolCallEvent is one tool call that the box took up, and what became of it.
//   - Outputs.Returned, which a cap on tool calls counts, is the number of calls that the model returned, whether they
//     could be parsed or not and whether they were executed or not.
//
// A Run (one turn) holds no payload: it has an execution context of hashes, and links each invocation by reference and
// digest, so that payloads can be deleted and the link still says what they were.
//
// # Sensitivity and retention
//
// An invocation holds what people said, word for word, and may hold what the model read on the web. It is stored on the
// box alone, in one file that only its service can read, and is never logged. Store keeps the newest records within
// Retention and deletes the others; Forget deletes one payload at once. Deleted payloads are overwritten with zeros; what
// Retention dropped may stay in SQLite's log beside the file until that is written anew, and what a flash medium keeps of
// overwritten blocks is beyond any program's reach. Digests of forgotten payloads stay.
//
// What is not in these records: artifacts, data sets, the environment, and errors. They belong to the run's other
// records, or to the audit.
package runs

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"
	"unicode/utf8"

	"assent.home.arpa/inference/internal/strictjson"
)

// MaxInvocation is the size of the largest record, in bytes of its canonical form.
const MaxInvocation = 1 << 20

// ErrInvalid says that a record breaks a rule of this package; the error around it says which.
var ErrInvalid = errors.New("runs: invalid record")

// Digest is SHA-256 over the canonical form of a record: JSON without white space, keys in order, numbers as written.
type Digest [sha256.Size]byte

func (d Digest) String() string { return hex.EncodeToString(d[:]) }

// MarshalText writes 64 lower-case hexadecimal digits.
func (d Digest) MarshalText() ([]byte, error) { return []byte(d.String()), nil }

// UnmarshalText reads exactly what MarshalText writes.
func (d *Digest) UnmarshalText(text []byte) error {
	raw, err := hex.DecodeString(string(text))
	if err != nil || len(raw) != len(d) || hex.EncodeToString(raw) != string(text) {
		return fmt.Errorf("%w: a digest is 64 lower-case hexadecimal digits", ErrInvalid)
	}
	copy(d[:], raw)
	return nil
}

// RunInvocation records one model call.
type RunInvocation struct {
	ID         string     `json:"id"`
	Run        string     `json:"run"`     // the turn it belongs to
	Created    time.Time  `json:"created"` // UTC, as the box's clock had it, which may be unset
	Inputs     Inputs     `json:"inputs"`
	Parameters Parameters `json:"parameters"`
	Outputs    Outputs    `json:"outputs"`
}

// Inputs is what the model saw.
type Inputs struct {
	Messages []Message `json:"messages"`
	Tools    []Tool    `json:"tools"`
}

// Message is one message of the prompt. Role is system, user, assistant or tool.
type Message struct {
	Role    string `json:"role"`
	Content string `json:"content"`
}

// Tool is one entry of the catalog that the model saw.
type Tool struct {
	Name        string          `json:"name"`
	Description string          `json:"description"`
	InputSchema json.RawMessage `json:"input_schema"`
}

// Parameters is how the model was run.
type Parameters struct {
	Model       string  `json:"model"`
	Dialect     string  `json:"dialect"`
	MaxTokens   int     `json:"max_tokens"`
	Seed        uint32  `json:"seed"`
	Temperature float64 `json:"temperature"`
	Grammar     bool    `json:"grammar"`
}

// Outputs is what the model returned.
type Outputs struct {
	Text      string     `json:"text"` // raw, marks included
	Stop      string     `json:"stop"`
	ToolCalls []ToolCall `json:"tool_calls"` // those that could be parsed
	Returned  int        `json:"returned"`   // all of them
}

// ToolCall is a call that the model requested, in the one form in which every provider's calls are recorded. Input is an
// object, in the bytes in which the model wrote it.
type ToolCall struct {
	ID    string          `json:"id"`
	Name  string          `json:"name"`
	Input json.RawMessage `json:"input"`
}

// ToolCallEvent records that the box took up a requested call, and how that ended.
type ToolCallEvent struct {
	Invocation string    `json:"invocation"` // RunInvocation.ID
	Call       string    `json:"call"`       // ToolCall.ID
	Audit      string    `json:"audit"`      // the proposal's id in the audit, in hexadecimal; empty if it never got there
	Status     string    `json:"status"`     // capabilities.Status
	Code       string    `json:"code"`       // capabilities.Code, or empty
	At         time.Time `json:"at"`
}

// ExecutionContext is what a run can be reproduced from, as hashes.
type ExecutionContext struct {
	ConfigHash      Digest   `json:"configHash"`
	EnvironmentHash Digest   `json:"environmentHash"`
	SeedList        []uint32 `json:"seedList"`
	DataVersion     string   `json:"dataVersion"`
}

// Link names an invocation and what it was.
type Link struct {
	Ref    string `json:"invocationRef"`
	Digest Digest `json:"invocationDigest"`
}

// Run is one turn.
type Run struct {
	ID          string           `json:"id"`
	Context     ExecutionContext `json:"executionContext"`
	Invocations []Link           `json:"invocations"`
}

// Canonical returns the bytes that are stored and digested. It fails with ErrInvalid.
func (r RunInvocation) Canonical() ([]byte, error) {
	if err := r.validate(); err != nil {
		return nil, err
	}
	r.Created = r.Created.UTC().Truncate(time.Millisecond)
	// Absent and empty lists are one value.
	r.Inputs.Messages = append([]Message{}, r.Inputs.Messages...)
	r.Inputs.Tools = append([]Tool{}, r.Inputs.Tools...)
	r.Outputs.ToolCalls = append([]ToolCall{}, r.Outputs.ToolCalls...)
	raw, err := json.Marshal(r)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrInvalid, err)
	}
	out, err := strictjson.Canonical(raw)
	switch {
	case err != nil:
		return nil, fmt.Errorf("%w: %w", ErrInvalid, err)
	case len(out) > MaxInvocation:
		return nil, fmt.Errorf("%w: %d bytes are more than %d", ErrInvalid, len(out), MaxInvocation)
	}
	return out, nil
}

// Link returns the reference and digest by which a run names r.
func (r RunInvocation) Link() (Link, error) {
	body, err := r.Canonical()
	return Link{r.ID, sha256.Sum256(body)}, err
}

// Decode reads a record strictly: it must be in canonical form, so it has no unknown member and no key twice. It fails
// with ErrInvalid.
func Decode(data []byte) (RunInvocation, error) {
	var r RunInvocation
	if err := json.Unmarshal(data, &r); err != nil {
		return RunInvocation{}, fmt.Errorf("%w: %w", ErrInvalid, err)
	}
	again, err := r.Canonical()
	if err != nil {
		return RunInvocation{}, err
	}
	if !bytes.Equal(again, data) {
		return RunInvocation{}, fmt.Errorf("%w: not in canonical form", ErrInvalid)
	}
	return r, nil
}

func (r RunInvocation) validate() error {
	invalid := func(format string, args ...any) error {
		return fmt.Errorf("%w: "+format, append([]any{ErrInvalid}, args...)...)
	}
	if !validID(r.ID) || !validID(r.Run) {
		return invalid("ids are 1 to 64 of the characters a-z, A-Z, 0-9, '-', '_', '.' and ':'")
	}
	if r.Outputs.Returned < len(r.Outputs.ToolCalls) {
		return invalid("%d calls returned and %d recorded", r.Outputs.Returned, len(r.Outputs.ToolCalls))
	}
	texts := []string{r.Parameters.Model, r.Parameters.Dialect, r.Outputs.Text, r.Outputs.Stop}
	for _, m := range r.Inputs.Messages {
		switch m.Role {
		case "system", "user", "assistant", "tool":
		default:
			return invalid("no such role")
		}
		texts = append(texts, m.Content)
	}
	for _, t := range r.Inputs.Tools {
		if _, err := strictjson.Object(t.InputSchema); err != nil {
			return invalid("a tool's schema is no object")
		}
		texts = append(texts, t.Name, t.Description)
	}
	seen := map[string]bool{}
	for _, c := range r.Outputs.ToolCalls {
		if _, err := strictjson.Object(c.Input); err != nil {
			return invalid("a call's input is no object")
		}
		if c.ID == "" || seen[c.ID] {
			return invalid("a call's id is empty or not its own")
		}
		seen[c.ID] = true
		texts = append(texts, c.ID, c.Name)
	}
	// encoding/json would replace invalid bytes silently, and the record would not be what was said.
	for _, s := range texts {
		if !utf8.ValidString(s) {
			return invalid("text that is not utf-8")
		}
	}
	return nil
}

func validID(s string) bool {
	const set = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.:"
	return s != "" && len(s) <= 64 && strings.Trim(s, set) == ""
}
