// Command peers measures the audit log beside what it is compared with, and prints one line a figure: name, value, unit,
// limit. Everything that is compared runs in turns in one process, on one file system, in alternating order, so that both
// sides meet the same neighbours; a figure is a ratio of medians unless its unit says otherwise.
//
// It is a module of its own, so that nothing in it is ever linked into the box or in the way of building it. Each peer is
// here for one question:
//
//   - modernc.org/sqlite: would a table in the database that the box has anyway be as fast?
//   - go.etcd.io/bbolt: would a key-value store?
//   - go.etcd.io/etcd/server/v3/storage/wal: what does the write-ahead log take that many clusters trust, which signs nothing?
//   - github.com/fxamacker/cbor/v2: what does merely decoding a log take?
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"slices"
	"time"
)

func main() { os.Exit(run(os.Args[1:], os.Stdout, os.Stderr)) }

// figures are printed one a line. The limit begins with the side on which it lies; "-" is none.
type figures struct{ out io.Writer }

func (f figures) print(name string, value float64, unit, limit string) {
	fmt.Fprintf(f.out, "audit/%s %.3f %s %s\n", name, value, unit, limit)
}

func run(args []string, stdout, stderr io.Writer) int {
	flags := flag.NewFlagSet("peers", flag.ContinueOnError)
	flags.SetOutput(stderr)
	parent := flags.String("dir", "", "measure in a new directory below `path` (default: the system's for temporary files)")
	if err := flags.Parse(args); err != nil || flags.NArg() > 0 {
		return 3
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	dir, err := os.MkdirTemp(*parent, "assent-audit-bench-")
	if err == nil {
		defer os.RemoveAll(dir)
		err = measure(ctx, dir, figures{stdout})
	}
	if err != nil {
		fmt.Fprintln(stderr, "peers:", err)
		return 2
	}
	return 0
}

func measure(ctx context.Context, dir string, f figures) error {
	for _, group := range []func(context.Context, string, figures) error{barriers, software, peers, recovery, verifying} {
		sub, err := os.MkdirTemp(dir, "")
		if err != nil {
			return err
		}
		if err := group(ctx, sub, f); err != nil {
			return err
		}
		if err := os.RemoveAll(sub); err != nil {
			return err
		}
	}
	return nil
}

// times collects how long one thing took, over the rounds.
type times []time.Duration

func (t times) at(of float64) float64 {
	sorted := slices.Sorted(slices.Values(t))
	return float64(sorted[int(of*float64(len(sorted)-1))])
}

// clock adds the time that do takes.
func (t *times) clock(do func() error) error {
	start := time.Now()
	err := do()
	*t = append(*t, time.Since(start))
	return err
}

// inTurn runs all of the things, and begins with another in each round.
func inTurn(round int, things ...func() error) error {
	for i := range things {
		if err := things[(round+i)%len(things)](); err != nil {
			return err
		}
	}
	return nil
}

func (t times) sum() float64 {
	var all time.Duration
	for _, d := range t {
		all += d
	}
	return float64(all)
}

func median(v []float64) float64 { return slices.Sorted(slices.Values(v))[len(v)/2] }
