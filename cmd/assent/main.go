// Command assent is a person's tool for Assent: models, the engine, and what the box recorded.
//
// Every command takes --json. Exit status: 0 good, 1 the thing asked about is bad, 2 could not tell or incomplete, 3 wrong
// usage. Answers go to standard output; progress and complaints go to standard error. Text that a box, a model or a file
// brought along is printed escaped, so that it cannot command the terminal.
package main

import (
	"context"
	"io"
	"os"
	"os/signal"

	"golang.org/x/sys/unix"
)

func main() { os.Exit(run(os.Args[1:], os.Stdin, os.Stdout, os.Stderr)) }

func run(args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, unix.SIGTERM)
	defer stop()
	return (&app{in: stdin, out: stdout, err: stderr}).run(ctx, args)
}
