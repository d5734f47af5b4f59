// Command boot boots the image that people flash, in an emulator, and does with it what people do: it writes a card with assent
// flash, switches the box on, pairs a phone, asks, reads the card on the glass, presses the simulated buttons, is answered with
// citations, copies the record onto a stick and verifies it, looks from inside each unit for a way out, records every frame that
// the box sends, reads the record over a cable, and pulls the plug. `make boot-test` runs it, after make image.
//
// The tested card is the image but for one file: the kernel's, which in the test variant starts the test's agent from a disk beside
// the card (packages layer, agent). That this is the only difference is tested too, and that the image as it is shipped takes no
// notice of such a disk.
//
// Pulling the plug means that the emulator is killed. What the box was told is durable is then in this machine's memory; what it
// had kept to itself is gone, as on a card. A card may also lose or tear what was on its way: that is for the second machine, of
// package cuts.
//
// What is left behind in bin/boot-test: the consoles and journals of all starts, pictures of the glass and of the phone page, the
// captures, the card, the copy on the stick. Figures go to standard output, one line each: name value unit limit.
//
// It needs qemu-system-aarch64, mke2fs and a python with cryptography; .ci/setup boot installs what is missing.
//
// The exit code is 0 if all is as it should be, 1 if not, 2 if it could not be tried, and 3 after wrong usage.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"
	"golang.org/x/sys/unix"

	"assent.home.arpa/image/emulator"
)

func main() { os.Exit(run(os.Args[1:], os.Stdout, os.Stderr)) }

// options are what a run may be told.
type options struct {
	image, dir string
	limit      time.Duration
	idle       time.Duration
	only       string
}

func run(args []string, stdout, stderr io.Writer) int {
	var o options
	flags := flag.NewFlagSet("boot", flag.ContinueOnError)
	flags.SetOutput(stderr)
	flags.StringVar(&o.image, "image", "bin/image", "the `folder` of make image")
	flags.StringVar(&o.dir, "out", "bin/boot-test", "leave what is to be kept in this `folder`")
	flags.DurationVar(&o.limit, "limit", 25*time.Minute, "end everything after this `time`")
	flags.DurationVar(&o.idle, "idle", 2*time.Minute, "listen to the idle box for this `time`")
	flags.StringVar(&o.only, "only", "", "do only this `part`: job, cuts, starts, shipped, slots, faults or cable")
	if err := flags.Parse(args); err != nil || flags.NArg() > 0 || o.only != "" && parts()[o.only] == nil {
		return 3
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, unix.SIGTERM)
	defer stop()
	ctx, cancel := context.WithTimeout(ctx, o.limit)
	defer cancel()
	err := try(ctx, o, stdout, stderr)
	switch {
	case err == nil:
		return 0
	case errors.Is(err, emulator.ErrUntried):
		fmt.Fprintln(stderr, "boot-test:", err)
		return 2
	}
	fmt.Fprintln(stderr, "boot-test:", err)
	return 1
}

// part is one part of the test. It notes itself what is wrong; an error means that it could not go on.
type part func(ctx context.Context, t *test, o options) error

func parts() map[string]part {
	return map[string]part{"job": job, "cuts": cutsPart, "starts": starts, "shipped": shipped, "slots": rollback, "faults": faults, "cable": cablePart}
}

// try prepares everything and does the parts.
func try(ctx context.Context, o options, stdout, stderr io.Writer) error {
	t := &test{image: o.image, dir: o.dir, out: stdout, log: stderr, began: time.Now()}
	clean, err := t.begin(ctx)
	if err != nil {
		return err
	}
	defer clean()
	if o.only != "cuts" { // which have a machine of their own
		if err := t.prepare(ctx); err != nil {
			return err
		}
	}
	// The job has the cuts made while the box is left alone, if it comes so far.
	for _, name := range []string{"job", "cuts", "starts"} {
		if name == "cuts" && t.cut {
			continue
		}
		if err := t.part(ctx, name, o); err != nil {
			return err
		}
	}
	// What is left measures nothing, so that two machines may share the processor.
	var rest errgroup.Group
	rest.SetLimit(2)
	for _, name := range []string{"slots", "shipped", "faults", "cable"} {
		rest.Go(func() error { return t.part(ctx, name, o) })
	}
	if err := rest.Wait(); err != nil {
		return err
	}
	fmt.Fprintf(stderr, "boot-test: %d things as they should be, %d not, in %v; what was seen is in %s\n",
		t.passed, len(t.wrong), time.Since(t.began).Round(time.Second), t.dir)
	if len(t.wrong) > 0 {
		return errors.New("not as it should be:\n  " + strings.Join(t.wrong, "\n  "))
	}
	return nil
}

// part does the part of that name, if it is wanted. An error means that nothing can be tried.
func (t *test) part(ctx context.Context, name string, o options) error {
	if o.only != "" && o.only != name {
		return nil
	}
	err := parts()[name](ctx, t, o)
	if errors.Is(err, emulator.ErrUntried) {
		return err
	}
	if err != nil {
		t.step(name, err)
	}
	return nil
}

// begin makes the folders and the tools of a run.
func (t *test) begin(ctx context.Context) (clean func(), err error) {
	base, err := os.UserCacheDir()
	if err != nil {
		return nil, fmt.Errorf("%w: %v; set XDG_CACHE_HOME", emulator.ErrUntried, err)
	}
	t.cache = filepath.Join(base, "assent", "hil") // the same kernel as the hardware test's
	unlock, err := emulator.Alone(t.dir)
	if err != nil {
		return nil, err
	}
	if t.sockets, err = os.MkdirTemp("", "assent-boot-"); err != nil {
		return nil, fmt.Errorf("%w: %v", emulator.ErrUntried, err)
	}
	clean = func() {
		os.RemoveAll(t.sockets)
		unlock()
	}
	old, err := filepath.Glob(filepath.Join(t.dir, "*"))
	if err != nil {
		return clean, err
	}
	for _, file := range old {
		if err := os.RemoveAll(file); err != nil {
			return clean, err
		}
	}
	if out, err := exec.CommandContext(ctx, ".ci/python").Output(); err == nil {
		t.python = strings.TrimSpace(string(out))
	}
	t.tool = filepath.Join(t.dir, "assent")
	if out, err := exec.CommandContext(ctx, "go", "build", "-trimpath", "-o", t.tool, "./cmd/assent").CombinedOutput(); err != nil {
		return clean, fmt.Errorf("%w: assent does not build: %w\n%s", emulator.ErrUntried, err, out)
	}
	return clean, t.serve(ctx)
}
