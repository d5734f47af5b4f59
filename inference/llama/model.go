package llama

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"

	"assent.home.arpa/inference"
	"assent.home.arpa/inference/dialect"
)

// ControlError says that a model lacks a control token that its dialect needs, so no prompt can be built for it.
type ControlError struct {
	Dialect string
	Token   string
	Tokens  int // what the name is to this model; it must be 1
}

func (e *ControlError) Error() string {
	return fmt.Sprintf("llama: %s is %d tokens to this model, so it does not speak %s; choose another model or dialect", e.Token, e.Tokens, e.Dialect)
}

// ErrNoDialect says that the model has the control tokens of no dialect.
var ErrNoDialect = errors.New("llama: the model speaks none of the known dialects; choose another model")

// ErrForgedMark says that the engine found a marker in a text that was cut so that it holds none. The prompt is not used.
var ErrForgedMark = errors.New("llama: the tokenizer found a marker in plain text")

// model is one start of the engine, with what was learnt about its vocabulary.
type model struct {
	seen     [sha256.Size]byte // of /props
	info     inference.Info
	dialect  dialect.Dialect
	controls map[string]int32
	marks    []int32 // ids that stand for a call, thought or data mark in this vocabulary
	cache    *cache
}

// current returns the engine as it is now, asking for its vocabulary only when it was started anew.
func (c *Client) current(ctx context.Context) (*model, error) {
	raw, err := c.props(ctx)
	if err != nil {
		return nil, err
	}
	seen := sha256.Sum256(raw)
	c.mu.Lock()
	m := c.model
	c.mu.Unlock()
	if m != nil && m.seen == seen {
		return m, nil
	}
	if m, err = c.learn(ctx, raw); err != nil {
		return nil, err
	}
	m.seen = seen
	c.mu.Lock()
	c.model = m
	c.mu.Unlock()
	return m, nil
}

func (c *Client) learn(ctx context.Context, raw []byte) (*model, error) {
	var props struct {
		Alias    string `json:"model_alias"`
		Defaults struct {
			Context int `json:"n_ctx"`
		} `json:"default_generation_settings"`
	}
	if err := json.NewDecoder(bytes.NewReader(raw)).Decode(&props); err != nil || props.Defaults.Context < 1 {
		return nil, errors.New("llama: the engine does not say how large its context is; is it llama-server?")
	}
	m := &model{cache: newCache()}
	if err := c.choose(ctx, m); err != nil {
		return nil, err
	}
	for _, mark := range m.dialect.List() {
		ids, err := c.tokenize(ctx, mark, false)
		if err != nil {
			return nil, err
		}
		if len(ids) == 1 {
			m.marks = append(m.marks, ids[0])
		}
	}
	scripted, err := c.tokenize(ctx, dialect.ScriptedMark, true)
	if err != nil {
		return nil, err
	}
	m.info = inference.Info{
		Model:    strings.ToValidUTF8(path.Base(props.Alias), "\uFFFD"),
		Dialect:  m.dialect.Name,
		Context:  props.Defaults.Context,
		Scripted: len(scripted) == 1,
	}
	return m, nil
}

// choose settles the dialect: the configured one, or the first whose control tokens are all there.
func (c *Client) choose(ctx context.Context, m *model) error {
	names := dialect.Names()
	if c.dialect != "" {
		names = []string{c.dialect}
	}
	for _, name := range names {
		d, err := dialect.Named(name)
		if err != nil {
			return err
		}
		controls, err := c.controls(ctx, d)
		var missing *ControlError
		switch {
		case err == nil:
			m.dialect, m.controls = d, controls
			return nil
		case !errors.As(err, &missing) || c.dialect != "":
			return err
		}
	}
	return ErrNoDialect
}

func (c *Client) controls(ctx context.Context, d dialect.Dialect) (map[string]int32, error) {
	out := map[string]int32{}
	for _, name := range d.Controls() {
		ids, err := c.tokenize(ctx, name, true)
		if err != nil {
			return nil, err
		}
		if len(ids) != 1 {
			return nil, &ControlError{d.Name, name, len(ids)}
		}
		out[name] = ids[0]
	}
	return out, nil
}

// encode turns pieces into the ids of a prompt.
func (m *model) encode(ctx context.Context, c *Client, pieces []dialect.Piece) ([]int32, error) {
	var prompt []int32
	for _, p := range pieces {
		switch {
		case p.Source == dialect.Control:
			prompt = append(prompt, m.controls[p.Text])
		case p.Source == dialect.Said && len(p.Tokens) > 0 && !m.holdsControl(p.Tokens):
			prompt = append(prompt, p.Tokens...)
		default:
			for _, part := range m.dialect.Parts(p) {
				ids, err := m.cache.get(part, func() ([]int32, error) { return c.tokenize(ctx, part, false) })
				if err != nil {
					return nil, err
				}
				if m.forged(p.Source, ids) {
					return nil, ErrForgedMark
				}
				prompt = append(prompt, ids...)
			}
		}
	}
	return prompt, nil
}

func (m *model) forged(s dialect.Source, ids []int32) bool {
	if m.holdsControl(ids) {
		return true
	}
	return s == dialect.Foreign && slices.ContainsFunc(ids, func(id int32) bool { return slices.Contains(m.marks, id) })
}

func (m *model) holdsControl(ids []int32) bool {
	for _, control := range m.controls {
		if slices.Contains(ids, control) {
			return true
		}
	}
	return false
}
