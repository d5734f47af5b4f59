package main

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"assent.home.arpa/appliance/audit"
	"assent.home.arpa/appliance/audit/export"
)

func (a *app) newAuditCmd() *cobra.Command {
	return group("audit", "Verify and read what a box recorded", a.newAuditVerifyCmd(), a.newAuditShowCmd(), a.newAuditWhyCmd(),
		a.newAuditStatsCmd(), a.newAuditExportCmd(), a.newAuditServeCmd(), a.newAuditCableCmd())
}

// auditFlags are what a person may hold a log against.
type auditFlags struct {
	all      bool
	root     string
	head     string
	withheld bool
	pruned   bool
	anchors  []string
}

func (f *auditFlags) register(cmd *cobra.Command) {
	cmd.Flags().BoolVar(&f.all, "all-seals", false, "check every seal, not only the last of each start")
	cmd.Flags().StringVar(&f.root, "root", "", "the box's root key (64 hex digits), as noted when it was set up")
	cmd.Flags().StringVar(&f.head, "head", "", "a head code (8 characters) that the box showed; the log must hold it")
	cmd.Flags().StringArrayVar(&f.anchors, "anchor", nil, "a file with seals that a phone or an export kept; the log must hold them (may be repeated)")
	cmd.Flags().BoolVar(&f.pruned, "pruned", false, "accept that the part that an anchor is of was pruned since")
	cmd.Flags().BoolVar(&f.withheld, "withheld", false, "count a log as intact from which literal texts were left out without saying so")
}

func (f *auditFlags) options() (audit.VerifyOptions, error) {
	o := audit.VerifyOptions{AllSeals: f.all, Withheld: f.withheld, Pruned: f.pruned}
	if f.head != "" {
		head, err := headCode(f.head)
		if err != nil {
			return o, &exitError{exitWrongCall, err}
		}
		o.Head = head
	}
	for _, path := range f.anchors {
		kept, err := readAnchors(path)
		if err != nil {
			return o, err
		}
		o.Anchors = append(o.Anchors, kept...)
	}
	if f.root == "" {
		return o, nil
	}
	b, err := hex.DecodeString(f.root)
	if err != nil || len(b) != len(o.Root) {
		return o, &exitError{exitWrongCall, errors.New("--root takes 64 hex digits")}
	}
	if o.Root = audit.Digest(b); o.Root == (audit.Digest{}) {
		return o, &exitError{exitWrongCall, errors.New("--root: no box has a key of zeros only; give the one noted when the box was set up")}
	}
	return o, nil
}

// headCode reads a code as Crockford's base 32 wants it read: in either case, with hyphens or without, and forgiving the
// letters that look like digits.
func headCode(s string) (string, error) {
	code := strings.NewReplacer("O", "0", "I", "1", "L", "1", "-", "").Replace(strings.ToUpper(s))
	if len(code) != len(audit.Head{}.Code()) || strings.Trim(code, "0123456789ABCDEFGHJKMNPQRSTVWXYZ") != "" {
		return "", errors.New("--head takes the 8 characters of a head code, as the panel shows it")
	}
	return code, nil
}

// takes is the arguments of a command, each of which must be given.
func takes(names ...string) cobra.PositionalArgs {
	return func(_ *cobra.Command, args []string) error {
		switch {
		case len(args) < len(names):
			return fmt.Errorf("say which %s: this command takes %s", strings.Join(names[len(args):], " and "), strings.Join(names, " and "))
		case len(args) > len(names):
			return fmt.Errorf("%q is one too many: this command takes %s", args[len(names)], strings.Join(names, " and "))
		}
		return nil
	}
}

// logPlaces is where a log may lie below the directory that a person names: a log itself, a copy of one, or the state of a
// box or of the simulator.
func logPlaces() []string { return []string{".", "log", "audit", "guard/audit"} }

// openLog finds the log in the directory path.
func openLog(path string) (fs.FS, error) {
	dir, err := logDir(path)
	if err != nil {
		return nil, err
	}
	return os.DirFS(dir), nil
}

// logDir is the directory with the segments in or below the one that a person names.
func logDir(path string) (string, error) {
	if info, err := os.Stat(path); err == nil && !info.IsDir() {
		return "", fmt.Errorf("%q is a file: give the directory that it is in, %q", path, filepath.Dir(path))
	}
	for _, place := range logPlaces() {
		dir := filepath.Join(path, place)
		switch holds, err := holdsLog(dir); {
		case errors.Is(err, fs.ErrPermission):
			return "", fmt.Errorf("the audit log cannot be read: %w", err)
		case holds:
			return dir, nil
		}
	}
	if below := logsBelow(path); len(below) > 0 {
		return "", fmt.Errorf("%q holds no audit log, but there is one in %s: say which", path, strings.Join(below, ", "))
	}
	return "", fmt.Errorf("%q holds no audit log: give the directory with the seg-*.cborseq files", path)
}

func holdsLog(dir string) (bool, error) {
	entries, err := os.ReadDir(dir)
	return slices.ContainsFunc(entries, func(e fs.DirEntry) bool {
		return strings.HasPrefix(e.Name(), "seg-") && strings.HasSuffix(e.Name(), ".cborseq")
	}), err
}

// maxNamed bounds how many directories an error names.
const maxNamed = 5

// logsBelow names the directories in path that hold logs, as one into which copies were exported does.
func logsBelow(path string) (below []string) {
	entries, _ := os.ReadDir(path)
	for _, e := range entries {
		for _, place := range logPlaces() {
			dir := filepath.Join(path, e.Name())
			if holds, _ := holdsLog(filepath.Join(dir, place)); holds && len(below) < maxNamed {
				below = append(below, strconv.Quote(dir))
				break
			}
		}
	}
	return below
}

func verifyDir(ctx context.Context, path string, o audit.VerifyOptions) (finding, error) {
	log, err := openLog(path)
	if err != nil {
		return finding{}, err
	}
	return verifyLog(ctx, log, o)
}

// verifyLog is audit.Verify for what a person gave it: an anchor that is none is wrong usage, and a copy that says that
// texts were left out on purpose is intact without them.
func verifyLog(ctx context.Context, log fs.FS, o audit.VerifyOptions) (finding, error) {
	accept, by := accepting(log, o)
	r, err := audit.Verify(ctx, log, accept)
	if len(o.Anchors) > 0 && errors.Is(err, audit.ErrMalformed) {
		err = &exitError{exitWrongCall, fmt.Errorf("--anchor: %w", err)}
	}
	return found(r, o, by), err
}

// accepting returns options under which a copy may lack literal texts if it says so itself, and who said so.
func accepting(log fs.FS, o audit.VerifyOptions) (audit.VerifyOptions, withheldBy) {
	switch {
	case export.Redacted(log):
		o.Withheld = true
		return o, withheldByCopy
	case o.Withheld:
		return o, withheldByOption
	}
	return o, ""
}

func found(r audit.Report, o audit.VerifyOptions, by withheldBy) finding {
	held := slices.ContainsFunc(r.Anchors, func(k audit.AnchorReport) bool { return k.State == audit.AnchorHeld })
	return finding{Report: r, withheldBy: by, compared: held || o.Head != ""}
}

// reportError turns a verdict into the command's end.
func reportError(f finding) error {
	if f.Status == audit.Intact {
		return nil
	}
	return &exitError{f.Status.ExitCode(), fmt.Errorf("the log is %s: %s", f.Status, f.Problem)}
}

// verdict is the JSON form of a report.
type verdict struct {
	Verdict  string            `json:"verdict"` // intact, altered or incomplete
	Exit     int               `json:"exit"`
	Problem  *problem          `json:"problem,omitempty"`
	Stopped  bool              `json:"stopped,omitempty"` // what follows is of what is before the problem
	Root     string            `json:"root,omitempty"`    // where it is known
	Head     string            `json:"head,omitempty"`    // code, where there is a seal
	HeadSeq  audit.Seq         `json:"head_seq,omitempty"`
	HeadLink string            `json:"head_link,omitempty"`
	First    audit.Seq         `json:"first"`
	Pruned   uint32            `json:"pruned"` // segments, as the log says
	Anchors  []anchored        `json:"anchors,omitempty"`
	Segments int               `json:"segments"`
	Records  uint64            `json:"records"`
	Seals    uint64            `json:"seals"`
	Starts   int               `json:"starts"`
	Epoch    uint32            `json:"epoch"`
	Redacted int               `json:"redacted"`
	Withheld int               `json:"withheld"`              // texts that are missing, and no record says why
	By       withheldBy        `json:"withheld_by,omitempty"` // who says so: the copy itself, or --withheld
	Unproven uint64            `json:"unproven"`
	Open     []string          `json:"open,omitempty"` // invocations whose effect nobody recorded
	Kinds    map[string]uint64 `json:"kinds"`
}

// anchored is what the log says of one seal that was kept elsewhere.
type anchored struct {
	Seq   audit.Seq `json:"seq"`
	State string    `json:"state"`
}

type problem struct {
	Segment uint32    `json:"segment"`
	Offset  int64     `json:"offset"`
	Seq     audit.Seq `json:"seq"`
	Reason  string    `json:"reason"`
	About   string    `json:"about"` // record, anchors, log, kept or texts; the place means something for a record only
}

func verdictOf(r finding) verdict {
	v := verdict{
		Verdict: r.Status.String(), Exit: r.Status.ExitCode(), Stopped: r.Stopped, Segments: r.Segments, Records: r.Records, Seals: r.Seals, Starts: r.Boots, Epoch: r.Epochs,
		Redacted: r.Redacted, Withheld: r.Withheld, Unproven: r.Unproven, Kinds: map[string]uint64{},
		First: r.First, Pruned: r.Pruned, By: r.withheld(),
	}
	if r.Root != (audit.Digest{}) {
		v.Root = r.Root.String()
	}
	if r.Seals > 0 {
		v.Head, v.HeadSeq, v.HeadLink = r.Head.Code(), r.Head.Seq, r.Head.Link.String()
	}
	for _, k := range r.Anchors {
		v.Anchors = append(v.Anchors, anchored{k.Seq, k.State.String()})
	}
	if p := r.Problem; p != nil {
		v.Problem = &problem{p.Segment, p.Offset, p.Seq, p.Reason, p.About.String()}
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
