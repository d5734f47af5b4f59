package main

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"

	"github.com/spf13/cobra"

	"assent.home.arpa/appliance/audit"
)

func (a *app) newAuditCmd() *cobra.Command {
	return group("audit", "Verify and read what a box recorded", a.newAuditVerifyCmd(), a.newAuditShowCmd())
}

// auditFlags are what a person may hold a log against.
type auditFlags struct {
	all      bool
	root     string
	head     string
	withheld bool
}

func (f *auditFlags) register(cmd *cobra.Command) {
	cmd.Flags().BoolVar(&f.all, "all-seals", false, "check every seal, not only the last of each start")
	cmd.Flags().StringVar(&f.root, "root", "", "the box's root key (64 hex digits), as noted when it was set up")
	cmd.Flags().StringVar(&f.head, "head", "", "a head code (8 characters) that the box showed; the log must hold it")
	cmd.Flags().BoolVar(&f.withheld, "withheld", false, "accept a copy from which literal texts were left out")
}

func (f *auditFlags) options() (audit.VerifyOptions, error) {
	o := audit.VerifyOptions{AllSeals: f.all, Head: f.head, Withheld: f.withheld}
	if f.root == "" {
		return o, nil
	}
	b, err := hex.DecodeString(f.root)
	if err != nil || len(b) != len(o.Root) {
		return o, &exitError{exitWrongCall, errors.New("--root takes 64 hex digits")}
	}
	o.Root = audit.Digest(b)
	return o, nil
}

func (a *app) newAuditVerifyCmd() *cobra.Command {
	var flags auditFlags
	cmd := &cobra.Command{
		Use:   "verify PATH",
		Short: "Check that a log is whole and was not altered",
		Long: "Check that the log in the directory PATH is whole and was not altered.\n\n" +
			"Exit status: 0 intact, 1 altered, 2 incomplete (torn, cut short, rolled back or withheld) or unreadable.\n" +
			"A log that was rolled back to an earlier state looks intact from inside: compare the head with the code that the box\n" +
			"shows, or give --head a code that it showed before, and compare the root key with the one noted when the box was set up.",
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

func verifyDir(ctx context.Context, path string, o audit.VerifyOptions) (audit.Report, error) {
	r, err := audit.Verify(ctx, os.DirFS(path), o)
	if errors.Is(err, fs.ErrNotExist) {
		return r, fmt.Errorf("%q holds no audit log: give the directory with the seg-*.cborseq files", path)
	}
	return r, err
}

// reportError turns a verdict into the command's end.
func reportError(r audit.Report) error {
	if r.Status == audit.Intact {
		return nil
	}
	return &exitError{r.Status.ExitCode(), fmt.Errorf("the log is %s: %s", r.Status, r.Problem)}
}

// verdict is the JSON form of a report.
type verdict struct {
	Verdict  string            `json:"verdict"` // intact, altered or incomplete
	Exit     int               `json:"exit"`
	Problem  *problem          `json:"problem,omitempty"`
	Root     string            `json:"root"`
	Head     string            `json:"head"` // code
	HeadSeq  audit.Seq         `json:"head_seq"`
	HeadLink string            `json:"head_link"`
	Segments int               `json:"segments"`
	Records  uint64            `json:"records"`
	Seals    uint64            `json:"seals"`
	Starts   int               `json:"starts"`
	Epoch    uint32            `json:"epoch"`
	Redacted int               `json:"redacted"`
	Withheld int               `json:"withheld"`
	Unproven uint64            `json:"unproven"`
	Open     []string          `json:"open,omitempty"` // invocations whose effect nobody recorded
	Kinds    map[string]uint64 `json:"kinds"`
}

type problem struct {
	Segment uint32    `json:"segment"`
	Offset  int64     `json:"offset"`
	Seq     audit.Seq `json:"seq"`
	Reason  string    `json:"reason"`
}

func verdictOf(r audit.Report) verdict {
	v := verdict{
		Verdict: r.Status.String(), Exit: r.Status.ExitCode(), Root: r.Root.String(), Head: r.Head.Code(), HeadSeq: r.Head.Seq,
		HeadLink: r.Head.Link.String(), Segments: r.Segments, Records: r.Records, Seals: r.Seals, Starts: r.Boots, Epoch: r.Epochs,
		Redacted: r.Redacted, Withheld: r.Withheld, Unproven: r.Unproven, Kinds: map[string]uint64{},
	}
	if p := r.Problem; p != nil {
		v.Problem = &problem{p.Segment, p.Offset, p.Seq, p.Reason}
	}
	for _, o := range r.Open {
		v.Open = append(v.Open, o.Inv.String())
	}
	for k, n := range r.Kinds {
		if n > 0 {
			v.Kinds[audit.Kind(k).String()] = n
		}
	}
	return v
}

func (a *app) printReport(r audit.Report) {
	fmt.Fprintf(a.out, "%s: %d records under %d seals in %d segments, %d starts\n", r.Status, r.Records, r.Seals, r.Segments, r.Boots)
	if r.Problem != nil {
		fmt.Fprintf(a.out, "  %s\n", r.Problem)
	}
	fmt.Fprintf(a.out, "  head %s (record %d): compare it with the code on the box's panel\n", r.Head.Code(), r.Head.Seq)
	fmt.Fprintf(a.out, "  root %s: compare it with the key noted when the box was set up\n", r.Root)
	if n := r.Redacted + r.Withheld; n > 0 {
		fmt.Fprintf(a.out, "  %d literal texts were removed, %d of them without a record that says so\n", n, r.Withheld)
	}
	if r.Unproven > 0 {
		fmt.Fprintf(a.out, "  %d records after the last seal were never acknowledged, and prove nothing\n", r.Unproven)
	}
	for _, o := range r.Open {
		fmt.Fprintf(a.out, "  call %s began and no outcome is recorded\n", o.Inv)
	}
}
