package main

import (
	"bufio"
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"assent.home.arpa/appliance/box"
	"assent.home.arpa/appliance/config"
	"assent.home.arpa/appliance/finger"
	"assent.home.arpa/appliance/phone"
	"assent.home.arpa/appliance/wire"
	"assent.home.arpa/inference/llama"
)

// rounds is how often each figure is taken; the median is printed.
const rounds = 5

// settle is how long the roles are left alone before their memory is read.
const settle = 5 * time.Second

// figures are printed one a line: name value unit limit. The limit begins with the side on which it lies.
type figures struct {
	out  io.Writer
	only string
}

func (f figures) wants(group string) bool { return f.only == "" || f.only == group }

func (f figures) print(name string, value float64, unit, limit string) {
	fmt.Fprintf(f.out, "%s %.3f %s %s\n", name, value, unit, limit)
}

func runBench(ctx context.Context, c console, args []string) error {
	f := newFlags("bench", c)
	ref := f.String("model", os.Getenv("MODEL"), "model id or `path` of a .gguf file (default: $MODEL, else the manifest's)")
	only := f.String("only", "", "one `group` of figures: turn or roles")
	recite := f.Bool("scripted", false, "use the scripted test model, which says too little for the turn figures")
	if err := parse(f, args); err != nil {
		return err
	}
	fig := figures{c.out, *only}
	if !fig.wants("turn") && !fig.wants("roles") {
		return usageError("-only takes turn or roles")
	}
	for _, grammar := range []bool{false, true} {
		if err := benchBox(ctx, c, fig, *ref, *recite, grammar); err != nil {
			return err
		}
	}
	return nil
}

// benchBox measures one box. Grammar is a setting of the box, so there are two.
func benchBox(ctx context.Context, c console, fig figures, ref string, recite, grammar bool) error {
	dir, err := os.MkdirTemp("", "assentsim-bench-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	s, err := start(ctx, c.err, plan{
		state: dir, listen: "127.0.0.1:0", panel: "127.0.0.1:0", model: ref, search: "practice", recite: recite, errLog: c.err,
		tune: func(c *config.Config) { c.Model.Grammar, c.Model.StepTokens, c.Model.Temperature = grammar, 96, 0 },
	})
	if err != nil {
		return err
	}
	err = func() error {
		if !grammar && fig.wants("roles") {
			if err := idle(ctx, s, fig); err != nil {
				return err
			}
		}
		if !fig.wants("turn") {
			return nil
		}
		d := demo{sim: s, out: c.err, finger: finger.Finger{Panel: hands{s.glass}}}
		who, err := d.pair(ctx)
		if err != nil {
			return err
		}
		b := bencher{sim: s, who: who}
		if err := b.decode(ctx, fig, grammar); err != nil || grammar {
			return err
		}
		return b.firstToken(ctx, fig)
	}()
	return errors.Join(err, s.stop())
}

// idle adds up the proportional set sizes (proc(5), smaps_rollup) of the roles that always run.
func idle(ctx context.Context, s *sim, fig figures) error {
	select {
	case <-time.After(settle):
	case <-ctx.Done():
		return ctx.Err()
	}
	total := 0.0
	for _, role := range []string{"gateway", "guard", "courier"} {
		pid, ok := s.set.PID(role)
		if !ok {
			return fmt.Errorf("%s is not running", role)
		}
		kib, err := pss(pid)
		if err != nil {
			return err
		}
		total += kib / 1024
	}
	fig.print("roles/idle_pss_mb", total, "MiB", "<=40")
	return nil
}

func pss(pid int) (float64, error) {
	f, err := os.Open(fmt.Sprintf("/proc/%d/smaps_rollup", pid))
	if err != nil {
		return 0, err
	}
	defer f.Close()
	lines := bufio.NewScanner(f)
	for lines.Scan() {
		if rest, ok := strings.CutPrefix(lines.Text(), "Pss:"); ok {
			return strconv.ParseFloat(strings.TrimSpace(strings.TrimSuffix(strings.TrimSpace(rest), "kB")), 64)
		}
	}
	return 0, errors.New("the kernel tells no proportional set size")
}

// errSearch says that a question which was to be answered in prose waits at the panel.
var errSearch = errors.New("the model wants to search; this question measures prose")

// bencher is a phone with a stopwatch.
type bencher struct {
	*sim
	who *phone.Identity
}

// timed is one turn as the phone saw it.
type timed struct {
	first time.Duration // from the question to the first text
	text  time.Duration // from the first text to the last
	end   wire.TurnEnd
}

func (b bencher) ask(ctx context.Context, conversation [16]byte, text string) (timed, error) {
	client, err := phone.Dial(ctx, b.address, nil)
	if err != nil {
		return timed{}, err
	}
	defer client.Close()
	if _, err := client.Hello(ctx, b.who, "", 0); err != nil {
		return timed{}, err
	}
	asked := time.Now()
	if _, err := client.Ask(b.who, conversation, text); err != nil {
		return timed{}, err
	}
	var t timed
	var first, last time.Time
	searched := false
	for {
		f, err := client.Next(ctx)
		if err != nil {
			return timed{}, err
		}
		switch f.Type {
		case wire.TypeText:
			last = time.Now()
			if first.IsZero() {
				first = last
			}
		case wire.TypeTurnEnd:
			if err := f.Decode(&t.end); err != nil {
				return timed{}, err
			}
			if searched {
				return timed{}, errSearch
			}
			t.first, t.text = first.Sub(asked), last.Sub(first)
			return t, nil
		case wire.TypePending:
			searched = true
			if _, err := client.Send(wire.TypeCancel, wire.Cancel{Conversation: hex.EncodeToString(conversation[:])}); err != nil {
				return timed{}, err
			}
		case wire.TypeError:
			var e wire.Error
			if err := f.Decode(&e); err != nil {
				return timed{}, err
			}
			return timed{}, fmt.Errorf("%s (%s)", e.Message, e.Code)
		}
	}
}

// decode compares the rate at which text arrives at the phone with the engine's own figure for the same generation.
func (b bencher) decode(ctx context.Context, fig figures, grammar bool) error {
	name, limit := "turn/decode_ratio", ">=0.95"
	if grammar {
		name, limit = "turn/decode_grammar_ratio", ">=0.90"
	}
	var ratios []float64
	for _, q := range proseQuestions() {
		if len(ratios) == rounds {
			break
		}
		t, err := b.ask(ctx, phone.NewConversation(), q)
		if errors.Is(err, errSearch) || (err == nil && (t.end.Tokens < 20 || t.text <= 0)) {
			continue // too little prose to measure
		}
		if err != nil {
			return err
		}
		engine := float64(t.end.Tokens) / t.end.DecodeMillis
		seen := float64(t.end.Tokens-1) / (float64(t.text) / float64(time.Millisecond))
		ratios = append(ratios, seen/engine)
	}
	if len(ratios) < rounds {
		return fmt.Errorf("%s: only %d of %d answers were long enough to measure", name, len(ratios), rounds)
	}
	fig.print(name, median(ratios), "ratio", limit)
	return nil
}

// proseQuestions are answered from what a model knows. A model that would rather search for one is asked the next.
func proseQuestions() []string {
	var all []string
	for _, subject := range []string{"a rainy afternoon", "a long car ride", "a birthday party", "an evening at home"} {
		all = append(all, "Give me three ideas for "+subject+" with children.", "Explain in four sentences why "+subject+" can be fun.", "Write a letter of thanks to a friend for "+subject+".")
	}
	return all
}

// firstToken compares the wait for the first word of a second turn with that of the first, in a conversation that begins
// with about a thousand tokens and an engine that has read nothing yet.
func (b bencher) firstToken(ctx context.Context, fig figures) error {
	long := "Here is a list.\n" + strings.Repeat("Item: a small brown box with a label, kept on the second shelf of the cellar.\n", 55) +
		"In one sentence, what is this a list of?"
	var ratios []float64
	for range rounds {
		if err := b.restartEngine(ctx); err != nil {
			return err
		}
		conversation := phone.NewConversation()
		cold, err := b.ask(ctx, conversation, long)
		if err != nil {
			return err
		}
		warm, err := b.ask(ctx, conversation, "Say in one sentence what colour the box is.")
		if err != nil {
			return err
		}
		ratios = append(ratios, float64(warm.first)/float64(cold.first))
	}
	fig.print("turn/second_ttft_ratio", median(ratios), "ratio", "<=0.12")
	return nil
}

func (b bencher) restartEngine(ctx context.Context) error {
	pid, ok := b.set.PID("model")
	if !ok {
		return errors.New("the engine is not running")
	}
	if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
		return err
	}
	client, err := llama.New(llama.Options{Socket: box.At(b.config.Paths.Runtime).Model, Dialect: b.config.Model.Dialect})
	if err != nil {
		return err
	}
	loading, cancel := context.WithTimeout(ctx, modelTimeout)
	defer cancel()
	return poll(loading, func() bool {
		now, ok := b.set.PID("model")
		if !ok || now == pid {
			return false
		}
		_, err := client.Info(loading)
		return err == nil
	})
}

func median(v []float64) float64 {
	slices.Sort(v)
	return v[len(v)/2]
}
