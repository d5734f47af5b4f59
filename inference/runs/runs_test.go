package runs_test

import (
	"encoding/json"
	"errors"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"assent.home.arpa/capabilities"
	"assent.home.arpa/inference"
	"assent.home.arpa/inference/dialect"
	"assent.home.arpa/inference/proposal"
	"assent.home.arpa/inference/runs"
)

func call(body string) string { return "<tool_call>" + body + "</tool_call>" }

// invocation is what a step with this raw text is recorded as.
func invocation(t testing.TB, id, text string) runs.RunInvocation {
	t.Helper()
	d, err := dialect.Named("chatml-hermes")
	if err != nil {
		t.Fatal(err)
	}
	r := inference.Request{
		System:    "You are Assent.",
		Catalog:   []capabilities.Entry{{Name: "a__v1", Version: 1, Description: "Does a.", Parameters: json.RawMessage(`{"type":"object"}`)}},
		History:   []inference.Message{{Kind: inference.User, Text: "do <a> & \u2028"}, {Kind: inference.Outcome, Text: "{}"}},
		MaxTokens: 100, Seed: 7, Temperature: 0.2, Grammar: true,
	}
	s := inference.Step{Text: text, Stop: inference.StopEnd}
	created := time.Date(1970, 1, 1, 0, 0, 9, 123456789, time.FixedZone("", 3600))
	return runs.Record(id, "turn-1", created, inference.Info{Model: "m.gguf", Dialect: "chatml-hermes"}, r, s, proposal.Parse(d.Markers, text, s.Stop))
}

const sixCalls = `{"name":"a__v1","arguments":{"n":9007199254740993}}`

// B1, B4, B5, B7: the record of one model call.
func TestARecordHoldsWhatWentInAndWhatWasRequested(t *testing.T) {
	text := "Hm. " + call(sixCalls) + call(`{"id":"call_1","name":"b__v1","arguments":{ }}`) + call("{}")
	got := invocation(t, "inv-1", text)
	want := runs.RunInvocation{
		ID: "inv-1", Run: "turn-1", Created: got.Created,
		Inputs: runs.Inputs{
			Messages: []runs.Message{{Role: "system", Content: "You are Assent."}, {Role: "user", Content: "do <a> & \u2028"}, {Role: "tool", Content: "{}"}},
			Tools:    []runs.Tool{{Name: "a__v1", Description: "Does a.", InputSchema: json.RawMessage(`{"type":"object"}`)}},
		},
		Parameters: runs.Parameters{Model: "m.gguf", Dialect: "chatml-hermes", MaxTokens: 100, Seed: 7, Temperature: 0.2, Grammar: true},
		Outputs: runs.Outputs{
			Text: text, Stop: "end",
			ToolCalls: []runs.ToolCall{
				{ID: "call_1_", Name: "a__v1", Input: json.RawMessage(`{"n":9007199254740993}`)},
				{ID: "call_1", Name: "b__v1", Input: json.RawMessage(`{ }`)},
			},
			Returned: 3,
		},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	body, err := got.Canonical()
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(body), `"input":{"n":9007199254740993}`) || !strings.Contains(string(body), `"created":"1969-12-31T23:00:09.123Z"`) {
		t.Errorf("canonical form: %s", body)
	}
}

// B10, B11: the members are exactly these.
func TestRecordsAreClosed(t *testing.T) {
	body, err := invocation(t, "inv-1", call(sixCalls)).Canonical()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := runs.Decode(body); err != nil {
		t.Fatal(err)
	}
	for name, change := range map[string][2]string{
		"unknown member":         {`{"created"`, `{"artifacts":[],"created"`},
		"unknown member in call": {`{"id":"call_1"`, `{"error":null,"id":"call_1"`},
		"duplicate member":       {`"run":"turn-1"`, `"run":"turn-1","run":"turn-1"`},
		"other case":             {`"run":`, `"Run":`},
		"white space":            {`"run":`, `"run": `},
		"number changed":         {`9007199254740993`, `9007199254740993.0e0`},
		"input of another type":  {`{"n":9007199254740993}`, `"{}"`},
		"fewer returned":         {`"returned":1`, `"returned":0`},
		"trailing text":          {`"turn-1"}`, `"turn-1"}{}`},
	} {
		bad := strings.Replace(string(body), change[0], change[1], 1)
		if bad == string(body) {
			t.Fatalf("%s: nothing to change in %s", name, body)
		}
		got, err := runs.Decode([]byte(bad))
		if name == "number changed" { // another value, and well-formed: it must show in the digest
			a, _ := got.Link()
			b, _ := invocation(t, "inv-1", call(sixCalls)).Link()
			if err != nil || a == b {
				t.Errorf("%s: %v", name, err)
			}
		} else if !errors.Is(err, runs.ErrInvalid) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestRecordsThatSayWhatNobodySaidAreRefused(t *testing.T) {
	for name, change := range map[string]func(*runs.RunInvocation){
		"no id":               func(r *runs.RunInvocation) { r.ID = "" },
		"id with a slash":     func(r *runs.RunInvocation) { r.ID = "../x" },
		"long run":            func(r *runs.RunInvocation) { r.Run = strings.Repeat("x", 65) },
		"role":                func(r *runs.RunInvocation) { r.Inputs.Messages[0].Role = "admin" },
		"bytes in a message":  func(r *runs.RunInvocation) { r.Inputs.Messages[0].Content = "\xff" },
		"bytes in a name":     func(r *runs.RunInvocation) { r.Outputs.ToolCalls[0].Name = "\xff" },
		"input is a string":   func(r *runs.RunInvocation) { r.Outputs.ToolCalls[0].Input = json.RawMessage(`"{}"`) },
		"input is missing":    func(r *runs.RunInvocation) { r.Outputs.ToolCalls[0].Input = nil },
		"schema is no object": func(r *runs.RunInvocation) { r.Inputs.Tools[0].InputSchema = json.RawMessage(`[]`) },
		"two calls, one id":   func(r *runs.RunInvocation) { r.Outputs.ToolCalls[1].ID = r.Outputs.ToolCalls[0].ID },
		"too few returned":    func(r *runs.RunInvocation) { r.Outputs.Returned = 1 },
		"too large":           func(r *runs.RunInvocation) { r.Outputs.Text = strings.Repeat("x", runs.MaxInvocation) },
	} {
		r := invocation(t, "inv-1", call(sixCalls)+call(sixCalls))
		change(&r)
		if _, err := r.Link(); !errors.Is(err, runs.ErrInvalid) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// B8, B9: a run names its invocations by reference and digest, and holds hashes and nothing else.
func TestARunHoldsNoPayload(t *testing.T) {
	link, err := invocation(t, "inv-1", "secret words").Link()
	if err != nil {
		t.Fatal(err)
	}
	got, err := json.Marshal(runs.Run{ID: "turn-1", Context: runs.ExecutionContext{SeedList: []uint32{7}, DataVersion: "1"}, Invocations: []runs.Link{link}})
	if err != nil {
		t.Fatal(err)
	}
	zero := strings.Repeat("0", 64)
	want := `{"id":"turn-1","executionContext":{"configHash":"` + zero + `","environmentHash":"` + zero + `","seedList":[7],"dataVersion":"1"},` +
		`"invocations":[{"invocationRef":"inv-1","invocationDigest":"` + link.Digest.String() + `"}]}`
	if string(got) != want {
		t.Errorf("got %s\nwant %s", got, want)
	}
	var back runs.Run
	if err := json.Unmarshal(got, &back); err != nil || !reflect.DeepEqual(back.Invocations, []runs.Link{link}) {
		t.Errorf("read back %+v, %v", back, err)
	}
	for _, s := range []string{"", strings.ToUpper(link.Digest.String()), zero[1:], zero + "0", strings.Repeat("g", 64)} {
		if err := new(runs.Digest).UnmarshalText([]byte(s)); !errors.Is(err, runs.ErrInvalid) {
			t.Errorf("digest %q: %v", s, err)
		}
	}
}

// The digest is part of what audits refer to: it may not change for an unchanged record.
func TestTheDigestIsStable(t *testing.T) {
	link, err := invocation(t, "inv-1", call(sixCalls)).Link()
	if err != nil {
		t.Fatal(err)
	}
	const want = "f65ce92f5c33c9e4faa98c578736e0f245c5599674a033066658e4944207bb2a"
	if link.Digest.String() != want {
		t.Errorf("got %v, want %s", link.Digest, want)
	}
}

// B2: one decoding, and only to an object.
func TestOpenAIArgumentsAreDecodedExactlyOnce(t *testing.T) {
	one := func(arguments string) string {
		return `[{"id":"c1","type":"function","function":{"name":"a__v1","arguments":` + arguments + `}}]`
	}
	got, err := runs.FromOpenAI([]byte(one(`" {\"q\":\"it's \\\"so\\\" \\u00e9\",\"n\":9007199254740993} "`)))
	want := []runs.ToolCall{{ID: "c1", Name: "a__v1", Input: json.RawMessage(`{"q":"it's \"so\" \u00e9","n":9007199254740993}`)}}
	if diff := cmp.Diff(want, got); err != nil || diff != "" {
		t.Errorf("%v\n%s", err, diff)
	}
	if got, err := runs.FromOpenAI([]byte(`[]`)); err != nil || len(got) != 0 {
		t.Errorf("no calls: %v, %v", got, err)
	}
	for name, raw := range map[string]string{
		"string in a string":       one(`"\"{\\\"q\\\":\\\"x\\\"}\""`),
		"object instead of string": one(`{"q":"x"}`),
		"empty string":             one(`""`),
		"null":                     one(`null`),
		"decodes to null":          one(`"null"`),
		"decodes to an array":      one(`"[]"`),
		"decodes to a number":      one(`"1"`),
		"python":                   one(`"{'q':'tea','safe':True}"`),
		"cut off":                  one(`"{\"query\":\"cheap flig"`),
		"duplicate key":            one(`"{\"q\":1,\"q\":2}"`),
		"lone surrogate":           one(`"{\"q\":\"\\ud800\"}"`),
		"two objects":              one(`"{}{}"`),
		"no array":                 one(`"{}"`)[1:],
		"other type":               `[{"id":"c1","type":"custom","function":{"name":"a","arguments":"{}"}}]`,
		"no id":                    `[{"type":"function","function":{"name":"a","arguments":"{}"}}]`,
		"no name":                  `[{"id":"c1","type":"function","function":{"arguments":"{}"}}]`,
		"no function":              `[{"id":"c1","type":"function"}]`,
		"element is no object":     `[1]`,
		"one id twice": `[{"id":"c1","type":"function","function":{"name":"a","arguments":"{}"}},` +
			`{"id":"c1","type":"function","function":{"name":"a","arguments":"{}"}}]`,
	} {
		var e *runs.CallError
		if got, err := runs.FromOpenAI([]byte(raw)); !errors.As(err, &e) || got != nil {
			t.Errorf("%s: %v, %v", name, got, err)
		}
	}
}

// B3: an object passes through.
func TestAnthropicInputPassesThrough(t *testing.T) {
	got, err := runs.FromAnthropic([]byte(`[{"type":"text","text":"hm"},{"type":"tool_use","id":"t1","name":"a__v1","input":{ "n" : 9007199254740993 }}]`))
	want := []runs.ToolCall{{ID: "t1", Name: "a__v1", Input: json.RawMessage(`{ "n" : 9007199254740993 }`)}}
	if diff := cmp.Diff(want, got); err != nil || diff != "" {
		t.Errorf("%v\n%s", err, diff)
	}
	for name, raw := range map[string]string{
		"input is a string": `[{"type":"tool_use","id":"t1","name":"a","input":"{}"}]`,
		"input is missing":  `[{"type":"tool_use","id":"t1","name":"a"}]`,
		"no type":           `[{"id":"t1","name":"a","input":{}}]`,
		"no id":             `[{"type":"tool_use","name":"a","input":{}}]`,
		"duplicate key":     `[{"type":"tool_use","id":"t1","name":"a","input":{"q":1,"q":2}}]`,
	} {
		var e *runs.CallError
		if got, err := runs.FromAnthropic([]byte(raw)); !errors.As(err, &e) || got != nil {
			t.Errorf("%s: %v, %v", name, got, err)
		}
	}
}

func FuzzNormalise(f *testing.F) {
	f.Add([]byte(`[{"id":"c1","type":"function","function":{"name":"a","arguments":"{\"q\":1}"}}]`))
	f.Add([]byte(`[{"type":"tool_use","id":"t1","name":"a","input":{"n":1}}]`))
	f.Fuzz(func(t *testing.T, raw []byte) {
		for _, from := range []func([]byte) ([]runs.ToolCall, error){runs.FromOpenAI, runs.FromAnthropic} {
			calls, err := from(raw)
			if err != nil && calls != nil {
				t.Fatal("calls beside an error")
			}
			r := runs.RunInvocation{ID: "i", Run: "r", Outputs: runs.Outputs{ToolCalls: calls, Returned: len(calls)}}
			if _, err := r.Link(); err != nil {
				t.Fatalf("normalised calls cannot be recorded: %v", err)
			}
		}
	})
}
