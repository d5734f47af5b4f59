package main

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"assent.home.arpa/appliance/audit"
	"assent.home.arpa/appliance/audit/story"
)

func (a *app) newAuditShowCmd() *cobra.Command {
	var flags auditFlags
	var filter storyFilter
	var records, csv bool
	var inv string
	cmd := &cobra.Command{
		Use:   "show PATH",
		Short: "Print a log as a timeline, and the verdict on it",
		Long: "Print the log in the directory PATH as a timeline of what happened, each event on a line, and the verdict on the log at\n" +
			"the end. Until the verdict nothing vouches for what is printed. Events stand in the order in which they began, which is that\n" +
			"of the record and not of the clock: where the box's clock went back, a line says so. The last column is what\n" +
			"assent audit why takes. Times are this computer's; \"about\" is counted back from when the box's clock was set.\n\n" +
			"--records prints every record on a line of its own, --inv the records of one call in full. --json prints one object a\n" +
			"line, in the order in which events ended, the verdict last. --csv prints a table for spreadsheets, and the verdict to standard error.\n" +
			"Text that a model or another machine wrote is escaped wherever it could act.",
		Example: "  assent audit show DIR --since 2026-11-30 --outcome denied\n  assent audit show DIR --csv > record.csv",
		Args:    takes("PATH"),
		RunE: func(cmd *cobra.Command, args []string) error {
			o, err := flags.options()
			if err != nil {
				return err
			}
			if err := filter.parse(); err != nil {
				return &exitError{exitWrongCall, err}
			}
			switch {
			case csv && a.json:
				return &exitError{exitWrongCall, errors.New("--csv and --json cannot both be")}
			case (records || inv != "") && (csv || filter.any()):
				return &exitError{exitWrongCall, errors.New("--csv and the filters are for events, and records are none")}
			case records || inv != "":
				return a.showRecords(cmd, args[0], o, inv)
			case csv:
				return a.showCSV(cmd, args[0], o, &filter)
			}
			return a.showStories(cmd, args[0], o, &filter)
		},
	}
	flags.register(cmd)
	filter.register(cmd)
	cmd.Flags().BoolVar(&records, "records", false, "print records rather than events")
	cmd.Flags().BoolVar(&csv, "csv", false, "print a table for spreadsheets (RFC 4180)")
	cmd.Flags().StringVar(&inv, "inv", "", "the records of the call with this id (32 hex digits), in full")
	for flag, values := range map[string][]string{"outcome": strings.Split(words(story.Outcomes()), ", "), "kind": strings.Split(words(story.Kinds()), ", ")} {
		if err := cmd.RegisterFlagCompletionFunc(flag, cobra.FixedCompletions(values, cobra.ShellCompDirectiveNoFileComp)); err != nil {
			panic("assent: internal error: " + err.Error()) // the flags are there
		}
	}
	return cmd
}

// tell reads the log in path as stories.
func (a *app) tell(cmd *cobra.Command, path string, o audit.VerifyOptions, each func(story.Story) error) (finding, error) {
	t := story.New(each)
	o.Visit = t.Add
	r, err := verifyDir(cmd.Context(), path, o)
	if err != nil {
		return r, err
	}
	return r, t.Close()
}

func (a *app) showStories(cmd *cobra.Command, path string, o audit.VerifyOptions, filter *storyFilter) error {
	var lines timeline
	r, err := a.tell(cmd, path, o, func(s story.Story) error {
		switch {
		case !filter.admits(s):
		case a.json:
			a.printJSON(s)
		default:
			lines.add(s)
		}
		return nil
	})
	if err != nil {
		return err
	}
	lines.print(a.out)
	a.printUnmatched(filter)
	if a.json {
		a.printJSON(verdictOf(r))
		return reportError(r)
	}
	if filter.undated > 0 {
		fmt.Fprintf(a.out, "%s left out, since the box did not know the date\n", was(filter.undated, "event"))
	}
	a.printReport(r)
	return reportError(r)
}

// printUnmatched says that nothing was found, and where a name may be wrong, which ones there are.
func (a *app) printUnmatched(f *storyFilter) {
	if f.matched || !f.any() {
		return
	}
	fmt.Fprintln(a.err, "assent: no event matches")
	if f.capability != "" && !f.known[f.capability] {
		known := "none of any other"
		if len(f.known) > 0 {
			known = words(slices.Sorted(maps.Keys(f.known)))
		}
		fmt.Fprintf(a.err, "assent: no call was of %s; in this log there are: %s\n", quote([]byte(f.capability)), known)
	}
}

func (a *app) showCSV(cmd *cobra.Command, path string, o audit.VerifyOptions, filter *storyFilter) error {
	table := story.NewCSV(a.out)
	r, err := a.tell(cmd, path, o, func(s story.Story) error {
		if !filter.admits(s) {
			return nil
		}
		return table.Write(s)
	})
	if err == nil {
		err = table.Flush()
	}
	if err != nil {
		return err
	}
	a.printUnmatched(filter)
	writeReport(a.err, r)
	return reportError(r)
}

func (a *app) showRecords(cmd *cobra.Command, path string, o audit.VerifyOptions, inv string) error {
	want, err := parseInv(inv)
	if err != nil {
		return err
	}
	matched := false
	o.Visit = func(e audit.Entered) error {
		if inv == "" || e.Inv == want {
			matched = true
			a.printRecord(e, inv != "")
		}
		return nil
	}
	r, err := verifyDir(cmd.Context(), path, o)
	if err != nil {
		return err
	}
	if a.json {
		a.printJSON(verdictOf(r))
	} else {
		a.printReport(r)
	}
	if err := reportError(r); err != nil {
		return err
	}
	if !matched {
		return fmt.Errorf("no record is of the call %s", inv)
	}
	return nil
}

// storyFilter picks stories.
type storyFilter struct {
	since, until string
	capability   string
	outcome      string
	kind         string

	from, to time.Time // zero for no limit
	undated  uint64    // left out for want of a date
	matched  bool
	known    map[string]bool // capabilities that were met
}

// maxKnown bounds how many capabilities are remembered; no box has so many.
const maxKnown = 64

func (f *storyFilter) register(cmd *cobra.Command) {
	cmd.Flags().StringVar(&f.since, "since", "", "only events from this date on (2026-11-30, or 2026-11-30T18:00)")
	cmd.Flags().StringVar(&f.until, "until", "", "only events up to this date, a day included")
	cmd.Flags().StringVar(&f.capability, "capability", "", "only calls of this capability, such as web.search")
	cmd.Flags().StringVar(&f.outcome, "outcome", "", "only events that ended so: "+words(story.Outcomes()))
	cmd.Flags().StringVar(&f.kind, "kind", "", "only events of this kind: "+words(story.Kinds()))
}

// any reports whether there is a filter at all.
func (f *storyFilter) any() bool {
	return f.since != "" || f.until != "" || f.capability != "" || f.outcome != "" || f.kind != ""
}

func words[S ~string](all []S) string {
	var b strings.Builder
	for i, s := range all {
		if i > 0 {
			b.WriteString(", ")
		}
		b.WriteString(string(s))
	}
	return b.String()
}

func (f *storyFilter) parse() (err error) {
	if f.from, _, err = parseDate("--since", f.since); err != nil {
		return err
	}
	if _, f.to, err = parseDate("--until", f.until); err != nil {
		return err
	}
	if f.outcome != "" && !slices.Contains(story.Outcomes(), story.Outcome(f.outcome)) {
		return fmt.Errorf("--outcome takes one of: %s", words(story.Outcomes()))
	}
	if f.kind != "" && !slices.Contains(story.Kinds(), story.Kind(f.kind)) {
		return fmt.Errorf("--kind takes one of: %s", words(story.Kinds()))
	}
	f.known = map[string]bool{}
	return nil
}

// parseDate reads a date or a time of this computer's, and returns when it begins and ends: a day is its 24 hours.
func parseDate(flag, s string) (begins, ends time.Time, err error) {
	if s == "" {
		return begins, ends, nil
	}
	if t, err := time.ParseInLocation(time.DateOnly, s, time.Local); err == nil {
		return t, t.AddDate(0, 0, 1), nil
	}
	for _, layout := range []string{"2006-01-02T15:04", "2006-01-02T15:04:05"} {
		if t, err := time.ParseInLocation(layout, s, time.Local); err == nil {
			return t, t, nil
		}
	}
	if t, err := time.Parse(time.RFC3339, s); err == nil {
		return t, t, nil
	}
	return begins, ends, fmt.Errorf("%s takes a date such as 2026-11-30 or 2026-11-30T18:00", flag)
}

func (f *storyFilter) admits(s story.Story) bool {
	if s.Capability != "" && len(f.known) < maxKnown {
		f.known[s.Capability] = true
	}
	if !f.wants(s) {
		return false
	}
	f.matched = true
	return true
}

func (f *storyFilter) wants(s story.Story) bool {
	switch {
	case f.capability != "" && s.Capability != f.capability,
		f.outcome != "" && string(s.Outcome) != f.outcome,
		f.kind != "" && string(s.Kind) != f.kind:
		return false
	case f.from.IsZero() && f.to.IsZero():
		return true
	case s.When.Clock == story.ClockUnset:
		f.undated++
		return false
	}
	at := time.UnixMilli(s.When.Unix)
	return !at.Before(f.from) && (f.to.IsZero() || at.Before(f.to))
}
