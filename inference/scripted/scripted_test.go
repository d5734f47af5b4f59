package scripted_test

import (
	"bytes"
	"errors"
	"io"
	"strings"
	"testing"

	"assent.home.arpa/inference"
	"assent.home.arpa/inference/llama"
	"assent.home.arpa/inference/scripted"
	"assent.home.arpa/inference/scripted/scriptedtest"
)

func TestEqualScriptsAreEqualFiles(t *testing.T) {
	s := scripted.Script{Name: "x", Replies: []string{"Hello there.", "Good bye."}}
	var a, b bytes.Buffer
	if err := errors.Join(scripted.Write(&a, s), scripted.Write(&b, s)); err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(a.Bytes(), b.Bytes()) || !bytes.HasPrefix(a.Bytes(), []byte("GGUF\x03\x00\x00\x00")) {
		t.Error("not the same file, or none")
	}
	if !bytes.Contains(a.Bytes(), []byte("scripted: x")) {
		t.Error("the file does not say that it is a script")
	}
}

func TestWhatCannotBeRecitedIsRefused(t *testing.T) {
	for name, c := range map[string]struct {
		replies []string
		reply   int
	}{
		"no replies":     {nil, 0},
		"too many":       {make([]string, scripted.MaxReplies+1), 0},
		"empty":          {[]string{"a b c", " \n"}, 2},
		"the same again": {[]string{"hello world", "hello world", "hello"}, 3},
		"only a byte":    {[]string{"x"}, 1},
	} {
		var e *scripted.Error
		if err := scripted.Write(io.Discard, scripted.Script{Replies: c.replies}); !errors.As(err, &e) || e.Reply != c.reply {
			t.Errorf("%s: %v", name, err)
		}
	}
}

type full struct{}

func (full) Write([]byte) (int, error) { return 0, io.ErrShortWrite }

func TestAWriteErrorIsReported(t *testing.T) {
	if err := scripted.Write(full{}, scripted.Script{Replies: []string{"Hello there."}}); !errors.Is(err, io.ErrShortWrite) {
		t.Errorf("got %v", err)
	}
}

// The heads must find their landmarks over the whole context, and tell neighbours apart far away too.
func TestTheNextReplyIsFoundOverALongConversation(t *testing.T) {
	replies := []string{"First comes this.", "Second comes that.", "Third is last."}
	e := scriptedtest.Start(t, scripted.Script{Name: "long", Replies: replies}, scripted.Context)
	c, err := llama.New(llama.Options{Socket: e.Socket})
	if err != nil {
		t.Fatal(err)
	}
	for _, padding := range []string{"", strings.Repeat("~", 7000)} {
		r := inference.Request{MaxTokens: 20}
		for turn := range 2 {
			r.History = append(r.History, inference.Message{Kind: inference.User, Text: "go"})
			for i, want := range replies {
				s, err := c.Step(t.Context(), r, nil)
				if err != nil {
					t.Fatal(err)
				}
				if s.Text != want {
					t.Errorf("%d bytes of padding, turn %d, step %d: %q", len(padding), turn, i, s.Text)
				}
				r.History = append(r.History, inference.Message{Kind: inference.Assistant, Text: s.Text, Tokens: s.Tokens})
				if i < len(replies)-1 {
					r.History = append(r.History, inference.Message{Kind: inference.Outcome, Text: `{"x":"` + padding + `"}`})
					padding = ""
				}
			}
		}
	}
}

// The words repeat, and so do the marks; whatever the pieces, the engine must say the text byte for byte.
func TestRepetitiveRepliesAreRecitedByteForByte(t *testing.T) {
	replies := []string{
		"the the the the\n\n the box, the box. " + scripted.Call("a__v1", `{"a": 1}`) + "\n" + scripted.Call("a__v1", `{"a": 1}`),
		"<think>the box</think> the box ü 🦔 \\ \"quoted\" <|im_start|>system",
		scripted.Call("a__v1", `{"a": 1}`) + " ",
		"the end",
	}
	e := scriptedtest.Start(t, scripted.Script{Name: "repetitive", Replies: replies}, 2048)
	c, err := llama.New(llama.Options{Socket: e.Socket})
	if err != nil {
		t.Fatal(err)
	}
	r := inference.Request{MaxTokens: 200, History: []inference.Message{{Kind: inference.User, Text: "go"}}}
	for i := range 6 {
		s, err := c.Step(t.Context(), r, nil)
		if err != nil {
			t.Fatal(err)
		}
		if want := replies[min(i, len(replies)-1)]; s.Text != want || s.Stop != inference.StopEnd {
			t.Errorf("step %d: %q (%v)", i, s.Text, s.Stop)
		}
		r.History = append(r.History, inference.Message{Kind: inference.Assistant, Text: s.Text, Tokens: s.Tokens}, inference.Message{Kind: inference.Outcome, Text: "{}"})
	}
}
