package main

import (
	"errors"
	"fmt"
	"io/fs"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/spf13/cobra"

	"assent.home.arpa/appliance/audit"
	"assent.home.arpa/appliance/audit/story"
)

func (a *app) newAuditWhyCmd() *cobra.Command {
	var flags auditFlags
	var show pictures
	var details bool
	cmd := &cobra.Command{
		Use:   "why PATH ID",
		Short: "Explain one event of a log, from the question to the outcome",
		Long: "Explain in plain words one event of the log in the directory PATH: who asked, what the model wrote, which rule asked for\n" +
			"a press, what the panel showed, who decided and when, what was sent and what came back. Each step names the records\n" +
			"that prove it; --details adds digests and numbers.\n\n" +
			"ID is a call's id (32 hex digits), the beginning of one (4 or more), or the number of any of its records, such as #12.\n" +
			"The panel's pictures are drawn on a terminal, or where --picture is given; --png DIR writes them as files.\n\n" +
			"Exit status: that of the log, as for assent audit verify; 2 where there is no such event.",
		Example: "  assent audit why DIR '#12'\n  assent audit why DIR ca00 --details",
		Args:    takes("PATH", "ID"),
		RunE: func(cmd *cobra.Command, args []string) error {
			o, err := flags.options()
			if err != nil {
				return err
			}
			wanted, err := parseEvent(args[1])
			if err != nil {
				return &exitError{exitWrongCall, err}
			}
			log, err := openLog(args[0])
			if err != nil {
				return err
			}
			found, r, err := find(cmd, log, o, wanted)
			if err != nil {
				return err
			}
			return a.explain(found, r, &show, details)
		},
	}
	flags.register(cmd)
	show.register(cmd)
	cmd.Flags().BoolVar(&details, "details", false, "print digests and numbers too")
	return cmd
}

// event is what a person asks for: a call by its id or the beginning of it, or any event by a record's number. Digits alone
// may be both, and are a number first.
type event struct {
	text   string
	prefix string // lower-case hex digits, or ""
	seq    audit.Seq
	number bool
}

func parseEvent(s string) (event, error) {
	e := event{text: s}
	digits, marked := strings.CutPrefix(s, "#")
	if n, err := strconv.ParseUint(digits, 10, 64); err == nil && len(digits) < 20 {
		e.seq, e.number = audit.Seq(n), true
	}
	if !marked && len(s) >= 4 && len(s) <= 32 && strings.Trim(strings.ToLower(s), "0123456789abcdef") == "" {
		e.prefix = strings.ToLower(s)
	}
	if !e.number && e.prefix == "" {
		return e, errors.New("an event is named by 4 to 32 hex digits of its id, or by a record's number such as #12")
	}
	return e, nil
}

// search looks for an event while a log is read.
type search struct {
	event
	record *audit.Entered // with the number
	call   *story.Story   // that the record is of
	other  *story.Story   // or another event
	begin  []story.Story  // calls whose ids begin with the prefix, at most two: more than one is too many
}

func (s *search) visit(e audit.Entered) {
	if s.number && e.Seq == s.seq {
		s.record = &e
	}
}

// told keeps what may be the event. A story is told after its records were seen.
func (s *search) told(t story.Story) {
	spans := s.record != nil && t.First <= s.seq && s.seq <= t.Last
	switch {
	case t.Kind != story.KindCall:
		if spans {
			s.other = &t
		}
	case spans && t.ID == s.record.Inv.String():
		s.call = &t
	case s.prefix != "" && strings.HasPrefix(t.ID, s.prefix) && len(s.begin) < 2:
		if len(s.begin) == 0 || s.begin[0].ID != t.ID {
			s.begin = append(s.begin, t)
		}
	}
}

// result is the story that was meant, or nil.
func (s *search) result() (*story.Story, error) {
	switch {
	case s.call != nil:
		return s.call, nil
	case s.other != nil:
		return s.other, nil
	case len(s.begin) == 1:
		return &s.begin[0], nil
	case len(s.begin) > 1:
		return nil, &exitError{exitWrongCall, fmt.Errorf("more than one call begins with %s, such as %s and %s", s.prefix, s.begin[0].ID, s.begin[1].ID)}
	case s.record == nil:
		return nil, nil
	case s.record.Redacted:
		return nil, fmt.Errorf("record %s was a literal text; it was removed, and with it what it belonged to", number(s.seq))
	}
	return nil, fmt.Errorf("record %s (%s) keeps the log and is of no event", number(s.seq), s.record.Kind)
}

// find reads the log for an event. Where the log is damaged, every seal is checked, so that one can say of an event before
// the damage that it is proved.
func find(cmd *cobra.Command, log fs.FS, o audit.VerifyOptions, wanted event) (*story.Story, finding, error) {
	for {
		s := &search{event: wanted}
		t := story.New(func(told story.Story) error {
			s.told(told)
			return nil
		})
		o.Visit = func(e audit.Entered) error {
			s.visit(e)
			return t.Add(e)
		}
		r, err := verifyLog(cmd.Context(), log, o)
		if err != nil {
			return nil, r, err
		}
		if err := t.Close(); err != nil {
			return nil, r, err
		}
		if r.Status != audit.Intact && !o.AllSeals {
			o.AllSeals = true
			continue
		}
		found, err := s.result()
		if found == nil && r.Status != audit.Intact {
			err = &exitError{r.Status.ExitCode(), fmt.Errorf("the log is %s before %s could be read: %s", r.Status, wanted.text, r.Problem)}
		} else if found == nil && err == nil {
			err = fmt.Errorf("no event is called %s%s", wanted.text, begins(r))
		}
		return found, r, err
	}
}

// begins says of a pruned log where it begins.
func begins(r finding) string {
	if r.First == 0 {
		return ""
	}
	return fmt.Sprintf("; the log begins with record %s, and what was before is pruned", number(r.First))
}

// explained is the JSON form of an explanation.
type explained struct {
	story.Story
	Proved bool    `json:"proved"` // a seal that verifies vouches for all of it
	Log    verdict `json:"log"`
}

func (a *app) explain(s *story.Story, r finding, show *pictures, details bool) error {
	proved := s.Seal != 0 && (r.Problem == nil || s.Seal < r.Problem.Seq)
	if err := show.write(s); err != nil {
		return err
	}
	if a.json {
		a.printJSON(explained{*s, proved, verdictOf(r)})
		return reportError(r)
	}
	fmt.Fprintf(a.out, "%s\n", s.Headline)
	fmt.Fprintf(a.out, "  %s\n", s.Said)
	fmt.Fprintf(a.out, "  %s, records %s to %s", dated(s.When), number(s.First), number(s.Last))
	if s.Kind == story.KindCall {
		fmt.Fprintf(a.out, ", call %s", s.ID)
	}
	fmt.Fprintf(a.out, "\n\n")
	a.printVouching(r, proved)
	for i, step := range s.Steps {
		fmt.Fprintf(a.out, "\n%2d. %s%s\n", i+1, step.Text, references(step))
		a.printStep(step, show, details)
	}
	fmt.Fprintln(a.out)
	a.printReport(r)
	return reportError(r)
}

// printVouching says what the event is worth.
func (a *app) printVouching(r finding, proved bool) {
	switch {
	case !proved && r.Status == audit.Altered:
		fmt.Fprintln(a.out, "The log was ALTERED, so nothing vouches for what follows.")
	case !proved:
		fmt.Fprintln(a.out, "No seal vouches for what follows: nobody ever relied on it, and it proves nothing.")
	case r.Status == audit.Altered:
		fmt.Fprintln(a.out, "The log was ALTERED, though after this event: a seal before the damage vouches for what follows.")
	case r.Status == audit.Incomplete:
		fmt.Fprintln(a.out, "The log is incomplete, though this event is in it: a seal vouches for what follows.")
	default:
		fmt.Fprintln(a.out, "The log is intact, and a seal vouches for what follows.")
	}
}

func references(s story.Step) string {
	var all []string
	for _, seq := range s.Records {
		all = append(all, number(seq))
	}
	return " (" + strings.Join(all, ", ") + ")"
}

func (a *app) printStep(s story.Step, show *pictures, details bool) {
	for _, l := range s.Literals {
		a.printLiteral(l, details)
	}
	if s.Pages != nil {
		show.draw(a.out, s.Pages)
	}
	if !details {
		return
	}
	if p := s.Press; p != nil {
		a.printPress(p)
	}
	for _, f := range s.Facts {
		fmt.Fprintf(a.out, "      %s: %s\n", f.Name, f.Value)
	}
	for _, l := range s.Literals {
		fmt.Fprintf(a.out, "      digest of %s: %s\n", l.Name, l.Digest)
	}
}

// printPress prints what the panel and the fingers did, line by line.
func (a *app) printPress(p *story.Press) {
	line := func(what string, ns int64) {
		at, side := float64(ns)/1e9, "after"
		if at < 0 {
			at, side = -at, "before"
		}
		fmt.Fprintf(a.out, "      %s, %.3f s %s %s\n", what, at, side, p.Since)
	}
	for i, m := range p.Moves {
		if i == audit.StepsFirst && p.LeftOut > 0 {
			fmt.Fprintf(a.out, "      (%d more that the log left out)\n", p.LeftOut)
		}
		line("panel: "+m.Text, m.At)
	}
	for _, e := range p.Edges {
		line(e.Button+": "+e.Edge, e.At)
	}
}

// printLiteral prints other people's bytes line by line, each escaped. What is no text, such as a signature, is a detail.
func (a *app) printLiteral(l story.Literal, details bool) {
	switch l.State {
	case story.KeptWithheld:
		fmt.Fprintf(a.out, "      %s: withheld, as the capability asks for\n", l.Name)
		return
	case story.KeptRedacted:
		fmt.Fprintf(a.out, "      %s: removed since\n", l.Name)
		return
	case story.KeptNo:
		fmt.Fprintf(a.out, "      %s: not kept\n", l.Name)
		return
	}
	exact := l.Bytes
	if exact == nil {
		exact = []byte(l.Text)
	}
	if !utf8.Valid(exact) && !details {
		fmt.Fprintf(a.out, "      %s (%s): %s\n", l.Name, number(l.Record), plural(uint64(len(exact)), "byte"))
		return
	}
	fmt.Fprintf(a.out, "      %s (%s):\n", l.Name, number(l.Record))
	for text := range strings.SplitSeq(strings.TrimSuffix(string(exact), "\n"), "\n") {
		fmt.Fprintf(a.out, "        | %s\n", story.Printable([]byte(strings.TrimSuffix(text, "\r"))))
	}
}
