package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"assent.home.arpa/appliance/audit"
	"assent.home.arpa/appliance/audit/export"
	"assent.home.arpa/appliance/clock"
	"assent.home.arpa/inference/model"
)

func (a *app) newAuditExportCmd() *cobra.Command {
	var o export.Options
	cmd := &cobra.Command{
		Use:   "export PATH DIR",
		Short: "Copy a log to a stick or directory, with a page to read it",
		Long: "Copy the log in the directory PATH to a new directory in DIR: the evidence byte for byte, what explains it, and a page\n" +
			"that opens in any browser. The copy appears whole or not at all; each file is read back. The log may be in use.\n" +
			"A log that is damaged is copied too, and the exit status says so. With --redact, literal texts are left out, and the\n" +
			"copy still verifies.\n\n" +
			"Exit status: 0 copied and intact, 1 copied and altered, 2 copied and incomplete, or not copied.",
		Example: "  assent audit export DIR /media/me/STICK\n  assent audit export --redact DIR .",
		Args:    takes("PATH", "DIR"),
		RunE: func(cmd *cobra.Command, args []string) error {
			log, err := openLog(args[0])
			if err != nil {
				return err
			}
			if err := outside(args[0], args[1]); err != nil {
				return err
			}
			root, err := os.OpenRoot(args[1])
			if err != nil {
				return fmt.Errorf("the place to copy to: %w", err)
			}
			defer root.Close()
			steps := a.newSteps()
			o.Clock, o.Progress = clock.System(), steps.update
			r, err := export.Write(cmd.Context(), log, export.Directory(root), o)
			steps.done()
			if errors.Is(err, export.ErrUnredactable) {
				return bad(err)
			}
			if err != nil {
				return err
			}
			dir, copied := filepath.Join(args[1], r.Dir), finding{Report: r.Log}
			if r.Redacted {
				copied.withheldBy = withheldByCopy
			}
			if r.Beside != "" {
				fmt.Fprintf(a.err, "assent: %q was there already; it was not looked at, and is as it was\n", r.Beside)
			}
			if a.json {
				a.printJSON(exported{
					Dir: dir, Beside: r.Beside, Files: r.Files, Bytes: r.Bytes, Sums: r.Sums.String(), Left: r.Redacted,
					FirstSegment: r.FirstSegment, LastSegment: r.LastSegment, Log: verdictOf(copied),
				})
			} else {
				fmt.Fprintf(a.out, "%s: %d files, %d MB, written and read back\n", dir, r.Files, (r.Bytes+999_999)/1_000_000)
				a.printReport(copied)
			}
			return reportError(copied)
		},
	}
	cmd.Flags().BoolVar(&o.Redact, "redact", false, "leave out all literal texts and pictures")
	cmd.Flags().StringVar(&o.Name, "name", "", "what the box is called, for whoever reads the copy; the copy's directory is not called after it")
	return cmd
}

// outside refuses to copy into what is copied: a box would find foreign files beside its log.
func outside(log, target string) error {
	inner, err := filepath.EvalSymlinks(target)
	if err != nil {
		return fmt.Errorf("the place to copy to: %w", err)
	}
	outer, err := filepath.EvalSymlinks(log)
	if err != nil {
		return err
	}
	if inner, err = filepath.Abs(inner); err != nil {
		return err
	}
	if outer, err = filepath.Abs(outer); err != nil {
		return err
	}
	if below, err := filepath.Rel(outer, inner); err == nil && filepath.IsLocal(below) {
		return &exitError{exitWrongCall, fmt.Errorf("%q is within %q, which is to be copied: choose a place outside it", target, log)}
	}
	return nil
}

// exported is the JSON form of a copy.
type exported struct {
	Dir          string  `json:"dir"`
	Beside       string  `json:"beside,omitempty"` // what had the copy's name already, and was left as it is
	Files        int     `json:"files"`
	Bytes        int64   `json:"bytes"`
	Sums         string  `json:"sums"` // SHA-256 of SHA256SUMS
	Left         bool    `json:"texts_left_out"`
	FirstSegment uint32  `json:"first_segment"`
	LastSegment  uint32  `json:"last_segment"`
	Log          verdict `json:"log"`
}

// steps shows how far a long work is, step by step.
type steps struct {
	a       *app
	current export.Step
	shown   *progress
}

func (a *app) newSteps() *steps { return &steps{a: a} }

// shortWork is a number of bytes that nobody has to wait for.
const shortWork = 16 * audit.SegmentSize

func (s *steps) update(step export.Step, done, total int64) {
	if total < shortWork {
		return
	}
	if s.shown == nil || step != s.current {
		s.done()
		s.current, s.shown = step, newProgress(s.a.err, string(step))
	}
	s.shown.update(model.Progress{Done: done, Total: total})
}

func (s *steps) done() {
	if s.shown != nil {
		s.shown.done()
	}
}
