package arguments_test

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"unicode/utf8"

	"assent.home.arpa/capabilities"
	"assent.home.arpa/capabilities/arguments"
)

func read(raw string) (string, error) {
	m, err := arguments.Object([]byte(raw), 256, "query", "place")
	if err != nil {
		return "", err
	}
	return arguments.Text(m, "query")
}

func TestTextArrivesExactly(t *testing.T) {
	for event, c := range map[string]struct{ raw, want string }{
		"plain":             {`{"query":"tea"}`, "tea"},
		"with space around": {" {\n\"query\" : \"tea\" } ", "tea"},
		"apostrophes":       {`{"query":"what's on at the cinema's late show"}`, "what's on at the cinema's late show"},
		"escapes":           {`{"query":"a\"b\\c\/d\n\u0041\\u0041"}`, "a\"b\\c/d\nA\\u0041"},
		"a pair":            {`{"query":"\ud83d\ude00"}`, "😀"},
		"an escaped name":   {`{"qu\u0065ry":"tea"}`, "tea"},
		"a real U+FFFD":     {`{"query":"\ufffd"}`, "\ufffd"},
		"not normalised":    {"{\"query\":\"e\u0301\"}", "e\u0301"},
		"empty":             {`{"query":""}`, ""},
		"other member too":  {`{"place":"here","query":"tea"}`, "tea"},
	} {
		if got, err := read(c.raw); err != nil || got != c.want {
			t.Errorf("%s: got %q, %v; want %q", event, got, err, c.want)
		}
	}
}

func TestNothingIsCorrected(t *testing.T) {
	for event, c := range map[string]struct {
		raw  string
		code capabilities.Code
	}{
		"null":                 {`null`, capabilities.CodeInvalidArguments},
		"a number":             {`7`, capabilities.CodeInvalidArguments},
		"an array":             {`[{"query":"tea"}]`, capabilities.CodeInvalidArguments},
		"a string":             {`"{\"query\":\"tea\"}"`, capabilities.CodeInvalidArguments},
		"nothing":              {``, capabilities.CodeInvalidArguments},
		"single quotes":        {`{'query':'tea'}`, capabilities.CodeInvalidArguments},
		"cut off":              {`{"query":"cheap flig`, capabilities.CodeInvalidArguments},
		"trailing comma":       {`{"query":"tea",}`, capabilities.CodeInvalidArguments},
		"text after it":        {`{"query":"tea"} x`, capabilities.CodeInvalidArguments},
		"a second object":      {`{"query":"tea"}{}`, capabilities.CodeInvalidArguments},
		"given twice":          {`{"query":"tea","query":"tea"}`, capabilities.CodeInvalidArguments},
		"twice by an escape":   {`{"query":"tea","qu\u0065ry":"tea"}`, capabilities.CodeInvalidArguments},
		"not UTF-8":            {"{\"query\":\"\xff\"}", capabilities.CodeInvalidArguments},
		"a lone high half":     {`{"query":"\ud83d"}`, capabilities.CodeInvalidArguments},
		"a lone low half":      {`{"query":"\ude00\ud83d"}`, capabilities.CodeInvalidArguments},
		"half and a letter":    {`{"query":"\ud83dA"}`, capabilities.CodeInvalidArguments},
		"a number for text":    {`{"query":1}`, capabilities.CodeInvalidArguments},
		"null for text":        {`{"query":null}`, capabilities.CodeInvalidArguments},
		"an object for text":   {`{"query":{"query":"tea"}}`, capabilities.CodeInvalidArguments},
		"an unknown member":    {`{"query":"tea","token":"9F3A"}`, capabilities.CodeUnknownArgument},
		"another case":         {`{"Query":"tea"}`, capabilities.CodeUnknownArgument},
		"missing":              {`{"place":"here"}`, capabilities.CodeMissingArgument},
		"over the bound":       {`{"query":"` + strings.Repeat("a", 256) + `"}`, capabilities.CodeArgumentTooLong},
		"deep, over the bound": {strings.Repeat(`{"query":`, 10000), capabilities.CodeArgumentTooLong},
	} {
		got, err := read(c.raw)
		var arg *capabilities.ArgumentError
		if !errors.As(err, &arg) || arg.Code != c.code {
			t.Errorf("%s: got %q, %v; want %s", event, got, err, c.code)
		}
	}
}

func TestErrorsRepeatNothingThatTheModelWrote(t *testing.T) {
	for _, raw := range []string{`{"secret-9F3A":1}`, `{"query":["secret-9F3A"]}`, `{"query":"secret-9F3A"`, `{"query":"secret-9F3A","query":""}`} {
		if _, err := read(raw); err == nil || strings.Contains(err.Error(), "9F3A") {
			t.Errorf("%s: %v", raw, err)
		}
	}
}

func FuzzObject(f *testing.F) {
	for _, s := range []string{`{"query":"tea"}`, `{"query":"\ud83d\ude00"}`, `{"query":"\\\u0041"}`, `{"query":1,"query":2}`} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, raw string) {
		got, err := read(raw)
		if err != nil {
			return
		}
		if !utf8.ValidString(got) {
			t.Fatalf("%q was read as %q", raw, got)
		}
		// Whatever was accepted has one normal form, which reads back the same.
		again, err := read(string(arguments.Encode(struct {
			Query string `json:"query"`
		}{got})))
		if err == nil && again != got {
			t.Fatalf("%q became %q", got, again)
		}
		var loose struct{ Query string }
		if json.Unmarshal([]byte(raw), &loose) != nil {
			t.Fatalf("%q was accepted and is not JSON", raw)
		}
	})
}
