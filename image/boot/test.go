package main

import (
	"context"
	"errors"
	"fmt"
	"image/png"
	"io"
	"maps"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"assent.home.arpa/capabilities/websearch/websearchtest"
	"assent.home.arpa/confirm/screen"
	"assent.home.arpa/device"
	"assent.home.arpa/image/boot/control"
)

// pixel is how large a pixel of the glass is in a picture.
const pixel = 4

// test is one run.
type test struct {
	image   string // folder of make image
	dir     string // of this run: consoles, captures, pictures, disks
	cache   string
	sockets string
	tool    string // the assent command
	python  string // that has cryptography; empty: there is none
	out     io.Writer
	log     io.Writer
	began   time.Time

	card, bios, layer string
	settings, model   string // files
	site              *websearchtest.Site
	cut               bool // the audit's own machine had its turn
	searchPort        int
	pulled            int            // times that the plug was pulled while somebody asked
	known             control.Record // what phones heard by then

	mu     sync.Mutex // guards all below
	wrong  []string
	passed int
}

// say tells a person what is going on.
func (t *test) say(line string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	fmt.Fprintf(t.log, "boot-test: %5.1f s  %s\n", time.Since(t.began).Seconds(), line)
}

// step does one thing of which the others do not depend, and notes whether it went well.
func (t *test) step(what string, err error) bool {
	if err == nil {
		t.mu.Lock()
		t.passed++
		t.mu.Unlock()
		t.say("ok    " + what)
		return true
	}
	t.say("WRONG " + what + ": " + err.Error())
	t.mu.Lock()
	defer t.mu.Unlock()
	t.wrong = append(t.wrong, what+": "+firstLine(err.Error()))
	return false
}

// timing prints one measurement of time. What else the machine does makes it larger, so that over its limit it is told and no more.
func (t *test) timing(name string, value float64, unit string, limit float64) {
	t.print(name, value, unit, limit)
	if value > limit {
		t.say(fmt.Sprintf("OVER  %s: %.6g %s, the limit is %g; was the machine busy?", name, value, unit, limit))
	}
}

func (t *test) print(name string, value float64, unit string, limit float64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	fmt.Fprintf(t.out, "%s %.6g %s %g\n", name, value, unit, limit)
}

// figure prints one measurement; over its limit it is wrong. Of some a least value is demanded.
func (t *test) figure(name string, value float64, unit string, limit float64, least bool) {
	t.print(name, value, unit, limit)
	switch {
	case least && value < limit:
		t.step(name, fmt.Errorf("%.6g %s, at least %g are needed", value, unit, limit))
	case !least && value > limit:
		t.step(name, fmt.Errorf("%.6g %s, at most %g are allowed", value, unit, limit))
	}
}

// picture keeps what is on the glass.
func (t *test) picture(b *box, name string) {
	if frame, lit := b.agent.View(); lit {
		t.save(frame, name)
	}
}

func (t *test) save(frame device.Frame, name string) {
	file := filepath.Join(t.dir, "panel-"+name+".png")
	f, err := os.Create(file)
	if err == nil {
		err = errors.Join(png.Encode(f, screen.Image(frame, pixel)), f.Close())
	}
	if err != nil {
		t.say("a picture is lost: " + err.Error())
	}
}

// serve has the practice search engine answer at this machine's loopback, which the box sees as a machine of the house.
func (t *test) serve(ctx context.Context) error {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	t.site, t.searchPort = websearchtest.New(), l.Addr().(*net.TCPAddr).Port
	go func() {
		if err := t.site.Serve(ctx, l); err != nil && ctx.Err() == nil {
			t.say("the search engine ended: " + err.Error())
		}
	}()
	return nil
}

// processes asks the agent what runs.
func (b *box) processes(ctx context.Context) ([]control.Process, error) {
	answer, err := b.agent.Do(ctx, control.Request{Memory: true})
	return answer.Processes, err
}

// record asks the agent what the record is, by what a phone knows of it.
func (b *box) record(ctx context.Context, known control.Record) (control.Verdict, error) {
	answer, err := b.agent.Do(ctx, control.Request{Record: &known})
	if err != nil {
		return control.Verdict{}, err
	}
	v := *answer.Verdict
	if !v.Good || len(v.Lost) > 0 {
		return v, fmt.Errorf("the record is %s (%s), and of what it had acknowledged these are lost: %q", v.Status, v.Problem, v.Lost)
	}
	return v, nil
}

// write keeps a text.
func (t *test) write(name, text string) error {
	return os.WriteFile(filepath.Join(t.dir, name), []byte(text), 0o644)
}

// journal keeps the box's journal of this start.
func (t *test) journal(ctx context.Context, b *box, name string) {
	text, err := b.agent.Run(ctx, "journalctl", "-b", "--no-pager", "-o", "short-monotonic")
	if err == nil {
		err = t.write(name+".journal", text)
	}
	if err != nil {
		t.say("a journal is lost: " + err.Error())
	}
}

func sorted[M ~map[string]V, V any](m M) []string { return slices.Sorted(maps.Keys(m)) }

// reads reports whether the glass shows a text in letters.
func reads(f device.Frame, text string) bool {
	shown, err := screen.Read(screen.Page{Frame: f})
	return err == nil && strings.Contains(strings.ToLower(shown), strings.ToLower(text))
}
