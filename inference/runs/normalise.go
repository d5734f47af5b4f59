package runs

import (
	"fmt"
	"strings"

	"assent.home.arpa/inference/internal/strictjson"
)

// CallError says which of a provider's tool calls could not be normalised. No call of that response is used.
type CallError struct {
	Index  int // from 0; -1 means the list as a whole
	Reason string
}

func (e *CallError) Error() string {
	if e.Index < 0 {
		return "runs: tool calls: " + e.Reason
	}
	return fmt.Sprintf("runs: tool call %d: %s", e.Index, e.Reason)
}

// FromOpenAI normalises the "tool_calls" array of an OpenAI-style message. There "arguments" is a string that holds JSON:
// it is decoded exactly once, and what it holds must be an object. A string in a string is not unwrapped again, and
// arguments that are an object already are not that protocol. The error is a *CallError.
func FromOpenAI(raw []byte) ([]ToolCall, error) {
	return normalise(raw, func(c members) (*ToolCall, string) {
		if kind, ok := c.text("type"); !ok || kind != "function" {
			return nil, "not of type function"
		}
		f, err := strictjson.Object(c["function"])
		if err != nil {
			return nil, "function: " + err.Error()
		}
		function := byKey(f)
		arguments, ok := function.text("arguments")
		if !ok {
			return nil, "arguments must be a string"
		}
		if _, err := strictjson.Object([]byte(arguments)); err != nil {
			return nil, "the decoded arguments: " + err.Error()
		}
		id, name := c.id(function)
		return &ToolCall{id, name, []byte(strings.TrimSpace(arguments))}, ""
	})
}

// FromAnthropic normalises the "content" array of an Anthropic-style message. There "input" is an object and passes
// through, byte for byte. Blocks of other types than tool_use are skipped. The error is a *CallError.
func FromAnthropic(raw []byte) ([]ToolCall, error) {
	return normalise(raw, func(c members) (*ToolCall, string) {
		kind, ok := c.text("type")
		if !ok {
			return nil, "a block without a type"
		}
		if kind != "tool_use" {
			return nil, ""
		}
		if _, err := strictjson.Object(c["input"]); err != nil {
			return nil, "input: " + err.Error()
		}
		id, name := c.id(c)
		return &ToolCall{id, name, c["input"]}, ""
	})
}

type members map[string][]byte

func byKey(list []strictjson.Member) members {
	out := members{}
	for _, m := range list {
		out[m.Key] = m.Value
	}
	return out
}

func (m members) text(key string) (string, bool) {
	s, err := strictjson.String(m[key])
	return s, err == nil
}

// id returns the id of a call, and the name that stands in named.
func (m members) id(named members) (id, name string) {
	id, _ = m.text("id")
	name, _ = named.text("name")
	return id, name
}

// normalise reads each element of an array. read returns nil and no reason for an element that is no call.
func normalise(raw []byte, read func(members) (*ToolCall, string)) ([]ToolCall, error) {
	if len(raw) > MaxInvocation {
		return nil, &CallError{-1, "too long"}
	}
	elements, err := strictjson.Array(raw)
	if err != nil {
		return nil, &CallError{-1, err.Error()}
	}
	var out []ToolCall
	seen := map[string]bool{}
	for i, e := range elements {
		object, err := strictjson.Object(e)
		if err != nil {
			return nil, &CallError{i, err.Error()}
		}
		call, reason := read(byKey(object))
		switch {
		case reason != "":
			return nil, &CallError{i, reason}
		case call == nil:
			continue
		case call.ID == "" || call.Name == "":
			return nil, &CallError{i, "id and name must be strings that are not empty"}
		case seen[call.ID]:
			return nil, &CallError{i, "its id is not its own"}
		}
		seen[call.ID] = true
		out = append(out, *call)
	}
	return out, nil
}
