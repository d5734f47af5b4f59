package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"time"

	"assent.home.arpa/appliance/config"
	"assent.home.arpa/capabilities/websearch/websearchtest"
	"assent.home.arpa/inference/engine"
	"assent.home.arpa/inference/model"
	"assent.home.arpa/inference/scripted"
)

// chosen is the model that a simulated box runs, and what runs it.
type chosen struct {
	engine   engine.Engine
	file     string
	name     string
	dialect  string
	context  int // tokens
	scripted bool
}

// maxContext bounds the context that is set aside: more costs memory that a small box does not have.
const maxContext = 4096

// scriptedDialect is the dialect that package scripted writes.
const scriptedDialect = "chatml-hermes"

// script is what the scripted model says in each turn: a search that needs a press, and a sentence after it.
func script() scripted.Script {
	return scripted.Script{
		Name: "assentsim",
		Replies: []string{
			"I will look that up. " + scripted.Call("web_search__v1", `{"query":"How tall is the Eiffel Tower"}`),
			"This is a recited answer. What the box found, if anything, is on the card above.",
		},
	}
}

// choose finds or fetches engine and model. Where no source of weights answers, a scripted model takes their place, and
// everything says so.
func choose(ctx context.Context, out io.Writer, ref string, recite bool, dir string) (chosen, error) {
	e, err := engine.Find(ctx, engine.Options{Path: os.Getenv("ENGINE"), Progress: func(line string) { fmt.Fprintln(out, line) }})
	if err != nil {
		return chosen{}, err
	}
	if recite {
		return recital(e, dir)
	}
	f, err := weights(ctx, out, ref)
	if errors.Is(err, model.ErrUnreachable) {
		fmt.Fprintf(out, "model: %v\nmodel: going on with a SCRIPTED model. It recites one text and is not a language model.\n", err)
		return recital(e, dir)
	}
	if err != nil {
		return chosen{}, err
	}
	c := chosen{engine: e, file: f.Path, name: f.Model.Title, dialect: f.Model.Dialect, context: maxContext}
	if f.Model.Context > 0 {
		c.context = min(c.context, f.Model.Context)
	}
	if c.name == "" {
		c.name = filepath.Base(f.Path)
	}
	return c, nil
}

func recital(e engine.Engine, dir string) (chosen, error) {
	path := filepath.Join(dir, "scripted.gguf")
	f, err := os.Create(path)
	if err != nil {
		return chosen{}, fmt.Errorf("scripted model: %w", err)
	}
	if err := errors.Join(scripted.Write(f, script()), f.Close()); err != nil {
		return chosen{}, err
	}
	return chosen{engine: e, file: path, name: "test script (not a language model)", dialect: scriptedDialect, context: maxContext, scripted: true}, nil
}

// weights returns the model that ref names (a path, an id, or nothing for the default), fetching it where it is missing.
func weights(ctx context.Context, out io.Writer, ref string) (model.File, error) {
	store, err := model.Open()
	if err != nil {
		return model.File{}, err
	}
	f, err := store.Resolve(ref)
	var missing *model.NotPulledError
	if !errors.As(err, &missing) {
		return f, err
	}
	m, err := store.Lookup(missing.ID)
	if err != nil {
		return model.File{}, err
	}
	fmt.Fprintf(out, "model: fetching %s (%s, %d MB); this is done once\n", m.Title, m.Licence, m.Size/1e6)
	last := time.Now()
	store.Progress = func(p model.Progress) {
		if time.Since(last) > 2*time.Second {
			last = time.Now()
			fmt.Fprintf(out, "model: %d of %d MB\n", p.Done/1e6, p.Total/1e6)
		}
	}
	return store.Pull(ctx, missing.ID)
}

// wikipedia is looked up once at the start, to know whether searches can be answered.
const wikipedia = "en.wikipedia.org:443"

// search is where a simulated box searches.
type search struct {
	config  config.Search
	fixture string // what the page and the transcript say of it; empty: the real thing
	close   func() error
}

// chooseSearch turns the -search flag into an endpoint.
func chooseSearch(ctx context.Context, out io.Writer, where string) (search, error) {
	none := func() error { return nil }
	switch where {
	case "auto":
		fmt.Fprintf(out, "search: looking whether %s can be reached (only assentsim does this; a box does not)\n", wikipedia)
		probe, cancel := context.WithTimeout(ctx, 4*time.Second)
		defer cancel()
		c, err := new(net.Dialer).DialContext(probe, "tcp", wikipedia)
		if err != nil {
			fmt.Fprintln(out, "search: no internet; using a practice site on this machine instead")
			return practice()
		}
		c.Close()
		return search{config: config.Default().Search, close: none}, nil
	case "wikipedia":
		return search{config: config.Default().Search, close: none}, nil
	case "practice":
		return practice()
	}
	u, err := url.Parse(where)
	if err != nil || u.Host == "" {
		return search{}, usageError(fmt.Sprintf("-search %q is not auto, wikipedia, practice or the address of a SearXNG", where))
	}
	return search{config: config.Search{Kind: "searxng", URL: where, Label: "the web"}, close: none}, nil
}

// practice serves a small site that speaks MediaWiki's search API.
func practice() (search, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return search{}, fmt.Errorf("practice site: %w", err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- websearchtest.New().Serve(ctx, l) }()
	return search{
		config:  config.Search{Kind: "mediawiki", URL: "http://" + l.Addr().String() + "/w/api.php", Label: "practice wiki"},
		fixture: "Searches go to a small practice site on this machine, not to the internet.",
		close:   func() error { cancel(); return <-done },
	}, nil
}
