package main

import (
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"assent.home.arpa/appliance/audit"
	"assent.home.arpa/appliance/audit/stats"
	"assent.home.arpa/appliance/audit/story"
	"assent.home.arpa/capabilities"
)

func (a *app) newAuditStatsCmd() *cobra.Command {
	var flags auditFlags
	var corpus string
	cmd := &cobra.Command{
		Use:   "stats PATH",
		Short: "Count what became of what the model proposed, and how well it chose",
		Long: "Count, from the log in the directory PATH alone, what became of what the model proposed, for each capability:\n" +
			"  offered   questions under which the model could have chosen it\n" +
			"  proposed  calls that the model asked for, of which one question may lead to several\n" +
			"  denied    somebody said no\n" +
			"  approved  somebody at the box gave the press\n" +
			"  invoked   the execution was promised and sealed\n" +
			"  accepted  the other side took the call, or it was done\n" +
			"  observed  a look found the world as it was to be, or not so\n" +
			"  final     nothing more is to come\n\n" +
			"--corpus FILE judges how well the model chose: FILE is JSON with a version and cases, each with a question and the wire\n" +
			"name of the capability that is expected first, or \"none\". Questions are recognised by their digests.\n\n" +
			"Exit status: that of the log, as for assent audit verify.",
		Example: "  assent audit stats DIR\n  assent audit stats DIR --corpus questions.json",
		Args:    takes("PATH"),
		RunE: func(cmd *cobra.Command, args []string) error {
			o, err := flags.options()
			if err != nil {
				return err
			}
			judged, err := readCorpus(corpus)
			if err != nil {
				return err
			}
			c := stats.New(judged)
			o.Visit = c.Add
			r, err := verifyDir(cmd.Context(), args[0], o)
			if err != nil {
				return err
			}
			counted := c.Report()
			if a.json {
				a.printJSON(struct {
					stats.Report
					Log verdict `json:"log"`
				}{counted, verdictOf(r)})
				return reportError(r)
			}
			a.printCounts(counted)
			if counted.Corpus != nil {
				a.printCorpus(counted.Corpus)
			}
			fmt.Fprintln(a.out)
			a.printReport(r)
			return reportError(r)
		},
	}
	flags.register(cmd)
	cmd.Flags().StringVar(&corpus, "corpus", "", "a file of questions and the capability that each should lead to")
	return cmd
}

func readCorpus(path string) (*stats.Corpus, error) {
	if path == "" {
		return nil, nil
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("--corpus: %w", err)
	}
	defer f.Close()
	c, err := stats.ReadCorpus(f)
	if err != nil {
		return nil, bad(fmt.Errorf("--corpus %q: %w", path, err))
	}
	return c, nil
}

func (a *app) printCounts(r stats.Report) {
	w := tabwriter.NewWriter(a.out, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(w, "offered\tproposed\tdenied\tapproved\tinvoked\taccepted\tobserved\tfinal\t  ")
	for _, c := range r.Capabilities {
		name := "(does not exist)"
		if c.Name != "" {
			name = capabilities.WireName(c.Name, c.Version)
		}
		fmt.Fprintf(w, "%d\t%d\t%d\t%d\t%d\t%d\t%d\t%d\t  %s\n",
			c.Offered, c.Proposed, c.Denied, c.Approved, c.Invoked, c.Accepted, c.Observed, c.Final, name)
	}
	w.Flush()
	fmt.Fprintf(a.out, "\n%s, %s\n", plural(r.Turns, "question"), plural(r.Proposals, "proposal"))
	counts(a.out, "how they ended", r.Outcomes)
	counts(a.out, "refused at the stage", r.Refusals)
	counts(a.out, "claimed by the gateway", r.Claims)
	counts(a.out, "cards on the panel", r.Presses.Outcomes)
	if r.Presses.Outcomes[audit.Approved.String()] > 0 {
		fmt.Fprintf(a.out, "  from the last page to the press: %s (median)\n", r.Presses.Median.Round(10*time.Millisecond))
	}
	share(a.out, "model calls that parsed and validated", r.Structured)
	if r.Suppressed > 0 {
		fmt.Fprintf(a.out, "  %s too many to keep, and not counted here\n", was(r.Suppressed, "record"))
	}
}

func counts(w io.Writer, what string, n map[string]uint64) {
	var parts []string
	for _, k := range slices.Sorted(maps.Keys(n)) {
		parts = append(parts, fmt.Sprintf("%d %s", n[k], strings.ReplaceAll(k, "_", " ")))
	}
	if len(parts) > 0 {
		fmt.Fprintf(w, "  %s: %s\n", what, strings.Join(parts, ", "))
	}
}

func share(w io.Writer, what string, s stats.Share) {
	if p, ok := s.Percent(); ok {
		fmt.Fprintf(w, "  %s: %d of %d (%.1f %%)\n", what, s.Good, s.Of, p)
	}
}

func (a *app) printCorpus(r *stats.CorpusReport) {
	fmt.Fprintf(a.out, "\nagainst the corpus %s (sha256 %s)\n", story.Printable([]byte(r.Version)), r.Digest)
	fmt.Fprintf(a.out, "  %d of its %s asked\n", r.Asked, was(uint64(r.Questions), "question"))
	share(a.out, "the expected capability was chosen first", r.Selection)
	share(a.out, "model calls that parsed and validated", r.Structured)
	for _, w := range r.Wrong {
		fmt.Fprintf(a.out, "  wrong: “%s” led to %s rather than %s, %s\n", story.Printable([]byte(w.Question)), w.Chosen, w.Expected, plural(w.Times, "time"))
	}
	for _, q := range r.Never {
		fmt.Fprintf(a.out, "  never asked: “%s”\n", story.Printable([]byte(q)))
	}
}
