package main

import (
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"assent.home.arpa/appliance/audit"
)

func (a *app) newAuditVerifyCmd() *cobra.Command {
	var flags auditFlags
	cmd := &cobra.Command{
		Use:   "verify PATH",
		Short: "Check that a log is whole and was not altered",
		Long: "Check that the log in the directory PATH is whole and was not altered. PATH is the log itself, a copy that was exported,\n" +
			"or the state directory of a box or of the simulator.\n\n" +
			"Exit status: 0 intact, 1 altered, 2 incomplete (torn, cut short, rolled back or withheld) or unreadable.\n" +
			"A log that was rolled back to an earlier state looks intact from inside: compare the head with the code that the box\n" +
			"shows, give --head a code that it showed before, or give --anchor what a phone or an export kept; and compare the root key\n" +
			"with the one noted when the box was set up.",
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			o, err := flags.options()
			if err != nil {
				return err
			}
			r, err := verifyDir(cmd.Context(), args[0], o)
			if err != nil {
				return err
			}
			if a.json {
				a.printJSON(verdictOf(r))
			} else {
				a.printReport(r)
			}
			return reportError(r)
		},
	}
	flags.register(cmd)
	return cmd
}

func (a *app) printReport(r audit.Report) { writeReport(a.out, r) }

// writeReport says in words what verifying found.
func writeReport(w io.Writer, r audit.Report) {
	fmt.Fprintf(w, "%s: %s under %s in %s, %s\n", r.Status, plural(r.Records, "record"), plural(r.Seals, "seal"),
		plural(uint64(r.Segments), "segment"), plural(uint64(r.Boots), "start"))
	switch r.Status {
	case audit.Altered:
		fmt.Fprintf(w, "  something is not as it was written: it was changed afterwards, or the storage spoiled it\n")
	case audit.Incomplete:
		fmt.Fprintf(w, "  something is missing; nothing proves that what is there was altered\n")
	}
	if r.Problem != nil {
		fmt.Fprintf(w, "  %s\n", r.Problem)
	}
	fmt.Fprintf(w, "  head %s (record %d): compare it with the code on the box's panel\n", r.Head.Code(), r.Head.Seq)
	fmt.Fprintf(w, "  root %s: compare it with the key noted when the box was set up\n", r.Root)
	for _, k := range r.Anchors {
		fmt.Fprintf(w, "  seal of record %d, kept elsewhere: %s\n", k.Seq, k.State)
	}
	if r.Pruned > 0 {
		fmt.Fprintf(w, "  %s pruned, as the log says: it begins with record %d\n", was(uint64(r.Pruned), "segment"), r.First)
	}
	if n := r.Redacted + r.Withheld; n > 0 {
		fmt.Fprintf(w, "  %s removed, %d of them without a record that says so\n", was(uint64(n), "literal text"), r.Withheld)
	}
	if r.Unproven > 0 {
		fmt.Fprintf(w, "  %s after the last seal never acknowledged, which prove nothing\n", was(r.Unproven, "record"))
	}
	for _, o := range r.Open {
		fmt.Fprintf(w, "  call %s began and no outcome is recorded\n", o.Inv)
	}
}

// plural is a number of things.
func plural(n uint64, thing string) string {
	if n == 1 {
		return "1 " + thing
	}
	return fmt.Sprintf("%d %ss", n, thing)
}

func was(n uint64, thing string) string {
	if n == 1 {
		return plural(n, thing) + " was"
	}
	return plural(n, thing) + " were"
}
