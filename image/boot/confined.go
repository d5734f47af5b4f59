package main

import (
	"context"
	"fmt"
	"strings"
	"time"

	"assent.home.arpa/image/boot/control"
)

// probe is where the program that looks for ways out is, on the test's own disk.
const probe = "/run/assent-layer/probe"

// probeLimit bounds a look from inside all units: each is stopped and started twice.
const probeLimit = 8 * time.Minute

// confined looks from inside each unit for a way out, after it has made sure that what it tries works outside them.
func (t *test) confined(ctx context.Context, b *box) error {
	for _, what := range []string{"free", "all"} {
		answer, err := b.agent.Do(ctx, control.Request{Run: &control.Command{Args: []string{probe, what}, Timeout: probeLimit}})
		if err != nil {
			return err
		}
		if err := t.write("probe-"+what+".txt", answer.Output); err != nil {
			return err
		}
		if wrong := suspect(what == "free", answer.Output); len(wrong) > 0 || answer.Exit > 1 {
			return fmt.Errorf("probe %s: status %d: %s", what, answer.Exit, strings.Join(wrong, "; "))
		}
		t.say(fmt.Sprintf("probe %s: %d attempts", what, strings.Count(answer.Output, "\n")))
	}
	_, err := b.ready(ctx, roles()...)
	return err
}

// suspect are the lines of a probe that say something else than they should. Free of a sandbox all that is tried must work, but
// that there is no shell to start.
func suspect(free bool, text string) []string {
	const most = 8
	var lines []string
	for line := range strings.Lines(text) {
		fields := strings.Split(strings.TrimSpace(line), "\t")
		good := len(fields) > 2 && (fields[1] == "refused" || fields[1] == "needed")
		if free {
			good = len(fields) > 2 && (fields[1] == "open" || fields[2] == "start a shell")
		}
		if !good && len(lines) < most {
			lines = append(lines, strings.Join(fields, " "))
		}
	}
	return lines
}
