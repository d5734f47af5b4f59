package view

import (
	"fmt"
	"io/fs"

	"assent.home.arpa/appliance/audit"
)

// about is what the page's head says.
type about struct {
	Name      string    `json:"name,omitempty"`
	Statement Statement `json:"statement"`
	Made      int64     `json:"made_ms,omitempty"`
	Redacted  bool      `json:"redacted,omitempty"`
	Status    string    `json:"status"` // intact, altered or incomplete
	Cause     cause     `json:"cause,omitempty"`
	Problem   *problem  `json:"problem,omitempty"`
	Stopped   bool      `json:"stopped,omitempty"` // what is said below is of what is before the problem
	Root      string    `json:"root,omitempty"`    // where it is known
	Head      string    `json:"head,omitempty"`    // where there is a seal
	HeadSeq   audit.Seq `json:"head_seq"`
	Records   uint64    `json:"records"`
	Seals     uint64    `json:"seals"`
	Unproven  uint64    `json:"unproven,omitempty"`
	Removed   int       `json:"removed,omitempty"`  // literal texts, as records say
	Withheld  int       `json:"withheld,omitempty"` // literal texts, without such a record
	Pruned    uint32    `json:"pruned,omitempty"`   // segments at the beginning, as records say
	Stories   int       `json:"stories"`
}

type problem struct {
	Segment uint32    `json:"segment"`
	Offset  int64     `json:"offset"`
	Seq     audit.Seq `json:"seq"`
	Reason  string    `json:"reason"`
	About   string    `json:"about"` // as audit.About
}

// cause says in which way a log is incomplete, since people worry about different things.
type cause string

const (
	causeNothing  cause = "nothing"  // there is no whole beginning
	causeTorn     cause = "torn"     // the unsealed end, as a power cut leaves it
	causeMissing  cause = "missing"  // a file is not there
	causeWithheld cause = "withheld" // texts are not there, and nothing says why
	causeOther    cause = "other"    // not what somebody noted elsewhere
)

func causeOf(log fs.FS, r audit.Report) cause {
	if r.Status != audit.Incomplete || r.Problem == nil {
		return ""
	}
	name := fmt.Sprintf("seg-%08d.cborseq", r.Problem.Segment)
	_, here := fs.Stat(log, name)
	_, below := fs.Stat(log, "log/"+name)
	switch {
	case here != nil && below != nil:
		return causeMissing
	case r.Seals == 0:
		return causeNothing
	case r.Withheld > 0:
		return causeWithheld
	case r.Problem.About == audit.AboutRecord || r.Unproven > 0:
		return causeTorn
	}
	return causeOther
}

func (d *data) about(log fs.FS, r audit.Report, o Options) error {
	a := about{
		Name: o.Name, Statement: o.Statement, Redacted: o.Redacted, Status: r.Status.String(), Cause: causeOf(log, r),
		Stopped: r.Stopped, HeadSeq: r.Head.Seq, Records: r.Records, Seals: r.Seals, Unproven: r.Unproven,
		Removed: r.Redacted, Withheld: r.Withheld, Pruned: r.Pruned, Stories: d.stories,
	}
	if r.Root != (audit.Digest{}) {
		a.Root = r.Root.String()
	}
	if r.Seals > 0 {
		a.Head = r.Head.Code()
	}
	if !o.Made.IsZero() {
		a.Made = o.Made.UnixMilli()
	}
	if p := r.Problem; p != nil {
		a.Problem = &problem{p.Segment, p.Offset, p.Seq, p.Reason, p.About.String()}
	}
	literal, err := scriptLiteral(a)
	if err != nil {
		return err
	}
	f, err := d.open("data/about.js")
	if err != nil {
		return err
	}
	f.print("assent.about(", literal, ");\n")
	return f.close()
}
