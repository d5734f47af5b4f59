package llama

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"strings"

	"assent.home.arpa/inference"
)

// maxLine bounds one event. The largest is the last, which lists the fields asked for below.
const maxLine = 256 << 10

// completion is the request body; the samplers' settings are spelled out so that another engine's defaults change nothing.
type completion struct {
	Prompt      []int32  `json:"prompt"`
	Stream      bool     `json:"stream"`
	Tokens      bool     `json:"return_tokens"`
	Cache       bool     `json:"cache_prompt"`
	Predict     int      `json:"n_predict"`
	Seed        uint32   `json:"seed"`
	Temperature float64  `json:"temperature"`
	TopK        int      `json:"top_k"`
	TopP        float64  `json:"top_p"`
	MinP        float64  `json:"min_p"`
	Grammar     string   `json:"grammar,omitempty"`
	Fields      []string `json:"response_fields"`
}

// event is one line of the stream. The last one has stop set; Fields limits it to what is used here, because it would
// repeat the whole prompt otherwise.
type event struct {
	Content   string          `json:"content"`
	Tokens    []int32         `json:"tokens"`
	Stop      bool            `json:"stop"`
	StopType  string          `json:"stop_type"`
	Predicted int             `json:"tokens_predicted"`
	Error     json.RawMessage `json:"error"`
	Timings   struct {
		Cached      int     `json:"cache_n"`
		Prompt      int     `json:"prompt_n"`
		PromptMS    float64 `json:"prompt_ms"`
		PredictedMS float64 `json:"predicted_ms"`
	} `json:"timings"`
}

func (c *Client) complete(ctx context.Context, m *model, r inference.Request, prompt []int32, text func(string)) (inference.Step, error) {
	body := completion{
		Prompt: prompt, Stream: true, Tokens: true, Cache: true, Predict: r.MaxTokens, Seed: r.Seed, Temperature: r.Temperature,
		TopK: 40, TopP: 0.95, MinP: 0.05, Fields: []string{"content", "tokens", "stop", "stop_type", "tokens_predicted", "timings"},
	}
	if r.Grammar {
		body.Grammar = m.dialect.Grammar()
	}
	s := stepReader{text: text}
	s.step.PromptTokens = len(prompt)
	resp, err := c.post(ctx, "/completion", body, inference.ErrInterrupted)
	if err != nil {
		return s.step, err
	}
	defer resp.Body.Close()
	err = s.read(resp.Body)
	return s.finish(), err
}

type stepReader struct {
	text   func(string)
	step   inference.Step
	all    strings.Builder
	ids    []int32
	gap    bool // an id was lost
	ending bool // the last id is the one that ended the turn
}

// read takes events until the last. Any error is or wraps ErrInterrupted.
func (s *stepReader) read(body io.Reader) error {
	lines := bufio.NewScanner(body)
	lines.Buffer(make([]byte, 0, 4<<10), maxLine)
	for lines.Scan() {
		data, ok := bytes.CutPrefix(lines.Bytes(), []byte("data: "))
		if !ok {
			// A line that begins with a colon is a comment (HTML standard, section 9.2.6): the engine pings while it reads a
			// long prompt. How long that may take is the turn's business.
			if len(lines.Bytes()) == 0 || lines.Bytes()[0] == ':' {
				continue
			}
			return fmt.Errorf("%w: it reported an error", inference.ErrInterrupted)
		}
		var e event
		if err := json.Unmarshal(data, &e); err != nil {
			return fmt.Errorf("%w: it sent an event that is not json", inference.ErrInterrupted)
		}
		if e.Error != nil {
			return fmt.Errorf("%w: it reported an error", inference.ErrInterrupted)
		}
		s.take(e)
		if e.Stop {
			return s.stop(e)
		}
	}
	if err := lines.Err(); err != nil {
		return fmt.Errorf("%w: %w", inference.ErrInterrupted, err)
	}
	return fmt.Errorf("%w: %w", inference.ErrInterrupted, io.ErrUnexpectedEOF)
}

func (s *stepReader) take(e event) {
	s.ids = append(s.ids, e.Tokens...)
	s.gap = s.gap || len(s.ids) != e.Predicted
	s.step.GeneratedTokens = max(s.step.GeneratedTokens, e.Predicted)
	if e.Content != "" {
		s.all.WriteString(e.Content)
		if s.text != nil {
			s.text(e.Content)
		}
	}
}

func (s *stepReader) stop(e event) error {
	s.step.CachedTokens = e.Timings.Cached
	s.step.PromptMillis, s.step.DecodeMillis = e.Timings.PromptMS, e.Timings.PredictedMS
	switch e.StopType {
	case "eos":
		s.step.Stop, s.ending = inference.StopEnd, true
	case "limit":
		s.step.Stop = inference.StopLength
	default:
		return fmt.Errorf("%w: unknown stop type %.32q", inference.ErrInterrupted, e.StopType)
	}
	return nil
}

func (s *stepReader) finish() inference.Step {
	s.step.Text = s.all.String()
	if s.ending && len(s.ids) > 0 {
		s.ids = s.ids[:len(s.ids)-1]
	}
	if !s.gap && len(s.ids) > 0 {
		s.step.Tokens = s.ids
	}
	return s.step
}
