package main

import (
	"fmt"
	"io"

	"assent.home.arpa/appliance/audit"
)

// finding is what verifying found, and what it was held against.
type finding struct {
	audit.Report
	withheldBy withheldBy
	compared   bool // a seal or a head that somebody kept elsewhere is in the log
}

// withheldBy says who said that literal texts may be missing.
type withheldBy string

const (
	withheldByCopy   withheldBy = "copy"   // the copy says so itself
	withheldByOption withheldBy = "option" // whoever verifies accepts it
)

// withheld is who said that the texts may be missing which are, or nobody.
func (f finding) withheld() withheldBy {
	if f.Withheld == 0 || f.Status != audit.Intact {
		return ""
	}
	return f.withheldBy
}

func (a *app) printReport(f finding) { writeReport(a.out, f) }

// writeReport says in words what verifying found.
func writeReport(w io.Writer, f finding) {
	fmt.Fprintf(w, "%s: %s\n", verdictLine(f), extent(f.Report))
	if f.Problem == nil || f.Problem.About != audit.AboutKept { // where it is, the problem says what it may mean
		switch f.Status {
		case audit.Altered:
			fmt.Fprintf(w, "  something is not as it was written: it was changed afterwards, or the storage spoiled it\n")
		case audit.Incomplete:
			fmt.Fprintf(w, "  something is missing; nothing proves that what is there was altered\n")
		}
	}
	if f.Problem != nil {
		fmt.Fprintf(w, "  %s\n", f.Problem)
	}
	writeComparisons(w, f)
	if f.Pruned > 0 {
		fmt.Fprintf(w, "  %s pruned, as the log says: it begins with record %d\n", was(uint64(f.Pruned), "segment"), f.First)
	}
	if f.Redacted > 0 {
		fmt.Fprintf(w, "  %s removed, as records in the log say\n", was(uint64(f.Redacted), "literal text"))
	}
	if f.Unproven > 0 && f.Status != audit.Altered { // a seal that vouched for them may be in what is damaged
		verb := "they prove"
		if f.Unproven == 1 {
			verb = "it proves"
		}
		fmt.Fprintf(w, "  %s after the last seal: never acknowledged, so %s nothing\n", plural(f.Unproven, "record"), verb)
	}
	for _, o := range f.Open {
		fmt.Fprintf(w, "  call %s began and no outcome is recorded\n", o.Inv)
	}
}

func verdictLine(f finding) string {
	said := map[withheldBy]string{withheldByCopy: "as it says itself", withheldByOption: "as --withheld accepts"}[f.withheld()]
	if said == "" {
		return f.Status.String()
	}
	return fmt.Sprintf("%s, but %s left out of this copy, %s", f.Status, was(uint64(f.Withheld), "literal text"), said)
}

// extent says how much was read.
func extent(r audit.Report) string {
	if r.Stopped {
		return fmt.Sprintf("read up to what is wrong: %s under %s", plural(r.Records, "record"), plural(r.Seals, "seal"))
	}
	return fmt.Sprintf("%s under %s in %s, %s", plural(r.Records, "record"), plural(r.Seals, "seal"),
		plural(uint64(r.Segments), "segment"), plural(uint64(r.Boots), "start"))
}

// writeComparisons says what to hold against the box, and what held against it. What is not known is not printed.
func writeComparisons(w io.Writer, f finding) {
	switch {
	case f.Seals == 0:
	case f.Stopped:
		fmt.Fprintf(w, "  head %s (record %d): of the last seal before that, not of the log's end\n", f.Head.Code(), f.Head.Seq)
	default:
		fmt.Fprintf(w, "  head %s (record %d): compare it with what the box's panel shows after “log”\n", f.Head.Code(), f.Head.Seq)
	}
	if f.Root != (audit.Digest{}) {
		fmt.Fprintf(w, "  root %s: compare it with the key noted when the box was set up\n", f.Root)
	}
	for _, k := range f.Anchors {
		fmt.Fprintf(w, "  seal of record %d, kept elsewhere: %s\n", k.Seq, k.State)
	}
	if f.Status == audit.Intact && !f.compared {
		fmt.Fprintf(w, "  whether newer records were cut off at the end cannot be seen from inside: give a kept seal (--anchor) or a noted code (--head)\n")
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
