// Assentsim is a whole box on a PC: every role in a process of its own, a drawn panel, a real model.
//
//	assentsim run     the box, until control-C; prints the addresses of the phone page and of the panel
//	assentsim demo    the main job unattended, with its transcript; fails if any step fails
//	assentsim bench   figures, one line each: name value unit limit
//
// It differs from the box's own program in three things, none of which the box's program contains: the panel is drawn and
// its buttons are worked on this machine, the courier may connect to this machine (where the practice site is), and the
// model may be a script.
//
// Exit status: 0 good, 1 failed, 2 could not tell, 3 wrong usage.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"

	"assent.home.arpa/appliance/phone"
)

func main() { os.Exit(run(os.Args[1:], os.Stdin, os.Stdout, os.Stderr)) }

const usage = `usage: assentsim run | demo | bench   [flags]

  assentsim run     a whole box on this PC, until control-C; prints the addresses of the phone page and of the panel
  assentsim demo    the main job unattended, with its transcript; fails if any step fails
  assentsim bench   figures, one line each: name value unit limit

assentsim run -h (demo -h, bench -h) lists the flags.
`

// console is where a command talks to a person.
type console struct {
	in       *os.File
	out, err io.Writer
}

func run(args []string, stdin *os.File, stdout, stderr io.Writer) int {
	commands := map[string]func(context.Context, console, []string) error{
		"run": runBox, "demo": runDemo, "bench": runBench,
		"role": runRole, // one role of a running simulation; started by the others
	}
	if len(args) > 0 && slices.Contains([]string{"help", "-h", "-help", "--help"}, args[0]) {
		fmt.Fprint(stdout, usage)
		return 0
	}
	if len(args) == 0 || commands[args[0]] == nil {
		fmt.Fprint(stderr, usage)
		return 3
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	err := commands[args[0]](ctx, console{stdin, stdout, stderr}, args[1:])
	var wrong usageError
	switch {
	case err == nil, errors.Is(err, flag.ErrHelp):
		return 0
	case errors.As(err, &wrong):
		complain(stderr, err)
		fmt.Fprint(stderr, usage)
		return 3
	case args[0] != "demo" && ctx.Err() != nil:
		return 0
	}
	complain(stderr, err)
	return 1
}

// complain prints an error; the box's words may be in it.
func complain(w io.Writer, err error) {
	for line := range strings.SplitSeq(err.Error(), "\n") {
		fmt.Fprintln(w, "assentsim:", phone.Printable(line, false))
	}
}

type usageError string

func (e usageError) Error() string { return string(e) }

// newFlags returns a flag set that reports wrong usage as an error.
func newFlags(name string, c console) *flag.FlagSet {
	f := flag.NewFlagSet("assentsim "+name, flag.ContinueOnError)
	f.SetOutput(c.err)
	return f
}

func parse(f *flag.FlagSet, args []string) error {
	if err := f.Parse(args); errors.Is(err, flag.ErrHelp) {
		return err
	} else if err != nil {
		return usageError(err.Error())
	}
	if f.NArg() > 0 {
		return usageError(fmt.Sprintf("unexpected argument %q", f.Arg(0)))
	}
	return nil
}

func newLog(w io.Writer) *slog.Logger { return slog.New(slog.NewTextHandler(w, nil)) }
