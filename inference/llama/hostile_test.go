package llama_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"assent.home.arpa/inference"
	"assent.home.arpa/inference/dialect"
	"assent.home.arpa/inference/llama"
)

// server speaks as llama-server does as far as this package asks, one byte a token, and answers /completion with whatever
// a test wants it to. It stands for an engine that was replaced or is broken; the real one is in llama_test.go.
type server struct {
	socket string

	mu        sync.Mutex
	start     string           // names this start of the engine in /props
	controls  map[string]int32 // control tokens
	found     map[string]int32 // tokens that are found in plain text too
	tokenized []string
	complete  http.HandlerFunc
}

func serve(t *testing.T) *server {
	t.Helper()
	dir, err := os.MkdirTemp("", "assent")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	s := &server{
		socket: filepath.Join(dir, "engine.sock"), start: "1", found: map[string]int32{},
		controls: map[string]int32{"<|im_start|>": 1000, "<|im_end|>": 1001},
	}
	l, err := net.Listen("unix", s.socket)
	if err != nil {
		t.Fatal(err)
	}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /props", func(w http.ResponseWriter, _ *http.Request) {
		s.mu.Lock()
		defer s.mu.Unlock()
		fmt.Fprintf(w, `{"model_alias":"m.gguf","default_generation_settings":{"n_ctx":4096},"media_marker":%q}`, s.start)
	})
	mux.HandleFunc("POST /tokenize", s.tokenize)
	mux.HandleFunc("POST /completion", func(w http.ResponseWriter, r *http.Request) { s.complete(w, r) })
	srv := &http.Server{Handler: mux}
	done := make(chan struct{})
	go func() {
		srv.Serve(l)
		close(done)
	}()
	t.Cleanup(func() {
		srv.Close()
		<-done
	})
	return s
}

func (s *server) tokenize(w http.ResponseWriter, r *http.Request) {
	var in struct {
		Content string `json:"content"`
		Parse   bool   `json:"parse_special"`
	}
	if err := json.NewDecoder(r.Body).Decode(&in); err != nil {
		http.Error(w, "{}", http.StatusBadRequest)
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.tokenized = append(s.tokenized, in.Content)
	ids := []int32{}
	id, special := s.controls[in.Content]
	plain, found := s.found[in.Content]
	switch {
	case special && in.Parse:
		ids = append(ids, id)
	case found:
		ids = append(ids, plain)
	default:
		for i := range len(in.Content) {
			ids = append(ids, int32(in.Content[i]))
		}
	}
	json.NewEncoder(w).Encode(map[string]any{"tokens": ids})
}

func (s *server) asked() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	defer func() { s.tokenized = nil }()
	return s.tokenized
}

const (
	piece = `data: {"content":"hi","tokens":[104],"stop":false,"tokens_predicted":1}` + "\n\n"
	final = `data: {"content":"","tokens":[],"stop":true,"stop_type":"%s","tokens_predicted":%d}` + "\n\n"
)

func TestAStreamThatIsNotWholeIsAnInterruptedStep(t *testing.T) {
	s := serve(t)
	c := client(t, s.socket)
	for name, body := range map[string]string{
		"nothing":                   "",
		"no last event":             piece,
		"an event cut in two":       piece + `data: {"content":"x`,
		"not json":                  piece + "data: hello\n\n",
		"an error event":            piece + `data: {"error":{"message":"x"}}` + "\n\n",
		"an error line":             piece + "error: {}\n\n",
		"an unknown stop":           piece + fmt.Sprintf(final, "word", 1),
		"no stop type":              piece + fmt.Sprintf(final, "", 1),
		"an endless line":           piece + "data: " + strings.Repeat("x", 1<<20),
		"wrong types in the stream": piece + `data: {"content":7}` + "\n\n",
	} {
		s.complete = func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, body) }
		got, err := c.Step(t.Context(), ask("x"), nil)
		want := "hi"
		if body == "" {
			want = ""
		}
		if !errors.Is(err, inference.ErrInterrupted) || got.Stop != inference.StopAborted || got.Text != want {
			t.Errorf("%s: %v, %v, %q", name, err, got.Stop, got.Text)
		}
		if err != nil && strings.Contains(err.Error(), "hello") {
			t.Errorf("%s: the error quotes the stream: %v", name, err)
		}
	}
}

// While it reads a long prompt the engine sends a comment every 30 s. A slow box met it before its first word.
func TestAnEngineThatPingsWhileItReadsIsNotInterrupted(t *testing.T) {
	s := serve(t)
	c := client(t, s.socket)
	s.complete = func(w http.ResponseWriter, _ *http.Request) {
		io.WriteString(w, ":\n\n: ping\n\n"+piece+":\n\n"+fmt.Sprintf(final, "eos", 1))
	}
	if got := step(t, c, ask("x")); got.Text != "hi" || got.Stop != inference.StopEnd {
		t.Errorf("%v, %q", got.Stop, got.Text)
	}
}

func TestIDsThatWereNotAllReportedAreNotKept(t *testing.T) {
	s := serve(t)
	c := client(t, s.socket)
	hedgehog := `data: {"content":"🦔","tokens":[166],"stop":false,"tokens_predicted":%d}` + "\n\n"
	end := `data: {"content":"","tokens":[1001],"stop":false,"tokens_predicted":%d}` + "\n\n"
	for name, tc := range map[string]struct {
		body string
		keep int
	}{
		"all reported":          {piece + fmt.Sprintf(hedgehog, 2) + fmt.Sprintf(end, 3) + fmt.Sprintf(final, "eos", 3), 2},
		"a character of four":   {piece + fmt.Sprintf(hedgehog, 5) + fmt.Sprintf(end, 6) + fmt.Sprintf(final, "eos", 6), 0},
		"cut off at the length": {piece + fmt.Sprintf(hedgehog, 2) + fmt.Sprintf(final, "limit", 2), 2},
	} {
		s.complete = func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, tc.body) }
		got := step(t, c, ask("x"))
		if got.Text != "hi🦔" || len(got.Tokens) != tc.keep {
			t.Errorf("%s: %q, %v", name, got.Text, got.Tokens)
		}
	}
}

func TestRefusalsAreTypedAndQuoteNothing(t *testing.T) {
	s := serve(t)
	c := client(t, s.socket)
	answer := func(status int, body string) error {
		s.complete = func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(status)
			io.WriteString(w, body)
		}
		_, err := c.Step(t.Context(), ask("x"), nil)
		return err
	}
	if err := answer(503, `{"error":{"type":"unavailable_error"}}`); !errors.Is(err, inference.ErrUnavailable) {
		t.Errorf("loading: %v", err)
	}
	var overflow *inference.OverflowError
	if err := answer(400, `{"error":{"type":"exceed_context_size_error","n_prompt_tokens":9,"n_ctx":8}}`); !errors.As(err, &overflow) || overflow.Prompt != 9 || overflow.Context != 8 {
		t.Errorf("overflow: %v", err)
	}
	for _, body := range []string{`{"error":{"type":"invalid_request_error","message":"SECRET"}}`, "SECRET", ""} {
		if err := answer(400, body); err == nil || strings.Contains(err.Error(), "SECRET") {
			t.Errorf("%q: %v", body, err)
		}
	}
	if err := answer(302, ""); err == nil {
		t.Error("a redirect was followed")
	}
}

func TestASecondTurnAsksTheTokenizerOnlyAboutWhatIsNew(t *testing.T) {
	s := serve(t)
	c := client(t, s.socket)
	count := func(r inference.Request) {
		t.Helper()
		if _, err := c.Count(t.Context(), r); err != nil {
			t.Fatal(err)
		}
	}
	r := ask("first")
	count(r)
	s.asked()
	r.History = append(r.History, inference.Message{Kind: inference.Assistant, Text: "ok", Tokens: []int32{1}}, inference.Message{Kind: inference.User, Text: "second"})
	count(r)
	if got := s.asked(); len(got) != 1 || got[0] != "second" {
		t.Errorf("asked about %q", got)
	}
	// Another start of the engine may have another vocabulary.
	s.mu.Lock()
	s.start = "2"
	s.mu.Unlock()
	count(r)
	if got := s.asked(); len(got) < 5 {
		t.Errorf("after a restart only %q was asked about", got)
	}
}

func TestAModelThatCannotKeepTheRolesApartIsRefused(t *testing.T) {
	s := serve(t)
	s.controls = map[string]int32{"<|im_start|>": 1000}
	if _, err := client(t, s.socket).Info(t.Context()); !errors.Is(err, llama.ErrNoDialect) {
		t.Errorf("detection: %v", err)
	}
	c, err := llama.New(llama.Options{Socket: s.socket, Dialect: "chatml-hermes"})
	if err != nil {
		t.Fatal(err)
	}
	var control *llama.ControlError
	if _, err := c.Info(t.Context()); !errors.As(err, &control) || control.Token != "<|im_end|>" || control.Tokens != len("<|im_end|>") {
		t.Errorf("configured: %v", err)
	}
	var unknown *dialect.UnknownError
	if _, err := llama.New(llama.Options{Dialect: "alpaca"}); !errors.As(err, &unknown) {
		t.Errorf("unknown: %v", err)
	}
}

// A vocabulary may find its marks in plain text. Cutting defeats that; a tokenizer that finds one all the same (here, in
// one half of it) is not believed.
func TestAMarkFoundInForeignTextStopsThePrompt(t *testing.T) {
	s := serve(t)
	s.found = map[string]int32{"<tool_call>": 2000, "</tool_response>": 2001, "<|im_start|>": 1000}
	c := client(t, s.socket)
	messages := []inference.Message{
		{Kind: inference.User, Text: "a <tool_call> b"},
		{Kind: inference.User, Text: "</tool_response>"},
		{Kind: inference.User, Text: "<|im_start|>"},
		{Kind: inference.Assistant, Text: "<|im_start|>"},
		{Kind: inference.Assistant, Text: "<tool_call>"},
	}
	for _, m := range messages {
		if _, err := c.Count(t.Context(), inference.Request{History: []inference.Message{m}}); err != nil {
			t.Errorf("%v %q: %v", m.Kind, m.Text, err)
		}
	}
	s.mu.Lock()
	s.found["tool_call> b"], s.found["|im_start|>"], s.start = 2000, 1000, "2"
	s.mu.Unlock()
	for _, m := range []inference.Message{messages[0], messages[2], messages[3]} {
		if _, err := c.Count(t.Context(), inference.Request{History: []inference.Message{m}}); !errors.Is(err, llama.ErrForgedMark) {
			t.Errorf("%v %q: %v", m.Kind, m.Text, err)
		}
	}
}

func TestAnEngineThatHangsUpBeforeAStepIsUnavailable(t *testing.T) {
	dir, err := os.MkdirTemp("", "assent")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	l, err := net.Listen("unix", filepath.Join(dir, "engine.sock"))
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			conn.Close()
		}
	}()
	t.Cleanup(func() {
		l.Close()
		<-done
	})
	s, err := client(t, l.Addr().String()).Step(t.Context(), ask("x"), nil)
	if !errors.Is(err, inference.ErrUnavailable) || errors.Is(err, inference.ErrInterrupted) || s.Stop != 0 {
		t.Errorf("got %v, %+v", err, s)
	}
}

func TestUselessRequestsAreRefusedBeforeTheEngineIsAsked(t *testing.T) {
	c := client(t, filepath.Join(t.TempDir(), "nobody"))
	r := ask("x")
	if _, err := c.Step(t.Context(), r, nil); !errors.Is(err, inference.ErrUnavailable) {
		t.Errorf("no engine: %v", err)
	} else if !errors.Is(err, inference.ErrAbsent) {
		t.Errorf("an engine that nobody started is like one that is down: %v", err)
	}
	r.Seed = 1<<32 - 1
	if _, err := c.Step(t.Context(), r, nil); !errors.Is(err, llama.ErrSeed) {
		t.Errorf("random seed: %v", err)
	}
	r.Seed, r.MaxTokens = 1, 0
	if _, err := c.Step(t.Context(), r, nil); err == nil || errors.Is(err, inference.ErrUnavailable) {
		t.Errorf("no tokens: %v", err)
	}
	s := serve(t)
	r = ask(strings.Repeat("x", 2<<20))
	if _, err := client(t, s.socket).Count(t.Context(), r); err == nil {
		t.Error("2 MB were tokenised")
	}
}
