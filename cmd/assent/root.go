package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"runtime/debug"
	"strings"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/spf13/cobra"

	"assent.home.arpa/appliance/phone"
)

// The exit statuses; see the command's documentation.
const (
	exitBad       = 1
	exitUnclear   = 2
	exitWrongCall = 3
)

// exitError carries the exit status that an error deserves. Others mean exitUnclear: something kept the command from
// finding out.
type exitError struct {
	status int
	err    error
}

func (e *exitError) Error() string { return e.err.Error() }
func (e *exitError) Unwrap() error { return e.err }

func bad(err error) error { return &exitError{exitBad, err} }

// toldError is what whoever reads has been told already: it is not said again at the end.
type toldError struct{ error }

// app is one run of the program.
type app struct {
	in       io.Reader
	out, err io.Writer
	json     bool
	started  bool // a command accepted its arguments; errors before that are wrong usage
	answered bool // a JSON answer was printed
}

func (a *app) run(ctx context.Context, args []string) int {
	root := a.newRootCmd()
	root.SetArgs(args)
	cmd, err := root.ExecuteContextC(ctx)
	if err == nil {
		return 0
	}
	if ctx.Err() != nil && errors.Is(err, ctx.Err()) {
		err = errors.New("interrupted")
	}
	status := exitUnclear
	var exit *exitError
	switch {
	case errors.As(err, &exit):
		status = exit.status
	case !a.started:
		status = exitWrongCall
	}
	if !errors.As(err, new(toldError)) {
		for line := range strings.SplitSeq(err.Error(), "\n") { // a box's words may be in it, and must not pass for another speaker's
			fmt.Fprintln(a.err, "assent:", phone.Printable(line, false))
		}
	}
	if status == exitWrongCall {
		fmt.Fprintf(a.err, "assent: try: %s --help\n", cmd.CommandPath())
	}
	if a.json && !a.answered {
		a.printJSON(map[string]any{"error": err.Error(), "status": status})
	}
	return status
}

func (a *app) newRootCmd() *cobra.Command {
	root := &cobra.Command{
		Use:           "assent",
		Short:         "Talk to an Assent box, and look after its models and records",
		Long:          "Talk to an Assent box, and look after its models and records.\n\nExit status: 0 good, 1 the thing is bad, 2 could not tell or incomplete, 3 wrong usage.",
		SilenceErrors: true,
		SilenceUsage:  true,
		Version:       version(),
		Args:          cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return cmd.Help()
		},
		PersistentPreRun: func(*cobra.Command, []string) { a.started = true },
	}
	root.SetIn(a.in)
	root.SetOut(a.out)
	root.SetErr(a.err)
	root.PersistentFlags().BoolVar(&a.json, "json", false, "print the answer as JSON")
	root.AddCommand(
		a.newAskCmd(),
		a.newPairCmd(),
		a.newModelCmd(),
		a.newEngineCmd(),
		a.newAuditCmd(),
		a.newFlashCmd(),
	)
	return root
}

// version names this program as the Go toolchain knows it.
func version() string {
	if info, ok := debug.ReadBuildInfo(); ok {
		return info.Main.Version + " " + info.GoVersion
	}
	return "unknown"
}

// group is a command that only holds others.
func group(use, short string, children ...*cobra.Command) *cobra.Command {
	cmd := &cobra.Command{
		Use: use, Short: short,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) > 0 {
				return fmt.Errorf("unknown command %q", args[0])
			}
			return errors.New("which one?")
		},
		RunE: func(*cobra.Command, []string) error { return nil },
	}
	cmd.AddCommand(children...)
	return cmd
}

// printJSON prints v on one line. encoding/json escapes ASCII's control characters; all others that do not show themselves
// (DEL, C1, bidi, zero-width) are escaped too.
func (a *app) printJSON(v any) {
	b, err := json.Marshal(v)
	if err != nil {
		panic("assent: internal error: " + err.Error())
	}
	var line []byte
	for _, r := range string(b) {
		if unicode.IsPrint(r) {
			line = utf8.AppendRune(line, r)
			continue
		}
		for _, unit := range utf16.AppendRune(nil, r) {
			line = fmt.Appendf(line, `\u%04x`, unit)
		}
	}
	fmt.Fprintf(a.out, "%s\n", line)
	a.answered = true
}
