// Package llama runs a model through llama.cpp's llama-server (checked with Debian's 0.7.0, build b11669), on a unix
// socket.
//
// # Which interface, and why
//
// Only /completion with an array of token ids, /tokenize and /props are used. The server's OpenAI-style interface parses
// and repairs calls by itself: it turns unknown names into known ones, gives cut-off calls as calls, and reads control
// tokens in what a user typed. Here the prompt is put together from ids: role markers are looked up by name, and all other
// text is tokenised with parse_special:false and cut at every mark (inference/dialect), and then checked: an id of a
// marker in a foreign text is an error, never a prompt.
//
// # What the engine does that one would not expect
//
//   - Generated ids are lost in the stream where a character spans several tokens: only the last of them is reported.
//     tokens_predicted shows the gap; such a step has no Tokens, and its text is tokenised anew for the next one.
//   - A control token in the middle of an answer has an empty text. Ids that hold a role marker are not sent back.
//   - The token that ended the turn is reported like any other, with an empty text.
//   - Seed 4294967295 means "random".
//   - A client that hangs up cancels its step. Connections are not reused: the server keeps a closed one for 5 s, and a
//     step would now and then begin on a dead one.
//   - /props differs from one start of the server to the next, which shows that another process, and maybe another
//     vocabulary, answers now.
package llama

import (
	"context"
	"errors"
	"fmt"
	"math"
	"net"
	"net/http"
	"sync"
	"time"

	"assent.home.arpa/inference"
	"assent.home.arpa/inference/dialect"
)

// ErrSeed says that a request asks for the one seed that the engine does not honour.
var ErrSeed = errors.New("llama: seed 4294967295 means \"random\" to the engine; choose another")

// Options says where the engine is.
type Options struct {
	Socket  string // path of the unix socket
	Dialect string // one of dialect.Names, or empty: the first whose control tokens the model has
}

// Client is an inference.Provider. It opens no connection until it is used, and survives restarts of the engine.
type Client struct {
	http    *http.Client
	dialect string
	turn    chan struct{} // holds one token; taking it is the right to run a step. Senders queue in order of arrival.

	mu    sync.Mutex
	model *model // the engine as last seen, or nil
}

var _ inference.Provider = (*Client)(nil)

// New returns a client. It fails with *dialect.UnknownError.
func New(o Options) (*Client, error) {
	if o.Dialect != "" {
		if _, err := dialect.Named(o.Dialect); err != nil {
			return nil, err
		}
	}
	dialer := &net.Dialer{Timeout: 5 * time.Second}
	return &Client{
		dialect: o.Dialect,
		turn:    make(chan struct{}, 1),
		http: &http.Client{
			Transport: &http.Transport{
				DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
					return dialer.DialContext(ctx, "unix", o.Socket)
				},
				DisableKeepAlives:      true,
				DisableCompression:     true,
				MaxResponseHeaderBytes: 16 << 10,
			},
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		},
	}, nil
}

// Info implements inference.Provider.
func (c *Client) Info(ctx context.Context) (inference.Info, error) {
	m, err := c.current(ctx)
	if err != nil {
		return inference.Info{}, err
	}
	return m.info, nil
}

// Count implements inference.Provider.
func (c *Client) Count(ctx context.Context, r inference.Request) (int, error) {
	_, ids, err := c.prompt(ctx, r)
	return len(ids), err
}

// Step implements inference.Provider.
func (c *Client) Step(ctx context.Context, r inference.Request, text func(string)) (inference.Step, error) {
	if r.Seed == math.MaxUint32 {
		return inference.Step{}, ErrSeed
	}
	if r.MaxTokens < 1 {
		return inference.Step{}, fmt.Errorf("llama: a step of %d tokens", r.MaxTokens)
	}
	s, err := c.step(ctx, r, text)
	switch {
	case err == nil:
	case ctx.Err() != nil:
		s.Stop, err = inference.StopAborted, ctx.Err()
	case errors.Is(err, inference.ErrInterrupted):
		s.Stop = inference.StopAborted
	default:
		s = inference.Step{}
	}
	return s, err
}

func (c *Client) step(ctx context.Context, r inference.Request, text func(string)) (inference.Step, error) {
	select {
	case c.turn <- struct{}{}:
		defer func() { <-c.turn }()
	case <-ctx.Done():
		return inference.Step{}, ctx.Err()
	}
	m, ids, err := c.prompt(ctx, r)
	if err != nil {
		return inference.Step{}, err
	}
	if len(ids) >= m.info.Context {
		return inference.Step{}, &inference.OverflowError{Prompt: len(ids), Context: m.info.Context}
	}
	return c.complete(ctx, m, r, ids, text)
}

func (c *Client) prompt(ctx context.Context, r inference.Request) (*model, []int32, error) {
	m, err := c.current(ctx)
	if err != nil {
		return nil, nil, err
	}
	pieces, err := m.dialect.Render(r)
	if err != nil {
		return nil, nil, err
	}
	ids, err := m.encode(ctx, c, pieces)
	return m, ids, err
}
