package llama

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"time"

	"assent.home.arpa/inference"
)

// Bounds of what the engine may say, and of how long it may take over what needs no model run.
const (
	maxBody   = 8 << 20
	maxText   = 1 << 20 // bytes of one text to tokenise: at most 8 bytes of answer for each
	quickCall = 30 * time.Second
)

// post sends a request and returns the response when its status is 200. The caller closes the body. broken says what it
// means if the exchange breaks off.
func (c *Client) post(ctx context.Context, path string, body any, broken error) (*http.Response, error) {
	data, err := json.Marshal(body)
	if err != nil {
		return nil, fmt.Errorf("llama: %w", err)
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://engine"+path, bytes.NewReader(data))
	if err != nil {
		return nil, fmt.Errorf("llama: %w", err)
	}
	req.Header.Set("Content-Type", "application/json")
	return c.do(req, broken)
}

func (c *Client) do(req *http.Request, broken error) (*http.Response, error) {
	resp, err := c.http.Do(req)
	if err != nil {
		return nil, classify(req.Context(), err, broken)
	}
	if resp.StatusCode == http.StatusOK {
		return resp, nil
	}
	defer resp.Body.Close()
	return nil, refusal(resp)
}

// classify says what a failed exchange means: we hung up or waited too long, nobody is there, or it broke off.
func classify(ctx context.Context, err, broken error) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	var op *net.OpError
	if errors.As(err, &op) && op.Op == "dial" {
		if errors.Is(op, fs.ErrNotExist) { // an engine leaves its socket behind, however it ends
			return fmt.Errorf("%w: %w: %w", inference.ErrUnavailable, inference.ErrAbsent, op)
		}
		return fmt.Errorf("%w: %w", inference.ErrUnavailable, op)
	}
	return fmt.Errorf("%w: %w", broken, err)
}

// quick bounds a call that needs no model run. An engine that takes longer is as good as none.
func quick(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeoutCause(ctx, quickCall, inference.ErrUnavailable)
}

// refusal reads an error response. The engine's own words stay out of the error, since they may quote a prompt; its error
// type, a word of its own vocabulary, is enough to look it up.
func refusal(resp *http.Response) error {
	var body struct {
		Error struct {
			Type   string `json:"type"`
			Prompt int    `json:"n_prompt_tokens"`
			Ctx    int    `json:"n_ctx"`
		} `json:"error"`
	}
	err := json.NewDecoder(io.LimitReader(resp.Body, 64<<10)).Decode(&body)
	switch {
	case resp.StatusCode == http.StatusServiceUnavailable:
		return inference.ErrUnavailable
	case err == nil && body.Error.Type == "exceed_context_size_error":
		return &inference.OverflowError{Prompt: body.Error.Prompt, Context: body.Error.Ctx}
	}
	return fmt.Errorf("llama: the engine refused %s with status %d (%.64q)", resp.Request.URL.Path, resp.StatusCode, body.Error.Type)
}

// props fetches what the engine says of itself, raw.
func (c *Client) props(ctx context.Context) ([]byte, error) {
	ctx, cancel := quick(ctx)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://engine/props", nil)
	if err != nil {
		return nil, fmt.Errorf("llama: %w", err)
	}
	resp, err := c.do(req, inference.ErrUnavailable)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	data, err := io.ReadAll(io.LimitReader(resp.Body, maxBody))
	if err != nil {
		return nil, classify(ctx, err, inference.ErrUnavailable)
	}
	return data, nil
}

// tokenize returns the ids of a text. With special, names of control tokens in it become those.
func (c *Client) tokenize(ctx context.Context, text string, special bool) ([]int32, error) {
	if len(text) > maxText {
		return nil, fmt.Errorf("llama: a text of %d bytes is too long for any prompt", len(text))
	}
	ctx, cancel := quick(ctx)
	defer cancel()
	resp, err := c.post(ctx, "/tokenize", struct {
		Content string `json:"content"`
		Add     bool   `json:"add_special"`
		Parse   bool   `json:"parse_special"`
	}{text, false, special}, inference.ErrUnavailable)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	var out struct {
		Tokens []int32 `json:"tokens"`
	}
	if err := json.NewDecoder(io.LimitReader(resp.Body, maxBody)).Decode(&out); err != nil {
		return nil, classify(ctx, err, inference.ErrUnavailable)
	}
	return out.Tokens, nil
}
